/* pipe_rig.h - a pipeline over the back end "fake" and a network that triples.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_CUDA_PIPE_RIG_H
#define SW_TEST_UNIT_CUDA_PIPE_RIG_H

#include "test/support/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pmd/client/edge.h"
#include "pmd/cuda/fake.h"
#include "pmd/cuda/pipeline.h"

enum { RIG_TENSORS = 64, RIG_PUSHES = 4096 };
#define RIG_UNTIL  (sw_edge_now_ns() + UINT64_C(20000000000))
#define RIG_SUMMED UINT64_MAX

/* A tensor in the network: the result is three times the pushed value. */
struct rig_item {
	struct sw_pipeline_tensor *t;
	bool is_open;
	uint32_t root;
	uint64_t there; /* bytes that have been pushed */
	/* Per granule: 0: not pushed; the time at which it is summed;
	 * RIG_SUMMED. */
	uint64_t *due_ns;
};

/* The network's record of a push: the number of bytes present after it. */
struct rig_push {
	const struct sw_pipeline_tensor *t;
	uint64_t there;
};

struct rig {
	const struct sw_back_ops *ops;
	struct sw_back *back;
	struct sw_pipeline l;
	struct sw_pipeline_tensor t[RIG_TENSORS];
	uint64_t words[RIG_TENSORS]; /* number of u64 elements */
	uint64_t *device[RIG_TENSORS], *pinned[RIG_TENSORS];
	uint32_t n;
	uint64_t granule;
	bool is_closed;
	/* The network: */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct rig_item items[RIG_TENSORS];
	_Atomic uint64_t delay_ns;
	_Atomic bool is_stuck;            /* no granule is ever summed */
	_Atomic bool is_end_stuck;        /* no last granule is ever summed */
	_Atomic bool is_stuck_until_said; /* the same until a line is logged */
	_Atomic int fail_push;            /* the error of each push, or 0 */
	/* the result of the first poll that ends */
	_Atomic int fail_poll;
	/* called for push and grow; NULL: nothing */
	void (*on_push)(struct rig *r);
	struct rig_push pushes[RIG_PUSHES];
	uint32_t n_pushes, n_given_up, n_lines;
	char given_up[SW_PIPELINE_WHY], line[SW_PIPELINE_WHY];
};

/* Accept more bytes of a tensor: at least one more, and at most all. */
static inline void rig_grow(void *ctx, void *tensor, uint64_t lacks)
{
	struct rig *r = ctx;
	struct rig_item *i = tensor;
	uint64_t there = i->t->bytes - lacks;

	assert_true(i->is_open);
	assert_in_range(there, i->there + 1, i->t->bytes);
	pthread_mutex_lock(&r->lock);
	if (r->on_push)
		r->on_push(r);
	if (r->n_pushes < RIG_PUSHES)
		r->pushes[r->n_pushes++] = (struct rig_push){i->t, there};
	pthread_mutex_unlock(&r->lock);
	for (uint64_t g = i->there / r->granule; g * r->granule < there; g++)
		if (!lacks || (g + 1) * r->granule <= there)
			i->due_ns[g] = sw_edge_now_ns() + r->delay_ns;
	i->there = there;
}

static inline int rig_push(void *ctx, void *tensor, uint32_t root,
	uint32_t step, uint64_t lacks, uint64_t *handle)
{
	struct rig *r = ctx;
	struct rig_item *i = tensor;

	(void)step;
	if (r->fail_push)
		return r->fail_push;
	i->there = 0;
	memset(i->due_ns, 0, i->t->n_granules * sizeof(i->due_ns[0]));
	i->root = root;
	i->is_open = true;
	*handle = (uint64_t)(i - r->items);
	rig_grow(ctx, tensor, lacks);
	return 0;
}

static inline bool rig_is_summed(void *ctx, void *tensor, uint32_t granule)
{
	struct rig *r = ctx;
	struct rig_item *i = tensor;
	uint64_t at = granule * r->granule, end = at + r->granule;
	uint64_t *p = (uint64_t *)i->t->out;

	if (i->due_ns[granule] == RIG_SUMMED)
		return true;
	if (r->is_stuck || r->is_stuck_until_said ||
		(r->is_end_stuck && end >= i->t->bytes) ||
		!i->due_ns[granule] || sw_edge_now_ns() < i->due_ns[granule])
		return false;
	i->due_ns[granule] = RIG_SUMMED;
	for (uint64_t k = at / 8; k < end / 8 && k < i->t->bytes / 8; k++)
		p[k] = i->root ? 7 : 3 * p[k];
	return true;
}

static inline int rig_poll(void *ctx, uint64_t handle)
{
	struct rig *r = ctx;
	struct rig_item *i = &r->items[handle];
	int err = r->fail_poll;

	assert_true(i->is_open);
	for (uint32_t g = 0; g < i->t->n_granules && !err; g++)
		if (!rig_is_summed(r, i, g))
			err = SW_EAGAIN;
	if (err == SW_EAGAIN)
		return err;
	i->is_open = false;
	r->fail_poll = 0;
	return err;
}

static inline const char *rig_why(void *ctx)
{
	(void)ctx;
	return "the net says no";
}

static inline void rig_rest(
	void *ctx, const _Atomic bool *has_mail, uint64_t until_ns)
{
	struct rig *r = ctx;
	uint64_t at = until_ns;
	struct timespec ts;

	pthread_mutex_lock(&r->lock);
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t g = 0; g < r->t[i].n_granules; g++)
			if (r->items[i].due_ns[g] && r->items[i].due_ns[g] < at)
				at = r->items[i].due_ns[g];
	ts = (struct timespec){.tv_sec = (time_t)(at / 1000000000),
		.tv_nsec = (long)(at % 1000000000)};
	if (!atomic_load(has_mail))
		pthread_cond_timedwait(&r->changed, &r->lock, &ts);
	pthread_mutex_unlock(&r->lock);
}

static inline void rig_wake(void *ctx)
{
	struct rig *r = ctx;

	pthread_mutex_lock(&r->lock);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static inline void rig_give_up(void *ctx, const char *why)
{
	struct rig *r = ctx;

	pthread_mutex_lock(&r->lock);
	snprintf(r->given_up, sizeof(r->given_up), "%s", why);
	r->n_given_up++;
	pthread_mutex_unlock(&r->lock);
}

static inline bool rig_has_given_up(struct rig *r)
{
	bool has;

	pthread_mutex_lock(&r->lock);
	has = r->n_given_up > 0;
	pthread_mutex_unlock(&r->lock);
	return has;
}

static inline void rig_log(void *ctx, const char *line)
{
	struct rig *r = ctx;

	snprintf(r->line, sizeof(r->line), "%s", line);
	r->n_lines++;
	r->is_stuck_until_said = false;
	rig_wake(r);
}

/* @granule is the network's, @piece_bytes the pipeline's parameter. */
static inline struct rig *rig_open_with(const struct sw_back_ops *ops,
	const char *options, uint64_t granule, uint64_t piece_bytes)
{
	struct rig *r = calloc(1, sizeof(*r));
	char why[SW_BACK_WHY];
	pthread_condattr_t attr;
	struct sw_pipeline_params p = {.ops = ops,
		.net = {.ctx = r,
			.push = rig_push,
			.grow = rig_grow,
			.is_summed = rig_is_summed,
			.granule = granule,
			.poll = rig_poll,
			.why = rig_why,
			.rest = rig_rest,
			.wake = rig_wake,
			.give_up = rig_give_up},
		.where = "rank 1: fake device 0",
		.piece_bytes = piece_bytes,
		.log = rig_log,
		.log_ctx = r};

	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attr);
	r->ops = ops;
	r->granule = granule;
	assert_int_equal(ops->open(options, 0, &r->back, why), 0);
	p.back = r->back;
	assert_int_equal(sw_pipeline_open(&r->l, &p, why), 0);
	return r;
}

static inline struct rig *rig_open_on(const struct sw_back_ops *ops,
	const char *options, uint64_t piece_bytes)
{
	return rig_open_with(ops, options, piece_bytes, piece_bytes);
}

static inline struct rig *rig_open(const char *options, uint64_t piece_bytes)
{
	return rig_open_on(&sw_back_fake, options, piece_bytes);
}

/* Add a tensor of @bytes in which each element is its index plus @salt. Return
 * its number. */
static inline uint32_t rig_add(struct rig *r, uint64_t bytes, uint32_t priority)
{
	uint32_t i = r->n++;
	struct sw_pipeline_tensor *t = &r->t[i];
	char why[SW_BACK_WHY];

	t->priority = priority;
	snprintf(t->name, sizeof(t->name), "t%u", i);
	r->words[i] = bytes / 8;
	r->device[i] = malloc(bytes);
	r->pinned[i] = malloc(bytes);
	t->out = (char *)r->pinned[i];
	t->in = t->out;
	t->bytes = bytes;
	t->net = &r->items[i];
	r->items[i].t = t;
	r->items[i].due_ns = calloc(bytes / r->granule + 1, sizeof(uint64_t));
	assert_int_equal(sw_pipeline_add(&r->l, t, why), 0);
	return i;
}

static inline void rig_fill(struct rig *r, uint32_t i, uint64_t salt)
{
	for (uint64_t k = 0; k < r->words[i]; k++)
		r->device[i][k] = k + salt;
}

static inline void rig_check(struct rig *r, uint32_t i, uint64_t salt)
{
	for (uint64_t k = 0; k < r->words[i]; k++)
		if (r->device[i][k] != 3 * (k + salt))
			fail_msg("element %llu of %u is %llu",
				(unsigned long long)k, i,
				(unsigned long long)r->device[i][k]);
}

static inline int rig_submit_on(
	struct rig *r, uint32_t i, void *stream, char *why)
{
	return sw_pipeline_submit(&r->l, &r->t[i],
		&(struct sw_pipeline_call){
			.from = r->device[i], .to = r->device[i]},
		stream, why);
}

static inline void rig_submit(struct rig *r, uint32_t i)
{
	char why[SW_PIPELINE_WHY];

	assert_int_equal(rig_submit_on(r, i, NULL, why), 0);
}

static inline void rig_wait(struct rig *r, uint32_t i)
{
	char why[SW_PIPELINE_WHY];

	assert_int_equal(sw_pipeline_wait(&r->l, &r->t[i], RIG_UNTIL, why), 0);
}

/* For a stream: block until the bool is true. */
static inline void rig_await_true(void *is_open)
{
	while (!atomic_load((_Atomic bool *)is_open))
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* Let the pipeline's thread finish its work, and stop it. */
static inline void rig_stop(struct rig *r)
{
	if (!r->is_closed)
		sw_pipeline_close(&r->l);
	r->is_closed = true;
}

static inline void rig_close(struct rig *r)
{
	rig_stop(r);
	r->ops->close(r->back);
	for (uint32_t i = 0; i < r->n; i++) {
		free(r->items[i].due_ns);
		free(r->device[i]);
		free(r->pinned[i]);
	}
	free(r);
}

#endif
