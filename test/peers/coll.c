/* coll.c - time all_reduces of libsumwire from C, on request.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * test/peers/backend compiles it, and works.py loads it into a rank.
 */
#include <stdint.h>
#include <time.h>

#include <sumwire/coll.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* sw_peer_turn - sum @n floats at @x in place, 1 + @iterations times. Write the
 * seconds of all except the first. Return 0 or an error of libsumwire. */
int sw_peer_turn(struct sw_client *c, struct sw_group *g, float *x, uint64_t n,
	uint32_t iterations, double *seconds);

int sw_peer_turn(struct sw_client *c, struct sw_group *g, float *x, uint64_t n,
	uint32_t iterations, double *seconds)
{
	struct sw_coll_args a = SW_COLL_ARGS_INIT;

	a.kind = SW_ALL_REDUCE;
	a.count = n;
	a.send = a.recv = x;
	for (uint32_t i = 0; i <= iterations; i++) {
		double start = now();
		uint64_t handle;
		int err = sw_coll(g, &a, &handle);

		if (!err)
			err = sw_wait(c, handle);
		if (err)
			return err;
		if (i)
			seconds[i - 1] = now() - start;
	}
	return 0;
}
