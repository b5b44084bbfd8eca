/* check.c - named cases, one line each, and a count at the end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/sim/check.h"

#include <stdio.h>
#include <string.h>

bool check(struct check *c, bool is_true, const char *what)
{
	if (is_true)
		return true;
	c->n_failed++;
	printf("# %s: not so: %s\n", c->name, what);
	return false;
}

bool check_eq(struct check *c, uint64_t got, uint64_t want, const char *what)
{
	if (got == want)
		return true;
	c->n_failed++;
	printf("# %s: %s is %llu, not %llu\n", c->name, what,
		(unsigned long long)got, (unsigned long long)want);
	return false;
}

bool check_text(struct check *c, const char *text, const char *part)
{
	if (strstr(text, part))
		return true;
	c->n_failed++;
	printf("# %s: \"%s\" does not say \"%s\"\n", c->name, text, part);
	return false;
}

void check_run(const struct check_case *cases, uint32_t n, const char *filter,
	uint32_t *passed, uint32_t *failed)
{
	for (uint32_t i = 0; i < n; i++) {
		struct check c = {.name = cases[i].name};

		if (filter && !strstr(c.name, filter))
			continue;
		cases[i].run(&c);
		printf("%s - %s\n", c.n_failed ? "not ok" : "ok", c.name);
		fflush(stdout);
		*(c.n_failed ? failed : passed) += 1;
	}
}

int check_end(uint32_t passed, uint32_t failed)
{
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}
