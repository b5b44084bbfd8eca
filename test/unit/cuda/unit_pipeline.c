/* unit_pipeline.c - device to network and back: order, windows, events, ends.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/cuda/pipe_rig.h"

#include <sys/wait.h>
#include <unistd.h>

#include "test/support/random.h"

enum {
	KIB = 1024,
	MIB = 1024 * KIB,
	TRIES = 20, /* other processes may take our core now and then */
};

static void draw_round(struct rig *r, uint64_t *rng)
{
	uint64_t salt = test_random(rng) % 1000;

	r->delay_ns = test_random(rng) % 300000;
	for (uint32_t i = 0; i < r->n; i++) {
		rig_fill(r, i, salt + i);
		rig_submit(r, i);
	}
	for (uint32_t i = r->n; i--;)
		rig_wait(r, i);
	for (uint32_t i = 0; i < r->n; i++)
		rig_check(r, i, salt + i);
}

/* Random sizes, priorities, pieces and bandwidths. */
static void pipeline__is_exact(void **state)
{
	uint64_t rng = 18;

	(void)state;
	for (uint32_t seed = 0; seed < 12; seed++) {
		char options[64];
		struct rig *r;

		snprintf(options, sizeof(options), "gbit=%u,latency_us=%u",
			(uint32_t)(test_random(&rng) % 3 * 40),
			(uint32_t)(test_random(&rng) % 20));
		r = rig_open(options, 4096 + test_random(&rng) % 9 * 8 * KIB);
		for (uint32_t i = 0; i < 6; i++)
			rig_add(r, 8 + test_random(&rng) % (100 * KIB) / 8 * 8,
				(uint32_t)(test_random(&rng) % 3));
		for (uint32_t round = 0; round < 3; round++)
			draw_round(r, &rng);
		rig_close(r);
	}
}

static void pipeline__grows_in_order(void **state)
{
	struct rig *r = rig_open("gbit=40", 64 * KIB);
	uint32_t t = rig_add(r, MIB + 8, 0);

	(void)state;
	rig_fill(r, t, 1);
	rig_submit(r, t);
	rig_wait(r, t);
	assert_int_equal(r->n_pushes, 33);
	for (uint32_t i = 0; i < r->n_pushes; i++)
		assert_int_equal(r->pushes[i].there,
			i < 32 ? (i + 1) * 32 * KIB : MIB + 8);
	assert_int_equal(sw_fake_copies(r->back, SW_BACK_OUT), 33);
	assert_int_equal(sw_fake_copies(r->back, SW_BACK_IN), 33);
	rig_close(r);
}

/* At a push a slice has landed; the back end may have one more. Slices that
 * were pushed earlier are on their way back. */
static void expect_stages(struct rig *r)
{
	assert_in_range(sw_fake_copies(r->back, SW_BACK_OUT), r->n_pushes + 1,
		r->n_pushes + 2);
	if (r->n_pushes > 4)
		assert_in_range(
			sw_fake_copies(r->back, SW_BACK_IN), 1, r->n_pushes);
}

/* Slices are independent: each is pushed when it has landed, and copied back
 * when its sum is ready, while later slices have not started. */
static void pipeline__stages_work_at_once(void **state)
{
	struct rig *r = rig_open("latency_us=20", 64 * KIB);
	uint32_t t = rig_add(r, 4 * MIB, 0);

	(void)state;
	r->on_push = expect_stages;
	rig_fill(r, t, 1);
	rig_submit(r, t);
	rig_wait(r, t);
	assert_int_equal(r->n_pushes, 128);
	rig_check(r, t, 1);
	rig_close(r);
}

/* If a copy has a high cost, the pipeline soon copies more at once, in both
 * directions. */
static void pipeline__finds_out_how_much_to_copy(void **state)
{
	struct rig *r =
		rig_open_with(&sw_back_fake, "latency_us=2000", 512 * KIB, 0);
	uint32_t t = rig_add(r, 4 * MIB, 0), tries = 0;
	uint64_t n[SW_BACK_WAYS];

	(void)state;
	do {
		assert_true(tries < TRIES);
		for (uint32_t i = 0; i < SW_BACK_WAYS; i++)
			n[i] = sw_fake_copies(r->back, i);
		rig_fill(r, t, tries);
		rig_submit(r, t);
		rig_wait(r, t);
		rig_check(r, t, tries);
		for (uint32_t i = 0; i < SW_BACK_WAYS; i++) {
			n[i] = sw_fake_copies(r->back, i) - n[i];
			if (!tries)
				assert_in_range(n[i], 9, 32);
		}
		tries++;
	} while (n[SW_BACK_OUT] > 8 || n[SW_BACK_IN] > 8);
	rig_close(r);
}

static void wait_copies(struct rig *r, enum sw_back_way way, uint64_t n)
{
	while (sw_fake_copies(r->back, way) < n)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* On the way out at most one piece (here 4 ms) goes before an urgent tensor.
 * Return whether part of the large tensor went behind it. */
static bool urgent_goes_out(void)
{
	struct rig *r = rig_open("gbit=1", 512 * KIB);
	uint32_t big = rig_add(r, 16 * MIB, 5), urgent = rig_add(r, 4096, 0);
	uint64_t begun;
	uint32_t place = 0;
	bool is_first;

	rig_submit(r, big);
	wait_copies(r, SW_BACK_OUT, 9);
	rig_submit(r, urgent);
	begun = sw_fake_copies(r->back, SW_BACK_OUT);
	rig_wait(r, urgent);
	while (r->pushes[place].t != &r->t[urgent])
		place++;
	/* plus one push that may have begun meanwhile */
	assert_in_range(place, 1, begun + 1);
	is_first = r->n_pushes < 32;
	rig_close(r);
	return is_first;
}

static void pipeline__urgent_waits_for_one_piece_out(void **state)
{
	uint32_t tries = 1;

	(void)state;
	while (!urgent_goes_out())
		assert_true(tries++ < TRIES);
}

/* The same on the way back (2 ms per piece), while all of the large tensor
 * waits. */
static bool urgent_comes_in(void)
{
	struct rig *r = rig_open("gbit=1", 512 * KIB);
	uint32_t big = rig_add(r, 8 * MIB, 5), urgent = rig_add(r, 4096, 0);
	uint64_t copies;

	r->is_stuck = true;
	rig_submit(r, big);
	wait_copies(r, SW_BACK_OUT, 32);
	nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	r->is_stuck = false;
	wait_copies(r, SW_BACK_IN, 4);
	rig_submit(r, urgent);
	rig_wait(r, urgent);
	/* one more copy, and those that begin while we sleep; otherwise all
	 * 32 */
	copies = sw_fake_copies(r->back, SW_BACK_IN);
	rig_wait(r, big);
	assert_int_equal(sw_fake_copies(r->back, SW_BACK_IN), 33);
	rig_close(r);
	return copies >= 5 && copies <= 30;
}

static void pipeline__urgent_waits_for_one_piece_in(void **state)
{
	uint32_t tries = 1;

	(void)state;
	while (!urgent_comes_in())
		assert_true(tries++ < TRIES);
}

/* If the producer of the most urgent tensor is late, the other tensor does not
 * wait. */
static void pipeline__late_event_holds_up_nobody(void **state)
{
	struct rig *r = rig_open(NULL, 64 * KIB);
	uint32_t late = rig_add(r, MIB, 0), other = rig_add(r, MIB, 9);
	struct sw_fake_stream *s = sw_fake_stream_open(r->back);
	char why[SW_PIPELINE_WHY];
	_Atomic bool is_made = false;

	(void)state;
	rig_fill(r, late, 5);
	rig_fill(r, other, 6);
	sw_fake_stream_run(s, rig_await_true, (void *)&is_made);
	assert_int_equal(rig_submit_on(r, late, s, why), 0);
	rig_submit(r, other);
	rig_wait(r, other);
	assert_int_equal(
		sw_pipeline_wait(&r->l, &r->t[late], 0, why), SW_EAGAIN);
	assert_int_equal(rig_submit_on(r, late, s, why), SW_EBUSY);
	assert_contains(why, "wait for its last call");
	atomic_store(&is_made, true);
	rig_wait(r, late);
	rig_check(r, late, 5);
	rig_check(r, other, 6);
	sw_fake_stream_close(s);
	rig_close(r);
}

struct reader {
	struct rig *r;
	uint32_t i;
	uint64_t first, last;
};

static void read_ends(void *arg)
{
	struct reader *x = arg;

	x->first = x->r->device[x->i][0];
	x->last = x->r->device[x->i][x->r->words[x->i] - 1];
}

/* Three times, a stream continues when the sum is in device memory. */
static void pipeline__stream_waits(void **state)
{
	struct rig *r = rig_open(NULL, 64 * KIB);
	uint32_t t = rig_add(r, MIB, 0);
	struct sw_fake_stream *s = sw_fake_stream_open(r->back);
	struct reader x = {.r = r, .i = t};
	char why[SW_PIPELINE_WHY];

	(void)state;
	for (uint64_t round = 1; round < 4; round++) {
		r->is_stuck = true;
		rig_fill(r, t, round);
		rig_submit(r, t);
		assert_int_equal(
			sw_pipeline_hold(&r->l, &r->t[t], s, RIG_UNTIL, why),
			0);
		assert_int_equal(
			sw_pipeline_wait(&r->l, &r->t[t], 0, why), SW_EAGAIN);
		r->is_stuck = false;
		sw_fake_stream_run(s, read_ends, &x);
		sw_fake_stream_wait(s);
		assert_int_equal(x.first, 3 * round);
		assert_int_equal(x.last, 3 * (r->words[t] - 1 + round));
		rig_wait(r, t);
	}
	assert_int_equal(r->n_lines, 0);
	sw_fake_stream_close(s);
	rig_close(r);
}

/* The device reads the words' page, so a fork must share it. A copy on write
 * would separate the parent from the device. */
static void pipeline__words_stay_when_we_fork(void **state)
{
	struct rig *r = rig_open(NULL, 64 * KIB);
	_Atomic uint32_t *word = sw_pipeline_word(&r->l);
	int code;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		atomic_store(word, 7);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &code, 0), pid);
	assert_int_equal(atomic_load(word), 7);
	rig_close(r);
}

enum { EACH = 10000, ROUNDS = 100 };

struct taker {
	struct sw_pipeline *l;
	pthread_barrier_t *start;
	pthread_t thread;
};

static void *take_words(void *arg)
{
	const struct taker *x = arg;

	for (uint32_t k = 0; k < ROUNDS; k++) {
		pthread_barrier_wait(x->start);
		for (uint32_t i = 0; i < EACH; i++)
			(void)sw_pipeline_word(x->l);
		pthread_barrier_wait(x->start);
	}
	return NULL;
}

/* Tensors are declared while a collective is called: no word is used twice. */
static void pipeline__words_are_of_one(void **state)
{
	static _Atomic uint32_t words[2 * EACH];
	struct sw_pipeline l = {.words = words};
	pthread_barrier_t start;
	struct taker x[2];
	uint32_t taken[ROUNDS];

	(void)state;
	pthread_barrier_init(&start, NULL, 3);
	for (uint32_t i = 0; i < 2; i++) {
		x[i] = (struct taker){.l = &l, .start = &start};
		pthread_create(&x[i].thread, NULL, take_words, &x[i]);
	}
	for (uint32_t k = 0; k < ROUNDS; k++) {
		l.n_words = 0;
		pthread_barrier_wait(&start);
		pthread_barrier_wait(&start);
		taken[k] = l.n_words;
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(x[i].thread, NULL);
	pthread_barrier_destroy(&start);
	for (uint32_t k = 0; k < ROUNDS; k++)
		assert_int_equal(taken[k], 2 * EACH);
}

static void check_blocks(const char *options, const char *because)
{
	struct rig *r = rig_open(options, 64 * KIB);
	uint32_t t = rig_add(r, MIB, 0);
	struct sw_fake_stream *s = sw_fake_stream_open(r->back);
	char why[SW_PIPELINE_WHY];

	for (uint64_t round = 1; round < 3; round++) {
		rig_fill(r, t, round);
		/* only in the first round */
		r->is_stuck_until_said = round == 1;
		rig_submit(r, t);
		assert_int_equal(
			sw_pipeline_hold(&r->l, &r->t[t], s, RIG_UNTIL, why),
			0);
		rig_check(r, t, round);
	}
	assert_int_equal(r->n_lines, 1);
	assert_contains(r->line, because);
	sw_fake_stream_close(s);
	rig_close(r);
}

static void pipeline__caller_waits_where_streams_cannot(void **state)
{
	(void)state;
	check_blocks("no_hold", "switched off");
	check_blocks("no_pin", "not pinned");
}

/* If the device fails, all open calls end, and streams are released. */
static void pipeline__device_lost(void **state)
{
	struct rig *r = rig_open("lost_after=9,gbit=10", 64 * KIB);
	uint32_t a = rig_add(r, MIB, 0), b = rig_add(r, MIB, 1);
	struct sw_fake_stream *s = sw_fake_stream_open(r->back);
	_Atomic bool are_open = false;
	char why[SW_PIPELINE_WHY];

	(void)state;
	sw_fake_stream_run(s, rig_await_true, (void *)&are_open);
	assert_int_equal(rig_submit_on(r, a, s, why), 0);
	assert_int_equal(rig_submit_on(r, b, s, why), 0);
	sw_pipeline_hold(&r->l, &r->t[b], s, RIG_UNTIL, why);
	atomic_store(&are_open, true);
	assert_int_equal(
		sw_pipeline_wait(&r->l, &r->t[a], RIG_UNTIL, why), SW_EDEVICE);
	assert_contains(why, "rank 1: fake device 0: ");
	assert_contains(why, "lost");
	assert_int_equal(
		sw_pipeline_wait(&r->l, &r->t[b], RIG_UNTIL, why), SW_EDEVICE);
	assert_int_equal(rig_submit_on(r, a, NULL, why), SW_EDEVICE);
	assert_contains(why, "fake device 0");
	sw_fake_stream_wait(s);
	sw_fake_stream_close(s);
	rig_stop(r); /* the thread has reported the failure by now */
	assert_int_equal(r->n_given_up, 1);
	assert_contains(r->given_up, "rank 1: fake device 0");
	rig_close(r);
}

/* The network's error becomes the call's error, once the copies in flight have
 * landed. It is reported once. */
static void pipeline__error_of_the_net(void **state)
{
	struct rig *r = rig_open(NULL, 64 * KIB);
	uint32_t t = rig_add(r, MIB, 0);
	char why[SW_PIPELINE_WHY];

	(void)state;
	r->fail_poll = SW_EMISMATCH;
	rig_submit(r, t);
	assert_int_equal(sw_pipeline_wait(&r->l, &r->t[t], RIG_UNTIL, why),
		SW_EMISMATCH);
	ASSERT_TEXT(why, "the net says no");
	assert_int_equal(sw_fake_copies(r->back, SW_BACK_OUT), 32);
	rig_fill(r, t, 2);
	rig_submit(r, t);
	rig_wait(r, t);
	rig_check(r, t, 2);
	/* if no thread waits for the call, the next submit reports its error
	 * once */
	r->fail_push = SW_ECLOSED;
	rig_submit(r, t);
	while (atomic_load(r->t[t].word) != 3)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	while (rig_submit_on(r, t, NULL, why) == SW_EBUSY)
		;
	ASSERT_TEXT(why, "the net says no");
	r->fail_push = 0;
	rig_submit(r, t);
	rig_wait(r, t);
	rig_close(r);
}

/* On the root's rank nothing is copied back; on another rank nothing is copied
 * out. */
static void pipeline__broadcast(void **state)
{
	struct rig *r = rig_open(NULL, 64 * KIB);
	uint32_t t = rig_add(r, MIB, 0);
	char why[SW_PIPELINE_WHY];
	struct sw_pipeline_call call = {.from = r->device[t],
		.to = r->device[t],
		.root = 1,
		.is_root = true};

	(void)state;
	rig_fill(r, t, 2);
	assert_int_equal(
		sw_pipeline_submit(&r->l, &r->t[t], &call, NULL, why), 0);
	rig_wait(r, t);
	assert_int_equal(r->device[t][5], 7); /* 5 + 2, unchanged */
	assert_int_equal(sw_fake_copies(r->back, SW_BACK_OUT), 32);
	assert_int_equal(sw_fake_copies(r->back, SW_BACK_IN), 0);
	call = (struct sw_pipeline_call){.to = r->device[t], .root = 3};
	assert_int_equal(
		sw_pipeline_submit(&r->l, &r->t[t], &call, NULL, why), 0);
	rig_wait(r, t);
	assert_int_equal(r->device[t][9], 7);
	assert_int_equal(sw_fake_copies(r->back, SW_BACK_OUT), 32);
	assert_int_equal(sw_fake_copies(r->back, SW_BACK_IN), 32);
	rig_close(r);
}

/* Close with calls in every stage; nothing is copied afterwards. */
static void pipeline__closes_with_open_calls(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		struct rig *r = rig_open("gbit=1", 64 * KIB);

		r->delay_ns = i * 1000000;
		for (uint32_t k = 0; k < 4; k++) {
			rig_add(r, MIB, k);
			rig_submit(r, k);
		}
		nanosleep(&(struct timespec){.tv_nsec = i * 1000000}, NULL);
		rig_close(r);
	}
}

/* Digests of parts add up for any division. A flip of any bit changes the
 * digest, and so does a flip of two sign bits. */
static void back__digests(void **state)
{
	enum { N = 61 };
	_Alignas(8) char x[N];
	char why[SW_BACK_WHY];
	struct sw_back *b;
	uint64_t all, one, two;

	(void)state;
	assert_int_equal(sw_back_fake.open("check", 0, &b, why), 0);
	for (uint32_t i = 0; i < N; i++)
		x[i] = (char)(i * 37);
	for (uint32_t first = 0; first < 9; first++) {
		sw_back_fake.digest(b, x + first, N - first, &all);
		for (uint32_t i = first; i <= N; i++) {
			sw_back_fake.digest(b, x + first, i - first, &one);
			sw_back_fake.digest(b, x + i, N - i, &two);
			assert_int_equal(one + two, all);
		}
	}
	sw_back_fake.digest(b, x, N, &all);
	for (uint32_t bit = 0; bit < 8 * N; bit++) {
		x[bit / 8] ^= (char)(1U << bit % 8);
		sw_back_fake.digest(b, x, N, &one);
		assert_int_not_equal(one, all);
		x[bit / 8] ^= (char)(1U << bit % 8);
	}
	x[7] ^= (char)0x80; /* the sign bits of two doubles */
	x[15] ^= (char)0x80;
	sw_back_fake.digest(b, x, N, &one);
	assert_int_not_equal(one, all);
	sw_back_fake.close(b);
}

static void back__options(void **state)
{
	const char *options;
	char why[SW_BACK_WHY];
	struct sw_back *b;

	(void)state;
	assert_ptr_equal(sw_back_find("cuda", &options), &sw_back_cuda);
	assert_null(options);
	assert_ptr_equal(sw_back_find("fake:gbit=1", &options), &sw_back_fake);
	ASSERT_TEXT(options, "gbit=1");
	assert_null(sw_back_find("hos", &options));
	assert_null(sw_back_find("hosts", &options));
	assert_null(sw_back_find("", &options));
	for (uint32_t i = 0; i < 5; i++) {
		static const char *const bad[] = {
			"gbit", "gbit=", "gbit=1x", "no_pin=1", "gbit=1,,"};

		assert_int_equal(
			sw_back_fake.open(bad[i], 0, &b, why), SW_EINVAL);
		assert_contains(why, "has no option");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipeline__is_exact),
		cmocka_unit_test(pipeline__grows_in_order),
		cmocka_unit_test(pipeline__stages_work_at_once),
		cmocka_unit_test(pipeline__finds_out_how_much_to_copy),
		cmocka_unit_test(pipeline__urgent_waits_for_one_piece_out),
		cmocka_unit_test(pipeline__urgent_waits_for_one_piece_in),
		cmocka_unit_test(pipeline__late_event_holds_up_nobody),
		cmocka_unit_test(pipeline__stream_waits),
		cmocka_unit_test(pipeline__words_stay_when_we_fork),
		cmocka_unit_test(pipeline__words_are_of_one),
		cmocka_unit_test(pipeline__caller_waits_where_streams_cannot),
		cmocka_unit_test(pipeline__device_lost),
		cmocka_unit_test(pipeline__error_of_the_net),
		cmocka_unit_test(pipeline__broadcast),
		cmocka_unit_test(pipeline__closes_with_open_calls),
		cmocka_unit_test(back__digests),
		cmocka_unit_test(back__options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
