/* conf.c - load a configuration file.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/conf.h"

#include <stdlib.h>
#include <string.h>

#include "conf/check.h"
#include "conf/environ.h"
#include "conf/options.h"
#include "conf/report.h"
#include "conf/scan.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"

/* State of a load. */
struct load {
	struct sw_report report;
	struct sw_scan scan;
	struct sw_conf *conf;
	struct sw_conf_origins *origins;
};

void sw_conf_defaults(struct sw_conf *out)
{
	memset(out, 0, sizeof(*out));
	for (uint32_t i = 0; i < sw_n_sections; i++)
		if (!sw_sections[i].is_many)
			sw_section_defaults(&sw_sections[i],
				(char *)out + sw_sections[i].offset);
}

/* Find the row of a header such as "job" or "port NAME".  Sets @label to the
 * rest. */
static const struct sw_section *section_find(
	const char *header, const char **label)
{
	for (uint32_t i = 0; i < sw_n_sections; i++) {
		const struct sw_section *s = &sw_sections[i];
		size_t n = strlen(s->name);

		*label = "";
		if (!strcmp(header, s->name))
			return s;
		*label = header + n + 1;
		if (!strncmp(header, s->name, n) && header[n] == ' ')
			return s;
	}
	return NULL;
}

static void section_unknown(struct load *l, const struct sw_scan_entry *e)
{
	struct sw_nearest near;
	char word[64];
	size_t n = strcspn(e->section, " ");

	memcpy(word, e->section, n < 63 ? n : 63);
	word[n < 63 ? n : 63] = '\0';
	sw_nearest_init(&near, word);
	for (uint32_t i = 0; i < sw_n_sections; i++)
		sw_nearest_add(&near, sw_sections[i].name);
	sw_report_error(&l->report, e->line, e->section, NULL,
		"unknown section%s%s%s", near.best ? "; did you mean [" : "",
		near.best ? near.best : "", near.best ? "]?" : "");
}

/* Return the struct of an opened section; NULL: the section was refused. */
static char *base_find(
	struct load *l, const struct sw_section *s, const char *label)
{
	char *base = (char *)l->conf + s->offset;
	uint32_t n;

	if (!s->is_many)
		return *label ? NULL : base;
	memcpy(&n, (char *)l->conf + s->n_offset, sizeof(n));
	for (uint32_t i = 0; i < n; i++, base += s->bytes)
		if (!strcmp(base, label)) /* the label is the first field */
			return base;
	return NULL;
}

static void many_add(struct load *l, const struct sw_section *s,
	const struct sw_scan_entry *e, const char *label)
{
	char *n_field = (char *)l->conf + s->n_offset, *base;
	uint32_t n;

	memcpy(&n, n_field, sizeof(n));
	if (!sw_label_is_good(label)) {
		sw_report_error(&l->report, e->line, e->section, NULL,
			"needs a name of 1 to %d letters, digits, '_', '-' or "
			"'.', like [%s a]",
			SW_CONF_NAME_BYTES - 1, s->name);
		return;
	}
	if (n == SW_CONF_MANY_MAX) {
		sw_report_error(&l->report, e->line, e->section, NULL,
			"there are more than %d of these", SW_CONF_MANY_MAX);
		return;
	}
	base = (char *)l->conf + s->offset + n * s->bytes;
	memcpy(base, label, strlen(label) + 1);
	sw_section_defaults(s, base);
	n++;
	memcpy(n_field, &n, sizeof(n));
}

static void header_take(struct load *l, const struct sw_scan_entry *e)
{
	const char *label;
	const struct sw_section *s = section_find(e->section, &label);

	if (!s)
		section_unknown(l, e);
	else if (s->is_many)
		many_add(l, s, e, label);
	else if (*label)
		sw_report_error(&l->report, e->line, e->section, NULL,
			"takes no name: write [%s]", s->name);
}

/* List the sections that have @key as "[a] or [b]"; "" if no section has it. */
static void sections_list(const char *key, char *out, size_t len)
{
	size_t at = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < sw_n_options && at < len; i++)
		if (!strcmp(sw_options[i].key, key))
			at += (size_t)snprintf(out + at, len - at, "%s[%s]",
				at ? " or " : "", sw_options[i].section);
}

/* Return the current name of a key of older files; NULL: not renamed. */
static const char *key_renamed(
	const struct sw_section *s, const struct sw_scan_entry *e)
{
	static const struct {
		const char *section, *old, *now;
	} renamed[] = {{"job", "workers", "agents"}, {"job", "rank", "agent"}};

	for (size_t i = 0; i < SW_ARRAY_SIZE(renamed); i++)
		if (!strcmp(s->name, renamed[i].section) &&
			!strcmp(e->key, renamed[i].old))
			return renamed[i].now;
	return NULL;
}

/* Report an unknown key, with the nearest key or the section that has it. */
static void key_unknown(struct load *l, const struct sw_section *s,
	const struct sw_scan_entry *e)
{
	struct sw_nearest near;
	char elsewhere[128];

	if (key_renamed(s, e)) {
		sw_report_error(&l->report, e->line, e->section, e->key,
			"unknown key; use %s", key_renamed(s, e));
		return;
	}
	sw_nearest_init(&near, e->key);
	for (uint32_t i = 0; i < sw_n_options; i++)
		if (sw_option_is_in(&sw_options[i], s))
			sw_nearest_add(&near, sw_options[i].key);
	sections_list(e->key, elsewhere, sizeof(elsewhere));
	if (*elsewhere)
		sw_report_error(&l->report, e->line, e->section, e->key,
			"unknown key here; it belongs to %s", elsewhere);
	else if (near.best)
		sw_report_error(&l->report, e->line, e->section, e->key,
			"unknown key; did you mean %s?", near.best);
	else
		sw_report_error(&l->report, e->line, e->section, e->key,
			"unknown key (sumwire conf --explain %s "
			"shows all)",
			s->name);
}

static void key_take(struct load *l, const struct sw_scan_entry *e)
{
	const char *label;
	const struct sw_section *s = section_find(e->section, &label);
	const struct sw_option *o = s ? sw_option_find(s, e->key) : NULL;
	char *base = s ? base_find(l, s, label) : NULL;
	char why[SW_WHY_BYTES];

	if (!base) /* already reported at its header */
		return;
	if (!o) {
		key_unknown(l, s, e);
		return;
	}
	if (sw_option_parse(o, e->value, base + o->offset, why) < 0)
		sw_report_error(
			&l->report, e->line, e->section, e->key, "%s", why);
	sw_origin_add(l->origins, l->conf, base + o->offset, e->line, NULL);
}

/* Check that a section has every option without a default. */
static void required_check(struct load *l, const struct sw_section *s,
	const char *base, const char *label)
{
	char header[2 * SW_CONF_NAME_BYTES];

	snprintf(header, sizeof(header), "%s%s%s", s->name, *label ? " " : "",
		label);
	for (uint32_t i = 0; i < sw_n_options; i++) {
		const struct sw_option *o = &sw_options[i];

		if (sw_option_is_in(o, s) && !o->def &&
			!sw_conf_origin(l->origins, l->conf, base + o->offset))
			sw_report_error(&l->report,
				sw_scan_line(&l->scan, header, NULL), header,
				o->key, "is missing: %s%s%s%s", o->text,
				*o->unit ? " (" : "", o->unit,
				*o->unit ? ")" : "");
	}
}

static void all_required_check(struct load *l)
{
	for (uint32_t i = 0; i < sw_n_sections; i++) {
		const struct sw_section *s = &sw_sections[i];
		const char *base = (const char *)l->conf + s->offset;
		uint32_t n;

		if (!s->is_many) {
			required_check(l, s, base, "");
			continue;
		}
		memcpy(&n, (char *)l->conf + s->n_offset, sizeof(n));
		for (; n--; base += s->bytes)
			required_check(l, s, base, base);
	}
}

static void environment_take(struct load *l)
{
	struct sw_launch launch;
	char why[SW_LAUNCH_WHY_BYTES];

	if (sw_launch_read(&launch, getenv, why) < 0)
		sw_report_error(&l->report, 0, NULL, NULL,
			"in the environment %s", why);
	else if (!l->report.n_errors)
		sw_environ_apply(
			&launch, l->conf, &l->scan, &l->report, l->origins);
	if (!l->report.n_errors)
		sw_environ_key_file(getenv("SUMWIRE_KEY_FILE"), l->conf,
			&l->scan, &l->report, l->origins);
	if (!l->report.n_errors)
		sw_environ_encrypt(getenv("SUMWIRE_ENCRYPT"), l->conf, &l->scan,
			&l->report, l->origins);
}

static int file_take(struct load *l)
{
	for (uint32_t i = 0; i < l->scan.n_entries; i++) {
		const struct sw_scan_entry *e = &l->scan.entries[i];

		if (e->key)
			key_take(l, e);
		else
			header_take(l, e);
	}
	environment_take(l);
	all_required_check(l);
	/* With a part of the configuration missing, these checks would
	 * mislead. */
	if (!l->report.n_errors)
		sw_check_run(l->conf, &l->scan, &l->report);
	if (!l->report.n_errors)
		return 0;
	sw_environ_note(l->origins, &l->report);
	return SW_ECONF;
}

int sw_conf_load_origins(const char *path, struct sw_conf *out,
	struct sw_conf_origins *origins, const struct sw_log *log)
{
	struct load l = {.report = {.log = log, .path = path}};
	int err;

	l.conf = malloc(sizeof(*l.conf));
	l.origins = calloc(1, sizeof(*l.origins));
	if (!l.conf || !l.origins) {
		sw_report_error(&l.report, 0, NULL, NULL, "no memory to load");
		free(l.conf);
		free(l.origins);
		return SW_ENOMEM;
	}
	sw_conf_defaults(l.conf);
	err = sw_scan_open(&l.report, &l.scan);
	if (!err) {
		err = file_take(&l);
		sw_scan_close(&l.scan);
	}
	if (!err)
		*out = *l.conf;
	if (!err && origins)
		*origins = *l.origins;
	free(l.conf);
	free(l.origins);
	return err;
}

int sw_conf_load(
	const char *path, struct sw_conf *out, const struct sw_log *log)
{
	return sw_conf_load_origins(path, out, NULL, log);
}
