/* print.c - a configuration as a file, and an option as text.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "conf/conf.h"
#include "conf/options.h"
#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { ORIGIN_COLUMN = 40 };

static void origin_print(const struct sw_conf_origin *from, FILE *f)
{
	if (!from)
		fprintf(f, "; by default");
	else if (from->variable && from->launcher)
		fprintf(f, "; %s of %s", from->variable, from->launcher);
	else if (from->variable)
		fprintf(f, "; %s", from->variable);
	else
		fprintf(f, "; line %u", from->line);
}

static void section_print(const struct sw_conf *conf,
	const struct sw_conf_origins *origins, const struct sw_section *s,
	const char *base, FILE *f)
{
	char buf[SW_CONF_USERS_BYTES];

	fprintf(f, s->is_many ? "[%s %s]\n" : "[%s]\n", s->name, base);
	for (uint32_t i = 0; i < sw_n_options; i++) {
		const struct sw_option *o = &sw_options[i];
		const char *field = base + o->offset;
		int n;

		if (!sw_option_is_in(o, s))
			continue;
		n = fprintf(f, "%s = %s", o->key,
			sw_option_format(o, field, buf, sizeof(buf)));
		if (origins) {
			fprintf(f, "%*s ",
				n < ORIGIN_COLUMN ? ORIGIN_COLUMN - n : 0, "");
			origin_print(sw_conf_origin(origins, conf, field), f);
		}
		fprintf(f, "\n");
	}
	fprintf(f, "\n");
}

void sw_conf_print(const struct sw_conf *conf,
	const struct sw_conf_origins *origins, FILE *f)
{
	for (uint32_t i = 0; i < sw_n_sections; i++) {
		const struct sw_section *s = &sw_sections[i];
		const char *base = (const char *)conf + s->offset;
		uint32_t n = 1;

		if (s->is_many)
			memcpy(&n, (const char *)conf + s->n_offset, sizeof(n));
		for (; n--; base += s->bytes)
			section_print(conf, origins, s, base, f);
	}
}

void sw_option_allowed_print(const struct sw_option *o, FILE *f)
{
	static const char *const forms[] = {
		[SW_OPTION_IP] = "an IPv4 or IPv6 address",
		[SW_OPTION_SUBNET] =
			"an IPv4 or IPv6 address and a prefix length, "
			"like 10.0.0.1/24",
		[SW_OPTION_NAME] = "1 to 31 letters, digits, `.`, `_` or `-`",
		[SW_OPTION_DEVICE] = "the name of a device",
		[SW_OPTION_ARGS] = "key=value, separated by commas",
		[SW_OPTION_PATH] = "an absolute path of at most 107 bytes",
		[SW_OPTION_SOCKET] = "an absolute path of at most 107 bytes, "
				     "or a name alone",
		[SW_OPTION_USERS] = "names or numbers, separated by commas",
		[SW_OPTION_CPUS] = "auto, or a list like 2,4-5",
		[SW_OPTION_JOBS] = "names, separated by commas",
		[SW_OPTION_NETWORKS] = "networks, separated by commas",
	};
	enum sw_unit unit = sw_option_unit(o);
	char min[32], max[32];

	if (strchr(o->unit, '|')) {
		fprintf(f, "one of");
		for (const char *p = o->unit; *p;) {
			size_t n = strcspn(p, "|");

			if (*p != '(')
				fprintf(f, "%s %.*s", p > o->unit ? "," : "",
					(int)n, p);
			p += n + (p[n] == '|');
		}
		return;
	}
	if (!sw_option_is_number(o)) {
		fprintf(f, "%s", forms[o->type]);
		return;
	}
	if (!o->min && !o->max) {
		fprintf(f, "a whole number");
		return;
	}
	fprintf(f, "%s to %s", sw_value_format(o->min, unit, min, sizeof(min)),
		sw_value_format(o->max, unit, max, sizeof(max)));
	if (unit != SW_UNIT_NONE)
		fprintf(f, " (units: %s)", sw_unit_names(unit));
	else if (*o->unit)
		fprintf(f, " %s", o->unit);
}

void sw_option_default_print(const struct sw_option *o, FILE *f)
{
	if (!o->def)
		fprintf(f, "must be given");
	else
		fprintf(f, "%s", *o->def ? o->def : "empty");
}

static void option_explain(
	const struct sw_section *s, const struct sw_option *o, FILE *f)
{
	fprintf(f, "[%s%s] %s\n  %s\n  value:   ", s->name, sw_section_label(s),
		o->key, o->text);
	sw_option_allowed_print(o, f);
	fprintf(f, "\n  default: ");
	sw_option_default_print(o, f);
	fprintf(f, "\n");
}

/* Return whether @key means option @o: as "ring" or "port.ring", or by its
 * section. */
static bool is_meant(const char *key, const struct sw_option *o)
{
	size_t n = strlen(o->section);

	if (!strcmp(key, o->key) || !strcmp(key, o->section))
		return true;
	return !strncmp(key, o->section, n) && key[n] == '.' &&
	       !strcmp(key + n + 1, o->key);
}

static const char *key_nearest(const char *key)
{
	struct sw_nearest near;
	const char *dot = strchr(key, '.');

	sw_nearest_init(&near, dot ? dot + 1 : key);
	for (uint32_t i = 0; i < sw_n_options; i++)
		sw_nearest_add(&near, sw_options[i].key);
	for (uint32_t i = 0; i < sw_n_sections; i++)
		sw_nearest_add(&near, sw_sections[i].name);
	return near.best;
}

int sw_conf_explain(const char *key, FILE *f, const char **near)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < sw_n_sections; i++) {
		const struct sw_section *s = &sw_sections[i];

		if (!strcmp(key, s->name))
			fprintf(f, "[%s%s] %s\n", s->name, sw_section_label(s),
				s->text);
		for (uint32_t k = 0; k < sw_n_options; k++)
			if (sw_option_is_in(&sw_options[k], s) &&
				is_meant(key, &sw_options[k])) {
				option_explain(s, &sw_options[k], f);
				n++;
			}
	}
	if (near)
		*near = n ? NULL : key_nearest(key);
	return n ? 0 : SW_ENOENT;
}
