/* unit_host_grow.c - growing tensors of clients, seen from an lcore.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pmd/host/host.h"

enum { PLAIN, GROWING, STREAM, N_ITEMS, NAME = 70 };

struct scene {
	struct sw_edge_control *control;
	struct sw_host_client *port;
	struct sw_spsc submits; /* the client's side */
	int bells[2], kick;
};

static int scene_open(void **state)
{
	static const uint8_t kinds[N_ITEMS] = {
		SW_EDGE_SYNC, SW_EDGE_GROWING, SW_EDGE_STREAM};
	struct scene *s = calloc(1, sizeof(*s));

	s->control = aligned_alloc(64, sizeof(*s->control));
	memset(s->control, 0, sizeof(*s->control));
	s->kick = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s->bells), 0);
	assert_int_equal(
		sw_host_client_open(s->control, s->bells[0], s->kick, &s->port),
		0);
	for (uint32_t i = 0; i < N_ITEMS; i++)
		sw_host_client_enter(s->port, &(struct sw_host_item){.id = i,
						      .name = NAME + i,
						      .kind = kinds[i],
						      .bytes = 1 << 20});
	sw_host_client_admit(s->port, N_ITEMS);
	sw_spsc_init(&s->submits, s->control->submits, SW_EDGE_TENSORS,
		sizeof(struct sw_submit));
	*state = s;
	return 0;
}

static int scene_close(void **state)
{
	struct scene *s = *state;

	sw_host_client_close(&s->port);
	close(s->bells[1]);
	close(s->kick);
	free(s->control);
	free(s);
	return 0;
}

static struct sw_host_submit submit(struct scene *s, uint32_t tensor)
{
	struct sw_submit in = {.handle = 9, .tensor = tensor, .step = 3};
	struct sw_host_submit out = {0};

	assert_int_equal(sw_spsc_put(&s->submits, &in, 1), 1);
	assert_int_equal(sw_host_take(s->port, &out, 8), 1);
	return out;
}

/* Only a growing tensor reports missing bytes; each change is reported once. */
static void take__what_is_not_there(void **state)
{
	struct scene *s = *state;
	uint32_t tensor = 0;
	uint64_t lacks = 0;

	s->control->lacks[PLAIN] = 5;
	s->control->lacks[GROWING] = 6;
	assert_int_equal(submit(s, PLAIN).lacks, 0);
	assert_int_equal(submit(s, GROWING).lacks, 6);
	assert_int_equal(submit(s, GROWING).tensor, NAME + GROWING);
	assert_false(sw_host_take_grown(s->port, &tensor, &lacks));
	for (uint32_t i = 6; i > 2; i--) {
		s->control->lacks[GROWING] = i;
		sw_flags_raise(&s->control->grown, GROWING);
	}
	assert_true(sw_host_take_grown(s->port, &tensor, &lacks));
	assert_int_equal(tensor, NAME + GROWING);
	assert_int_equal(lacks, 3);
	assert_false(sw_host_take_grown(s->port, &tensor, &lacks));
	assert_false(sw_host_is_evicted(s->port));
}

/* Growth of any other item evicts the client. */
static void take__evicts(void **state)
{
	static const uint32_t bad[] = {PLAIN, STREAM, N_ITEMS, 4095};

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t tensor;
		uint64_t lacks;
		struct scene *s;
		void *own;

		scene_open(&own);
		s = own;
		sw_flags_raise(&s->control->grown, bad[i]);
		assert_false(sw_host_take_grown(s->port, &tensor, &lacks));
		assert_true(sw_host_is_evicted(s->port));
		sw_flags_raise(&s->control->grown, GROWING);
		assert_false(sw_host_take_grown(s->port, &tensor, &lacks));
		scene_close(&own);
	}
	(void)state;
}

/* A sleeping client is woken, once. */
static void note_summed__wakes(void **state)
{
	struct scene *s = *state;
	char bytes[8];

	assert_false(sw_host_note_summed(s->port));
	assert_int_equal(s->control->n_summed, 1);
	s->control->client_sleeps = 1;
	assert_true(sw_host_note_summed(s->port));
	assert_false(sw_host_note_summed(s->port));
	assert_int_equal(s->control->n_summed, 3);
	assert_int_equal(recv(s->bells[1], bytes, 8, MSG_DONTWAIT), 1);
}

/* The lcore does not sleep while a tensor has grown. */
static void idle_wait__sees_growth(void **state)
{
	struct scene *s = *state;
	uint64_t from_ns = sw_edge_now_ns();

	sw_flags_raise(&s->control->grown, GROWING);
	sw_host_idle_wait(&s->port, 1, NULL, 0, 60000000);
	assert_true(sw_edge_now_ns() - from_ns < UINT64_C(30000000000));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, scene_open, scene_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(take__what_is_not_there),
		cmocka_unit_test(take__evicts),
		CASE(note_summed__wakes),
		CASE(idle_wait__sees_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
