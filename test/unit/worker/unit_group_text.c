/* unit_group_text.c - what servers say of a group, in the words of its ranks.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

enum { LOCAL = 2 };

/* Member 0 of 2, with ranks 0 and 1; the other has 2 and 3.  "s" is of the @n
 * @ranks. */
static struct worker_rig *open_of(const uint16_t *ranks, uint32_t n)
{
	const struct sw_worker_tensor d = {
		.name = "s", .window_log2 = LOG2, .ranks = ranks, .n_ranks = n};
	static struct worker_rig r;

	wrig_open_local(&r, 0, 2, 1, LOCAL);
	r.s[0].n_local = LOCAL;
	wrig_run(&r);
	assert_int_equal(sw_worker_declare(&r.w, &d, 1), 0);
	wrig_tx(&r);
	peer_declared(&r.s[0]);
	return &r;
}

/* A server knows members by their first ranks; who reads it, the group's. */
static void mismatch__names_ranks_of_the_group(void **state)
{
	static const uint16_t ranks[] = {3, 1};
	const char *const said[][2] = {
		{"stream rank 0/x: rank 2 calls all_reduce of sum f32, rank 0 "
		 "broadcast f32 (collective 1)",
			"stream rank 0/x: rank 3 calls all_reduce of sum f32, "
			"rank 1 broadcast f32 (collective 1)"},
		{"stream s: rank 3 calls it with a root of rank 0's node, rank "
		 "77777777777",
			"stream s: rank 3 calls it with a root of rank 1's "
			"node, rank 77777777777"},
		{"rank 1 aborted group 's': rank 0 is slow",
			"rank 1 aborted group 's': rank 0 is slow"}};

	for (size_t i = 0; i < SW_ARRAY_SIZE(said); i++) {
		struct worker_rig *r = open_of(ranks, 2);
		struct sw_fault fault = {.err = SW_EMISMATCH};

		snprintf(fault.text, sizeof(fault.text), "%s", said[i][0]);
		peer_send(&r->s[0],
			(struct sw_header){.type = SW_END,
				.class = SW_CLASS_CTL,
				.round = 1,
				.payload_len = sizeof(fault)},
			&fault);
		assert_string_equal(sw_worker_why(&r->w, 0), said[i][1]);
		wrig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mismatch__names_ranks_of_the_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
