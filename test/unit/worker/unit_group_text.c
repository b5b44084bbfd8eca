/* unit_group_text.c - a server's report about a group names the group's ranks.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

enum { LOCAL = 2 };

/* Open member 0 of 2, with ranks 0 and 1; the other member has 2 and 3. The
 * group of "s" has the @n @ranks. */
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

static void end(struct worker_rig *r, const struct sw_fault *fault)
{
	peer_send(&r->s[0],
		(struct sw_header){.type = SW_END,
			.class = SW_CLASS_CTL,
			.round = 1,
			.payload_len = sizeof(*fault)},
		fault);
}

/* A server names a member by its first rank; the text has the group's ranks. */
static void mismatch__names_ranks_of_the_group(void **state)
{
	static const uint16_t ranks[] = {3, 1};
	static const uint8_t op = SW_ALL_REDUCE << 4;
	static const struct {
		struct sw_fault fault;
		const char *text;
	} said[] = {
		{{.kind = SW_FAULT_CALLED,
			 .one = {.number = 1, .rank = 2, .op = op},
			 .other = {.number = 1,
				 .rank = 0,
				 .op = SW_BCAST << 4}},
			"group s: rank 3 calls all_reduce of sum f32, rank 1 "
			"broadcast of f32 (collective 1)"},
		{{.kind = SW_FAULT_CALLED,
			 .one = {.rank = 3, .root = 0, .op = op},
			 .other = {.rank = 7777, .root = 2, .op = op}},
			"group s: rank 3 calls all_reduce with a root of rank "
			"1's node, rank 7777 with one of rank 3's (collective "
			"0)"},
		{{.kind = SW_FAULT_GONE,
			 .one = {.rank = 2, .op = SW_HAS_LEFT},
			 .other.rank = 3,
			 .node = "b"},
			"ranks 2-3 (node b) left; group s cannot complete"},
		{{.kind = SW_FAULT_SILENT,
			 .one = {.rank = 2,
				 .number = 10,
				 .op = SW_SAYS_NOTHING},
			 .other.rank = 3,
			 .node = "b"},
			"ranks 2-3 (node b) silent for 10 s"},
		{{.kind = SW_FAULT_DIED,
			 .one = {.rank = 4, .number = 77, .step = 2},
			 .node = "b",
			 .text = "closed the connection"},
			"rank 4 (node b), local rank 1: training process 77: "
			"closed the connection"},
		{{.text = "rank 1 aborted group 's': rank 0 is slow"},
			"rank 1 aborted group 's': rank 0 is slow"}};

	for (size_t i = 0; i < SW_ARRAY_SIZE(said); i++) {
		struct worker_rig *r = open_of(ranks, 2);
		char text[SW_TEXT_MAX];

		end(r, &said[i].fault);
		assert_string_equal(
			sw_worker_why(&r->w, 0, text), said[i].text);
		wrig_close(r);
	}
}

/* Receive faults of every kind that a byte can name, with an unterminated
 * text. */
static void fault__of_any_kind(void **state)
{
	static const uint16_t ranks[] = {0, 2};

	for (uint32_t kind = 0; kind < 256; kind += kind < 15 ? 1 : 61) {
		struct worker_rig *r = open_of(ranks, 2);
		bool is_known = kind < SW_N_FAULT_KINDS;
		struct sw_fault fault;
		char text[SW_TEXT_MAX];

		memset(&fault, 0xff, sizeof(fault));
		fault.kind = (uint8_t)kind;
		fault.key = 0;
		end(r, &fault);
		assert_int_equal(r->w.stats.rx_state, !is_known);
		assert_int_equal(
			sw_worker_death(&r->w, 0), is_known ? SW_EMISMATCH : 0);
		if (is_known)
			assert_true(strlen(sw_worker_why(&r->w, 0, text)) > 8);
		wrig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mismatch__names_ranks_of_the_group),
		cmocka_unit_test(fault__of_any_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
