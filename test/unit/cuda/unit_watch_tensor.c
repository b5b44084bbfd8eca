/* unit_watch_tensor.c - tensors written or freed before their call has ended.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/cuda/pipe_rig.h"

enum { KIB = 1024 };

/* Wait until the network has had @n pushes; it has summed none of them. */
static void wait_pushes(struct rig *r, uint32_t n)
{
	uint32_t now;

	do {
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		pthread_mutex_lock(&r->lock);
		now = r->n_pushes;
		pthread_mutex_unlock(&r->lock);
	} while (now < n);
}

static void check_edited(struct rig *r, uint32_t t, int err)
{
	char why[SW_PIPELINE_WHY];

	r->is_stuck = false;
	rig_wake(r);
	assert_int_equal(
		sw_pipeline_wait(&r->l, &r->t[t], RIG_UNTIL, why), err);
	if (err)
		assert_contains(why, "rank 1: fake device 0: tensor 't0' was "
				     "written or freed while it was summed");
}

/* Only a back end with the option "check" detects the write. */
static void pipeline__tensor_is_written(void **state)
{
	(void)state;
	for (uint32_t looks = 0; looks < 2; looks++) {
		struct rig *r = rig_open(looks ? "check" : NULL, 64 * KIB);
		uint32_t t = rig_add(r, 256 * KIB, 0);

		rig_fill(r, t, 1);
		r->is_stuck = true;
		rig_submit(r, t);
		wait_pushes(r, 8);
		r->device[t][20000] ^= 1; /* a byte in the third granule */
		check_edited(r, t, looks ? SW_ECORRUPT : 0);
		rig_fill(r, t, 2);
		rig_submit(r, t);
		rig_wait(r, t);
		rig_check(r, t, 2);
		assert_int_equal(r->n_given_up, 0);
		rig_close(r);
	}
}

static void nap_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* All granules except the last are back, but the call has not ended. */
static void pipeline__result_is_written(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 4; round++) {
		struct rig *r = rig_open(round < 2 ? NULL : "check", 64 * KIB);
		uint32_t t = rig_add(r, 256 * KIB, 0);

		rig_fill(r, t, 1);
		r->is_end_stuck = true;
		rig_submit(r, t);
		/* each granule is copied in two halves */
		while (sw_fake_copies(r->back, SW_BACK_IN) < 6)
			nap_ms(1);
		nap_ms(100);
		rig_wake(r);
		r->device[t][20000] += round % 2;
		r->is_end_stuck = false;
		rig_wake(r);
		check_edited(r, t, round == 3 ? SW_ECORRUPT : 0);
		rig_fill(r, t, 2);
		rig_submit(r, t);
		rig_wait(r, t);
		rig_check(r, t, 2);
		rig_close(r);
	}
}

static void pipeline__tensor_is_freed(void **state)
{
	struct rig *r = rig_open("check", 64 * KIB);
	uint32_t t = rig_add(r, 256 * KIB, 0);
	uint64_t *own = r->device[t];
	char why[SW_BACK_WHY];
	void *p;

	(void)state;
	assert_int_equal(r->ops->alloc(r->back, 256 * KIB, &p, why), 0);
	r->device[t] = p;
	rig_fill(r, t, 1);
	r->is_stuck = true;
	rig_submit(r, t);
	wait_pushes(r, 8);
	r->ops->release(r->back, p);
	check_edited(r, t, SW_ECORRUPT);
	r->device[t] = own;
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipeline__tensor_is_written),
		cmocka_unit_test(pipeline__result_is_written),
		cmocka_unit_test(pipeline__tensor_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
