/* option_parse.c - parse one value of each type.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/options.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

bool sw_label_is_good(const char *text)
{
	size_t len = strspn(text, name_chars);

	return len && !text[len] && len < SW_CONF_NAME_BYTES;
}

/* Return the index of @text among the words "a|b|(c)" of a row; -1 if it is
 * unknown, -2 if the row has it in parentheses. */
static int word_find(const char *words, const char *text)
{
	size_t len = strlen(text);

	for (int i = 0; *words; i++) {
		size_t n = strcspn(words, "|");

		if (n == len && len && !memcmp(words, text, len))
			return i;
		if (n == len + 2 && *words == '(' &&
			!memcmp(words + 1, text, len))
			return -2;
		words += n + (words[n] == '|');
	}
	return -1;
}

/* List the words of a row that are allowed, as "a, b". */
static void words_list(const char *words, char *out, size_t len)
{
	size_t at = 0;

	out[0] = '\0';
	while (*words && at < len) {
		size_t n = strcspn(words, "|");

		if (*words != '(')
			at += (size_t)snprintf(out + at, len - at, "%s%.*s",
				at ? ", " : "", (int)n, words);
		words += n + (words[n] == '|');
	}
}

static void word_nearest(
	const char *words, const char *text, char *out, size_t len)
{
	struct sw_nearest near;
	char all[128], *save, *word;

	out[0] = '\0';
	sw_nearest_init(&near, text);
	words_list(words, all, sizeof(all));
	for (word = strtok_r(all, ", ", &save); word;
		word = strtok_r(NULL, ", ", &save))
		sw_nearest_add(&near, word);
	if (near.best)
		snprintf(out, len, "; did you mean %s?", near.best);
}

static int choice_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	int i = word_find(o->unit, text);
	char all[128], near[64];

	if (i >= 0) {
		*(uint32_t *)field = (uint32_t)i;
		return 0;
	}
	words_list(o->unit, all, sizeof(all));
	word_nearest(o->unit, text, near, sizeof(near));
	if (i == -2)
		snprintf(why, SW_WHY_BYTES,
			"\"%s\" is planned, but this "
			"version does not have it: use one of %s",
			text, all);
	else
		snprintf(why, SW_WHY_BYTES, "\"%.40s\" is none of %s%s", text,
			all, near);
	return SW_ECONF;
}

static int bool_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	bool is_yes = !strcmp(text, "yes");

	if (!is_yes && strcmp(text, "no") != 0) {
		snprintf(why, SW_WHY_BYTES, "\"%.40s\" is neither yes nor no",
			text);
		return SW_ECONF;
	}
	*(bool *)field = is_yes;
	return 0;
}

static int bounds_check(
	const struct sw_option *o, const char *text, uint64_t value, char *why)
{
	char min[32], max[128];

	if (*o->unit && strchr(o->unit, '|') && word_find(o->unit, text) < 0) {
		words_list(o->unit, max, sizeof(max));
		snprintf(why, SW_WHY_BYTES, "\"%.40s\" is none of %s", text,
			max);
		return SW_ECONF;
	}
	if ((!o->min && !o->max) || (value >= o->min && value <= o->max))
		return 0;
	sw_value_format(o->min, sw_option_unit(o), min, sizeof(min));
	sw_value_format(o->max, sw_option_unit(o), max, sizeof(max));
	snprintf(why, SW_WHY_BYTES, "\"%.40s\" is out of range: %s to %s", text,
		min, max);
	return SW_ECONF;
}

static int number_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	uint64_t value;

	if (sw_value_parse(text, sw_option_unit(o), &value, why, SW_WHY_BYTES) <
			0 ||
		bounds_check(o, text, value, why) < 0)
		return SW_ECONF;
	if (o->bytes == sizeof(uint64_t)) {
		*(uint64_t *)field = value;
		return 0;
	}
	if (value > UINT32_MAX) {
		snprintf(why, SW_WHY_BYTES, "\"%.40s\" is too large", text);
		return SW_ECONF;
	}
	*(uint32_t *)field = (uint32_t)value;
	return 0;
}

/* Return why @o cannot be @ip, or NULL.  A port has one gateway, so only a
 * gateway may be link-local, as IPv6 routers are. */
static const char *unfit(const struct sw_option *o, struct sw_ip ip)
{
	if (sw_ip_is_v4(ip))
		return (uint32_t)ip.low >> 24 == 0 ||
				       (uint32_t)ip.low >> 28 >= 14
			       ? "is not a host address"
			       : NULL;
	if (sw_ip_is_link_local(ip) && strcmp(o->key, "gateway") != 0)
		return "is link-local, so it means another host on each "
		       "interface: give a global or unique local (fd00::/8) "
		       "address";
	if (ip.high >> 56 == 0xff || sw_ip_is_none(ip))
		return "is not a host address";
	return NULL;
}

/* Read an address of either family. */
static bool ip_read(const char *text, struct sw_ip *ip)
{
	struct in6_addr v6;
	struct in_addr v4;

	*ip = (struct sw_ip){0};
	if (inet_pton(AF_INET, text, &v4) == 1)
		ip->low = SW_IP_V4_MAPPED | ntohl(v4.s_addr);
	else if (inet_pton(AF_INET6, text, &v6) == 1)
		*ip = sw_ip_load(v6.s6_addr);
	else
		return false;
	return true;
}

static int ip_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	struct sw_ip ip = {0, 0};

	if (!*text && o->def && !*o->def) {
		memcpy(field, &ip, sizeof(ip));
		return 0;
	}
	if (!ip_read(text, &ip)) {
		snprintf(why, SW_WHY_BYTES,
			"\"%.40s\" is not an IPv4 or IPv6 address like "
			"10.0.0.1 or fd00::1",
			text);
		return SW_ECONF;
	}
	if (unfit(o, ip)) {
		snprintf(why, SW_WHY_BYTES, "\"%.40s\" %s", text, unfit(o, ip));
		return SW_ECONF;
	}
	memcpy(field, &ip, sizeof(ip));
	return 0;
}

static int subnet_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	const char *slash = strchr(text, '/');
	struct sw_conf_subnet subnet = {.unused = 0};
	char ip[INET6_ADDRSTRLEN];
	uint64_t bits;

	if (!slash || slash - text >= (ptrdiff_t)sizeof(ip)) {
		snprintf(why, SW_WHY_BYTES,
			"\"%.40s\" is not an address with "
			"a prefix length, like 10.0.0.1/24",
			text);
		return SW_ECONF;
	}
	memcpy(ip, text, (size_t)(slash - text));
	ip[slash - text] = '\0';
	if (ip_parse(o, ip, &subnet.ip, why) < 0 ||
		sw_value_parse(
			slash + 1, SW_UNIT_NONE, &bits, why, SW_WHY_BYTES) < 0)
		return SW_ECONF;
	if (bits < 1 || bits >= sw_ip_bits(subnet.ip)) {
		snprintf(why, SW_WHY_BYTES,
			"\"%.40s\": the prefix length is "
			"out of range: 1 to %u",
			text, sw_ip_bits(subnet.ip) - 1);
		return SW_ECONF;
	}
	subnet.bits = (uint32_t)bits;
	memcpy(field, &subnet, sizeof(subnet));
	return 0;
}

static int text_copy(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	if (strlen(text) >= o->bytes) {
		snprintf(why, SW_WHY_BYTES, "is longer than %zu bytes",
			o->bytes - 1);
		return SW_ECONF;
	}
	memset(field, 0, o->bytes);
	memcpy(field, text, strlen(text));
	return 0;
}

static int name_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	bool may_be_empty = o->def && !*o->def;

	if (!sw_label_is_good(text) && (*text || !may_be_empty)) {
		snprintf(why, SW_WHY_BYTES,
			"\"%.40s\" is not a name: 1 to %d "
			"letters, digits, '_', '-' or '.'",
			text, SW_CONF_NAME_BYTES - 1);
		return SW_ECONF;
	}
	return text_copy(o, text, field, why);
}

/* Read a device name of the kernel or DPDK, such as eth0.5 or 0000:81:00.0. */
static int device_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	for (const char *s = text; *s; s++)
		if (*s != ':' && *s != '@' && !strchr(name_chars, *s)) {
			snprintf(why, SW_WHY_BYTES,
				"\"%.40s\" is not the name of an interface, "
				"like eth0, or a PCI address, like "
				"0000:81:00.0",
				text);
			return SW_ECONF;
		}
	return text_copy(o, text, field, why);
}

/* Read the arguments of a DPDK driver: key=value,key=value. */
static int args_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	for (const char *s = text; *s; s++)
		if (!strchr("=,:/", *s) && !strchr(name_chars, *s)) {
			snprintf(why, SW_WHY_BYTES,
				"\"%.80s\" is not a list like "
				"iface=tap0,mac=fixed",
				text);
			return SW_ECONF;
		}
	return text_copy(o, text, field, why);
}

static int path_copy(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	if (*text && !sw_text_is_good(text, SIZE_MAX)) {
		snprintf(why, SW_WHY_BYTES,
			"\"%.80s\" has characters that do not print", text);
		return SW_ECONF;
	}
	/* These characters would not survive printing and reading again. */
	for (const char *s = text; *s; s++)
		if (strchr(" \"';#\\", *s)) {
			snprintf(why, SW_WHY_BYTES,
				"\"%.80s\" has a blank, a "
				"quote, ';', '#' or '\\'",
				text);
			return SW_ECONF;
		}
	return text_copy(o, text, field, why);
}

static bool may_be_empty(const struct sw_option *o)
{
	return o->def && !*o->def;
}

static int path_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	if (!*text ? may_be_empty(o) : *text == '/')
		return path_copy(o, text, field, why);
	snprintf(why, SW_WHY_BYTES,
		"\"%.80s\" is not an absolute path, like /run/sumwire/x", text);
	return SW_ECONF;
}

/* Read a socket's path, or a bare name, which lies in the user's runtime
 * folder. */
static int socket_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	if (!*text ? may_be_empty(o)
		   : *text == '/' || (*text != '.' && !strchr(text, '/')))
		return path_copy(o, text, field, why);
	snprintf(why, SW_WHY_BYTES,
		"\"%.80s\" is neither an absolute path, like /run/sumwire/x, "
		"nor a name alone",
		text);
	return SW_ECONF;
}

/* Return whether @text is a list of names of at most @longest bytes, separated
 * by commas.  With @has_star, '*' may end a name, or stand alone. */
static bool is_list(const char *text, size_t longest, bool has_star)
{
	while (*text) {
		size_t name = strspn(text, name_chars);
		size_t n = name + (has_star && text[name] == '*');

		if (!n || name > longest ||
			(text[n] && (text[n] != ',' || !text[n + 1])))
			return false;
		text += n + (text[n] == ',');
	}
	return true;
}

static int users_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	if (is_list(text, 32, false))
		return text_copy(o, text, field, why);
	snprintf(why, SW_WHY_BYTES,
		"\"%.80s\" is not a list of users like alice,bob,1001", text);
	return SW_ECONF;
}

static int jobs_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	if (is_list(text, SW_CONF_NAME_BYTES - 1, true))
		return text_copy(o, text, field, why);
	snprintf(why, SW_WHY_BYTES,
		"\"%.80s\" is not a list of jobs like llm,vision-*", text);
	return SW_ECONF;
}

/* Read a network such as "10.5.8.0/24" from @n bytes. */
static bool network_read(const char *text, size_t n, struct sw_conf_subnet *net)
{
	char at[INET6_ADDRSTRLEN + sizeof("/128")], *slash, *end;
	unsigned long bits;

	if (!n || n >= sizeof(at))
		return false;
	memcpy(at, text, n);
	at[n] = '\0';
	slash = strchr(at, '/');
	if (slash)
		*slash = '\0';
	*net = (struct sw_conf_subnet){.unused = 0};
	if (!ip_read(at, &net->ip))
		return false;
	net->bits = sw_ip_bits(net->ip);
	if (!slash)
		return true;
	if (slash[1] < '1' || slash[1] > '9')
		return false;
	bits = strtoul(slash + 1, &end, 10);
	if (*end || bits > net->bits)
		return false;
	net->bits = (uint32_t)bits;
	return true;
}

int sw_conf_networks_list(const char *text, struct sw_conf_subnet *nets)
{
	int n = 0;

	while (*text) {
		size_t len = strcspn(text, ",");

		if (n == SW_CONF_NETWORKS_MAX ||
			!network_read(text, len, &nets[n++]) ||
			(text[len] && !text[len + 1]))
			return SW_EINVAL;
		text += len + (text[len] == ',');
	}
	return n;
}

static int networks_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	struct sw_conf_subnet nets[SW_CONF_NETWORKS_MAX];

	if (sw_conf_networks_list(text, nets) < 0) {
		snprintf(why, SW_WHY_BYTES,
			"\"%.80s\" is not a list of at most %d networks like "
			"10.5.8.0/24,fd00:5::/64",
			text, SW_CONF_NETWORKS_MAX);
		return SW_ECONF;
	}
	return text_copy(o, text, field, why);
}

static int cpus_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	uint32_t cpus[SW_CONF_CPUS_MAX];

	if (sw_conf_cpus_list(text, cpus) < 0) {
		snprintf(why, SW_WHY_BYTES,
			"\"%.80s\" is neither auto nor a "
			"list of different CPUs like 2,4-5 (0 to 1023, at "
			"most %d)",
			text, SW_CONF_CPUS_MAX);
		return SW_ECONF;
	}
	return text_copy(o, text, field, why);
}

int sw_option_parse(
	const struct sw_option *o, const char *text, void *field, char *why)
{
	static int (*const parse[])(
		const struct sw_option *, const char *, void *, char *) = {
		[SW_OPTION_U32] = number_parse,
		[SW_OPTION_U64] = number_parse,
		[SW_OPTION_BYTES] = number_parse,
		[SW_OPTION_TIME] = number_parse,
		[SW_OPTION_RATE] = number_parse,
		[SW_OPTION_PERCENT] = number_parse,
		[SW_OPTION_CHOICE] = choice_parse,
		[SW_OPTION_IP] = ip_parse,
		[SW_OPTION_BOOL] = bool_parse,
		[SW_OPTION_SUBNET] = subnet_parse,
		[SW_OPTION_NAME] = name_parse,
		[SW_OPTION_DEVICE] = device_parse,
		[SW_OPTION_ARGS] = args_parse,
		[SW_OPTION_PATH] = path_parse,
		[SW_OPTION_SOCKET] = socket_parse,
		[SW_OPTION_USERS] = users_parse,
		[SW_OPTION_CPUS] = cpus_parse,
		[SW_OPTION_JOBS] = jobs_parse,
		[SW_OPTION_NETWORKS] = networks_parse,
	};

	return parse[o->type](o, text, field, why);
}

void sw_section_defaults(const struct sw_section *s, char *base)
{
	char why[SW_WHY_BYTES];

	for (uint32_t i = 0; i < sw_n_options; i++) {
		const struct sw_option *o = &sw_options[i];

		/* A unit test checks that every default parses. */
		if (sw_option_is_in(o, s) && o->def)
			(void)sw_option_parse(o, o->def, base + o->offset, why);
	}
}
