/* client.c - libsumwire: a client's lock, sleep and wake-up, error texts.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each sw_* call locks the client first.  One thread at a time leads: it alone
 * reads the agent's socket and bell, and it sleeps without the lock.  The other
 * threads sleep on a condition until the leader changes something
 * (client_turn.c). */
#include "pmd/client/client.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Per thread, because several threads of a client may fail at once, and after a
 * failed sw_open no client exists. */
static _Thread_local struct {
	char text[2 * SW_EDGE_TEXT_BYTES];
	struct sw_edge_why why; /* the conflict, if not NONE */
} error;

const char *sw_last_error(const struct sw_client *c)
{
	(void)c;
	return error.text;
}

enum sw_conflict sw_last_conflict(
	const struct sw_client *c, uint32_t *rank, uint32_t *other)
{
	(void)c;
	*rank = error.why.rank;
	*other = error.why.other;
	return error.why.conflict;
}

int sw_client_fail(struct sw_client *c, int err, const char *fmt, ...)
{
	va_list ap;

	(void)c;
	va_start(ap, fmt);
	vsnprintf(error.text, sizeof(error.text), fmt, ap);
	va_end(ap);
	error.why = (struct sw_edge_why){.conflict = SW_CONFLICT_NONE};
	return err;
}

int sw_client_fail_for(struct sw_client *c, int err,
	const struct sw_edge_why *why, const char *text)
{
	sw_client_fail(c, err, "%s", text);
	error.why = *why;
	return err;
}

void sw_client_close(struct sw_client *c, int err, const char *fmt, ...)
{
	va_list ap;

	if (c->closed)
		return;
	c->closed = err;
	va_start(ap, fmt);
	vsnprintf(c->closed_text, sizeof(c->closed_text), fmt, ap);
	va_end(ap);
	if (c->control && *c->is_ours) { /* sw_wait_group_failed_for */
		atomic_fetch_add(&c->control->n_failed, 1);
		sw_edge_word_wake(&c->control->n_failed);
	}
}

int sw_client_check(struct sw_client *c)
{
	if (!*c->is_ours)
		return sw_client_fail(c, SW_ECLOSED,
			"this process was forked from the one that is attached "
			"to the agent at %s; open your own",
			c->settings.agent);
	if (c->closed)
		return sw_client_fail(c, c->closed, "%s", c->closed_text);
	return 0;
}

void sw_client_log(const struct sw_settings *s, const char *fmt, ...)
{
	char line[2 * SW_EDGE_TEXT_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	s->log(s->log_ctx, line);
}

/* --- time --- */

uint64_t sw_client_after_ms(uint64_t ms)
{
	return sw_edge_now_ns() + ms * UINT64_C(1000000);
}

uint64_t sw_client_wait_until_ns(const struct sw_client *c)
{
	return sw_client_after_ms(c->settings.wait_timeout_s * UINT64_C(1000));
}

/* --- the lock --- */

int sw_turn_init(struct sw_turn *t)
{
	pthread_condattr_t attr;

	t->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->event_fd = -1;
	if (t->kick_fd < 0)
		return SW_ENOMEM;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->changed, &attr);
	pthread_cond_init(&t->work, &attr);
	pthread_cond_init(&t->done, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

void sw_turn_fini(struct sw_turn *t)
{
	close(t->kick_fd);
	if (t->event_fd >= 0)
		close(t->event_fd);
}

bool sw_client_lock(struct sw_client *c)
{
	if (!*c->is_ours) {
		sw_client_check(c); /* its sentence */
		return false;
	}
	pthread_mutex_lock(&c->turn.lock);
	return true;
}

int sw_client_enter(struct sw_client *c)
{
	int err;

	if (!sw_client_lock(c))
		return SW_ECLOSED;
	err = sw_client_check(c);
	if (err)
		sw_client_unlock(c);
	return err;
}

void sw_client_unlock(struct sw_client *c)
{
	pthread_mutex_unlock(&c->turn.lock);
}

/* --- sleep and wake --- */

bool sw_client_can_lead(const struct sw_client *c)
{
	return !c->closed && !c->turn.n_users && !c->turn.has_leader;
}

bool sw_client_has_work(const struct sw_client *c)
{
	return sw_client_can_lead(c) && !c->turn.n_watchers &&
	       (c->calls.n_unfinished ||
		       (c->turn.event_fd >= 0 && c->calls.n_open));
}

struct sw_call *sw_client_next_done(const struct sw_client *c)
{
	struct sw_call *k = c->calls.done;

	while (k && k->n_waits)
		k = k->later;
	return k;
}

void sw_client_call_watchers(struct sw_client *c)
{
	if (c->closed || sw_client_next_done(c) ||
		(sw_client_can_lead(c) && c->calls.n_open))
		pthread_cond_broadcast(&c->turn.done);
}

/* Wake only threads that have something to do: at every turn, any other thread
 * could take the core of a busy thread. */
void sw_client_changed(struct sw_client *c)
{
	if (c->turn.n_waiting)
		pthread_cond_broadcast(&c->turn.changed);
	sw_client_call_watchers(c);
	if (c->turn.is_idle &&
		(sw_client_has_work(c) || c->turn.is_ending || c->has_due ||
			c->calls.expire_ns < c->turn.until_ns))
		pthread_cond_signal(&c->turn.work);
}

static void wait_for(
	struct sw_client *c, pthread_cond_t *what, uint64_t until_ns)
{
	struct timespec at = {.tv_sec = (time_t)(until_ns / 1000000000),
		.tv_nsec = (long)(until_ns % 1000000000)};

	pthread_cond_timedwait(what, &c->turn.lock, &at);
}

void sw_client_wait_changed(struct sw_client *c, uint64_t until_ns)
{
	c->turn.n_waiting++;
	wait_for(c, &c->turn.changed, until_ns);
	c->turn.n_waiting--;
}

void sw_client_wait_work(struct sw_client *c, uint64_t until_ns)
{
	c->turn.is_idle = true;
	wait_for(c, &c->turn.work, until_ns);
	c->turn.is_idle = false;
}

void sw_client_wait_done(struct sw_client *c, uint64_t until_ns)
{
	wait_for(c, &c->turn.done, until_ns);
}

void sw_client_kick(struct sw_client *c)
{
	uint64_t one = 1;

	if (c->turn.is_asleep && write(c->turn.kick_fd, &one, sizeof(one)) < 0)
		return; /* full: it is readable */
}

bool sw_client_sleep(struct sw_client *c, short events, uint64_t until_ns)
{
	struct pollfd fds[3] = {{.fd = c->sock, .events = events},
		{.fd = c->bell, .events = POLLIN},
		{.fd = c->turn.kick_fd, .events = POLLIN}};
	uint64_t now = sw_edge_now_ns(), kicks;
	uint64_t left = until_ns > now ? until_ns - now : 0;
	struct timespec limit = {.tv_sec = (time_t)(left / 1000000000),
		.tv_nsec = (long)(left % 1000000000)};
	int n;

	c->turn.is_asleep = true;
	sw_client_unlock(c);
	n = ppoll(fds, 3, &limit, NULL);
	pthread_mutex_lock(&c->turn.lock);
	c->turn.is_asleep = false;
	if (n > 0 && fds[1].revents)
		sw_edge_bell_drain(c->bell);
	if (n > 0 && fds[2].revents)
		(void)!read(c->turn.kick_fd, &kicks, sizeof(kicks));
	return n > 0 && fds[0].revents;
}

void sw_client_lead(struct sw_client *c)
{
	if (c->turn.has_leader)
		sw_client_kick(c); /* once: it may await an answer itself */
	while (c->turn.has_leader) {
		c->turn.n_claims++;
		sw_client_wait_changed(
			c, sw_edge_now_ns() + UINT64_C(1000000000));
		c->turn.n_claims--;
	}
	c->turn.has_leader = true;
}

void sw_client_follow(struct sw_client *c)
{
	c->turn.has_leader = false;
	sw_client_changed(c);
}

void sw_client_call_thread(struct sw_client *c)
{
	sw_client_kick(c);
	sw_client_changed(c);
}

void sw_client_ring(const struct sw_client *c, _Atomic uint32_t *flag)
{
	if (sw_edge_is_asleep(flag))
		sw_edge_bell_write(c->bell);
}

/* Return whether a growing tensor has new sums since n_summed was noted, or a
 * call has ended. */
static bool has_ended_some(const struct sw_client *c)
{
	return !sw_spsc_is_empty(&c->completions) ||
	       c->turn.n_summed != atomic_load(&c->control->n_summed);
}

bool sw_client_doze(struct sw_client *c, short events, uint64_t until_ns)
{
	bool may_have = true;

	sw_edge_doze(&c->control->client_sleeps);
	sw_client_ring(c, &c->control->agent_naps);
	if (!has_ended_some(c))
		may_have = sw_client_sleep(c, events, until_ns);
	c->turn.n_summed = atomic_load(&c->control->n_summed);
	atomic_store_explicit(
		&c->control->client_sleeps, 0, memory_order_relaxed);
	return may_have;
}
