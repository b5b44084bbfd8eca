/* options.h - options.def as a table, and the text of each type's value.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_CONF_OPTIONS_H
#define SW_CONF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/value.h"

enum sw_option_type {
	SW_OPTION_U32,
	SW_OPTION_U64,
	SW_OPTION_BYTES,
	SW_OPTION_TIME,
	SW_OPTION_RATE,
	SW_OPTION_PERCENT,
	SW_OPTION_CHOICE,
	SW_OPTION_IP,
	SW_OPTION_BOOL,
	SW_OPTION_SUBNET,
	SW_OPTION_NAME,
	SW_OPTION_DEVICE,
	SW_OPTION_ARGS,
	SW_OPTION_PATH,
	SW_OPTION_SOCKET,
	SW_OPTION_USERS,
	SW_OPTION_CPUS,
	SW_OPTION_JOBS,
	SW_OPTION_NETWORKS,
};

/* One row of options.def. */
struct sw_option {
	const char *section, *key;
	enum sw_option_type type;
	size_t offset;   /* offset of the field in struct sw_conf_SECTION */
	size_t bytes;    /* size of the field */
	const char *def; /* NULL: required */
	uint64_t min, max;
	const char *unit;
	const char *text;
};

/* One SECTION of options.def. */
struct sw_section {
	const char *name;
	bool is_many;    /* [NAME LABEL], an array */
	size_t offset;   /* offset of the struct, or array, in struct sw_conf */
	size_t bytes;    /* size of one struct */
	size_t n_offset; /* offset of the array's length; only if is_many */
	const char *text;
};

extern const struct sw_option sw_options[];
extern const uint32_t sw_n_options;
extern const struct sw_section sw_sections[];
extern const uint32_t sw_n_sections;

enum { SW_WHY_BYTES = 320 }; /* size of the reason of a refusal */

/* sw_option_parse - parse the whole of @text into @field of @o's type.  @field
 * is written only on success.  On error, @why gets the cause and the remedy
 * (SW_WHY_BYTES).  Errors: SW_ECONF. */
int sw_option_parse(
	const struct sw_option *o, const char *text, void *field, char *why);

/* sw_option_format - write @field as sw_option_parse reads it.  Returns @buf
 * (SW_CONF_USERS_BYTES suffice for any option). */
const char *sw_option_format(
	const struct sw_option *o, const void *field, char *buf, size_t len);

/* sw_option_is_in - return whether @o is a key of @s. */
static inline bool sw_option_is_in(
	const struct sw_option *o, const struct sw_section *s)
{
	return !strcmp(o->section, s->name);
}

/* sw_section_find - return the section named "job"; NULL: unknown. */
const struct sw_section *sw_section_find(const char *name);

/* sw_option_find - return the option @key of @s; NULL: unknown. */
const struct sw_option *sw_option_find(
	const struct sw_section *s, const char *key);

/* sw_section_defaults - fill the struct of @s at @base, except its label. */
void sw_section_defaults(const struct sw_section *s, char *base);

/* sw_option_unit - return the unit of @o's number; SW_UNIT_NONE: it has
 * none. */
enum sw_unit sw_option_unit(const struct sw_option *o);

/* sw_option_is_number - return whether @o's value is a number with bounds. */
bool sw_option_is_number(const struct sw_option *o);

/* sw_label_is_good - return whether @text may be a name: 1 to 31 letters,
 * digits, '_', '-' and '.'. */
bool sw_label_is_good(const char *text);

/* sw_section_label - return " NAME" for a section that may be repeated, else
 * "": the text after the section's name in its header. */
static inline const char *sw_section_label(const struct sw_section *s)
{
	return s->is_many ? " NAME" : "";
}

/* sw_option_allowed_print - write the values that @o may have: "0 to 4GiB",
 * "one of a, b", "an IPv4 address". */
void sw_option_allowed_print(const struct sw_option *o, FILE *f);

/* sw_option_default_print - write the default of @o, "must be given" or
 * "empty". */
void sw_option_default_print(const struct sw_option *o, FILE *f);

#endif
