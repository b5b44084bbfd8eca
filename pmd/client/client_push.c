/* client_push.c - libsumwire: submit tensors, and wait for any handle.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client_push.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>

#include "pmd/client/client_group_end.h"
#include "pmd/client/client_note.h"
#include "pmd/client/client_turn.h"

enum {
	RX_EVERY_POLLS = 64
}; /* fruitless sw_poll calls per check of the socket */

/* --- submit --- */

/* @root  0: sum; else 1 + the rank that broadcasts */
static int submit(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t *handle)
{
	struct sw_submit s = {.tensor = t->id,
		.step = (uint16_t)step,
		.root = (uint16_t)root};
	uint64_t now_ns = sw_client_is_traced(c) ? sw_edge_now_ns() : 0;
	int n;

	if (t->client != c)
		return sw_client_fail(c, SW_EINVAL,
			"tensor '%s' belongs to another client", t->name);
	if (t->state != SW_TENSOR_IDLE)
		return sw_client_fail(c, SW_EBUSY,
			"tensor '%s': wait for its last handle first", t->name);
	if (t->needs_value && !root)
		return sw_client_fail(c, SW_EINVAL,
			"tensor '%s' is asynchronous: one rank must "
			"broadcast its value before the first delta",
			t->name);
	t->needs_value = false;
	s.handle = (c->n_pushes + 1) << SW_EDGE_TENSOR_BITS | t->i;
	n = sw_spsc_put(&c->submits, &s, 1);
	/* The ring has a place for every tensor, and each tensor is open at
	 * most once. */
	if (n != 1) {
		sw_client_close(c, SW_EPROTO,
			"the agent at %s corrupted the submit ring",
			c->settings.agent);
		return sw_client_check(c);
	}
	if (now_ns)
		sw_client_note(c, SW_EDGE_READY, s.handle, now_ns, now_ns, 0);
	c->n_pushes++;
	t->handle = s.handle;
	t->state = SW_TENSOR_OPEN;
	sw_client_ring(c, &c->control->agent_sleeps);
	*handle = s.handle;
	return 0;
}

static int enter_and_submit(struct sw_client *c, struct sw_tensor *t,
	uint32_t root, uint32_t step, uint64_t *handle)
{
	int err = sw_client_enter(c);

	if (err)
		return err;
	err = submit(c, t, root, step, handle);
	sw_client_unlock(c);
	return err;
}

int sw_push_pull(struct sw_client *c, struct sw_tensor *t, uint32_t step,
	uint64_t *handle)
{
	return enter_and_submit(c, t, 0, step, handle);
}

int sw_broadcast(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t *handle)
{
	if (root >= c->size)
		return sw_client_fail(c, SW_EINVAL,
			"tensor '%s': rank %u cannot broadcast, ranks are 0 to "
			"%u",
			t->name, root, c->size - 1);
	return enter_and_submit(c, t, 1 + root, step, handle);
}

/* --- growing tensors --- */

static const _Atomic uint32_t *granules_of(const struct sw_tensor *t)
{
	return (const void *)((const char *)t->result +
			      sw_edge_granules(t->bytes));
}

int sw_client_push(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t lacks, uint64_t *handle)
{
	int err = sw_client_enter(c);

	if (err)
		return err;
	if (t->state == SW_TENSOR_IDLE) {
		/* between two rounds, all granules have the last round's number
		 */
		t->old_round = atomic_load(granules_of(t));
		atomic_store(&c->control->lacks[t->i], lacks);
	}
	err = submit(c, t, root, step, handle);
	sw_client_unlock(c);
	return err;
}

int sw_client_grow(struct sw_client *c, struct sw_tensor *t, uint64_t lacks)
{
	int err = sw_client_enter(c);

	if (err)
		return err;
	atomic_store(&c->control->lacks[t->i], lacks);
	sw_flags_raise(&c->control->grown, t->i);
	sw_client_ring(c, &c->control->agent_sleeps);
	sw_client_unlock(c);
	return 0;
}

bool sw_client_is_summed(const struct sw_tensor *t, uint32_t granule)
{
	return atomic_load_explicit(&granules_of(t)[granule],
		       memory_order_acquire) != t->old_round;
}

/* --- look at a handle --- */

/* Return how the call of tensor or stream @i ended. */
static int report(struct sw_client *c, int status, uint32_t i, const char *what,
	const char *name)
{
	const struct sw_edge_why *why = &c->control->whys[i];

	if (!status)
		return 0;
	if (sw_client_is_death(status) && why->text[0])
		return sw_client_fail_for(c, status, why, why->text);
	return sw_client_fail(
		c, status, "%s '%s': %s", what, name, sw_error_text(status));
}

/* Return how a collective ended; SW_ECLOSED after a close of its group. */
static int report_call(struct sw_client *c, const struct sw_call *k)
{
	const struct sw_group *g = k->group;

	if (!k->status) /* its group may have released its stream */
		return 0;
	if (g->is_closed)
		return sw_client_fail(
			c, SW_ECLOSED, "group '%s' was closed", g->name);
	if (k->status == g->death)
		return sw_group_fail(g);
	if (k->status == SW_ECORRUPT)
		return sw_client_fail(c, SW_ECORRUPT,
			"rank %u: %s of group '%s': its tensor was written or "
			"freed while it was summed; its caller has to wait "
			"until the call has ended",
			c->rank, sw_coll_name(k->args.kind), g->name);
	return report(c, k->status, k->channel->stream->i, "stream",
		k->channel->stream->name);
}

/* Free a reported call. */
static void forget_call(struct sw_client *c, struct sw_call *k)
{
	struct sw_call **at = &c->calls.done;

	while (*at && *at != k)
		at = &(*at)->later;
	if (*at)
		*at = k->later;
	if (c->calls.done_end == &k->later)
		c->calls.done_end = at;
	k->state = SW_TENSOR_IDLE;
	sw_group_put(k->group);
}

/* Check a collective's handle.  After the end of the attachment, a thread may
 * still be copying. */
static int look_call(struct sw_client *c, uint64_t handle)
{
	struct sw_call *k = sw_client_find_call(c, handle);
	int err;

	if (!k)
		return sw_client_fail(c, SW_EINVAL,
			"no collective with handle %llu is open",
			(unsigned long long)handle);
	if (k->state == SW_TENSOR_OPEN)
		sw_client_rx_completions(c);
	if (k->state == SW_TENSOR_OPEN &&
		(!c->closed || c->calls.is_moving || k->n_copying))
		return SW_EAGAIN;
	if (k->state == SW_TENSOR_OPEN) {
		(void)sw_call_end_device(k);
		err = sw_client_check(c);
	} else {
		err = report_call(c, k);
	}
	forget_call(c, k);
	return err;
}

/* Check a handle once.  A completion before a hang-up still counts. */
static int look_at(struct sw_client *c, uint64_t handle)
{
	struct sw_tensor *t;

	if (handle & SW_EDGE_COLL_HANDLE)
		return look_call(c, handle);
	t = sw_client_find_tensor(c, handle);
	if (!t)
		return sw_client_fail(c, SW_EINVAL,
			"no push_pull with handle %llu is open",
			(unsigned long long)handle);
	if (t->state == SW_TENSOR_OPEN)
		sw_client_rx_completions(c);
	if (t->state == SW_TENSOR_ENDED) {
		t->state = SW_TENSOR_IDLE;
		return report(c, t->status, t->i, "tensor", t->name);
	}
	if (!c->closed)
		return SW_EAGAIN;
	t->state = SW_TENSOR_IDLE;
	return sw_client_check(c);
}

static int poll_one(struct sw_client *c, uint64_t handle)
{
	int err = look_at(c, handle);

	if (err != SW_EAGAIN)
		return err;
	if (sw_client_move(c, 1)) {
		sw_client_call_thread(c);
		return look_at(c, handle);
	}
	if (++c->n_idle_polls % RX_EVERY_POLLS == 0 && !c->turn.has_leader)
		sw_client_rx_messages(c);
	return err;
}

int sw_poll(struct sw_client *c, uint64_t handle)
{
	int err;

	if (!sw_client_lock(c))
		return SW_ECLOSED;
	err = poll_one(c, handle);
	sw_client_unlock(c);
	return err;
}

/* --- wait for handles --- */

static uint64_t patience_ms(const struct sw_client *c)
{
	return c->settings.wait_timeout_s * UINT64_C(1000);
}

/* A wait: its limit, and whether it spins or sleeps. */
struct wait {
	uint64_t ms;
	bool is_polling;
};

static int time_out(struct sw_client *c, uint64_t handle, const struct wait *w)
{
	bool is_call = handle & SW_EDGE_COLL_HANDLE;

	return sw_client_fail(c, SW_ETIMEDOUT,
		"%s '%s': no sum after %g s; the handle stays open%s%s",
		is_call ? "stream" : "tensor",
		is_call ? sw_client_find_call(c, handle)->channel->stream->name
			: sw_client_find_tensor(c, handle)->name,
		(double)w->ms / 1000,
		c->status[0] ? "; last message from the agent: " : "",
		c->status);
}

/* Return the end of the first handle that has ended; *i is its index. */
static int look_any(
	struct sw_client *c, const uint64_t *handles, uint32_t n, uint32_t *i)
{
	for (*i = 0; *i < n; ++*i) {
		int err = look_at(c, handles[*i]);

		if (err != SW_EAGAIN)
			return err;
	}
	return SW_EAGAIN;
}

/* Spin in place of sleeping: release the lock for a moment, and yield the core
 * now and then. */
static void spin(struct sw_client *c)
{
	bool is_long = ++c->n_idle_polls % RX_EVERY_POLLS == 0;

	if (sw_client_move(c, 1))
		sw_client_call_thread(c);
	if (is_long && !c->turn.has_leader)
		sw_client_rx_messages(c);
	sw_client_unlock(c);
	if (is_long)
		sched_yield();
	(void)!sw_client_lock(c);
}

static int wait_any(struct sw_client *c, const uint64_t *handles, uint32_t n,
	const struct wait *w, uint32_t *i)
{
	uint64_t until_ns = 0;

	for (;;) {
		int err = look_any(c, handles, n, i);

		if (err != SW_EAGAIN)
			return err;
		if (!until_ns)
			until_ns = sw_client_after_ms(w->ms);
		else if (sw_edge_now_ns() >= until_ns)
			return time_out(c, handles[0], w);
		if (w->is_polling)
			spin(c);
		else
			sw_client_turn(c, until_ns);
	}
}

/* Count the threads that wait for each collective: watchers skip collectives
 * with waiting threads. */
static void mark_waited(struct sw_client *c, const uint64_t *handles,
	uint32_t n, bool is_waited_for)
{
	for (uint32_t i = 0; i < n; i++) {
		struct sw_call *k = sw_client_find_call(c, handles[i]);

		if (k && is_waited_for)
			k->n_waits++;
		else if (k)
			k->n_waits--;
	}
}

/* Count polling threads: the agent rings no bell for a client with a polling
 * thread. */
static void count_poller(struct sw_client *c, bool is_polling, int n)
{
	if (!is_polling)
		return;
	c->turn.n_pollers += (uint32_t)n;
	atomic_store_explicit(&c->control->client_polls, c->turn.n_pollers > 0,
		memory_order_relaxed);
	if (n > 0)
		sw_client_ring(c, &c->control->agent_naps);
}

static int begin_and_wait(struct sw_client *c, const uint64_t *handles,
	uint32_t n, const struct wait *w, uint32_t *i)
{
	int err;

	if (!sw_client_lock(c))
		return SW_ECLOSED;
	if (!c->turn.n_users++)
		sw_client_kick(c); /* the library's thread, if it leads */
	mark_waited(c, handles, n, true);
	count_poller(c, w->is_polling, 1);
	err = wait_any(c, handles, n, w, i);
	count_poller(c, w->is_polling, -1);
	mark_waited(c, handles, n, false);
	if (!--c->turn.n_users)
		sw_client_changed(c); /* the thread continues with the rest */
	else
		sw_client_call_watchers(c);
	sw_client_unlock(c);
	return err;
}

int sw_wait_any(
	struct sw_client *c, const uint64_t *handles, uint32_t n, uint32_t *i)
{
	struct wait w = {.ms = patience_ms(c)};

	if (!n)
		return sw_client_fail(c, SW_EINVAL,
			"sw_wait_any: n is 0, so there is nothing to wait for");
	return begin_and_wait(c, handles, n, &w, i);
}

int sw_wait(struct sw_client *c, uint64_t handle)
{
	struct wait w = {.ms = patience_ms(c)};
	uint32_t i;

	return begin_and_wait(c, &handle, 1, &w, &i);
}

int sw_wait_for(struct sw_client *c, uint64_t handle, uint32_t timeout_ms)
{
	struct wait w = {.ms = timeout_ms};
	uint32_t i;

	return begin_and_wait(c, &handle, 1, &w, &i);
}

int sw_wait_polling(struct sw_client *c, uint64_t handle)
{
	struct wait w = {.ms = patience_ms(c), .is_polling = true};
	uint32_t i;

	return begin_and_wait(c, &handle, 1, &w, &i);
}

/* --- watch for any end --- */

/* Return the first collective that has ended.  When the attachment is over, all
 * have ended. */
static int look_ended(struct sw_client *c, uint64_t *handle)
{
	const struct sw_call *k = sw_client_next_done(c);
	struct sw_calls *s = &c->calls;
	int err = 0;

	*handle = k ? k->handle : 0;
	if (k)
		return look_call(c, *handle);
	for (uint32_t i = 0; c->closed && i < SW_EDGE_COLLS; i++) {
		if (s->calls[i].state != SW_TENSOR_OPEN ||
			!s->calls[i].is_begun || s->calls[i].n_waits)
			continue;
		*handle = s->calls[i].handle;
		err = look_call(c, *handle);
		if (err != SW_EAGAIN)
			return err;
	}
	*handle = 0;
	return c->closed && !err ? sw_client_check(c) : SW_EAGAIN;
}

static int wait_ended(struct sw_client *c, uint64_t ms, uint64_t *handle)
{
	uint64_t until_ns = sw_client_after_ms(ms);

	for (;;) {
		int err = look_ended(c, handle);

		if (err != SW_EAGAIN)
			return err;
		if (sw_edge_now_ns() >= until_ns)
			return sw_client_fail(c, SW_ETIMEDOUT,
				"no collective has ended in %g s",
				(double)ms / 1000);
		if (sw_client_can_lead(c))
			sw_client_turn(c, until_ns);
		else
			sw_client_wait_done(c, until_ns);
	}
}

static int watch(struct sw_client *c, uint64_t ms, uint64_t *handle)
{
	int err;

	*handle = 0;
	if (!sw_client_lock(c))
		return SW_ECLOSED;
	if (!c->turn.n_watchers++ && !c->turn.n_users)
		sw_client_kick(c); /* the library's thread, if it leads */
	err = wait_ended(c, ms, handle);
	if (!--c->turn.n_watchers)
		sw_client_changed(c); /* the thread continues with the rest */
	sw_client_unlock(c);
	return err;
}

int sw_wait_ended(struct sw_client *c, uint64_t *handle)
{
	return watch(c, patience_ms(c), handle);
}

int sw_wait_ended_for(
	struct sw_client *c, uint32_t timeout_ms, uint64_t *handle)
{
	return watch(c, timeout_ms, handle);
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
