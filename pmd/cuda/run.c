/* run.c - the pipeline's thread: events, copies, push_pulls.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "engine/base/error.h"
#include "pmd/client/edge.h"
#include "pmd/cuda/pipeline.h"

enum {
	NAP_NS = 20000,       /* between two looks at copies */
	EVENT_NAP_NS = 50000, /* at events of those who compute */
	SLACK_NS = 1000,
	REST_S = 1,
	DRAIN_S = 5,
};

/* --- ends --- */

/* Under the lock.  Its stream and who waits may go on. */
static void end_call(struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	t->is_open = false;
	t->is_known = !t->status;
	atomic_store_explicit(t->word, t->n_calls, memory_order_release);
	pthread_cond_broadcast(&l->changed);
}

/* The first error counts. */
static void note(struct sw_pipeline_tensor *t, int err, const char *why)
{
	if (!err || t->status)
		return;
	t->status = err;
	snprintf(t->why, sizeof(t->why), "%s", why);
}

static void end_piece(struct sw_pipeline *l, struct sw_pipeline_piece *p,
	int err, const char *why)
{
	note(p->tensor, err, why);
	if (--p->tensor->n_left)
		return;
	pthread_mutex_lock(&l->lock);
	end_call(l, p->tensor);
	pthread_mutex_unlock(&l->lock);
}

/* Nothing is with the back end any more. */
static void end_all(struct sw_pipeline *l, int err, const char *why)
{
	for (uint32_t i = 0; i < SW_BACK_WAYS; i++)
		l->lanes[i].n = l->lanes[i].queue.n = 0;
	l->n_open = 0;
	l->waiting = NULL;
	pthread_mutex_lock(&l->lock);
	l->failed = err;
	snprintf(l->why, sizeof(l->why), "%s", why);
	l->mail = NULL;
	for (uint32_t i = 0; i < l->n_tensors; i++) {
		if (!l->tensors[i]->is_open)
			continue;
		note(l->tensors[i], err, why);
		end_call(l, l->tensors[i]);
	}
	pthread_mutex_unlock(&l->lock);
}

static void lose(struct sw_pipeline *l, const char *why)
{
	char text[SW_PIPELINE_WHY];

	if (l->failed) /* a caller saw it, too */
		return;
	snprintf(text, sizeof(text), "%s: %s", l->p.where, why);
	end_all(l, SW_EDEVICE, text);
	l->p.net.give_up(l->p.net.ctx, text);
}

/* --- the network --- */

static void push(struct sw_pipeline *l, struct sw_pipeline_piece *p)
{
	const struct sw_pipeline_net *n = &l->p.net;
	const struct sw_pipeline_call *c = &p->tensor->call;
	int err = n->push(n->ctx, p->net, c->root, c->step, &p->handle);

	if (err)
		end_piece(l, p, err, n->why(n->ctx));
	else
		l->open[l->n_open++] = p;
}

/* It is in pinned memory: the sum, or an error. */
static void back(struct sw_pipeline *l, struct sw_pipeline_piece *p, int err)
{
	const struct sw_pipeline_net *n = &l->p.net;
	const struct sw_pipeline_call *c = &p->tensor->call;

	if (err || (c->is_root && c->to == c->from)) {
		end_piece(l, p, err, err ? n->why(n->ctx) : "");
		return;
	}
	p->put = p->there = 0;
	sw_pipeline_queue_put(&l->lanes[SW_BACK_IN].queue, p);
}

static bool poll_net(struct sw_pipeline *l)
{
	bool did = false;

	for (uint32_t i = 0; i < l->n_open;) {
		struct sw_pipeline_piece *p = l->open[i];
		int err = l->p.net.poll(l->p.net.ctx, p->handle);

		if (err == SW_EAGAIN) {
			i++;
			continue;
		}
		l->open[i] = l->open[--l->n_open];
		back(l, p, err);
		did = true;
	}
	return did;
}

/* --- copies --- */

static uint64_t slice_bytes(const struct sw_pipeline *l)
{
	uint64_t n = (l->p.piece_bytes + SW_PIPELINE_SLICES - 1) /
		     SW_PIPELINE_SLICES;

	return (n + 4095) / 4096 * 4096;
}

/* Begin the next slice of the most urgent piece. */
static int begin(struct sw_pipeline *l, enum sw_back_way way, char *why)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];
	struct sw_pipeline_piece *p = lane->queue.heap[0];
	const struct sw_pipeline_call *c = &p->tensor->call;
	uint32_t slot = (lane->first + lane->n) % SW_PIPELINE_SLICES;
	uint64_t n = p->bytes - p->put, at = p->at + p->put;
	void *to;
	const void *from;
	int err;

	if (n > slice_bytes(l))
		n = slice_bytes(l);
	if (way == SW_BACK_OUT) {
		to = p->out + p->put;
		from = (const char *)c->from + at;
	} else {
		to = (char *)c->to + at;
		from = p->in + p->put;
	}
	err = l->p.ops->copy(
		l->p.back, way, to, from, n, lane->slots[slot].event, why);
	if (err)
		return err;
	p->put += n;
	if (p->put == p->bytes)
		sw_pipeline_queue_take(&lane->queue);
	lane->slots[slot].piece = p;
	lane->slots[slot].bytes = n;
	lane->n++;
	return 0;
}

/* The oldest slice is done. */
static void end_slice(struct sw_pipeline *l, enum sw_back_way way)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];
	struct sw_pipeline_piece *p = lane->slots[lane->first].piece;

	p->there += lane->slots[lane->first].bytes;
	lane->first = (lane->first + 1) % SW_PIPELINE_SLICES;
	lane->n--;
	if (p->there < p->bytes)
		return;
	if (way == SW_BACK_OUT)
		push(l, p);
	else
		end_piece(l, p, 0, "");
}

/* Returns whether something was done, or an error. */
static int move(struct sw_pipeline *l, enum sw_back_way way, char *why)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];
	int did = 0, err = 0;

	while (lane->n) {
		err = l->p.ops->poll(
			l->p.back, lane->slots[lane->first].event, why);
		if (err == SW_EAGAIN)
			break;
		if (err)
			return err;
		end_slice(l, way);
		did = 1;
	}
	while (lane->n < SW_PIPELINE_SLICES && lane->queue.n) {
		err = begin(l, way, why);
		if (err)
			return err;
		did = 1;
	}
	return did;
}

/* --- calls --- */

static void start(struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	t->n_left = t->n_pieces;
	for (uint32_t i = 0; i < t->n_pieces; i++) {
		struct sw_pipeline_piece *p = &t->pieces[i];

		p->put = p->there = 0;
		if (t->call.from)
			sw_pipeline_queue_put(&l->lanes[SW_BACK_OUT].queue, p);
		else
			push(l, p);
	}
}

/* Those whose producer is done. */
static int start_some(struct sw_pipeline *l, char *why)
{
	struct sw_pipeline_tensor **at = &l->waiting;
	int did = 0;

	while (*at) {
		struct sw_pipeline_tensor *t = *at;
		int err = l->p.ops->poll(l->p.back, t->event, why);

		if (err == SW_EAGAIN) {
			at = &t->next;
			continue;
		}
		if (err)
			return err;
		*at = t->next;
		start(l, t);
		did = 1;
	}
	return did;
}

static int take_mail(struct sw_pipeline *l, char *why)
{
	struct sw_pipeline_tensor *mail, **end = &l->waiting;
	bool is_lost;

	pthread_mutex_lock(&l->lock);
	atomic_store(&l->has_mail, l->is_ending);
	mail = l->mail;
	l->mail = NULL;
	is_lost = l->is_lost;
	memcpy(why, l->lost_why, SW_BACK_WHY);
	l->is_lost = false;
	pthread_mutex_unlock(&l->lock);
	while (*end)
		end = &(*end)->next;
	*end = mail;
	return is_lost ? SW_EDEVICE : 0;
}

/* All that can be done now.  Returns whether something was, or an error. */
static int turn(struct sw_pipeline *l, char *why)
{
	int did[4] = {0}, err = 0;

	if (atomic_load(&l->has_mail))
		err = take_mail(l, why);
	if (!err)
		err = did[0] = start_some(l, why);
	if (err >= 0)
		err = did[1] = move(l, SW_BACK_OUT, why);
	if (err >= 0)
		did[2] = poll_net(l);
	if (err >= 0)
		err = did[3] = move(l, SW_BACK_IN, why);
	return err < 0 ? err : did[0] + did[1] + did[2] + did[3];
}

static bool is_copying(const struct sw_pipeline *l)
{
	return l->lanes[SW_BACK_OUT].n || l->lanes[SW_BACK_IN].n;
}

static void nap(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void rest(struct sw_pipeline *l)
{
	const struct sw_pipeline_net *n = &l->p.net;

	if (is_copying(l))
		nap(NAP_NS);
	else if (l->waiting)
		nap(EVENT_NAP_NS);
	else
		n->rest(n->ctx, &l->has_mail,
			sw_edge_now_ns() + REST_S * UINT64_C(1000000000));
}

/* No copy may be under way when memory is unpinned. */
static void drain(struct sw_pipeline *l)
{
	uint64_t until_ns = sw_edge_now_ns() + DRAIN_S * UINT64_C(1000000000);
	char why[SW_BACK_WHY];

	for (uint32_t i = 0; i < SW_BACK_WAYS; i++) {
		struct sw_pipeline_lane *lane = &l->lanes[i];

		for (; lane->n; lane->n--) {
			void *event = lane->slots[lane->first].event;

			while (l->p.ops->poll(l->p.back, event, why) ==
					SW_EAGAIN &&
				sw_edge_now_ns() < until_ns)
				nap(NAP_NS);
			lane->first = (lane->first + 1) % SW_PIPELINE_SLICES;
		}
	}
}

static bool is_ending(struct sw_pipeline *l)
{
	bool is;

	pthread_mutex_lock(&l->lock);
	is = l->is_ending;
	pthread_mutex_unlock(&l->lock);
	return is;
}

void *sw_pipeline_run(void *arg)
{
	struct sw_pipeline *l = arg;
	char why[SW_BACK_WHY];
	int did = l->p.ops->enter(l->p.back, why);

	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	while (!is_ending(l)) {
		if (did >= 0)
			did = turn(l, why);
		if (did < 0) {
			lose(l, why);
			did = 0;
		}
		if (!did)
			rest(l);
	}
	drain(l);
	if (!l->failed)
		end_all(l, SW_ECLOSED, "the device was closed");
	return NULL;
}
