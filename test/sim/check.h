/* check.h - named cases, one line each, and a count at the end.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SIM_CHECK_H
#define SW_TEST_SIM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct check {
	const char *name;
	uint32_t n_failed;
};

struct check_case {
	const char *name;
	void (*run)(struct check *c);
};

/* Record a failure if @is_true is false; return @is_true. */
bool check(struct check *c, bool is_true, const char *what);
bool check_eq(struct check *c, uint64_t got, uint64_t want, const char *what);
/* Return whether @text contains @part. */
bool check_text(struct check *c, const char *text, const char *part);

/* Run the cases whose name contains @filter (NULL: all); add to the counts. */
void check_run(const struct check_case *cases, uint32_t n, const char *filter,
	uint32_t *passed, uint32_t *failed);

/* Print the counts; return the exit status. */
int check_end(uint32_t passed, uint32_t failed);

#endif
