/* client_turn.c - libsumwire: one thread at a time works for all that wait.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutex guards a client.  What comes from the agent, and the copies of
 * collectives, are the work of whoever leads: a thread that waits for an answer
 * of the agent, or for a handle, anyway, so that a process with one thread
 * stays one, else one that watches for ends (sw_wait_ended), else the library's
 * own (client_thread).  A leader sleeps without the mutex; the others sleep on
 * a condition, and look at their handles after each of its turns.  Whoever
 * finds something to copy does so, led or not; who stops while there is more
 * kicks the others.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pmd/client/client_group.h"

enum { THREAD_TURN_S = 3600 };

void sw_client_turn(struct sw_client *c, uint64_t until_ns)
{
	if (sw_client_move(c, 1))
		return;
	if (c->turn.has_leader || c->turn.n_claims) {
		sw_client_wait_changed(c, until_ns);
		return;
	}
	c->turn.has_leader = true;
	/* until the agent has something, or another thread */
	sw_client_doze(c, POLLIN, until_ns);
	sw_client_rx_messages(c);
	sw_client_rx_completions(c);
	sw_client_follow(c);
}

/* --- the library's own thread --- */

static void *client_thread(void *arg)
{
	struct sw_client *c = arg;

	pthread_mutex_lock(&c->turn.lock);
	while (!c->turn.is_ending) {
		uint64_t until_ns =
			sw_edge_now_ns() + THREAD_TURN_S * UINT64_C(1000000000);
		uint64_t expire_ns;

		if (c->has_due)
			sw_client_give_due(c);
		expire_ns = sw_client_expire(c);
		if (expire_ns < until_ns)
			until_ns = expire_ns;
		c->turn.until_ns = until_ns;
		if (sw_client_has_work(c))
			sw_client_turn(c, until_ns);
		else if (!c->turn.is_ending && !c->has_due)
			/* neither came while we asked the agent */
			sw_client_wait_work(c, until_ns);
	}
	pthread_mutex_unlock(&c->turn.lock);
	return NULL;
}

/* Signals are the program's own threads'. */
int sw_client_start_thread(struct sw_client *c)
{
	sigset_t all, old;
	int err;

	if (c->turn.has_thread)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&c->turn.thread, NULL, client_thread, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return sw_client_fail(c, SW_ENOMEM,
			"cannot start the library's thread: %s", strerror(err));
	c->turn.has_thread = true;
	return 0;
}

void sw_client_end_thread(struct sw_client *c)
{
	pthread_mutex_lock(&c->turn.lock);
	c->turn.is_ending = true;
	sw_client_call_thread(c);
	pthread_mutex_unlock(&c->turn.lock);
	if (c->turn.has_thread)
		pthread_join(c->turn.thread, NULL);
	c->turn.has_thread = false;
}

int sw_event_fd(struct sw_client *c, int *fd)
{
	int err = sw_client_enter(c);

	if (err)
		return err;
	if (c->turn.event_fd < 0)
		c->turn.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->turn.event_fd < 0)
		err = sw_client_fail(
			c, SW_ENOMEM, "no eventfd: %s", strerror(errno));
	if (!err)
		err = sw_client_start_thread(c);
	if (!err)
		*fd = c->turn.event_fd;
	sw_client_call_thread(c);
	sw_client_unlock(c);
	return err;
}
