/* value.h - numbers with units, and the nearest name to a misspelt one.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_CONF_VALUE_H
#define SW_CONF_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The unit of a number.  Values are stored in the base unit named first. */
enum sw_unit {
	SW_UNIT_NONE,    /* a plain whole number */
	SW_UNIT_BYTES,   /* bytes: B KB KiB MB MiB GB GiB, or no unit */
	SW_UNIT_TIME,    /* nanoseconds: ns us ms s min */
	SW_UNIT_RATE,    /* bits per second: Mb/s Gb/s */
	SW_UNIT_PERCENT, /* parts per million: % */
};

/* sw_value_parse - parse the whole of @text as one number with its unit.
 * Decimal only, without a sign, a leading zero or anything around it.  A
 * fraction is allowed if the result is a whole number of base units ("1.5ms").
 * Only bytes and 0 may lack a unit.  Thread: any.
 * @out      the value in base units; written only on success
 * @why      on error, the cause and the remedy; @why_len bytes
 * Errors: SW_EINVAL. */
int sw_value_parse(const char *text, enum sw_unit unit, uint64_t *out,
	char *why, size_t why_len);

/* sw_value_real_parse - parse the whole of @text as a finite number >= 0, of
 * decimal digits, a point and an exponent, without a unit.  Errors: as
 * above. */
int sw_value_real_parse(
	const char *text, double *out, char *why, size_t why_len);

/* sw_value_format - write @value (base units) with the largest unit in which it
 * is a whole number, so that sw_value_parse reads it back.  Returns @buf, which
 * has room for @len bytes (32 always suffice). */
const char *sw_value_format(
	uint64_t value, enum sw_unit unit, char *buf, size_t len);

/* sw_unit_names - return the allowed units, like "ns us ms s min"; "" for
 * SW_UNIT_NONE.  Static text. */
const char *sw_unit_names(enum sw_unit unit);

/* sw_value_is_pci - return whether @s is a PCI address with its domain, like
 * 0000:81:00.0. */
bool sw_value_is_pci(const char *s);

/* A search for the candidate closest to a misspelt name. */
struct sw_nearest {
	const char *name; /* borrowed */
	const char *best; /* NULL: no candidate is close */
	uint32_t distance;
};

/* sw_nearest_init - start a search for @name, which is borrowed. */
void sw_nearest_init(struct sw_nearest *n, const char *name);

/* sw_nearest_add - consider @candidate (borrowed).  Then n->best is the closest
 * candidate so far, or NULL.  If distances are equal, the earlier one stays. */
void sw_nearest_add(struct sw_nearest *n, const char *candidate);

#endif
