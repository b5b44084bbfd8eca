/* unit_bell.c - the bell wakes an lcore only while the lcore sleeps.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/bell.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "test/support/unit.h"

static bool is_readable(const struct sw_bell *b)
{
	struct pollfd p = {.fd = b->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static struct sw_bell open_bell(void)
{
	struct sw_bell b = {0};

	assert_int_equal(sw_bell_open(&b), 0);
	return b;
}

/* Ringing for an awake thread has no effect, now or later. */
static void ring__awake(void **state)
{
	struct sw_bell b = open_bell();

	sw_bell_ring(&b);
	assert_false(sw_bell_is_awaited(&b));
	sw_bell_await(&b);
	assert_true(sw_bell_is_awaited(&b));
	assert_false(is_readable(&b));
	sw_bell_done(&b);
	assert_false(sw_bell_is_awaited(&b));
	sw_bell_close(&b);
}

/* Any number of rings ends one sleep. */
static void ring__asleep(void **state)
{
	struct sw_bell b = open_bell();

	sw_bell_await(&b);
	sw_bell_ring(&b);
	assert_false(sw_bell_is_awaited(&b));
	sw_bell_ring(&b);
	assert_true(is_readable(&b));
	sw_bell_done(&b);
	assert_false(is_readable(&b));
	sw_bell_await(&b);
	assert_false(is_readable(&b));
	sw_bell_done(&b);
	sw_bell_close(&b);
}

/* If the ringing thread is stopped before it writes, its ring ends one later
 * sleep at once, and no other one. */
static void ring__written_late(void **state)
{
	struct sw_bell b = open_bell();

	sw_bell_await(&b);
	b.is_awaited = 0;
	sw_bell_done(&b);
	assert_int_equal(eventfd_write(b.fd, 1), 0);
	sw_bell_await(&b);
	assert_true(is_readable(&b));
	sw_bell_done(&b);
	sw_bell_await(&b);
	assert_false(is_readable(&b));
	sw_bell_done(&b);
	sw_bell_close(&b);
}

static void close__twice(void **state)
{
	struct sw_bell b = open_bell();

	sw_bell_close(&b);
	sw_bell_close(&b);
	sw_bell_close(&(struct sw_bell){0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ring__awake),
		cmocka_unit_test(ring__asleep),
		cmocka_unit_test(ring__written_late),
		cmocka_unit_test(close__twice)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
