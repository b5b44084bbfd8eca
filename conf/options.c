/* options.c - options.def as a table, and the text of each type's value.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/options.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/log.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* used by options.def */
#define MS   UINT64_C(1000000)
#define S    UINT64_C(1000000000)
#define MIB  (UINT64_C(1) << 20)
#define GIB  (UINT64_C(1) << 30)
#define GBIT UINT64_C(1000000000)

#define SECTION(section, kind, text)
#define OPTION(section, key, field, type, def, min, max, unit, text)           \
	{#section, #key, SW_OPTION_##type,                                     \
		offsetof(struct sw_conf_##section, field),                     \
		sizeof(((struct sw_conf_##section *)0)->field), def, min, max, \
		unit, text},
#define SECTION_END(section)
const struct sw_option sw_options[] = {
#include "conf/options.def"
};
#undef SECTION
#undef OPTION
#undef SECTION_END
const uint32_t sw_n_options = ARRAY_SIZE(sw_options);

#define ROW_ONE(section, text)                               \
	{#section, false, offsetof(struct sw_conf, section), \
		sizeof(struct sw_conf_##section), 0, text},
#define ROW_MANY(section, text)                                \
	{#section, true, offsetof(struct sw_conf, section##s), \
		sizeof(struct sw_conf_##section),              \
		offsetof(struct sw_conf, n_##section##s), text},
#define SECTION(section, kind, text) ROW_##kind(section, text)
#define OPTION(section, key, field, type, def, min, max, unit, text)
#define SECTION_END(section)
const struct sw_section sw_sections[] = {
#include "conf/options.def"
};
#undef SECTION
#undef OPTION
#undef SECTION_END
const uint32_t sw_n_sections = ARRAY_SIZE(sw_sections);

enum sw_unit sw_option_unit(const struct sw_option *o)
{
	switch (o->type) {
	case SW_OPTION_BYTES:
		return SW_UNIT_BYTES;
	case SW_OPTION_TIME:
		return SW_UNIT_TIME;
	case SW_OPTION_RATE:
		return SW_UNIT_RATE;
	case SW_OPTION_PERCENT:
		return SW_UNIT_PERCENT;
	default:
		return SW_UNIT_NONE;
	}
}

bool sw_option_is_number(const struct sw_option *o)
{
	return o->type <= SW_OPTION_PERCENT;
}

/* Copy the word at index @i of "a|b|(c)". */
static void word_copy(const char *words, uint32_t i, char *buf, size_t len)
{
	while (i-- && *words) {
		words += strcspn(words, "|");
		words += *words == '|';
	}
	snprintf(buf, len, "%.*s", (int)strcspn(words, "|"), words);
}

static void subnet_format(const struct sw_conf_subnet *s, char *buf, size_t len)
{
	char ip[SW_IP_TEXT];

	snprintf(buf, len, "%s/%u", sw_ip_text(s->ip, ip), s->bits);
}

const char *sw_option_format(
	const struct sw_option *o, const void *field, char *buf, size_t len)
{
	char ip[SW_IP_TEXT];
	struct sw_ip at;
	uint32_t u32 = 0;
	uint64_t u64 = 0;

	if (o->bytes == sizeof(u32))
		memcpy(&u32, field, sizeof(u32));
	if (o->bytes == sizeof(u64))
		memcpy(&u64, field, sizeof(u64));
	switch (o->type) {
	case SW_OPTION_CHOICE:
		word_copy(o->unit, u32, buf, len);
		break;
	case SW_OPTION_IP:
		memcpy(&at, field, sizeof(at));
		snprintf(buf, len, "%s",
			sw_ip_is_none(at) ? "" : sw_ip_text(at, ip));
		break;
	case SW_OPTION_BOOL:
		snprintf(buf, len, "%s", *(const bool *)field ? "yes" : "no");
		break;
	case SW_OPTION_SUBNET:
		subnet_format(field, buf, len);
		break;
	case SW_OPTION_NAME:
	case SW_OPTION_DEVICE:
	case SW_OPTION_ARGS:
	case SW_OPTION_PATH:
	case SW_OPTION_SOCKET:
	case SW_OPTION_USERS:
	case SW_OPTION_CPUS:
	case SW_OPTION_JOBS:
	case SW_OPTION_NETWORKS:
		snprintf(buf, len, "%s", (const char *)field);
		break;
	default:
		sw_value_format(u32 + u64, sw_option_unit(o), buf, len);
	}
	return buf;
}

const struct sw_section *sw_section_find(const char *name)
{
	for (uint32_t i = 0; i < sw_n_sections; i++)
		if (!strcmp(sw_sections[i].name, name))
			return &sw_sections[i];
	return NULL;
}

const struct sw_option *sw_option_find(
	const struct sw_section *s, const char *key)
{
	for (uint32_t i = 0; i < sw_n_options; i++)
		if (sw_option_is_in(&sw_options[i], s) &&
			!strcmp(sw_options[i].key, key))
			return &sw_options[i];
	return NULL;
}
