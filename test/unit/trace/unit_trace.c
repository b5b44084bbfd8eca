/* unit_trace.c - traces made by hand: their reports, and damaged ones.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Two agents on machines of their own and a server push one chunk in one round.
 */
#include "test/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/trace/load.h"
#include "test/support/random.h"

enum { US = 1000, BYTES = 8192, SERVER = 2, KEY = 7 };

/* The times of the events of the push, in us on the server's clock. */
struct way {
	uint64_t called[2]; /* 0: not recorded */
	uint64_t pushed[2], folded[2], result, held, done;
	/* agent 1's rank became ready; 0: its process noted nothing */
	uint64_t ready;
	/* start and end of the copy into shared memory; zeros: none */
	uint64_t copied[2];
	uint64_t taken; /* end of its copy of the result; 0: none */
	/* lead of the agents' clocks over the server's, in us */
	int64_t ahead[2];
	/* folds came in a burst: which of them took effect is uncertain */
	bool is_burst;
};

static const struct way usual = {.called = {1000, 1010},
	.pushed = {1020, 1030},
	.folded = {1040, 1050},
	.result = 1060,
	.held = 1080,
	.done = 1090};

static void block_put(FILE *f, enum sw_trace_block_kind kind, uint16_t daemon,
	const void *bytes, size_t n)
{
	struct sw_trace_block b = {
		.kind = kind, .daemon = daemon, .bytes = (uint32_t)n};

	fwrite(&b, sizeof(b), 1, f);
	fwrite(bytes, 1, n, f);
}

static void event_put(FILE *f, uint16_t daemon, uint16_t peer,
	enum sw_trace_kind kind, uint64_t us, int64_t ahead, uint8_t flags)
{
	struct sw_trace_event e = {
		.t_ns = (us + (uint64_t)ahead) * US + 1000000000,
		.ns = 500,
		.key = KEY,
		.round = 1,
		.peer = peer,
		.bytes = 64,
		.kind = (uint8_t)kind,
		.flags = flags};

	if (kind == SW_TRACE_CALL || kind == SW_TRACE_DONE)
		e.ns = 0;
	block_put(f, SW_TRACE_EVENTS, daemon, &e, sizeof(e));
}

static void daemon_put(FILE *f, uint16_t i)
{
	struct sw_trace_hello h = {.pid = 100 + i};
	struct sw_trace_peer p = {.job = "j", .epoch = 5, .is_worker = 1};

	snprintf(h.node, sizeof(h.node), i == SERVER ? "s" : "node%u", i);
	strcpy(h.role, i == SERVER ? "server" : "agent");
	snprintf(h.boot, sizeof(h.boot), "boot%u", i);
	block_put(f, SW_TRACE_HELLO, i, &h, sizeof(h));
	for (uint16_t m = 0; m < 2; m++) {
		p.member = m;
		p.seed = 10u + m;
		p.is_worker = i != SERVER;
		if (i == SERVER || i == m)
			block_put(f, SW_TRACE_PEER, i, &p, sizeof(p));
	}
}

/* Write a note of a rank's process. */
static void note_put(FILE *f, uint16_t daemon, enum sw_trace_kind kind,
	uint64_t from_us, uint64_t to_us, int64_t ahead)
{
	struct sw_trace_event e = {
		.t_ns = (to_us + (uint64_t)ahead) * US + 1000000000,
		.ns = (uint32_t)(to_us - from_us) * US,
		.round = 64, /* number of bytes */
		.kind = (uint8_t)kind};

	block_put(f, SW_TRACE_EVENTS, daemon, &e, sizeof(e));
}

static void notes_put(FILE *f, uint16_t i, const struct way *w)
{
	if (w->ready)
		note_put(f, i, SW_TRACE_READY, w->ready, w->ready, w->ahead[i]);
	if (w->copied[1])
		note_put(f, i, SW_TRACE_COPY_IN, w->copied[0], w->copied[1],
			w->ahead[i]);
	if (w->taken)
		note_put(f, i, SW_TRACE_COPY_OUT, w->done, w->taken,
			w->ahead[i]);
}

static void agent_put(FILE *f, uint16_t i, const struct way *w)
{
	if (i == 1)
		notes_put(f, i, w);
	if (w->called[i])
		event_put(f, i, 0, SW_TRACE_CALL, w->called[i], w->ahead[i], 0);
	event_put(f, i, 0, SW_TRACE_PUSH, w->pushed[i], w->ahead[i], 0);
	event_put(f, i, 0, SW_TRACE_HOLD, w->held, w->ahead[i], 0);
	event_put(f, i, 0, SW_TRACE_DONE, w->done, w->ahead[i], 0);
}

static size_t trace_make(const struct way *w, char out[BYTES])
{
	struct sw_trace_name name = {.epoch = 5, .key = KEY, .name = "w\"1"};
	FILE *f = fmemopen(out, BYTES, "w");
	uint16_t last = w->folded[1] > w->folded[0];
	size_t n;

	fwrite(SW_TRACE_MAGIC, 1, SW_TRACE_MAGIC_BYTES, f);
	for (uint16_t i = 0; i < 3; i++)
		daemon_put(f, i);
	block_put(f, SW_TRACE_NAME, SERVER, &name, sizeof(name));
	agent_put(f, 0, w);
	agent_put(f, 1, w);
	if (w->is_burst) /* dropped, so that it is repeated */
		event_put(f, SERVER, last, SW_TRACE_FOLD, w->folded[!last], 0,
			SW_TRACE_UNSURE | SW_TRACE_MAYBE);
	event_put(f, SERVER, !last, SW_TRACE_FOLD, w->folded[!last], 0,
		w->is_burst ? SW_TRACE_UNSURE | SW_TRACE_MAYBE : 0);
	event_put(f, SERVER, last, SW_TRACE_FOLD, w->folded[last], 0,
		w->is_burst ? SW_TRACE_MAYBE : SW_TRACE_COMPLETE);
	event_put(f, SERVER, 0, SW_TRACE_RESULT, w->result, 0, 0);
	event_put(f, SERVER, 1, SW_TRACE_RESULT, w->result, 0, 0);
	for (uint16_t i = 0; i < 3; i++)
		block_put(f, SW_TRACE_END, i, "", 0);
	n = (size_t)ftell(f);
	fclose(f);
	return n;
}

/* Read a trace and write the output of sumwire trace. Return the report, which
 * the caller frees; NULL: this is no trace. */
static char *show(struct sw_trace_data *t, char *trace, size_t n)
{
	FILE *f = fmemopen(trace, n, "r"), *to, *none;
	char *text = NULL;
	size_t bytes = 0;
	int err = sw_trace_load(t, f, "it");

	fclose(f);
	if (err)
		return NULL;
	assert_int_equal(sw_trace_join(t), 0);
	to = open_memstream(&text, &bytes);
	none = fopen("/dev/null", "w");
	sw_trace_print(t, none);
	assert_int_equal(sw_trace_chrome(t, none, "it"), 0);
	assert_int_equal(sw_trace_report(t, to), 0);
	fclose(none);
	fclose(to);
	return text;
}

static void expect(const struct way *w, const char *bound, const char *agent)
{
	struct sw_trace_data t = {0};
	char trace[BYTES], *text;
	size_t n = trace_make(w, trace);

	text = show(&t, trace, n);
	assert_non_null(text);
	assert_contains(text, bound);
	assert_contains(text, agent);
	free(text);
	sw_trace_free(&t);
}

/* Return a way on which agent 1 pushed at @us, and all else followed. */
static struct way pushed_at(uint64_t us)
{
	struct way w = usual;

	w.pushed[1] = us;
	w.folded[1] = us + 10;
	w.result = us + 20;
	w.held = us + 30;
	w.done = us + 40;
	return w;
}

static void trace__names_what_bound_a_step(void **state)
{
	struct way w = pushed_at(1510);

	w.called[1] = 1500; /* rank 1 called late */
	expect(&w, "bound by straggler (0.4", "agent 1 (node node1)");
	w.called[1] = 1010;
	expect(&w, "bound by credit (0.5", "agent 1 (node node1)");
	w.pushed[1] = 1020;
	expect(&w, "bound by link (0.5", "agent 1 (node node1)");
	w = usual;
	w.folded[0] = 1700; /* the link of agent 0 is slow */
	w.result = 1710;
	w.held = 1720;
	w.done = 1730;
	expect(&w, "bound by link (0.6", "agent 0 (node node0)");
	w = usual;
	w.done = 2000;
	expect(&w, "bound by copy (0.9", "agent 1");
	w = pushed_at(1810);
	w.called[1] = 0; /* not recorded */
	expect(&w, "bound by unknown (0.8", "agent 1");
}

/* Processes of ranks note when a call became ready, and their copies. */
static void trace__takes_notes_of_processes(void **state)
{
	struct sw_trace_data t = {0};
	struct way w = usual;
	char trace[BYTES], *text;
	const struct sw_trace_span *call;
	size_t n;

	w.ready = 400; /* the agent took the call late */
	expect(&w, "bound by credit (0.6", "agent 1 (node node1)");
	w.copied[0] = 420; /* because its process was copying */
	w.copied[1] = 1000;
	expect(&w, "bound by copy (0.5", "agent 1 (node node1)");
	w.taken = 1200;
	n = trace_make(&w, trace);
	text = show(&t, trace, n);
	assert_contains(text, "0.800 ms"); /* from ready to copied out */
	call = t.spans[0].member == 0 && t.n_spans > 1 ? &t.spans[1]
						       : &t.spans[0];
	assert_int_equal(t.n_spans, 2);
	assert_int_equal(t.n_copies, 2);
	assert_int_equal(call->taken_ns - call->from_ns, 610 * US);
	assert_int_equal(call->started_ns - call->from_ns, 630 * US - 500);
	assert_int_equal(call->end_ns - call->to_ns, 110 * US);
	assert_ptr_equal(t.copies[1].call, call);
	assert_int_equal(t.copies[1].kind, SW_TRACE_COPY_OUT);
	free(text);
	sw_trace_free(&t);
}

/* Every frame arrives after it was sent, which bounds the difference of the
 * clocks. */
static void trace__aligns_clocks(void **state)
{
	static const int64_t ahead[] = {0, 1, -1, 500000, -500000, 40000000};
	struct sw_trace_data t = {0};
	struct way w = usual;
	char trace[BYTES];

	for (size_t i = 0; i < SW_ARRAY_SIZE(ahead); i++) {
		size_t n;
		int64_t found;

		w.ahead[1] = ahead[i];
		n = trace_make(&w, trace);
		free(show(&t, trace, n));
		assert_int_equal(t.n_clocks, 3);
		found = t.clocks[1].offset_ns - t.clocks[0].offset_ns;
		assert_true(t.clocks[1].is_known);
		assert_true(llabs(found - ahead[i] * US) <=
			    t.clocks[1].error_ns + t.clocks[0].error_ns);
		assert_in_range(t.clocks[1].error_ns, 1, 50 * US);
		sw_trace_free(&t);
	}
}

static void trace__tells_what_the_frames_of_a_burst_did(void **state)
{
	struct way w = usual;
	struct sw_trace_data t = {0};
	const struct sw_trace_event *e;
	char trace[BYTES];
	size_t n;

	w.is_burst = true;
	n = trace_make(&w, trace);
	free(show(&t, trace, n));
	e = t.daemons[SERVER].lcores[0].events;
	assert_int_equal(e[0].kind, SW_TRACE_AGAIN);
	assert_int_equal(e[0].bytes, 0);
	assert_int_equal(e[1].kind, SW_TRACE_FOLD);
	assert_false(e[1].flags & SW_TRACE_COMPLETE);
	assert_int_equal(e[2].kind, SW_TRACE_FOLD);
	assert_true(e[2].flags & SW_TRACE_COMPLETE);
	sw_trace_free(&t);
}

static void trace__survives_damage(void **state)
{
	static const uint8_t bad[] = {0, 1, 0x7f, 0x80, 0xff};
	char trace[BYTES], cut[BYTES];
	struct way w = usual;
	size_t n;
	uint32_t n_read = 0;
	uint64_t rng = 1;

	w.ready = w.copied[0] = 900;
	w.copied[1] = w.taken = 1200;
	n = trace_make(&w, trace);
	for (uint32_t i = 0; i < 3000; i++) {
		struct sw_trace_data t = {0};
		size_t some = i % 4 ? n : 9 + test_random(&rng) % (n - 9);
		char *text;

		memcpy(cut, trace, some);
		for (uint64_t k = test_random(&rng) % 8; k; k--)
			cut[8 + test_random(&rng) % (some - 8)] =
				(char)bad[test_random(&rng) % sizeof(bad)];
		text = show(&t, cut, some);
		n_read += text != NULL;
		free(text);
		sw_trace_free(&t);
	}
	assert_in_range(n_read, 500, 2900);
}

enum { CROWD = 30000, STEP_US = 10 };

enum crowd {
	PLAIN,  /* each call has a round of its own, and ends before the next */
	CALLS,  /* all are open at once, and of one round */
	COPIES, /* a long copy covers all others, and all calls */
};

static void crowd_put(FILE *f, uint16_t daemon, enum sw_trace_kind kind,
	uint64_t us, uint32_t round, uint32_t chunk, uint64_t ns)
{
	struct sw_trace_event e = {.t_ns = us * US + UINT64_C(10000000000),
		.ns = (uint32_t)ns,
		.key = kind < SW_TRACE_READY ? KEY : 0,
		.round = round,
		.chunk = chunk,
		.kind = (uint8_t)kind};

	block_put(f, SW_TRACE_EVENTS, daemon, &e, sizeof(e));
}

/* Record CROWD calls of a rank, each with a chunk and a copy. */
static void crowd_make(enum crowd crowd, FILE *f)
{
	fwrite(SW_TRACE_MAGIC, 1, SW_TRACE_MAGIC_BYTES, f);
	daemon_put(f, 0);
	daemon_put(f, SERVER);
	crowd_put(f, 0, SW_TRACE_COPY_IN, STEP_US * (uint64_t)CROWD, 0, 0,
		crowd == COPIES ? UINT64_C(4000000000) : 1);
	for (uint32_t i = 0; i < CROWD; i++) {
		uint32_t round = crowd == CALLS ? 0 : i;
		uint32_t chunk = crowd == CALLS ? i : 0;
		uint64_t us = STEP_US * (uint64_t)i;
		/* calls come after all copies */
		uint64_t ahead = crowd == COPIES ? 3000000 : 0;

		crowd_put(f, 0, SW_TRACE_COPY_IN, us - ahead, 0, i, 500);
		crowd_put(f, 0, SW_TRACE_CALL, us, round, i, 0);
		crowd_put(f, 0, SW_TRACE_PUSH, us + 2, round, chunk, 100);
		crowd_put(f, SERVER, SW_TRACE_FOLD, us + 3, round, chunk, 100);
		crowd_put(
			f, SERVER, SW_TRACE_RESULT, us + 4, round, chunk, 100);
		crowd_put(f, 0, SW_TRACE_HOLD, us + 5, round, chunk, 100);
		if (crowd != CALLS)
			crowd_put(f, 0, SW_TRACE_DONE, us + 6, round, i, 0);
	}
	for (uint32_t i = 0; crowd == CALLS && i < CROWD; i++)
		crowd_put(f, 0, SW_TRACE_DONE, STEP_US * (uint64_t)CROWD + i, 0,
			i, 0);
}

/* Return the CPU time that reading and showing such a trace takes. */
static double crowd_time(enum crowd crowd)
{
	struct sw_trace_data t = {0};
	char *trace = NULL;
	size_t n;
	FILE *f = open_memstream(&trace, &n);
	clock_t begin;

	crowd_make(crowd, f);
	fclose(f);
	begin = clock();
	free(show(&t, trace, n));
	assert_int_equal(t.n_spans, CROWD);
	assert_int_equal(t.n_pieces, CROWD);
	sw_trace_free(&t);
	free(trace);
	return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* A trace of a hostile daemon takes not much longer than one of its size. */
static void trace__takes_time_by_its_size(void **state)
{
	double plain_s = crowd_time(PLAIN);

	assert_true(crowd_time(CALLS) < 4 * plain_s);
	assert_true(crowd_time(COPIES) < 4 * plain_s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace__names_what_bound_a_step),
		cmocka_unit_test(trace__takes_notes_of_processes),
		cmocka_unit_test(trace__aligns_clocks),
		cmocka_unit_test(trace__tells_what_the_frames_of_a_burst_did),
		cmocka_unit_test(trace__survives_damage),
		cmocka_unit_test(trace__takes_time_by_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
