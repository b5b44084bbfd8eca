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

static void note_edited(
	const struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	char why[SW_PIPELINE_WHY];

	snprintf(why, sizeof(why),
		"%s: tensor '%s' was written or freed while it was summed; its "
		"caller has to wait until the call has ended",
		l->p.where, t->name);
	note(t, SW_ECORRUPT, why);
}

static void end_piece(struct sw_pipeline *l, struct sw_pipeline_piece *p,
	int err, const char *why)
{
	note(p->tensor, err, why);
	if (--p->tensor->n_left)
		return;
	if (sw_pipeline_is_result_edited(l, p->tensor))
		note_edited(l, p->tensor);
	pthread_mutex_lock(&l->lock);
	end_call(l, p->tensor);
	pthread_mutex_unlock(&l->lock);
}

static void end_starts(
	struct sw_pipeline *l, struct sw_pipeline_start *s, int err)
{
	while (s) {
		struct sw_pipeline_start *next = s->next; /* @fn frees it */

		s->fn(l, s, err);
		s = next;
	}
}

/* What came meanwhile, and will, too. */
static void end_mail(struct sw_pipeline *l)
{
	struct sw_pipeline_start *starts;
	struct sw_pipeline_copy *c;

	pthread_mutex_lock(&l->lock);
	atomic_store(&l->has_mail, l->is_ending);
	starts = l->mail;
	c = l->copies;
	l->mail = NULL;
	l->copies = NULL;
	pthread_mutex_unlock(&l->lock);
	end_starts(l, starts, l->failed);
	while (c) {
		struct sw_pipeline_copy *next = c->next;

		c->end(l, c, l->failed);
		c = next;
	}
}

static void end_tensors(struct sw_pipeline *l, int err, const char *why)
{
	pthread_mutex_lock(&l->lock);
	l->failed = err;
	snprintf(l->why, sizeof(l->why), "%s", why);
	for (uint32_t i = 0; i < l->n_tensors; i++) {
		if (!l->tensors[i]->is_open)
			continue;
		note(l->tensors[i], err, why);
		end_call(l, l->tensors[i]);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Nothing is with the back end any more. */
static void end_all(struct sw_pipeline *l, int err, const char *why)
{
	struct sw_pipeline_start *waiting = l->waiting;

	end_tensors(l, err, why);
	l->n_open = 0;
	l->waiting = NULL;
	end_starts(l, waiting, err);
	for (uint32_t i = 0; i < SW_BACK_WAYS; i++)
		sw_pipeline_lane_end(l, i, err);
	end_mail(l);
}

/* The net knows why before others know of their copies. */
static void lose(struct sw_pipeline *l, const char *why)
{
	char text[SW_PIPELINE_WHY];

	snprintf(text, sizeof(text), "%s: %s", l->p.where, why);
	l->p.net.give_up(l->p.net.ctx, text);
	end_all(l, SW_EDEVICE, text);
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

static void piece_is_out(
	struct sw_pipeline *l, struct sw_pipeline_copy *c, int err)
{
	if (!err)
		push(l, (struct sw_pipeline_piece *)c);
}

static void piece_is_in(
	struct sw_pipeline *l, struct sw_pipeline_copy *c, int err)
{
	struct sw_pipeline_piece *p = (struct sw_pipeline_piece *)c;

	if (err)
		return;
	sw_pipeline_watch_result(l, p);
	end_piece(l, p, 0, "");
}

static void enqueue_piece(struct sw_pipeline *l, struct sw_pipeline_piece *p,
	enum sw_back_way way)
{
	const struct sw_pipeline_tensor *t = p->tensor;
	bool is_out = way == SW_BACK_OUT;

	p->copy = (struct sw_pipeline_copy){
		.rows = {.to = is_out ? p->out : (char *)t->call.to + p->at,
			.from = is_out ? (const char *)t->call.from + p->at
				       : p->in,
			.bytes = p->bytes,
			.n = 1},
		.way = way,
		.priority = t->priority,
		.number = t->start.number,
		.i = p->i,
		.end = is_out ? piece_is_out : piece_is_in};
	sw_pipeline_lane_put(l, &p->copy);
}

/* It is in pinned memory: the sum, or an error. */
static void back(struct sw_pipeline *l, struct sw_pipeline_piece *p, int err)
{
	const struct sw_pipeline_net *n = &l->p.net;
	const struct sw_pipeline_call *c = &p->tensor->call;

	if (!err && sw_pipeline_is_edited(l, p)) {
		note_edited(l, p->tensor);
		end_piece(l, p, 0, "");
	} else if (err || (c->is_root && c->to == c->from)) {
		end_piece(l, p, err, err ? n->why(n->ctx) : "");
	} else {
		enqueue_piece(l, p, SW_BACK_IN);
	}
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

/* --- calls --- */

void sw_pipeline_start(
	struct sw_pipeline *l, struct sw_pipeline_start *s, int err)
{
	struct sw_pipeline_tensor *t = (struct sw_pipeline_tensor *)s;

	t->n_left = t->n_pieces;
	for (uint32_t i = 0; i < t->n_pieces && !err; i++) {
		struct sw_pipeline_piece *p = &t->pieces[i];

		sw_pipeline_watch(l, p);
		if (t->call.from)
			enqueue_piece(l, p, SW_BACK_OUT);
		else
			push(l, p);
	}
}

/* Those whose producer is done. */
static int start_some(struct sw_pipeline *l, char *why)
{
	struct sw_pipeline_start **at = &l->waiting;
	int did = 0;

	while (*at) {
		struct sw_pipeline_start *s = *at;
		int err = l->p.ops->poll(l->p.back, s->event, why);

		if (err == SW_EAGAIN) {
			at = &s->next;
			continue;
		}
		if (err)
			return err;
		*at = s->next;
		s->fn(l, s, 0);
		did = 1;
	}
	return did;
}

static int take_mail(struct sw_pipeline *l, char *why)
{
	struct sw_pipeline_start *mail, **end = &l->waiting;
	struct sw_pipeline_copy *copies;
	bool is_lost;

	pthread_mutex_lock(&l->lock);
	atomic_store(&l->has_mail, l->is_ending);
	mail = l->mail;
	l->mail = NULL;
	copies = l->copies;
	l->copies = NULL;
	is_lost = l->is_lost;
	memcpy(why, l->lost_why, SW_BACK_WHY);
	l->is_lost = false;
	pthread_mutex_unlock(&l->lock);
	while (*end)
		end = &(*end)->next;
	*end = mail;
	while (copies) {
		struct sw_pipeline_copy *c = copies;

		copies = c->next;
		sw_pipeline_lane_put(l, c);
	}
	return is_lost ? SW_EDEVICE : 0;
}

/* All that can be done now.  Returns whether something was, or an error. */
static int turn(struct sw_pipeline *l, char *why)
{
	int did[5] = {0}, err = 0;

	if (l->p.net.serve)
		did[4] = l->p.net.serve(l->p.net.ctx);
	if (atomic_load(&l->has_mail))
		err = take_mail(l, why);
	if (!err)
		err = did[0] = start_some(l, why);
	if (err >= 0)
		err = did[1] = sw_pipeline_lane_move(
			l, SW_BACK_OUT, sw_edge_now_ns(), why);
	if (err >= 0)
		did[2] = poll_net(l);
	if (err >= 0)
		err = did[3] = sw_pipeline_lane_move(
			l, SW_BACK_IN, sw_edge_now_ns(), why);
	return err < 0 ? err : did[0] + did[1] + did[2] + did[3] + did[4];
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
		const struct sw_pipeline_lane *lane = &l->lanes[i];

		for (uint32_t k = 0; k < lane->n; k++) {
			void *event = lane->slots[(lane->first + k) %
						  SW_PIPELINE_SLICES]
					      .event;

			while (l->p.ops->poll(l->p.back, event, why) ==
					SW_EAGAIN &&
				sw_edge_now_ns() < until_ns)
				nap(NAP_NS);
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
		if (l->failed)
			end_mail(l);
		else if (did >= 0)
			did = turn(l, why);
		if (did < 0)
			lose(l, why);
		if (did <= 0)
			rest(l);
		did = 0;
	}
	drain(l);
	if (!l->failed)
		end_all(l, SW_ECLOSED, "the device was closed");
	return NULL;
}
