/* unit_cuda_coll.c - sw_coll_device over a stand-in for the CUDA runtime.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/cuda/coll_rig.h"
#include "test/unit/cuda/fake_rig.h"

enum { PIECE = (1 << 20) / 4 };

static void *library;
static struct fake *fake;

static int cuda_open(void **state)
{
	library = fake_load(13, &fake);
	return scene_open(state);
}

static int cuda_close(void **state)
{
	scene_close(state);
	fake_unload(library, fake);
	return 0;
}

/* A piece with several parts is copied by rows, another piece by bytes. */
static void coll__is_exact(void **state)
{
	struct scene *s = *state;
	static const uint64_t counts[] = {1, 100, PIECE - 1, 2 * PIECE + 5};
	uint32_t n_wide = 0;

	open_device(s, "cuda");
	for (uint32_t kind = 1; kind < SW_BARRIER; kind++)
		for (uint32_t i = 0; i < 4; i++) {
			struct sw_coll_args a =
				args_of(s, (enum sw_coll_kind)kind, counts[i]);

			coll_run(s, &a, kind + i);
			if (kind == SW_REDUCE_SCATTER || kind == SW_ALL_GATHER)
				assert_true(fake->n_wide > n_wide);
			else
				assert_int_equal(fake->n_wide, n_wide);
			n_wide = fake->n_wide;
		}
	/* the words, and small and large stages of each kind */
	assert_int_equal(fake->n_pins, 1 + 2 * 5);
	assert_int_equal(s->n_lines, 0);
}

/* A driver may wait for work that needs the locks of client and pipeline, so
 * these must not be held in a call. */
static struct {
	struct scene *s;
	atomic_uint n_calls, n_locked;
} locks;

/* A glibc mutex knows its owner. */
static bool is_held(const pthread_mutex_t *m)
{
	return m->__data.__owner == gettid();
}

static void look_at_locks(void *arg)
{
	const struct scene *s = arg;

	locks.n_calls++;
	locks.n_locked += is_held(&s->c->turn.lock) ||
			  (s->d && is_held(&s->d->pipeline.lock));
}

static void driver__is_called_without_a_lock(void **state)
{
	struct sw_tensor_desc desc = RIG_DESC("w", 3 * PIECE, SW_F32, 0);
	struct scene *s = *state;
	struct sw_device_call call = SW_DEVICE_CALL_INIT;
	struct sw_device_tensor *t;
	uint64_t h;

	memset(&locks, 0, sizeof(locks));
	fake->on_call = look_at_locks;
	fake->on_call_arg = s;
	open_device(s, "cuda");
	for (uint32_t kind = 1; kind <= SW_BARRIER; kind++) {
		struct sw_coll_args a =
			args_of(s, (enum sw_coll_kind)kind, PIECE + 3);

		rig_mute(s->r, true);
		h = coll_start(s, &a, NULL);
		assert_int_equal(sw_coll_hold(s->d, h, NULL), 0);
		rig_mute(s->r, false);
		coll_wait(s, h);
	}
	assert_int_equal(sw_device_can_hold(s->d, NULL), 0);
	assert_int_equal(sw_device_declare(s->d, &desc, 1, &t), 0);
	call.from = call.to = s->send;
	assert_int_equal(sw_push_pull_device(t, &call), 0);
	assert_int_equal(sw_device_hold(t, NULL), 0);
	assert_int_equal(sw_device_wait(t), 0);
	assert_int_equal(sw_group_close(s->g), 0);
	sw_device_close(&s->d);
	assert_in_range(locks.n_calls, 50, UINT32_MAX);
	assert_int_equal(locks.n_locked, 0);
	fake->on_call = NULL;
}

/* After many groups one spare stage of each kind remains, and no unmapped page
 * stays pinned. */
static void stages__are_unpinned_before_they_go(void **state)
{
	struct scene *s = *state;
	struct sw_group *groups[3];
	uint32_t n_pinned;

	open_device(s, "cuda");
	groups[0] = s->g;
	assert_int_equal(sw_group_open(s->c, "second", NULL, 0, &groups[1]), 0);
	assert_int_equal(sw_group_open(s->c, "third", NULL, 0, &groups[2]), 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 2 * PIECE);

		s->g = groups[i];
		coll_run(s, &a, i);
	}
	n_pinned = fake->n_pinned;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(sw_group_close(groups[i]), 0);
	assert_int_equal(fake->n_pinned, n_pinned - 2);
}

/* One copy moves a piece of every part, and another copy moves its result. */
static void coll__is_as_many_copies(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 3 * PIECE);

	open_device_with(s, "cuda", 4 << 20);
	coll_run(s, &a, 0);
	assert_int_equal(fake->n_copies[0], 3);
	assert_int_equal(fake->n_copies[1], 3);
	a = args_of(s, SW_BCAST, PIECE);
	a.root = 1;
	coll_wait(s, coll_start(s, &a, NULL));
	assert_int_equal(fake->n_copies[0], 4);
	assert_int_equal(fake->n_copies[1], 3);
	a = args_of(s, SW_BARRIER, 0);
	coll_wait(s, coll_start(s, &a, NULL));
	assert_int_equal(fake->n_copies[0], 4);
	assert_int_equal(fake->n_copies[1], 3);
}

static void hold__by_wait_value(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, PIECE);

	open_device(s, "cuda");
	for (uint32_t i = 1; i <= 3; i++) {
		const _Atomic uint32_t *word;
		uint64_t h;

		rig_mute(s->r, true);
		coll_fill(s, &a, i);
		h = coll_start(s, &a, NULL);
		assert_int_equal(sw_coll_hold(s->d, h, NULL), 0);
		assert_int_equal(fake->n_waits, i);
		assert_int_equal(fake->wait_value, i); /* the word is reused */
		word = (const _Atomic uint32_t *)(uintptr_t)fake->wait_at;
		assert_int_equal(*word, i - 1);
		rig_mute(s->r, false);
		coll_wait(s, h);
		assert_int_equal(*word, i);
		coll_check(s, &a, i);
	}
}

/* sw_device_can_hold asks without a collective, and its wait is satisfied at
 * once. */
static void can_hold__asks_the_driver(void **state)
{
	struct scene *s = *state;

	open_device(s, "cuda");
	assert_int_equal(sw_device_can_hold(s->d, NULL), 0);
	assert_int_equal(fake->n_waits, 1);
	assert_int_equal(fake->wait_value,
		*(const _Atomic uint32_t *)(uintptr_t)fake->wait_at);
	fake->capture = 1;
	assert_int_equal(sw_device_can_hold(s->d, NULL), SW_EPERM);
	assert_contains(sw_last_error(s->c), "captured into a CUDA graph");
	fake->capture = 0;
	assert_int_equal(s->n_lines, 0);
}

static void can_hold__says_why_not(void **state)
{
	struct scene *s = *state;

	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
	open_device(s, "cuda");
	unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(sw_device_can_hold(s->d, NULL), SW_ENOENT);
	assert_contains(sw_last_error(s->c),
		"rank 3: cuda device 0: sw_device_can_hold: "
		"CUDA_DEVICE_MAX_CONNECTIONS is 1");
	assert_int_equal(fake->n_waits, 0);
	assert_int_equal(s->n_lines, 1);
	assert_contains(s->line, "streams cannot wait for a sum");
}

/* A call with a captured or an invalid stream fails without harm to the device
 * or group. */
static void coll__refuses(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, PIECE);
	uint64_t h;

	open_device(s, "cuda");
	fake->capture = 1;
	assert_int_equal(sw_coll_device(s->d, s->g, &a, NULL, &h), SW_EINVAL);
	assert_contains(sw_last_error(s->c),
		"rank 3: cuda device 0: group 'all': its stream is being "
		"captured into a CUDA graph, which cannot have a collective");
	fake->capture = 0;
	rig_mute(s->r, true);
	h = coll_start(s, &a, NULL);
	fake->capture = 1;
	assert_int_equal(sw_coll_hold(s->d, h, NULL), SW_EPERM);
	assert_contains(sw_last_error(s->c),
		"rank 3: cuda device 0: sw_coll_hold: its stream is being "
		"captured into a CUDA graph");
	assert_int_equal(fake->n_waits, 0);
	fake->capture = 0;
	rig_mute(s->r, false);
	coll_wait(s, h);
	assert_int_equal(
		sw_coll_device(s->d, s->g, &a, (void *)1, &h), SW_EINVAL);
	assert_contains(sw_last_error(s->c), "an error (400)");
	coll_run(s, &a, 1);
}

/* The loss is found by a copy or by the caller. */
static void device__is_lost(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 8 * PIECE);
	uint64_t h = 0;

	open_device(s, "cuda");
	fake->lost_after = 5;
	h = coll_start(s, &a, NULL);
	assert_int_equal(sw_wait(s->c, h), SW_EDEVICE);
	assert_contains(sw_last_error(s->c),
		"rank 3: cuda device 0: cudaMemcpyAsync: unspecified launch "
		"failure (719)");
	rig_await(s->r, 1, SW_HOST_DIED, "cuda device 0: ");
}

static void caller__finds_it_lost(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, PIECE);
	uint64_t h = 0;

	open_device(s, "cuda");
	fake->is_lost = 1;
	assert_int_equal(sw_coll_device(s->d, s->g, &a, NULL, &h), SW_EDEVICE);
	assert_contains(sw_last_error(s->c), "(719)");
	rig_await(s->r, 1, SW_HOST_DIED, "cuda device 0: ");
	assert_int_equal(sw_coll(s->g, &a, &h), SW_EDEVICE);
	assert_contains(sw_last_error(s->c), "cuda device 0: ");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, cuda_open, cuda_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(coll__is_exact),
		CASE(driver__is_called_without_a_lock),
		CASE(stages__are_unpinned_before_they_go),
		CASE(coll__is_as_many_copies),
		CASE(hold__by_wait_value),
		CASE(can_hold__asks_the_driver),
		CASE(can_hold__says_why_not),
		CASE(coll__refuses),
		CASE(device__is_lost),
		CASE(caller__finds_it_lost),
	};

	/* otherwise no stream can wait */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);

	return cmocka_run_group_tests(tests, NULL, NULL);
}
