/* value.c - numbers with units, and the nearest name to a misspelt one.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/value.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { NAME_MAX_BYTES = 64 };

static const struct {
	enum sw_unit unit;
	const char *name;
	uint64_t scale; /* base units in one unit */
} scales[] = {
	/* Printing prefers the earlier rows of a unit. */
	{SW_UNIT_BYTES, "GiB", UINT64_C(1) << 30},
	{SW_UNIT_BYTES, "MiB", UINT64_C(1) << 20},
	{SW_UNIT_BYTES, "KiB", UINT64_C(1) << 10},
	{SW_UNIT_BYTES, "GB", 1000000000},
	{SW_UNIT_BYTES, "MB", 1000000},
	{SW_UNIT_BYTES, "KB", 1000},
	{SW_UNIT_BYTES, "B", 1},
	{SW_UNIT_TIME, "min", UINT64_C(60000000000)},
	{SW_UNIT_TIME, "s", 1000000000},
	{SW_UNIT_TIME, "ms", 1000000},
	{SW_UNIT_TIME, "us", 1000},
	{SW_UNIT_TIME, "ns", 1},
	{SW_UNIT_RATE, "Gb/s", 1000000000},
	{SW_UNIT_RATE, "Mb/s", 1000000},
	{SW_UNIT_PERCENT, "%", 10000},
};

const char *sw_unit_names(enum sw_unit unit)
{
	switch (unit) {
	case SW_UNIT_BYTES:
		return "B KB KiB MB MiB GB GiB";
	case SW_UNIT_TIME:
		return "ns us ms s min";
	case SW_UNIT_RATE:
		return "Mb/s Gb/s";
	case SW_UNIT_PERCENT:
		return "%";
	default:
		return "";
	}
}

/* A number split into parts: digits[.fraction]unit */
struct parts {
	uint64_t whole;
	uint64_t fraction; /* numerator over fraction_base */
	uint64_t fraction_base;
	const char *unit;
};

static int digits_take(const char **p, uint64_t *value)
{
	const char *s = *p;

	*value = 0;
	for (; isdigit((unsigned char)*s); s++) {
		uint64_t digit = (uint64_t)(*s - '0');

		if (*value > (UINT64_MAX - digit) / 10)
			return SW_EINVAL;
		*value = *value * 10 + digit;
	}
	if (s == *p)
		return SW_EINVAL;
	*p = s;
	return 0;
}

/* Read up to nine digits of a fraction, enough for a nanosecond in a second. */
static int fraction_take(const char **p, struct parts *parts)
{
	const char *start = ++*p;

	if (digits_take(p, &parts->fraction) < 0 || *p - start > 9)
		return SW_EINVAL;
	for (ptrdiff_t i = 0; i < *p - start; i++)
		parts->fraction_base *= 10;
	return 0;
}

static const char *parts_take(const char *text, struct parts *out)
{
	const char *p = text;

	*out = (struct parts){.fraction_base = 1};
	if (!*text)
		return "is empty, a number is expected";
	if (*p == '-' || *p == '+')
		return "has a sign, numbers are written without one";
	if (!isdigit((unsigned char)*p))
		return "is not a number";
	if (*p == '0' && isdigit((unsigned char)p[1]))
		return "has a leading zero, numbers are decimal";
	if (digits_take(&p, &out->whole) < 0)
		return "is too large";
	if (*p == '.' && fraction_take(&p, out) < 0)
		return "has a point that one to nine digits should follow";
	out->unit = p + strspn(p, " ");
	if (!*out->unit) /* trailing blanks are an error, not a missing unit */
		out->unit = p;
	return NULL;
}

static uint64_t scale_find(const char *name, enum sw_unit unit)
{
	for (size_t i = 0; i < ARRAY_SIZE(scales); i++)
		if (scales[i].unit == unit && !strcmp(scales[i].name, name))
			return scales[i].scale;
	return 0;
}

static int scale_take(const char *text, const struct parts *parts,
	enum sw_unit unit, uint64_t *scale, char *why, size_t len)
{
	*scale = scale_find(parts->unit, unit);
	if (*scale)
		return 0;
	if (*parts->unit && unit == SW_UNIT_NONE)
		snprintf(why, len,
			"\"%s\" is not a whole number: \"%s\" follows "
			"it",
			text, parts->unit);
	else if (*parts->unit)
		snprintf(why, len,
			"\"%s\" has the unknown unit \"%s\": use one "
			"of %s",
			text, parts->unit, sw_unit_names(unit));
	else if (unit == SW_UNIT_TIME || unit == SW_UNIT_RATE ||
		 unit == SW_UNIT_PERCENT)
		snprintf(why, len, "\"%s\" has no unit: use one of %s", text,
			sw_unit_names(unit));
	else
		*scale = 1;
	return *scale ? 0 : SW_EINVAL;
}

/* Compute whole * scale + fraction * scale / fraction_base, exactly or not at
 * all. */
static const char *parts_join(
	const struct parts *p, uint64_t scale, uint64_t *out)
{
	uint64_t whole, fraction;

	if (__builtin_mul_overflow(p->whole, scale, &whole) ||
		__builtin_mul_overflow(p->fraction, scale, &fraction))
		return "is too large";
	if (fraction % p->fraction_base)
		return "is finer than the smallest unit";
	if (__builtin_add_overflow(whole, fraction / p->fraction_base, out))
		return "is too large";
	return NULL;
}

int sw_value_parse(const char *text, enum sw_unit unit, uint64_t *out,
	char *why, size_t why_len)
{
	struct parts parts;
	uint64_t scale = 1, value = 0;
	const char *wrong = parts_take(text, &parts);
	bool is_zero;

	if (!wrong) {
		is_zero = !parts.whole && !parts.fraction && !*parts.unit;
		if (!is_zero && scale_take(text, &parts, unit, &scale, why,
					why_len) < 0)
			return SW_EINVAL;
		wrong = parts_join(&parts, scale, &value);
	}
	if (wrong) {
		snprintf(why, why_len, "\"%s\" %s", text, wrong);
		return SW_EINVAL;
	}
	*out = value;
	return 0;
}

int sw_value_real_parse(
	const char *text, double *out, char *why, size_t why_len)
{
	char *end;
	double value;

	/* strtod alone would also accept blanks, signs, hex, inf and nan. */
	if (!isdigit((unsigned char)*text) ||
		text[strspn(text, "0123456789.eE+-")]) {
		snprintf(why, why_len,
			"\"%s\" is not a number like 0.5 or "
			"1e-3",
			text);
		return SW_EINVAL;
	}
	value = strtod(text, &end);
	if (*end || !isfinite(value)) {
		snprintf(why, why_len, "\"%s\" is not a finite number", text);
		return SW_EINVAL;
	}
	*out = value;
	return 0;
}

static const char *percent_format(uint64_t ppm, char *buf, size_t len)
{
	int n = snprintf(buf, len, "%u.%04u", (unsigned)(ppm / 10000),
		(unsigned)(ppm % 10000));

	while (n > 0 && buf[n - 1] == '0')
		n--;
	if (n > 0 && buf[n - 1] == '.')
		n--;
	snprintf(buf + n, len - (size_t)n, "%%");
	return buf;
}

const char *sw_value_format(
	uint64_t value, enum sw_unit unit, char *buf, size_t len)
{
	if (unit == SW_UNIT_PERCENT && value <= 100000000)
		return percent_format(value, buf, len);
	for (size_t i = 0; value && i < ARRAY_SIZE(scales); i++) {
		if (scales[i].unit != unit || value % scales[i].scale)
			continue;
		snprintf(buf, len, "%llu%s",
			(unsigned long long)(value / scales[i].scale),
			scales[i].name);
		return buf;
	}
	snprintf(buf, len, "%llu", (unsigned long long)value);
	return buf;
}

static uint32_t min3(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t m = a < b ? a : b;

	return m < c ? m : c;
}

bool sw_value_is_pci(const char *s)
{
	static const char form[] = "xxxx:xx:xx.7";
	size_t n = sizeof(form) - 1;

	if (strlen(s) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (form[i] == 'x'       ? !isxdigit((unsigned char)s[i])
			: form[i] == '7' ? s[i] < '0' || s[i] > '7'
					 : s[i] != form[i])
			return false;
	return true;
}

/* Return the Levenshtein distance of two names, each cut at NAME_MAX_BYTES. */
static uint32_t edit_distance(const char *a, const char *b)
{
	uint32_t row[NAME_MAX_BYTES + 1];
	size_t n_a = strnlen(a, NAME_MAX_BYTES);
	size_t n_b = strnlen(b, NAME_MAX_BYTES);

	for (size_t j = 0; j <= n_b; j++)
		row[j] = (uint32_t)j;
	for (size_t i = 1; i <= n_a; i++) {
		uint32_t diagonal = row[0];

		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= n_b; j++) {
			uint32_t above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1,
				diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[n_b];
}

void sw_nearest_init(struct sw_nearest *n, const char *name)
{
	/* A name that differs in more than a third of its letters is no
	 * misspelling. */
	*n = (struct sw_nearest){.name = name,
		.distance = (uint32_t)strnlen(name, NAME_MAX_BYTES) / 3 + 2};
}

void sw_nearest_add(struct sw_nearest *n, const char *candidate)
{
	uint32_t distance = edit_distance(n->name, candidate);

	if (distance >= n->distance)
		return;
	n->distance = distance;
	n->best = candidate;
}
