/* unit_poller.c - lcores that sleep until another lcore has mail for them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>

#include "apps/node/daemon.h"
#include "test/support/unit.h"

enum { LCORES = 2, LONG_S = 10 };

static _Atomic uint32_t letters[LCORES]; /* letters by receiver */
static _Atomic uint32_t n_read;

static bool has_letter(const void *ctx, uint32_t from, uint32_t to)
{
	(void)ctx;
	return from != to && atomic_load(&letters[to]);
}

static struct sw_daemon d = {.n_lcores = LCORES,
	.has_mail = has_letter,
	.conf.lcore = {.spin_ns = 1000, .sleep_ns = 10000000}};

/* Pass a letter to the other lcore. Lcore 0 rests in between, as an agent's
 * lcore does. Lcore 1 is always busy, and answers only while lcore 0 sleeps. */
static uint32_t pass(void *ctx, uint64_t now_ns)
{
	const uint32_t *me = ctx;

	(void)now_ns;
	if (*me && !sw_bell_is_awaited(&d.pollers[0].bell))
		return 1;
	if (!atomic_exchange(&letters[*me], 0))
		return *me;
	atomic_fetch_add(&n_read, 1);
	atomic_store(&letters[!*me], 1);
	return 1;
}

static void *run(void *poller)
{
	sw_poller_run(poller);
	return NULL;
}

/* Sleeps of 10 ms each would allow only 200 letters per second. */
static void rest__ends_when_another_lcore_has_something(void **state)
{
	static uint32_t me[LCORES] = {0, 1};
	pthread_t threads[LCORES];
	uint64_t until = sw_now_ns() + LONG_S * SW_S;

	for (uint32_t i = 0; i < LCORES; i++) {
		assert_int_equal(sw_poller_open(&d.pollers[i], &d, i), 0);
		sw_poller_add(&d.pollers[i], pass, &me[i]);
		assert_int_equal(
			pthread_create(&threads[i], NULL, run, &d.pollers[i]),
			0);
	}
	atomic_store(&letters[0], 1);
	sw_bell_ring(&d.pollers[0].bell);
	while (atomic_load(&n_read) < 10000 && sw_now_ns() < until)
		sched_yield();
	assert_true(atomic_load(&n_read) >= 10000);
	for (uint32_t i = 0; i < LCORES; i++)
		atomic_store(&d.pollers[i].stop, true);
	for (uint32_t i = 0; i < LCORES; i++) {
		pthread_join(threads[i], NULL);
		sw_poller_close(&d.pollers[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rest__ends_when_another_lcore_has_something)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
