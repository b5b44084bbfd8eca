/* straggler.h - draw the times by which agents are late from a distribution.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All arithmetic uses integers, also for logarithms, powers and roots, so a
 * seed draws the same times on every machine.
 */
#ifndef SW_APPS_LAB_SIM_STRAGGLER_H
#define SW_APPS_LAB_SIM_STRAGGLER_H

#include <stddef.h>
#include <stdint.h>

#define SW_SIM_STRAGGLER_MOST_NS 3600000000000ULL /* an hour */

struct sw_sim_straggler {
	uint32_t kind; /* index of a row in straggler.c's table */
	uint64_t a_ns; /* first number: a time */
	/* second: a time, or a fixed-point number with 32 bits */
	uint64_t b;
	uint64_t *values; /* read from a file; otherwise NULL */
	uint32_t n_values;
};

/* sw_sim_straggler_open - read a distribution like "exponential 5ms" or "file
 * times.txt".  Errors: SW_ECONF, SW_ENOENT, with the reason in @why.  The
 * caller must close @s even after an error. */
int sw_sim_straggler_open(struct sw_sim_straggler *s, const char *text,
	char *why, size_t why_len);
void sw_sim_straggler_close(struct sw_sim_straggler *s);

/* sw_sim_straggler_draw - draw a time in nanoseconds, at most an hour. */
uint64_t sw_sim_straggler_draw(const struct sw_sim_straggler *s, uint64_t *rng);

#endif
