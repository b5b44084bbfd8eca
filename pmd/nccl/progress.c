/* progress.c - the thread that calls libsumwire for NCCL.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread holds the lock except in calls that may wait or copy. Only the
 * thread removes communicators, so it can walk their list during such calls.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "pmd/client/release.h"
#include "pmd/nccl/coll.h"

enum { LOOK_EVERY_MS = 200, STOP_WITHIN_S = 3 };

void sw_nccl_progress_wake(const struct sw_nccl_process *p)
{
	uint64_t one = 1;

	(void)!write(p->wake_fd, &one, sizeof(one));
}

void sw_nccl_request_free(struct sw_nccl_request *r)
{
	if (r->n > 1) {
		free(r->args);
		free(r->handles);
	}
	*r = (struct sw_nccl_request){0};
}

void sw_nccl_coll_free(struct sw_nccl_coll *c)
{
	for (uint32_t i = 0; i < NCCL_REQUESTS; i++)
		sw_nccl_request_free(&c->requests[i]);
	free(c->processes);
	free(c->ranks);
	free(c);
}

/* --- requests --- */

static void end(struct sw_nccl_request *r, enum sw_nccl_request_state state)
{
	r->state = state;
	pthread_cond_broadcast(&sw_nccl_process()->changed);
}

void sw_nccl_coll_fail(struct sw_nccl_coll *c, int result)
{
	c->failure = c->failure ? c->failure : result;
	for (uint32_t i = 0; i < NCCL_REQUESTS; i++)
		if (c->requests[i].state == SW_NCCL_QUEUED)
			end(&c->requests[i], SW_NCCL_FAILED);
}

/* Fail the communicator with libsumwire's error; log one line for each
 * communicator. */
static void fail(struct sw_nccl_process *p, struct sw_nccl_coll *c, int err)
{
	if (!c->failure)
		sw_nccl_say(true, "a communicator of %u nodes ends: %s: %s",
			c->n_ranks, sw_error_name(err),
			sw_last_error(p->client));
	sw_nccl_coll_fail(c, sw_nccl_result_of(err));
	c->is_aborting = true;
}

/* Start the next collective of @r. Returns false if libsumwire has no room
 * now. */
static bool start_next(struct sw_nccl_process *p, struct sw_nccl_request *r)
{
	uint32_t i = r->n_started;
	struct sw_coll_args a = r->args[i];
	int err;

	r->state = SW_NCCL_OPEN;
	if (a.kind == SW_BCAST || a.kind == SW_REDUCE)
		a.root = r->coll->ranks[a.root];
	pthread_mutex_unlock(&p->lock);
	err = sw_coll(r->coll->group, &a, &r->handles[i]);
	pthread_mutex_lock(&p->lock);
	if (err == SW_EBUSY)
		return false;
	r->n_started++;
	if (err) {
		r->handles[i] = 0;
		r->n_ended++;
		fail(p, r->coll, err);
	}
	return true;
}

static void start_queued(struct sw_nccl_process *p, struct sw_nccl_coll *c)
{
	while (c->first_queued != c->next_request) {
		struct sw_nccl_request *r =
			&c->requests[c->first_queued % NCCL_REQUESTS];
		bool is_waiting =
			r->state == SW_NCCL_QUEUED ||
			(r->state == SW_NCCL_OPEN && r->n_started < r->n);

		if (is_waiting && !c->failure) {
			if (!start_next(p, r))
				return;
			continue;
		}
		c->first_queued++;
	}
}

static void look_at(struct sw_nccl_process *p, struct sw_nccl_request *r)
{
	struct sw_nccl_coll *c = r->coll;

	for (uint32_t i = 0; i < r->n_started; i++) {
		int err;

		if (!r->handles[i])
			continue;
		pthread_mutex_unlock(&p->lock);
		err = sw_poll(p->client, r->handles[i]);
		pthread_mutex_lock(&p->lock);
		if (err == SW_EAGAIN)
			continue;
		r->handles[i] = 0;
		r->n_ended++;
		if (err)
			fail(p, c, err);
	}
	if (r->n_ended == (c->failure ? r->n_started : r->n))
		end(r, c->failure ? SW_NCCL_FAILED : SW_NCCL_DONE);
}

static void look_at_open(struct sw_nccl_process *p, struct sw_nccl_coll *c)
{
	for (uint32_t i = c->first_open; i != c->next_request; i++) {
		struct sw_nccl_request *r = &c->requests[i % NCCL_REQUESTS];

		if (r->state == SW_NCCL_OPEN)
			look_at(p, r);
		if (r->state != SW_NCCL_OPEN && r->state != SW_NCCL_QUEUED &&
			i == c->first_open)
			c->first_open++;
	}
}

/* --- communicators --- */

/* Find the job's ranks, in NCCL's order. Returns the number found before the
 * first unknown process. */
static uint32_t find_ranks(
	const struct sw_nccl_process *p, struct sw_nccl_coll *c)
{
	for (uint32_t i = 0; i < c->n_ranks; i++) {
		uint32_t r = 0;

		while (r < sw_size(p->client) &&
			!sw_nccl_is_same(&p->ranks[r], &c->processes[i]))
			r++;
		if (r == sw_size(p->client))
			return i;
		c->ranks[i] = r;
	}
	return c->n_ranks;
}

static void open_group(struct sw_nccl_process *p, struct sw_nccl_coll *c)
{
	uint32_t n = find_ranks(p, c);
	struct sw_group *group = NULL;
	int err;

	if (n < c->n_ranks) {
		sw_nccl_coll_fail(
			c, sw_nccl_fail(NCCL_USAGE,
				   "rank %u of a communicator is no process of "
				   "this agent's job",
				   n));
		return;
	}
	pthread_mutex_unlock(&p->lock);
	err = sw_group_open(p->client, c->name, c->ranks, c->n_ranks, &group);
	pthread_mutex_lock(&p->lock);
	c->group = group;
	if (err)
		fail(p, c, err);
}

static void abort_group(struct sw_nccl_process *p, struct sw_nccl_coll *c)
{
	int err;

	c->is_aborted = true;
	if (!c->group)
		return;
	pthread_mutex_unlock(&p->lock);
	err = sw_group_abort(
		c->group, SW_EABORTED, "NCCL's communicator has ended");
	if (err) /* leave the job, because open calls must end */
		sw_leave(p->client);
	pthread_mutex_lock(&p->lock);
}

/* Remove and free a communicator that NCCL has closed. */
static void close_coll(struct sw_nccl_process *p, struct sw_nccl_coll *c)
{
	struct sw_nccl_coll **at = &p->colls;

	if (c->group) {
		pthread_mutex_unlock(&p->lock);
		(void)sw_group_close(c->group);
		pthread_mutex_lock(&p->lock);
	}
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	sw_nccl_coll_free(c);
}

/* Return whether to open the group. A communicator that was released before
 * needs its group to abort it at the other ranks. */
static bool needs_group(const struct sw_nccl_coll *c)
{
	return !c->group && !c->is_aborted && (!c->failure || c->is_released);
}

/* Advance a communicator. Returns whether requests are open. */
static bool work(struct sw_nccl_process *p, struct sw_nccl_coll *c)
{
	bool is_busy;

	if (needs_group(c))
		open_group(p, c);
	start_queued(p, c);
	if (c->is_aborting && !c->is_aborted)
		abort_group(p, c);
	look_at_open(p, c);
	is_busy = c->first_open != c->next_request;
	if (!c->is_closing || is_busy)
		return is_busy;
	close_coll(p, c);
	return false;
}

static bool work_all(struct sw_nccl_process *p)
{
	struct sw_nccl_coll *next;
	bool is_busy = false;

	for (struct sw_nccl_coll *c = p->colls; c; c = next) {
		next = c->next;
		is_busy |= work(p, c);
	}
	return is_busy;
}

/* --- the thread --- */

static void drain(int fd)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
}

static void serve(struct sw_nccl_process *p, int event_fd)
{
	struct pollfd fds[] = {{.fd = p->wake_fd, .events = POLLIN},
		{.fd = event_fd, .events = POLLIN}};

	while (!p->is_stopping) {
		bool is_busy = work_all(p);

		pthread_mutex_unlock(&p->lock);
		poll(fds, 2, is_busy ? LOOK_EVERY_MS : -1);
		drain(p->wake_fd);
		drain(event_fd);
		pthread_mutex_lock(&p->lock);
	}
}

/* Fail all communicators, because the attachment has ended or failed. */
static void give_up(struct sw_nccl_process *p, int result)
{
	struct sw_nccl_coll *next;

	for (struct sw_nccl_coll *c = p->colls; c; c = next) {
		next = c->next;
		sw_nccl_coll_fail(c, result);
		if (c->is_closing)
			close_coll(p, c);
	}
	p->attachment = SW_NCCL_ALONE;
	pthread_cond_broadcast(&p->changed);
}

/* Release the groups, which belong to the client, and close the client.
 * sw_close may wait for the agent, so call it without the lock: NCCL's calls
 * must not wait. */
static void detach(struct sw_nccl_process *p)
{
	for (struct sw_nccl_coll *c = p->colls; c; c = c->next) {
		if (c->group)
			sw_group_release(c->group);
		c->is_released = true;
		c->group = NULL;
	}
	pthread_mutex_unlock(&p->lock);
	sw_close(&p->client);
	pthread_mutex_lock(&p->lock);
}

static void *run(void *arg)
{
	struct sw_nccl_process *p = arg;
	int event_fd = -1;
	int err = sw_nccl_attach(p, &event_fd);

	pthread_mutex_lock(&p->lock);
	if (!err) {
		p->attachment = SW_NCCL_JOINED;
		pthread_cond_broadcast(&p->changed);
		serve(p, event_fd);
		detach(p);
	}
	give_up(p, err ? err : NCCL_SYSTEM);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int sw_nccl_progress_start(struct sw_nccl_process *p)
{
	int no = 0;

	if (p->attachment != SW_NCCL_ALONE)
		return NCCL_OK;
	if (p->wake_fd < 0)
		p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0)
		return sw_nccl_fail(
			NCCL_SYSTEM, "no eventfd: %s", strerror(errno));
	if (sw_nccl_random(&p->own))
		return NCCL_SYSTEM;
	no = pthread_create(&p->thread, NULL, run, p);
	if (no)
		return sw_nccl_fail(NCCL_SYSTEM, "no thread: %s", strerror(no));
	pthread_detach(p->thread);
	p->pid = getpid();
	p->attachment = SW_NCCL_JOINING;
	return NCCL_OK;
}

/* Leave the job when the process ends. Do not wait for an attachment in
 * progress. A forked child has no thread to stop. */
__attribute__((destructor)) static void stop(void)
{
	struct sw_nccl_process *p = sw_nccl_process();
	struct timespec until;

	if (p->pid != getpid())
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_WITHIN_S;
	pthread_mutex_lock(&p->lock);
	p->is_stopping = true;
	sw_nccl_progress_wake(p);
	while (p->attachment == SW_NCCL_JOINED &&
		!pthread_cond_timedwait(&p->changed, &p->lock, &until))
		;
	pthread_mutex_unlock(&p->lock);
}
