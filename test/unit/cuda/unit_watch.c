/* unit_watch.c - collectives whose tensors are written or freed too early.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/cuda/coll_rig.h"

enum { MIB = 1 << 20, PIECE = MIB / 4 };

static void nap(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Start a call and wait until a part is copied; by then all that is sent has
 * been checked once. */
static uint64_t start_mute(struct scene *s, const struct sw_coll_args *a)
{
	uint64_t before = sw_fake_copies(s->d->back, SW_BACK_OUT), h;

	rig_mute(s->r, true);
	h = coll_start(s, a, NULL);
	while (sw_fake_copies(s->d->back, SW_BACK_OUT) == before)
		nap(1);
	return h;
}

static void end_edited(
	struct scene *s, uint64_t h, enum sw_coll_kind kind, int err)
{
	char text[160];

	rig_mute(s->r, false);
	assert_int_equal(sw_wait(s->c, h), err);
	snprintf(text, sizeof(text),
		"rank 3: %s of group 'all': its tensor was written or freed "
		"while it was summed",
		sw_coll_name(kind));
	if (err)
		assert_contains(sw_last_error(s->c), text);
}

/* Write the first byte, the last one (which no stage has yet), and both. */
static void check_written(
	struct scene *s, const struct sw_coll_args *a, int err)
{
	char *sent = (char *)a->send;

	for (uint32_t i = 1; i < 4; i++) {
		uint64_t h;

		coll_fill(s, a, i);
		h = start_mute(s, a);
		sent[0] ^= (char)(i & 1 ? 0x80 : 0);
		sent[bytes_in(a) - 1] ^= (char)(i & 2 ? 0x80 : 0);
		end_edited(s, h, a->kind, err);
	}
	coll_run(s, a, 4);
}

static void check_all_written(struct scene *s, const char *device, int err)
{
	open_device(s, device);
	for (uint32_t kind = 1; kind < SW_BARRIER; kind++)
		for (uint32_t i = 0; i < 2; i++) {
			struct sw_coll_args a =
				args_of(s, (enum sw_coll_kind)kind,
					i ? 101 : 2 * PIECE + 3);

			check_written(s, &a, err);
		}
	sw_device_close(&s->d);
}

/* Only a back end with the option "check" detects the write. */
static void coll__tensor_is_written(void **state)
{
	check_all_written(*state, "fake", 0);
	check_all_written(*state, "fake:check", SW_ECORRUPT);
}

/* In place, results overwrite sent data; that is no early write. */
static void coll__tensor_is_written_in_place(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 9 * PIECE + 7);

	open_device(s, "fake:check");
	a.recv = s->send;
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t h;

		coll_fill(s, &a, i);
		h = start_mute(s, &a);
		s->send[8 * (uint64_t)MIB] ^= (char)(i & 1);
		end_edited(s, h, a.kind, i & 1 ? SW_ECORRUPT : 0);
	}
}

/* The first piece and part of the third are back, but the call has not
 * ended. */
static void coll__result_is_written(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 9 * PIECE + 7);

	open_device(s, "fake:check,mbit=200");
	for (uint32_t i = 0; i < 2; i++) {
		const volatile char *third = (char *)s->recv + 2 * MIB;
		uint64_t h;

		coll_fill(s, &a, i);
		memset(s->recv, 0x55, bytes_in(&a));
		h = coll_start(s, &a, NULL);
		while (*third == 0x55)
			nap(1);
		s->recv[0] ^= (char)(i & 1);
		assert_int_equal(sw_wait(s->c, h), i & 1 ? SW_ECORRUPT : 0);
	}
}

static void coll__tensor_is_freed(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_REDUCE, 9 * PIECE);
	uint64_t h;
	void *p;

	open_device(s, "fake:check");
	assert_int_equal(sw_device_alloc(s->d, bytes_in(&a), &p), 0);
	memset(p, 1, bytes_in(&a));
	a.send = p;
	h = start_mute(s, &a);
	sw_device_free(s->d, p);
	end_edited(s, h, a.kind, SW_ECORRUPT);
}

static void overwrite(void *arg)
{
	struct scene *s = arg;

	memset(s->send, 0, COLL_BYTES);
}

/* A write in a stream that waits for the sum is not too early. */
static void coll__stream_writes_behind(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 9 * PIECE);
	struct sw_fake_stream *stream;

	open_device(s, "fake:check,gbit=20");
	stream = sw_fake_stream_open(s->d->back);
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t h;

		coll_fill(s, &a, i);
		h = coll_start(s, &a, stream);
		assert_int_equal(sw_coll_hold(s->d, h, stream), 0);
		sw_fake_stream_run(stream, overwrite, s);
		coll_wait(s, h);
		sw_fake_stream_wait(stream);
		coll_check(s, &a, i);
	}
	sw_fake_stream_close(stream);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, scene_open, scene_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(coll__tensor_is_written),
		CASE(coll__tensor_is_written_in_place),
		CASE(coll__result_is_written),
		CASE(coll__tensor_is_freed),
		CASE(coll__stream_writes_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
