/* lcore.c - rings and wake-ups as the agent's lcore sees them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pmd/host/host.h"

enum { TAKE_MAX = 32 };

int sw_host_client_open(struct sw_edge_control *control, int bell, int kick_fd,
	struct sw_host_client **out)
{
	struct sw_host_client *p = aligned_alloc(64, sizeof(*p));

	if (!p)
		return SW_ENOMEM;
	memset(p, 0, sizeof(*p));
	p->control = control;
	p->bell = bell;
	p->kick_fd = kick_fd;
	sw_spsc_init(&p->submits, control->submits, SW_EDGE_TENSORS,
		sizeof(struct sw_submit));
	sw_spsc_init(&p->colls, control->colls, SW_EDGE_COLLS,
		sizeof(struct sw_edge_coll));
	sw_spsc_init(&p->completions, control->completions, SW_EDGE_COMPLETIONS,
		sizeof(struct sw_completion));
	*out = p;
	return 0;
}

void sw_host_client_close(struct sw_host_client **p)
{
	if (!*p)
		return;
	close((*p)->bell);
	free(*p);
	*p = NULL;
}

void sw_host_client_enter(
	struct sw_host_client *p, const struct sw_host_item *item)
{
	struct sw_host_item *to = &p->items[sw_id_index(item->id)];

	to->id = item->id;
	to->name = item->name;
	to->n_ranks = item->n_ranks;
	to->base = item->base;
	to->bytes = item->bytes;
	atomic_store_explicit(&to->kind, item->kind, memory_order_release);
}

void sw_host_client_admit(struct sw_host_client *p, uint32_t n)
{
	atomic_fetch_add_explicit(&p->n_tensors, n, memory_order_release);
}

/* Write the agent's own eventfd; if it is full, it is already readable. */
static void kick(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

void sw_host_kick(const struct sw_host *h)
{
	kick(h->kick_fd);
}

void sw_host_evict(struct sw_host_client *p, const char *reason, uint64_t value)
{
	if (sw_host_is_evicted(p))
		return;
	p->reason = reason;
	p->value = value;
	atomic_store_explicit(&p->is_evicted, true, memory_order_release);
	kick(p->kick_fd);
}

static bool is_waiting(const struct sw_host_client *p)
{
	const struct sw_edge_control *c = p->control;

	return atomic_load_explicit(&c->client_sleeps, memory_order_relaxed) ||
	       atomic_load_explicit(&c->client_polls, memory_order_relaxed);
}

bool sw_host_are_awaited(struct sw_host_client *const *clients, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!is_waiting(clients[i]))
			return false;
	return true;
}

bool sw_host_are_computing(struct sw_host_client *const *clients, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (is_waiting(clients[i]))
			return false;
	return true;
}

/* Return tensor @id of the client; if there is none, evict the client for @why
 * and return NULL. */
static const struct sw_host_item *find_tensor(
	struct sw_host_client *p, uint32_t id, bool is_growing, const char *why)
{
	const struct sw_host_item *m = sw_host_item(p, id);
	uint8_t least = is_growing ? SW_EDGE_GROWING : 0;

	if (m && m->kind >= least && m->kind <= SW_EDGE_GROWING)
		return m;
	sw_host_evict(p, why, id);
	return NULL;
}

/* Return how many bytes of tensor @m are still missing. */
static uint64_t lacks_of(
	const struct sw_host_client *p, const struct sw_host_item *m)
{
	return m->kind == SW_EDGE_GROWING
		       ? atomic_load_explicit(
				 &p->control->lacks[sw_id_index(m->id)],
				 memory_order_acquire)
		       : 0;
}

uint32_t sw_host_take(
	struct sw_host_client *p, struct sw_host_submit *out, uint32_t max)
{
	struct sw_submit list[TAKE_MAX];
	int n;

	if (sw_host_is_evicted(p))
		return 0;
	n = sw_spsc_take(&p->submits, list, max < TAKE_MAX ? max : TAKE_MAX);
	if (n < 0) {
		sw_host_evict(p,
			"wrote an impossible index into the submit ring",
			sw_spsc_own(&p->submits));
		return 0;
	}
	for (int i = 0; i < n; i++) {
		const struct sw_submit *s = &list[i];
		const struct sw_host_item *m = find_tensor(
			p, s->tensor, false, "submitted an undeclared tensor");

		if (!m)
			return (uint32_t)i;
		out[i] = (struct sw_host_submit){.handle = s->handle,
			.lacks = lacks_of(p, m),
			.tensor = m->name,
			.step = s->step,
			.root = s->root};
	}
	return (uint32_t)n;
}

bool sw_host_take_grown(
	struct sw_host_client *p, uint32_t *tensor, uint64_t *lacks)
{
	const struct sw_host_item *m = NULL;
	uint32_t i = SW_FLAGS;

	if (!sw_host_is_evicted(p))
		i = sw_flags_take(&p->control->grown);
	if (i != SW_FLAGS) /* a tensor is never freed: its index is its id */
		m = find_tensor(p, i, true, "grew no growing tensor");
	if (!m)
		return false;
	*lacks = lacks_of(p, m);
	*tensor = m->name;
	return true;
}

/* Wake the client; return whether it slept. */
static bool wake(struct sw_host_client *p)
{
	bool is = sw_edge_is_asleep(&p->control->client_sleeps);

	if (is)
		sw_edge_bell_write(p->bell);
	return is;
}

bool sw_host_note_summed(struct sw_host_client *p)
{
	atomic_store_explicit(
		&p->control->n_summed, ++p->n_summed, memory_order_release);
	return wake(p);
}

void sw_host_explain(struct sw_host_client *p, uint64_t handle,
	const struct sw_edge_why *why)
{
	p->control->whys[handle % SW_EDGE_TENSORS] = *why;
}

void sw_host_note_failed(struct sw_host_client *p)
{
	atomic_fetch_add(&p->control->n_failed, 1);
}

bool sw_host_complete(struct sw_host_client *p, const struct sw_completion *c)
{
	int n;

	if (sw_host_is_evicted(p))
		return false;
	if (c->handle & SW_EDGE_COLL_HANDLE)
		sw_host_note_room(p, c->handle % SW_EDGE_TENSORS);
	n = sw_spsc_put(&p->completions, c, 1);
	if (n == 1)
		return wake(p);
	if (n == 0)
		sw_host_evict(p, "let the completion ring overflow",
			SW_EDGE_COMPLETIONS);
	else if (n < 0)
		sw_host_evict(p,
			"wrote an impossible index into the completion ring",
			sw_spsc_own(&p->completions));
	return false;
}

static void show(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

void sw_host_show_tuning(
	struct sw_host_client *p, const struct sw_host_tuning *tuning)
{
	struct sw_edge_tuning *k = &p->control->tuning;
	uint64_t name[SW_EDGE_POLICY_BYTES / 8] = {0};

	memcpy(name, tuning->policy,
		strnlen(tuning->policy, SW_EDGE_POLICY_BYTES - 1));
	for (uint32_t i = 0; i < SW_EDGE_POLICY_BYTES / 8; i++)
		show(&k->policy[i], name[i]);
	show(&k->partition_bytes, tuning->partition_bytes);
	show(&k->credit_bytes, tuning->credit_bytes);
	show(&k->rate_bit_s, tuning->rate_bit_s);
	atomic_store_explicit(&k->round, tuning->round, memory_order_relaxed);
	/* A reader that sees the number also sees the fields above. */
	atomic_store_explicit(&k->number, tuning->number, memory_order_release);
}

static bool has_submit(struct sw_host_client *const *clients, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!sw_host_is_evicted(clients[i]) &&
			(!sw_spsc_is_empty(&clients[i]->submits) ||
				!sw_flags_are_down(
					&clients[i]->control->grown) ||
				sw_host_has_coll(clients[i])))
			return true;
	return false;
}

/* Drain the bells. A client that hung up would end every sleep until it is
 * released, so stop using its bell. */
static void drain_bells(struct sw_host_client *const *clients,
	const struct pollfd *fds, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (fds[i].revents && !sw_edge_bell_drain(clients[i]->bell))
			clients[i]->is_bell_gone = true;
}

/* Clear socket errors, such as an interface that went down, which would end
 * every sleep. */
static void forget_errors(const struct pollfd *fds, uint32_t n)
{
	int err;
	socklen_t len = sizeof(err);

	for (uint32_t i = 0; i < n; i++)
		if (fds[i].revents & (POLLERR | POLLHUP | POLLNVAL))
			getsockopt(fds[i].fd, SOL_SOCKET, SO_ERROR, &err, &len);
}

/* List the descriptors that end a sleep: the bell of each client. */
static uint32_t list_bells(struct sw_host_client *const *clients,
	uint32_t n_clients, struct pollfd fds[SW_HOST_CLIENTS_MAX])
{
	uint32_t n = n_clients < SW_HOST_CLIENTS_MAX ? n_clients
						     : SW_HOST_CLIENTS_MAX;

	for (uint32_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){
			.fd = clients[i]->is_bell_gone ? -1 : clients[i]->bell,
			.events = POLLIN};
	return n;
}

/* Tell all clients whether the lcore sleeps or naps. The caller checks the
 * rings afterwards. */
static void set_flags(struct sw_host_client *const *clients, uint32_t n,
	bool is_nap, uint32_t value)
{
	for (uint32_t i = 0; i < n; i++) {
		struct sw_edge_control *c = clients[i]->control;

		atomic_store_explicit(
			is_nap ? &c->agent_naps : &c->agent_sleeps, value,
			memory_order_relaxed);
	}
	atomic_thread_fence(memory_order_seq_cst);
}

static bool sleep_on(struct pollfd *fds, uint32_t n, uint32_t timeout_us)
{
	struct timespec limit = {.tv_sec = timeout_us / 1000000,
		.tv_nsec = (long)(timeout_us % 1000000) * 1000};

	return ppoll(fds, n, &limit, NULL) > 0;
}

void sw_host_idle_wait(struct sw_host_client *const *clients,
	uint32_t n_clients, const int *others, uint32_t n_others,
	uint32_t timeout_us)
{
	struct pollfd fds[SW_HOST_CLIENTS_MAX + SW_HOST_WAKE_FDS];
	uint32_t n = list_bells(clients, n_clients, fds);
	uint32_t m = n_others < SW_HOST_WAKE_FDS ? n_others : SW_HOST_WAKE_FDS;

	for (uint32_t i = 0; i < m; i++)
		fds[n + i] = (struct pollfd){.fd = others[i], .events = POLLIN};
	set_flags(clients, n, false, 1);
	if (!has_submit(clients, n) && sleep_on(fds, n + m, timeout_us)) {
		drain_bells(clients, fds, n);
		forget_errors(&fds[n], m);
	}
	set_flags(clients, n, false, 0);
}

void sw_host_nap(struct sw_host_client *const *clients, uint32_t n_clients,
	uint32_t timeout_us)
{
	struct pollfd fds[SW_HOST_CLIENTS_MAX];
	uint32_t n = list_bells(clients, n_clients, fds);

	set_flags(clients, n, true, 1);
	if (!sw_host_are_awaited(clients, n) && sleep_on(fds, n, timeout_us))
		drain_bells(clients, fds, n);
	set_flags(clients, n, true, 0);
}
