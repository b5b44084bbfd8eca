/* run.c - the pipeline's thread: a tensor's way out, through the net and back.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "engine/base/error.h"
#include "pmd/client/edge.h"
#include "pmd/cuda/pipeline.h"

enum {
	NAP_NS = 20000,       /* between two polls of copies */
	EVENT_NAP_NS = 50000, /* between two polls of producers' events */
	SLACK_NS = 1000,
	REST_S = 1,
	DRAIN_S = 5,
};

/* Adjacent granules. */
struct run {
	uint32_t first, end;
};

/* --- detect a tensor that was written or freed during its call --- */

bool sw_pipeline_digest(const struct sw_pipeline *l, const void *at,
	uint64_t bytes, uint64_t *out)
{
	return l->p.ops->digest && l->p.ops->digest(l->p.back, at, bytes, out);
}

/* Digest a granule of the tensor at @base. Returns false if the back end does
 * not digest. */
static bool digest(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, const char *base, uint32_t granule,
	uint64_t *out)
{
	uint64_t at = granule * l->p.net.granule, left = t->bytes - at;

	return base &&
	       sw_pipeline_digest(l, base + at,
		       left < l->p.net.granule ? left : l->p.net.granule, out);
}

static bool is_other(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, const char *base, uint32_t granule)
{
	uint64_t now;

	return digest(l, t, base, granule, &now) && now != t->digests[granule];
}

static void watch(const struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	uint32_t n = 0;

	while (n < t->n_granules &&
		digest(l, t, t->call.from, n, &t->digests[n]))
		n++;
	t->has_digests = n == t->n_granules;
	t->n_results = 0;
}

static bool is_edited(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end && t->has_digests; i++)
		if (is_other(l, t, t->call.from, i))
			return true;
	return false;
}

static void watch_result(const struct sw_pipeline *l,
	struct sw_pipeline_tensor *t, uint64_t at, uint64_t bytes)
{
	uint32_t i = (uint32_t)(at / l->p.net.granule);

	for (; i * l->p.net.granule < at + bytes; i++)
		t->n_results += digest(l, t, t->call.to, i, &t->digests[i]);
}

static bool is_result_edited(
	const struct sw_pipeline *l, const struct sw_pipeline_tensor *t)
{
	for (uint32_t i = 0; i < t->n_granules; i++)
		if (t->n_results == t->n_granules &&
			is_other(l, t, t->call.to, i))
			return true;
	return false;
}

/* --- the end of a call --- */

static void end_tensor(struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	t->is_open = false;
	t->is_known = !t->status;
	atomic_store_explicit(t->word, t->n_calls, memory_order_release);
	pthread_cond_broadcast(&l->changed);
}

static void note_error(struct sw_pipeline_tensor *t, int err, const char *why)
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
	note_error(t, SW_ECORRUPT, why);
}

static void done_one(struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	if (--t->n_open)
		return;
	if (is_result_edited(l, t))
		note_edited(l, t);
	pthread_mutex_lock(&l->lock);
	end_tensor(l, t);
	pthread_mutex_unlock(&l->lock);
}

/* --- back to the device: granules that are summed --- */

static bool is_back(const struct sw_pipeline_tensor *t, uint32_t granule)
{
	return t->are_back >> (granule - t->first) & 1;
}

/* Return whether a granule's sum has arrived and its copy back has not
 * begun. */
static bool is_here(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, uint32_t granule)
{
	const struct sw_pipeline_net *n = &l->p.net;

	return !is_back(t, granule) &&
	       (t->is_summed ||
		       (t->is_pushed && n->is_summed(n->ctx, t->net, granule)));
}

static uint64_t bytes_of(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, const struct run *r)
{
	uint64_t at = r->first * l->p.net.granule;
	uint64_t end = r->end * l->p.net.granule;

	return (end < t->bytes ? end : t->bytes) - at;
}

/* Return whether to copy a run now. If more granules may join it, it waits for
 * them. */
static bool is_ripe(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, const struct run *r, uint32_t end)
{
	return r->end == t->n_granules ||
	       (r->first == t->first && r->end == end) ||
	       (r->end < end && is_back(t, r->end)) ||
	       bytes_of(l, t, r) >=
		       sw_pipeline_lane_slice(l, SW_BACK_IN, t->bytes);
}

static bool find_run(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, struct run *r)
{
	uint32_t end = t->n_granules - t->first < SW_PIPELINE_AHEAD
			       ? t->n_granules
			       : t->first + SW_PIPELINE_AHEAD;

	for (r->end = t->first; r->end < end;) {
		r->first = r->end;
		while (r->end < end && is_here(l, t, r->end))
			r->end++;
		if (r->end > r->first && is_ripe(l, t, r, end))
			return true;
		r->end += r->end == r->first;
	}
	return false;
}

static void note_back(struct sw_pipeline_tensor *t, const struct run *r)
{
	for (uint32_t i = r->first; i < r->end; i++)
		t->are_back |= UINT64_C(1) << (i - t->first);
	while (t->are_back & 1) {
		t->are_back >>= 1;
		t->first++;
	}
}

/* Note a copy of a tensor, for a trace. */
static void note_copy(
	const struct sw_pipeline *l, const struct sw_pipeline_copy *c)
{
	const struct sw_pipeline_net *n = &l->p.net;
	const struct sw_pipeline_tensor *t = c->of;

	if (n->note && t->handle)
		n->note(n->ctx, t->handle,
			c->way == SW_BACK_OUT ? SW_EDGE_COPY_IN
					      : SW_EDGE_COPY_OUT,
			c->begun_ns, c->rows.n * c->rows.bytes);
}

static void in_ended(struct sw_pipeline *l, struct sw_pipeline_copy *c, int err)
{
	if (err)
		return;
	note_copy(l, c);
	watch_result(l, c->of, c->at, c->rows.bytes);
	done_one(l, c->of);
}

static void put_back(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	struct sw_pipeline_copy *c, const struct run *r)
{
	uint64_t at = r->first * l->p.net.granule;

	t->n_open++;
	*c = (struct sw_pipeline_copy){.rows = {.to = (char *)t->call.to + at,
					       .from = t->in + at,
					       .bytes = bytes_of(l, t, r),
					       .n = 1},
		.way = SW_BACK_IN,
		.priority = t->priority,
		.number = t->start.number,
		.at = at,
		.end = in_ended,
		.of = t};
	sw_pipeline_lane_put(l, c);
}

static bool bring_back(struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	bool did = false;
	struct run r;

	for (uint32_t i = 0; i < SW_PIPELINE_BACK; i++) {
		struct sw_pipeline_copy *c = &t->copies_in[i];

		if (c->is_open || !find_run(l, t, &r))
			continue;
		did = true;
		if (is_edited(l, t, r.first, r.end))
			note_edited(l, t);
		else
			put_back(l, t, c, &r);
		note_back(t, &r);
	}
	return did;
}

/* --- the network --- */

static void push_tensor(
	struct sw_pipeline *l, struct sw_pipeline_tensor *t, uint64_t lacks)
{
	const struct sw_pipeline_net *n = &l->p.net;
	int err = n->push(
		n->ctx, t->net, t->call.root, t->call.step, lacks, &t->handle);

	note_error(t, err, err ? n->why(n->ctx) : "");
	if (err)
		return;
	if (n->note)
		n->note(n->ctx, t->handle, SW_EDGE_READY, t->ready_ns, 0);
	t->is_pushed = true;
	t->n_open++;
	l->open[l->n_open++] = t;
}

/* Tell the net how much of the tensor has landed. If the call has failed or
 * ended, nothing is pushed, but its copies continue. */
static void out_moved(struct sw_pipeline *l, struct sw_pipeline_copy *c)
{
	struct sw_pipeline_tensor *t = c->of;
	uint64_t lacks = t->bytes - c->there;

	if (t->is_pushed)
		l->p.net.grow(l->p.net.ctx, t->net, lacks);
	else if (!t->status && !t->is_summed)
		push_tensor(l, t, lacks);
}

static void out_ended(
	struct sw_pipeline *l, struct sw_pipeline_copy *c, int err)
{
	if (err)
		return;
	out_moved(l, c);
	note_copy(l, c);
	done_one(l, c->of);
}

/* Return whether the net has ended the call. Call it before looking for
 * granules. */
static bool poll_one(struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	const struct sw_pipeline_net *n = &l->p.net;
	int err;

	if (!t->is_pushed)
		return false;
	err = n->poll(n->ctx, t->handle);
	if (err == SW_EAGAIN)
		return false;
	t->is_pushed = false;
	t->is_summed = !err;
	if (err && !t->status && n->conflict)
		n->conflict(n->ctx, t->conflict);
	note_error(t, err, err ? n->why(n->ctx) : "");
	return true;
}

static bool poll_net(struct sw_pipeline *l)
{
	bool did = false;

	for (uint32_t i = 0; i < l->n_open;) {
		struct sw_pipeline_tensor *t = l->open[i];

		did |= poll_one(l, t);
		did |= bring_back(l, t);
		if (t->is_pushed ||
			(t->is_summed && t->first != t->n_granules)) {
			i++;
			continue;
		}
		l->open[i] = l->open[--l->n_open];
		done_one(l, t);
		did = true;
	}
	return did;
}

/* --- calls --- */

static void go_out(struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	t->n_open++;
	t->copy_out = (struct sw_pipeline_copy){.rows = {.to = t->out,
							.from = t->call.from,
							.bytes = t->bytes,
							.n = 1},
		.way = SW_BACK_OUT,
		.priority = t->priority,
		.number = t->start.number,
		.moved = out_moved,
		.end = out_ended,
		.of = t};
	sw_pipeline_lane_put(l, &t->copy_out);
}

void sw_pipeline_start(
	struct sw_pipeline *l, struct sw_pipeline_start *s, int err)
{
	struct sw_pipeline_tensor *t = (struct sw_pipeline_tensor *)s;
	const struct sw_pipeline_call *c = &t->call;

	if (err)
		return;
	t->n_open = 1;
	t->handle = 0;
	t->ready_ns = sw_edge_now_ns();
	t->is_pushed = t->is_summed = false;
	t->first = c->is_root && c->to == c->from ? t->n_granules : 0;
	t->are_back = 0;
	watch(l, t);
	if (c->from)
		go_out(l, t);
	else
		push_tensor(l, t, 0);
	done_one(l, t);
}

/* Start the calls whose producer is done. */
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

/* --- the end of all calls --- */

static void end_starts(
	struct sw_pipeline *l, struct sw_pipeline_start *s, int err)
{
	while (s) {
		struct sw_pipeline_start *next = s->next; /* @fn frees it */

		s->fn(l, s, err);
		s = next;
	}
}

/* End all mail. Called when the pipeline fails, and again for later mail. */
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
		note_error(l->tensors[i], err, why);
		end_tensor(l, l->tensors[i]);
	}
	pthread_mutex_unlock(&l->lock);
}

/* End everything with @err. The back end has no open copy, or its device has
 * failed. */
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

/* Give up the device. The net learns the reason first, before copies end with
 * an error. */
static void lose_device(struct sw_pipeline *l, const char *why)
{
	char text[SW_PIPELINE_WHY];

	snprintf(text, sizeof(text), "%s: %s", l->p.where, why);
	l->p.net.give_up(l->p.net.ctx, text);
	end_all(l, SW_EDEVICE, text);
}

/* --- the thread --- */

/* Do all work that is possible now. Returns a positive number if there was
 * work, otherwise 0 or an error. */
static int take_turn(struct sw_pipeline *l, char *why)
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

static void nap(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void rest(struct sw_pipeline *l)
{
	const struct sw_pipeline_net *n = &l->p.net;

	if (l->lanes[SW_BACK_OUT].n || l->lanes[SW_BACK_IN].n)
		nap(NAP_NS);
	else if (l->waiting)
		nap(EVENT_NAP_NS);
	else
		n->rest(n->ctx, &l->has_mail,
			sw_edge_now_ns() + REST_S * UINT64_C(1000000000));
}

/* Wait at most DRAIN_S for open copies, because no copy may be open when memory
 * is unpinned. */
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
			did = take_turn(l, why);
		if (did < 0)
			lose_device(l, why);
		if (did <= 0)
			rest(l);
		did = 0;
	}
	drain(l);
	if (!l->failed)
		end_all(l, SW_ECLOSED, "the device was closed");
	return NULL;
}
