/* client_push.c - libsumwire: submit tensors and wait for their sums.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <unistd.h>

#include "pmd/client/client.h"

enum {
	RX_EVERY_POLLS = 64, /* fruitless sw_poll per look at the socket */
	TAKE_BURST = 32,
};

/* @root  0: sum; else 1 + the rank that broadcasts */
static int submit(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t *handle)
{
	struct sw_submit s = {
		.tensor = t->i, .step = (uint16_t)step, .root = (uint16_t)root};
	int n, err = sw_client_check(c);

	if (err)
		return err;
	if (t->client != c)
		return sw_client_fail(c, SW_EINVAL,
			"tensor '%s' belongs to another client", t->name);
	if (t->state != SW_TENSOR_IDLE)
		return sw_client_fail(c, SW_EBUSY,
			"tensor '%s': wait for its last handle first", t->name);
	if (t->needs_value && !root)
		return sw_client_fail(c, SW_EINVAL,
			"tensor '%s' is asynchronous: one worker must "
			"broadcast its value before the first delta",
			t->name);
	t->needs_value = false;
	s.handle = (c->n_pushes + 1) << SW_EDGE_TENSOR_BITS | t->i;
	n = sw_spsc_put(&c->submits, &s, 1);
	/* The ring has a place for every tensor, and each is open once. */
	if (n != 1) {
		sw_client_close(c, SW_EPROTO,
			"the agent at %s corrupted the submit ring",
			c->settings.agent);
		return sw_client_check(c);
	}
	c->n_pushes++;
	t->handle = s.handle;
	t->state = SW_TENSOR_OPEN;
	sw_client_ring(c, &c->control->agent_sleeps);
	*handle = s.handle;
	return 0;
}

int sw_push_pull(struct sw_client *c, struct sw_tensor *t, uint32_t step,
	uint64_t *handle)
{
	return submit(c, t, 0, step, handle);
}

int sw_broadcast(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t *handle)
{
	if (root >= c->size)
		return sw_client_fail(c, SW_EINVAL,
			"tensor '%s': rank %u cannot broadcast, ranks are 0 to "
			"%u",
			t->name, root, c->size - 1);
	return submit(c, t, 1 + root, step, handle);
}

static struct sw_tensor *find(struct sw_client *c, uint64_t handle)
{
	uint32_t i = handle & (SW_EDGE_TENSORS - 1);

	if (i >= c->n_tensors || c->tensors[i]->handle != handle ||
		c->tensors[i]->state == SW_TENSOR_IDLE)
		return NULL;
	return c->tensors[i];
}

static bool end_coll(struct sw_client *c, const struct sw_completion *done)
{
	struct sw_open_coll *o = sw_client_coll(c, done->handle);

	if (!o || o->state != SW_TENSOR_OPEN || done->status > 0)
		return false;
	o->status = done->status;
	o->state = SW_TENSOR_ENDED;
	return true;
}

/* Note one end; false: nothing of the kind is open. */
static bool end_one(struct sw_client *c, const struct sw_completion *done)
{
	struct sw_tensor *t;

	if (done->handle & SW_EDGE_COLL_HANDLE)
		return end_coll(c, done);
	t = find(c, done->handle);
	if (!t || t->state != SW_TENSOR_OPEN || done->status > 0)
		return false;
	t->status = done->status;
	t->state = SW_TENSOR_ENDED;
	return true;
}

/* Take what the agent has completed. */
static void rx_completions(struct sw_client *c)
{
	struct sw_completion done[TAKE_BURST];
	int n;

	do {
		n = sw_spsc_take(&c->completions, done, TAKE_BURST);
		for (int i = 0; i < n; i++) {
			if (!end_one(c, &done[i])) {
				n = SW_EPROTO;
				break;
			}
		}
	} while (n == TAKE_BURST);
	if (n < 0)
		sw_client_close(c, SW_EPROTO,
			"the agent at %s corrupted the completion ring",
			c->settings.agent);
}

/* Messages between declarations: progress and hang-ups, nothing else. */
static void rx_messages(struct sw_client *c)
{
	union sw_edge_msg m;
	int fds[2], kind = sw_client_rx(c, &m, fds);

	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (kind > 0)
		sw_client_close(c, SW_EPROTO,
			"the agent at %s sent unexpected message kind %d",
			c->settings.agent, kind);
}

/* How that of tensor or stream @i ended. */
static int report(struct sw_client *c, int status, uint32_t i, const char *what,
	const char *name)
{
	const char *why = c->control->whys[i];

	if (!status)
		return 0;
	if (status == SW_EMISMATCH && why[0])
		return sw_client_fail(
			c, status, "%.*s", SW_EDGE_WHY_BYTES - 1, why);
	return sw_client_fail(
		c, status, "%s '%s': %s", what, name, sw_error_text(status));
}

static int look_coll(struct sw_client *c, uint64_t handle)
{
	struct sw_open_coll *o = sw_client_coll(c, handle);

	if (!o)
		return sw_client_fail(c, SW_EINVAL,
			"no collective with handle %llu is open",
			(unsigned long long)handle);
	if (o->state == SW_TENSOR_OPEN)
		rx_completions(c);
	if (o->state == SW_TENSOR_OPEN && !c->closed)
		return SW_EAGAIN;
	if (o->state == SW_TENSOR_OPEN) {
		o->state = SW_TENSOR_IDLE;
		return sw_client_check(c);
	}
	o->state = SW_TENSOR_IDLE;
	return report(c, o->status, handle & (SW_EDGE_TENSORS - 1), "stream",
		o->name);
}

/* One look at a handle.  What was completed before a hang-up still counts. */
static int look(struct sw_client *c, uint64_t handle)
{
	struct sw_tensor *t;

	if (!*c->is_ours)
		return sw_client_check(c);
	if (handle & SW_EDGE_COLL_HANDLE)
		return look_coll(c, handle);
	t = find(c, handle);
	if (!t)
		return sw_client_fail(c, SW_EINVAL,
			"no push_pull with handle %llu is open",
			(unsigned long long)handle);
	if (t->state == SW_TENSOR_OPEN)
		rx_completions(c);
	if (t->state == SW_TENSOR_ENDED) {
		t->state = SW_TENSOR_IDLE;
		return report(c, t->status, t->i, "tensor", t->name);
	}
	if (!c->closed)
		return SW_EAGAIN;
	t->state = SW_TENSOR_IDLE;
	return sw_client_check(c);
}

int sw_poll(struct sw_client *c, uint64_t handle)
{
	int err = look(c, handle);

	if (err == SW_EAGAIN && ++c->n_idle_polls % RX_EVERY_POLLS == 0)
		rx_messages(c);
	return err;
}

static int time_out(struct sw_client *c, uint64_t handle)
{
	bool is_coll = handle & SW_EDGE_COLL_HANDLE;

	return sw_client_fail(c, SW_ETIMEDOUT,
		"%s '%s': no sum after %u s; the handle stays open%s%s",
		is_coll ? "stream" : "tensor",
		is_coll ? sw_client_coll(c, handle)->name
			: find(c, handle)->name,
		c->settings.wait_timeout_s,
		c->status[0] ? "; last message from the agent: " : "",
		c->status);
}

static uint64_t wait_until_ns(const struct sw_client *c)
{
	return sw_edge_now_ns() +
	       c->settings.wait_timeout_s * UINT64_C(1000000000);
}

int sw_wait(struct sw_client *c, uint64_t handle)
{
	uint64_t until_ns = 0;

	for (;;) {
		int err = look(c, handle);

		if (err != SW_EAGAIN)
			return err;
		if (!until_ns)
			until_ns = wait_until_ns(c);
		else if (sw_edge_now_ns() >= until_ns)
			return time_out(c, handle);
		sw_edge_doze(&c->control->client_sleeps);
		sw_client_ring(c, &c->control->agent_naps);
		if (sw_spsc_is_empty(&c->completions))
			sw_client_sleep(c, until_ns);
		atomic_store_explicit(
			&c->control->client_sleeps, 0, memory_order_relaxed);
		rx_messages(c);
	}
}

static int poll_until(struct sw_client *c, uint64_t handle, uint64_t until_ns)
{
	for (uint32_t i = 1;; i++) {
		int err = sw_poll(c, handle);

		if (err != SW_EAGAIN)
			return err;
		if (i % RX_EVERY_POLLS)
			continue;
		if (sw_edge_now_ns() >= until_ns)
			return time_out(c, handle);
		sched_yield();
	}
}

int sw_wait_polling(struct sw_client *c, uint64_t handle)
{
	_Atomic uint32_t *polls = &c->control->client_polls;
	int err;

	atomic_store_explicit(polls, 1, memory_order_relaxed);
	sw_client_ring(c, &c->control->agent_naps);
	err = poll_until(c, handle, wait_until_ns(c));
	atomic_store_explicit(polls, 0, memory_order_relaxed);
	return err;
}
