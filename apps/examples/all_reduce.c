/* all_reduce.c - example: sum a vector over all ranks, as a collective.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   cc all_reduce.c -o all_reduce $(pkg-config --cflags --libs sumwire)
 *   sumwire run -np 2 ./all_reduce
 */
#include <stdio.h>

#include <sumwire/sumwire.h>

enum { N = 1 << 20 };

/* Print the library's message for an error. */
static int failed(const struct sw_client *c, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, sw_last_error(c));
	return 1;
}

/* Check the sum: every rank contributed its number plus one in each element. */
static int check(const struct sw_client *c, const float *v)
{
	uint32_t n = sw_size(c);
	float sum = (float)(n * (n + 1) / 2);

	for (uint32_t i = 0; i < N; i++)
		if (v[i] != sum) {
			fprintf(stderr, "element %u is %g, not %g\n", i,
				(double)v[i], (double)sum);
			return 1;
		}
	printf("rank %u of %u: %d elements are %g\n", sw_rank(c), n, N,
		(double)sum);
	return 0;
}

static int all_reduce(struct sw_client *c)
{
	struct sw_coll_args args = {.size = sizeof(args),
		.kind = SW_ALL_REDUCE,
		.dtype = SW_F32,
		.count = N};
	struct sw_group *all;
	uint64_t handle;
	float *v;
	void *p;

	/* The agent reads and writes this memory in place, without copies. */
	if (sw_alloc(c, N * sizeof(*v), &p))
		return failed(c, "sw_alloc");
	v = p;
	/* NULL: all ranks.  All members of a group must use the same name. */
	if (sw_group_open(c, "all", NULL, 0, &all))
		return failed(c, "sw_group_open");
	for (uint32_t i = 0; i < N; i++)
		v[i] = (float)(sw_rank(c) + 1);
	args.send = args.recv = v; /* in place: the sum replaces the input */
	if (sw_coll(all, &args, &handle))
		return failed(c, "sw_coll");
	/* ... do work that does not need v ... */
	if (sw_wait(c, handle))
		return failed(c, "sw_wait");
	return check(c, v);
}

int main(void)
{
	struct sw_client *c = NULL;
	int err;

	/* NULL: the agent that sumwire run names in the environment.  Returns
	 * when all ranks have joined. */
	if (sw_open(NULL, &c))
		return failed(NULL, "sw_open");
	err = all_reduce(c);
	sw_close(&c); /* also frees the group and the memory */
	return err;
}
