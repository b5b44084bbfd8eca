/* host_rig.h - a toy agent in two threads; it sums a tensor by doubling it.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_HOST_HOST_RIG_H
#define SW_TEST_UNIT_HOST_HOST_RIG_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pmd/host/nodes.h"
#include <sumwire/coll.h>
#include <sumwire/sumwire.h>
#include "test/unit/host/toy_sum.h"
#include "test/unit/host/host_open.h"

/* Describe a tensor in one line. */
#define RIG_DESC(n, elems, type, order)                                 \
	((struct sw_tensor_desc){.size = sizeof(struct sw_tensor_desc), \
		.name = n,                                              \
		.n_elems = elems,                                       \
		.dtype = type,                                          \
		.priority = order})

enum {
	RIG_CLIENTS = 4,
	RIG_TENSORS = 16384,
	RIG_FIRST = 100,
	RIG_RANK = 3, /* this rank, one of RIG_SIZE */
	RIG_SIZE = 4,
	RIG_WAIT_MS = 30000, /* limit for work that takes milliseconds */
};

/* How the toy agent behaves; zeros: correctly. A test may change the atomic
 * fields while the agent runs. */
struct rig_how {
	uint64_t quota_bytes;        /* 0: 1 GiB */
	uint32_t max_clients;        /* 0: 4 */
	uint32_t uid;                /* an additional user to admit */
	int refuse;                  /* error for every attach */
	int refuse_batch;            /* error for every batch */
	atomic_int refuse_tune;      /* error for every tuning request */
	atomic_bool is_slow_to_tune; /* never answers a tuning request */
	int status;                  /* the status of every completion */
	/* never answers an attach, only reports progress */
	bool is_silent;
	bool is_mute;     /* takes submits and never completes them */
	uint32_t idle_us; /* longest sleep of the lcore; 0: 20 ms */
	bool is_napping;  /* idle sleeps are naps, which submits do not end */
};

struct rig_port {
	uint32_t id;
	struct sw_host_client *port;
	enum { RIG_NONE, RIG_LIVE, RIG_LEAVING, RIG_LEFT } state;
};

/* A push_pull: its handle, the bytes summed so far, and its number. */
struct rig_push {
	uint64_t handle, at;
	uint32_t n;
	bool is_open;
};

struct rig {
	struct rig_how how;
	char folder[64], path[96];
	struct sw_host *host;
	pthread_t control, lcore;
	int kick; /* eventfd that ends the lcore's sleep */
	/* set: hang up once on all clients with this error */
	atomic_int end_err;
	/* Failed groups: first counted on the lcore, then reported by the
	 * control thread. */
	atomic_uint n_failing, n_failed;
	atomic_bool stop, is_control_over;
	atomic_bool is_held; /* both threads shall pause */
	atomic_uint n_resting;
	pthread_mutex_t lock; /* protects all fields below */
	struct rig_port ports[RIG_CLIENTS];
	struct sw_host_tensor tensors[RIG_TENSORS];
	struct rig_push pushes[RIG_TENSORS];
	uint32_t n_tensors, n_attached, n_detached, n_taken;
	struct sw_host_coll coll; /* the last collective */
	uint32_t n_colls;
	struct sw_edge_tune tune; /* the last tuning request */
	struct sw_edge_end end;   /* the last group that ended */
	atomic_bool is_aborting;  /* collectives end with the error in end */
	/* the same as how.is_mute, but may change while the agent runs */
	atomic_bool is_mute;
	enum sw_host_why why; /* reason of the last detach */
	char text[SW_EDGE_TEXT_BYTES];
	struct sw_log log;
	char lines[4096]; /* the agent's log */
};

/* Wake the lcore, because its list of ports has changed. */
static inline void rig_kick(struct rig *r)
{
	uint64_t one = 1;

	assert_int_equal(write(r->kick, &one, sizeof(one)), sizeof(one));
}

/* Let the agent stop taking collectives before this returns, or resume. */
static inline void rig_mute(struct rig *r, bool is_mute)
{
	pthread_mutex_lock(&r->lock);
	atomic_store(&r->is_mute, is_mute);
	pthread_mutex_unlock(&r->lock);
	rig_kick(r);
}

static inline void rig_on_attach(
	void *ctx, uint32_t id, uint32_t pid, uint32_t uid, uint32_t local_rank)
{
	struct rig *r = ctx;
	struct sw_host_client *port;

	assert_true(uid == geteuid() || uid == r->how.uid);
	assert_true(pid > 0);
	if (r->how.refuse) {
		sw_host_refuse(r->host, id, r->how.refuse, "no place for you");
		return;
	}
	sw_host_status(r->host, id, "waiting for rank 2 of 4");
	sw_host_job(r->host, "digits", 4711, false);
	if (r->how.is_silent ||
		sw_host_attached(r->host, id, 3, 4, 0, 1, &port))
		return;
	pthread_mutex_lock(&r->lock);
	r->n_attached++;
	for (int i = 0; i < RIG_CLIENTS; i++)
		if (r->ports[i].state == RIG_NONE) {
			r->ports[i] = (struct rig_port){id, port, RIG_LIVE};
			break;
		}
	pthread_mutex_unlock(&r->lock);
	rig_kick(r);
}

static inline void rig_on_declare(void *ctx, uint32_t id, uint32_t batch,
	const struct sw_host_tensor *tensors, uint32_t n)
{
	struct rig *r = ctx;
	uint32_t first;

	if (r->how.refuse_batch) {
		sw_host_declare_failed(r->host, id, batch, r->how.refuse_batch,
			"a server's quota: 3 needed, 2 left");
		return;
	}
	pthread_mutex_lock(&r->lock);
	first = r->n_tensors;
	assert_true(n <= RIG_TENSORS - first);
	memcpy(&r->tensors[first], tensors, n * sizeof(tensors[0]));
	r->n_tensors += n;
	pthread_mutex_unlock(&r->lock);
	assert_int_equal(
		sw_host_declared(r->host, id, batch, RIG_FIRST + first, 0, ""),
		0);
}

static inline void rig_on_detach(
	void *ctx, uint32_t id, enum sw_host_why why, const char *text)
{
	struct rig *r = ctx;
	bool has_port = false;

	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < RIG_CLIENTS; i++)
		if (r->ports[i].id == id && r->ports[i].state == RIG_LIVE) {
			r->ports[i].state = RIG_LEAVING;
			has_port = true;
		}
	r->why = why;
	snprintf(r->text, sizeof(r->text), "%s", text);
	if (!has_port)
		r->n_detached++;
	pthread_mutex_unlock(&r->lock);
	if (has_port)
		rig_kick(r);
	else
		sw_host_release(r->host, id);
}

static inline void rig_on_tune(
	void *ctx, uint32_t id, const struct sw_edge_tune *tune)
{
	struct rig *r = ctx;

	r->tune = *tune;
	for (int i = 0; i < RIG_CLIENTS && !r->how.refuse_tune; i++)
		if (r->ports[i].state == RIG_LIVE)
			sw_host_show_tuning(r->ports[i].port,
				&(struct sw_host_tuning){.policy = tune->policy,
					.partition_bytes = tune->value[0],
					.credit_bytes = tune->value[1],
					.rate_bit_s = 3,
					.round = 9,
					.number = 7});
	if (!r->how.is_slow_to_tune)
		sw_host_answer(r->host, id, r->how.refuse_tune,
			r->how.refuse_tune ? "partition 4: too small" : "");
}

static inline void rig_on_end(
	void *ctx, uint32_t id, const struct sw_edge_end *end)
{
	struct rig *r = ctx;

	r->end = *end;
	atomic_store(&r->is_aborting, true);
	rig_kick(r);
	sw_host_answer(r->host, id, 0, "");
}

/* Free an item under the lock, because the lcore reads the clients. */
static inline void rig_on_free(void *ctx, uint32_t id, uint32_t item)
{
	struct rig *r = ctx;
	const void *base;
	uint64_t bytes;
	bool is_good = false;

	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < RIG_CLIENTS; i++)
		if (r->ports[i].state == RIG_LIVE && r->ports[i].id == id)
			is_good = sw_host_forget(
				r->ports[i].port, item, &base, &bytes);
	pthread_mutex_unlock(&r->lock);
	if (is_good)
		sw_host_answer(r->host, id, 0, "");
}

static inline void rig_log(void *ctx, enum sw_log_level level, const char *text)
{
	struct rig *r = ctx;
	size_t n = strlen(r->lines);

	snprintf(r->lines + n, sizeof(r->lines) - n, "%s\n", text);
}

/* Release the clients that the lcore has let go. */
static inline void rig_release(struct rig *r)
{
	for (int i = 0; i < RIG_CLIENTS; i++) {
		bool has_left;

		pthread_mutex_lock(&r->lock);
		has_left = r->ports[i].state == RIG_LEFT;
		pthread_mutex_unlock(&r->lock);
		if (!has_left)
			continue;
		sw_host_release(r->host, r->ports[i].id);
		pthread_mutex_lock(&r->lock);
		r->ports[i].state = RIG_NONE;
		r->n_detached++;
		pthread_mutex_unlock(&r->lock);
	}
}

/* End all clients, because the job has failed. */
static inline void rig_end(struct rig *r, int err)
{
	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < RIG_CLIENTS; i++)
		if (r->ports[i].state == RIG_LIVE) {
			sw_host_end(r->host, r->ports[i].id, err,
				"server 2 is silent");
			r->ports[i].state = RIG_LEAVING;
		}
	pthread_mutex_unlock(&r->lock);
	rig_kick(r);
}

/* Pause a thread of the agent here, where it holds no lock of the allocator. */
static inline void rig_rest(struct rig *r)
{
	if (!atomic_load(&r->is_held))
		return;
	atomic_fetch_add(&r->n_resting, 1);
	while (atomic_load(&r->is_held))
		usleep(100);
	atomic_fetch_sub(&r->n_resting, 1);
}

/* Pause both threads after their current work, until rig_go. */
static inline void rig_hold(struct rig *r)
{
	atomic_store(&r->is_held, true);
	for (int i = 0; i < RIG_WAIT_MS && atomic_load(&r->n_resting) < 2;
		i++) {
		rig_kick(r);
		usleep(1000);
	}
	assert_int_equal(atomic_load(&r->n_resting), 2);
}

static inline void rig_go(struct rig *r)
{
	atomic_store(&r->is_held, false);
}

/* Fork while the agent runs. The threads must be paused: if one held a lock of
 * a sanitizer's allocator, the child could never take that lock. */
static inline pid_t rig_fork(struct rig *r)
{
	pid_t pid;

	rig_hold(r);
	pid = fork();
	rig_go(r);
	return pid;
}

static inline void *rig_control(void *arg)
{
	struct rig *r = arg;

	while (!atomic_load(&r->stop)) {
		int err = atomic_exchange(&r->end_err, 0);

		rig_rest(r);
		if (err)
			rig_end(r, err);
		if (atomic_exchange(&r->n_failed, 0))
			sw_host_wake_watches(r->host);
		sw_host_poll(r->host, 5);
		rig_release(r);
	}
	atomic_store(&r->is_control_over, true);
	rig_kick(r);
	return NULL;
}

/* Sum the bytes of a tensor that have become present, and report its
 * granules. */
static inline void rig_grow(struct rig *r, struct sw_host_client *port,
	uint32_t tensor, uint64_t lacks)
{
	const struct sw_host_tensor *t = &r->tensors[tensor - RIG_FIRST];
	struct rig_push *p = &r->pushes[tensor - RIG_FIRST];
	struct sw_completion c = {p->handle, r->how.status, 0};
	uint64_t at = t->bytes - lacks;

	assert_in_range(tensor, RIG_FIRST, RIG_FIRST + r->n_tensors - 1);
	if (!p->is_open || r->how.is_mute)
		return;
	assert_in_range(at, p->at, t->bytes);
	rig_double(
		t, p->at * t->n_elems / t->bytes, at * t->n_elems / t->bytes);
	if (t->kind == SW_EDGE_GROWING)
		rig_note_granules(t, p->at, at, p->n);
	p->at = at;
	sw_host_note_summed(port);
	if (lacks)
		return;
	p->is_open = false;
	sw_host_complete(port, &c);
}

static inline void rig_serve(struct rig *r, struct sw_host_client *port)
{
	struct sw_host_submit s[8];
	uint32_t n = sw_host_take(port, s, 8), tensor;
	uint64_t lacks;

	r->n_taken += n;
	for (uint32_t i = 0; i < n; i++) {
		struct rig_push *p = &r->pushes[s[i].tensor - RIG_FIRST];

		*p = (struct rig_push){
			.handle = s[i].handle, .n = p->n + 1, .is_open = true};
		rig_grow(r, port, s[i].tensor, s[i].lacks);
	}
	while (sw_host_take_grown(port, &tensor, &lacks))
		rig_grow(r, port, tensor, lacks);
}

/* Compute the result as if all ranks gave the same data and a sum were one
 * contribution. */
static inline void rig_coll(const struct sw_host_coll *m)
{
	uint64_t bytes = m->count * sw_dtype_bytes(m->dtype);
	const char *from = m->from;
	char *to = m->to;

	if (m->kind == SW_REDUCE_SCATTER)
		from += m->stride * RIG_RANK;
	for (uint32_t i = 0; i < (m->kind == SW_ALL_GATHER ? RIG_SIZE : 1); i++)
		memmove(to + i * m->stride, from, bytes);
}

static inline void rig_explain(
	struct sw_host_client *port, uint64_t handle, const char *text)
{
	struct sw_edge_why why = {.conflict = SW_CONFLICT_NONE};

	snprintf(why.text, sizeof(why.text), "%s", text);
	sw_host_explain(port, handle, &why);
}

/* Serve collectives; they end as submits do. */
static inline void rig_serve_colls(struct rig *r, struct sw_host_client *port)
{
	struct sw_host_coll m;
	bool is_mute = r->how.is_mute || atomic_load(&r->is_mute);
	bool is_aborted = is_mute && atomic_load(&r->is_aborting);
	/* 0: the group was closed */
	int aborted = r->end.err ? r->end.err : SW_EABORTED;
	uint32_t n_left = SW_EDGE_COLLS;

	while ((!is_mute || is_aborted) &&
		sw_host_take_coll(port, &m, &n_left)) {
		struct sw_completion c = {
			m.handle, is_aborted ? aborted : r->how.status, 0};

		r->coll = m;
		r->n_colls++;
		rig_coll(&m);
		if (c.status == SW_EMISMATCH)
			sw_host_explain(port, m.handle,
				&(struct sw_edge_why){
					.conflict = SW_CONFLICT_CALL,
					.rank = 3,
					.other = 1,
					.number = 1,
					.text = "they differ"});
		if (is_aborted)
			rig_explain(port, m.handle, r->end.why);
		sw_host_complete(port, &c);
	}
}

static inline void *rig_lcore(void *arg)
{
	struct rig *r = arg;
	uint64_t count;

	while (!atomic_load(&r->is_control_over)) {
		struct sw_host_client *ports[RIG_CLIENTS];
		uint32_t n = 0, n_failing = atomic_exchange(&r->n_failing, 0);

		rig_rest(r);
		pthread_mutex_lock(&r->lock);
		for (int i = 0; i < RIG_CLIENTS; i++) {
			if (r->ports[i].state == RIG_LEAVING)
				r->ports[i].state = RIG_LEFT;
			if (r->ports[i].state == RIG_LIVE) {
				rig_serve(r, r->ports[i].port);
				rig_serve_colls(r, r->ports[i].port);
				for (uint32_t k = 0; k < n_failing; k++)
					sw_host_note_failed(r->ports[i].port);
				ports[n++] = r->ports[i].port;
			}
		}
		pthread_mutex_unlock(&r->lock);
		atomic_fetch_add(&r->n_failed, n_failing);
		if (r->how.is_napping)
			sw_host_nap(ports, n, r->how.idle_us);
		else
			sw_host_idle_wait(ports, n, &r->kick, 1,
				r->how.idle_us ? r->how.idle_us : 20000);
		if (read(r->kick, &count, sizeof(count)) < 0)
			continue;
	}
	return NULL;
}

/* Make a folder for an agent that does not run yet. */
static inline struct rig *rig_new(const struct rig_how *how)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	if (how)
		r->how = *how;
	strcpy(r->folder, "/tmp/sw-unit-XXXXXX");
	assert_non_null(mkdtemp(r->folder));
	snprintf(r->path, sizeof(r->path), "%s/agent.sock", r->folder);
	r->log = (struct sw_log){rig_log, r, SW_LOG_DEBUG};
	r->kick = eventfd(0, EFD_NONBLOCK);
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

static inline int rig_try_start(struct rig *r)
{
	struct sw_host_params p = {.path = r->path,
		.numa_node = SW_NUMA_ANY,
		.uids = &r->how.uid,
		.n_uids = r->how.uid != 0,
		.n_local = 1,
		.max_clients = r->how.max_clients ? r->how.max_clients : 4,
		.quota_bytes =
			r->how.quota_bytes ? r->how.quota_bytes : 1 << 30,
		.events = {rig_on_attach, rig_on_declare, rig_on_detach,
			rig_on_tune, rig_on_end, rig_on_free},
		.ctx = r,
		.log = &r->log};
	int err = rig_host_open(&p, &r->host);

	if (err)
		return err;
	pthread_create(&r->control, NULL, rig_control, r);
	pthread_create(&r->lcore, NULL, rig_lcore, r);
	return 0;
}

static inline void rig_start(struct rig *r)
{
	assert_int_equal(rig_try_start(r), 0);
}

static inline struct rig *rig_open(const struct rig_how *how)
{
	struct rig *r = rig_new(how);

	rig_start(r);
	return r;
}

/* Stop the agent: both threads, then the host. */
static inline void rig_stop(struct rig *r)
{
	if (!r->host)
		return;
	atomic_store(&r->stop, true);
	pthread_join(r->control, NULL);
	pthread_join(r->lcore, NULL);
	sw_host_close(&r->host);
}

/* Stop and free the agent; its folder must be empty. */
static inline void rig_close(struct rig *r)
{
	rig_stop(r);
	assert_int_equal(rmdir(r->folder), 0);
	close(r->kick);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static inline void rig_no_log(void *ctx, const char *line)
{
}

static inline struct sw_settings rig_settings(const struct rig *r)
{
	struct sw_settings s;

	sw_settings_init(&s);
	s.agent = r->path;
	s.open_timeout_s = 30;
	s.wait_timeout_s = 30;
	s.log = rig_no_log;
	return s;
}

static inline struct sw_client *rig_client(const struct rig *r)
{
	struct sw_settings s = rig_settings(r);
	struct sw_client *c = NULL;
	int err = sw_open(&s, &c);

	if (err)
		fail_msg("sw_open: %s: %s", sw_error_name(err),
			sw_last_error(NULL));
	return c;
}

static inline struct sw_tensor *rig_tensor(
	struct sw_client *c, const char *name, uint64_t n_elems)
{
	struct sw_tensor_desc d = RIG_DESC(name, n_elems, SW_F32, 0);
	struct sw_tensor *t;
	int err = sw_declare(c, &d, 1, &t);

	if (err)
		fail_msg("sw_declare: %s", sw_last_error(c));
	return t;
}

static inline uint32_t rig_n_detached(struct rig *r)
{
	uint32_t n;

	pthread_mutex_lock(&r->lock);
	n = r->n_detached;
	pthread_mutex_unlock(&r->lock);
	return n;
}

/* Wait until @n clients have been detached and released, the last one for @why
 * with @text. */
static inline void rig_await(
	struct rig *r, uint32_t n, enum sw_host_why why, const char *text)
{
	for (int i = 0; i < RIG_WAIT_MS && rig_n_detached(r) < n; i++)
		usleep(1000);
	pthread_mutex_lock(&r->lock);
	assert_int_equal(r->n_detached, n);
	if (r->why != why || !strstr(r->text, text))
		fail_msg("detached because: %u, %s", r->why, r->text);
	pthread_mutex_unlock(&r->lock);
}

/* Wait until @n clients are attached and none is leaving. */
static inline void rig_await_ports(struct rig *r, uint32_t n)
{
	uint32_t n_ports = 0;

	for (int k = 0; k < RIG_WAIT_MS && n_ports != n; k++) {
		usleep(1000);
		n_ports = 0;
		pthread_mutex_lock(&r->lock);
		for (int i = 0; i < RIG_CLIENTS; i++)
			n_ports += r->ports[i].state != RIG_NONE;
		pthread_mutex_unlock(&r->lock);
	}
	assert_int_equal(n_ports, n);
}

#endif
