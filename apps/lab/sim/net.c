/* net.c - virtual time, and frames in flight through links and switches.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/net.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/params.h"
#include "engine/base/random.h"
#include "pmd/lcores/handoff.h"

enum { ALIGN = 64, SLAB = 64 };

static const uint32_t sizes[SW_SIM_SIZES] = {0, 512, 2048, SW_PAYLOAD_MAX};

uint64_t sw_sim_below(uint64_t *rng, uint64_t n)
{
	return n ? sw_random_next(rng) % n : 0;
}

bool sw_sim_chance(uint64_t *rng, uint32_t ppm)
{
	return ppm && sw_sim_below(rng, 1000000) < ppm;
}

/* --- frames --- */

/* Add frames of @size to their free list.  Memory grows in slabs. */
static void add_slab(struct sw_sim_net *net, uint8_t size)
{
	size_t bytes = sizeof(struct sw_sim_frame) + sizes[size];
	uint8_t *mem = aligned_alloc(ALIGN, ALIGN + SLAB * bytes);

	if (!mem)
		abort();
	memcpy(mem, &net->slabs, sizeof(net->slabs));
	net->slabs = mem;
	for (uint32_t i = SLAB; i--;) {
		struct sw_sim_frame *f = (void *)(mem + ALIGN + i * bytes);

		f->next = net->free[size];
		net->free[size] = f;
	}
}

struct sw_sim_frame *sw_sim_frame_new(struct sw_sim_net *net, uint32_t payload)
{
	struct sw_sim_frame *f;
	uint8_t size = 0;

	while (sizes[size] < payload)
		size++;
	if (!net->free[size])
		add_slab(net, size);
	f = net->free[size];
	net->free[size] = f->next;
	memset(f, 0, offsetof(struct sw_sim_frame, head));
	f->size = size;
	net->n_alive++;
	net->most_alive = sw_max64(net->most_alive, net->n_alive);
	return f;
}

struct sw_sim_frame *sw_sim_frame_other(struct sw_sim_net *net, uint32_t from,
	uint32_t to, uint32_t bytes, const struct sw_sim_segment *segment)
{
	struct sw_sim_frame *f = sw_sim_frame_new(net, 0);

	f->from = from;
	f->to = to;
	f->bytes = bytes;
	f->len = bytes - SW_SIM_HEADS;
	f->is_other = true;
	f->other = *segment;
	return f;
}

void sw_sim_frame_free(struct sw_sim_net *net, struct sw_sim_frame *f)
{
	f->next = net->free[f->size];
	net->free[f->size] = f;
	net->n_alive--;
}

/* --- a link --- */

uint64_t sw_sim_queued(const struct sw_sim_net *net, struct sw_sim_link *l)
{
	while (l->waiting && l->waiting->depart_ns <= net->now_ns) {
		l->queued -= l->waiting->bytes;
		l->n.bytes += l->waiting->bytes + SW_SIM_WIRE - SW_SIM_HEADS;
		if (l->pool)
			l->pool->used -= l->waiting->bytes;
		l->waiting = l->waiting->next;
	}
	return l->queued;
}

static bool has_room(const struct sw_sim_link *l, uint32_t bytes)
{
	const struct sw_sim_pool *p = l->pool;

	if (bytes > l->most_bytes)
		return false;
	if (!p)
		return l->queued + bytes <= l->buffer_bytes;
	return p->used + bytes <= p->bytes &&
	       l->queued + bytes <=
		       (p->bytes - p->used) * p->alpha_ppm / 1000000;
}

/* Decide whether to mark a frame: above a step, or by RED between two
 * bounds. */
static bool is_to_mark(struct sw_sim_link *l)
{
	uint64_t span = l->ecn_most_bytes - l->ecn_bytes;

	if (!l->ecn_bytes || l->queued < l->ecn_bytes)
		return false;
	return l->queued >= l->ecn_most_bytes ||
	       sw_sim_below(&l->rng, span) < l->queued - l->ecn_bytes;
}

static bool is_lost(struct sw_sim_link *l)
{
	const struct sw_sim_faults *x = l->faults;

	if (x->bad && sw_sim_chance(&l->rng, l->is_bad ? x->good : x->bad))
		l->is_bad = !l->is_bad;
	return sw_sim_chance(&l->rng, x->loss) ||
	       (l->is_bad && sw_sim_chance(&l->rng, x->bad_loss));
}

static void damage(struct sw_sim_link *l, struct sw_sim_frame *f)
{
	uint64_t bit = sw_sim_below(
		&l->rng, 8ULL * (f->has_body ? f->len : SW_HEAD_BYTES));
	uint8_t *at = bit / 8 < SW_HEAD_BYTES
			      ? &f->head[bit / 8]
			      : &f->body[bit / 8 - SW_HEAD_BYTES];

	*at ^= (uint8_t)(1u << bit % 8);
}

static void serialize(
	struct sw_sim_net *net, struct sw_sim_link *l, struct sw_sim_frame *f)
{
	uint64_t bytes = f->bytes + SW_SIM_WIRE - SW_SIM_HEADS;
	uint64_t q16 = bytes * l->ns_q16;

	if (l->free_ns + l->bucket_ns < net->now_ns) {
		l->free_ns = net->now_ns - l->bucket_ns;
		l->rest_q16 = 0;
	}
	q16 += l->rest_q16;
	l->free_ns += q16 >> 16;
	l->rest_q16 = q16 & 0xffff;
	f->depart_ns = sw_max64(l->free_ns, net->now_ns);
	f->arrive_ns = f->depart_ns + l->delay_ns;
}

/* Schedule the departure of a frame, so that a shared buffer regains its room
 * in time. */
static void await_depart(struct sw_sim_net *net, struct sw_sim_link *l)
{
	if (!l->pool || !l->waiting || l->is_departing)
		return;
	l->is_departing = true;
	sw_sim_put(
		&net->events, l->waiting->depart_ns, SW_SIM_DEPART, l->index);
}

static void append(
	struct sw_sim_net *net, struct sw_sim_link *l, struct sw_sim_frame *f)
{
	bool was_empty = !l->first;

	f->next = NULL;
	*l->last = f;
	l->last = &f->next;
	if (was_empty)
		sw_sim_put(&net->events, f->arrive_ns, SW_SIM_ARRIVE, l->index);
	if (!l->waiting)
		l->waiting = f;
	await_depart(net, l);
}

void sw_sim_send(
	struct sw_sim_net *net, struct sw_sim_link *l, struct sw_sim_frame *f)
{
	sw_sim_queued(net, l);
	if (l->is_down || !has_room(l, f->bytes)) {
		*(l->is_down ? &l->n.n_down : &l->n.n_dropped) += 1;
		sw_sim_frame_free(net, f);
		return;
	}
	if (!f->is_plain && is_to_mark(l)) {
		f->is_marked = true;
		l->n.n_marked++;
	}
	l->queued += f->bytes;
	l->n.most = sw_max64(l->n.most, l->queued);
	l->n.n_frames++;
	if (l->pool)
		l->pool->used += f->bytes;
	serialize(net, l, f);
	append(net, l, f);
}

/* --- forwarding --- */

/* Hash a frame's flow: a flow always takes the same one of several equal
 * paths. */
static uint32_t hash_of(const struct sw_sim_frame *f)
{
	uint64_t x = (uint64_t)f->from << 48 ^ (uint64_t)f->to << 32 ^
		     (uint64_t)f->from_udp << 16 ^ f->to_udp;

	return (uint32_t)(sw_random_next(&x) >> 32);
}

/* Forward a frame from switch @s. */
static void forward(struct sw_sim_net *net, uint32_t s, struct sw_sim_frame *f)
{
	uint32_t t = net->switch_of[f->to];
	const struct sw_sim_hops *h;
	struct sw_sim_link *l;

	if (s == t) {
		sw_sim_send(net, &net->links[net->down[f->to]], f);
		return;
	}
	h = &net->hops[s * net->n_switches + t];
	l = &net->links[net->hop_links[h->first + hash_of(f) % h->n]];
	/* If a link fails, routes change at once to another next hop, if there
	 * is one. */
	for (uint32_t i = 0; i < h->n && l->is_down; i++)
		l = &net->links[net->hop_links[h->first + i]];
	sw_sim_send(net, l, f);
}

static inline void reach(
	struct sw_sim_net *net, struct sw_sim_link *l, struct sw_sim_frame *f)
{
	if (net->tap)
		net->tap(net->tap_ctx, l, f);
	net->n_arrived++;
	if (l->to >= net->n_nodes)
		forward(net, l->to - net->n_nodes, f);
	else if (!f->is_other)
		net->take(&net->nodes[l->to], f);
	else {
		net->other(net->other_ctx, &net->nodes[l->to], f);
		sw_sim_frame_free(net, f);
	}
}

static struct sw_sim_frame *copy_of(
	struct sw_sim_net *net, const struct sw_sim_frame *f)
{
	struct sw_sim_frame *copy = sw_sim_frame_new(net, sizes[f->size]);

	memcpy(copy, f, sizeof(*f) + sizes[f->size]);
	return copy;
}

static void stray(
	struct sw_sim_net *net, struct sw_sim_link *l, struct sw_sim_frame *f)
{
	uint32_t i = 0;

	while (i < net->n_strays && net->strays[i])
		i++;
	if (i == net->n_strays) {
		net->n_strays = 2 * i + 16;
		net->strays = realloc(
			net->strays, net->n_strays * sizeof(*net->strays));
		net->stray_links = realloc(net->stray_links,
			net->n_strays * sizeof(*net->stray_links));
		if (!net->strays || !net->stray_links)
			abort();
		memset(&net->strays[i], 0,
			(net->n_strays - i) * sizeof(*net->strays));
	}
	net->strays[i] = f;
	net->stray_links[i] = l;
	sw_sim_put(&net->events,
		net->now_ns + sw_sim_below(&l->rng, l->faults->reorder_ns),
		SW_SIM_STRAY, i);
}

/* Let a frame meet the faults of its link, before it reaches the link's end. */
static void suffer(
	struct sw_sim_net *net, struct sw_sim_link *l, struct sw_sim_frame *f)
{
	const struct sw_sim_faults *x = l->faults;

	if (is_lost(l)) {
		l->n.n_lost++;
		sw_sim_frame_free(net, f);
		return;
	}
	if (!f->is_other && sw_sim_chance(&l->rng, x->corrupt))
		damage(l, f);
	if (sw_sim_chance(&l->rng, x->duplicate))
		reach(net, l, copy_of(net, f));
	if (sw_sim_chance(&l->rng, x->reorder))
		stray(net, l, f);
	else
		reach(net, l, f);
}

static void arrive(struct sw_sim_net *net, struct sw_sim_link *l)
{
	struct sw_sim_frame *f = l->first;

	sw_sim_queued(net, l); /* releases its bytes in the queue */
	l->first = f->next;
	if (l->first)
		sw_sim_put(&net->events, l->first->arrive_ns, SW_SIM_ARRIVE,
			l->index);
	else
		l->last = &l->first;
	if (l->faults)
		suffer(net, l, f);
	else
		reach(net, l, f);
}

static void depart(struct sw_sim_net *net, struct sw_sim_link *l)
{
	sw_sim_queued(net, l);
	l->is_departing = false;
	await_depart(net, l);
}

static void fire(struct sw_sim_net *net, uint32_t i)
{
	struct sw_sim_timer *t = &net->timers[i];
	uint64_t at = t->fire(t->ctx, net->now_ns);

	if (at != UINT64_MAX)
		sw_sim_put(&net->events, sw_max64(at, net->now_ns + 1),
			SW_SIM_TIMER, i);
}

void sw_sim_timer_add(struct sw_sim_net *net, uint64_t at_ns,
	uint64_t (*fire_it)(void *ctx, uint64_t now_ns), void *ctx)
{
	uint32_t i = net->n_timers++;

	if (i == SW_SIM_TIMERS)
		abort();
	net->timers[i] = (struct sw_sim_timer){.fire = fire_it, .ctx = ctx};
	sw_sim_put(&net->events, at_ns, SW_SIM_TIMER, i);
}

static void happen(struct sw_sim_net *net, const struct sw_sim_event *e)
{
	uint32_t i = sw_sim_index_of(e);
	struct sw_sim_frame *f;

	switch (sw_sim_kind_of(e)) {
	case SW_SIM_ARRIVE:
		arrive(net, &net->links[i]);
		break;
	case SW_SIM_DEPART:
		depart(net, &net->links[i]);
		break;
	case SW_SIM_STRAY:
		f = net->strays[i];
		net->strays[i] = NULL;
		reach(net, net->stray_links[i], f);
		break;
	case SW_SIM_WAKE:
		net->wake(&net->nodes[i]);
		break;
	case SW_SIM_TIMER:
		fire(net, i);
		break;
	}
}

/* Let nodes take the turns that are the next events. */
static void turn_ready(struct sw_sim_net *net)
{
	while (net->ready && !net->is_over) {
		struct sw_sim_node *n = net->ready;

		net->ready = NULL;
		net->n_events++;
		net->turn(n);
	}
}

void sw_sim_run(struct sw_sim_net *net, uint64_t until_ns)
{
	struct sw_sim_event e;

	net->is_running = true;
	while (!net->is_over && sw_sim_take(&net->events, until_ns, &e)) {
		net->now_ns = e.at_ns;
		net->n_events++;
		happen(net, &e);
		turn_ready(net);
	}
	net->is_running = false;
	if (!net->is_over)
		net->now_ns = sw_max64(net->now_ns, until_ns);
}

static void free_slabs(void *mem)
{
	while (mem) {
		void *next;

		memcpy(&next, mem, sizeof(next));
		free(mem);
		mem = next;
	}
}

void sw_sim_close(struct sw_sim_net *net)
{
	for (uint32_t i = 0; i < net->n_cores; i++) {
		sw_loopback_close(net->nodes[i].loopback);
		free(net->nodes[i].loop);
	}
	if (net->stall) {
		sw_sim_straggler_close(net->stall);
		sw_sim_straggler_close(net->stall_gap);
	}
	free(net->stall);
	free(net->stall_gap);
	free_slabs(net->slabs);
	sw_sim_events_close(&net->events);
	free(net->nodes);
	free(net->links);
	free(net->pools);
	free(net->switch_of);
	free(net->down);
	free(net->hops);
	free(net->hop_links);
	free(net->strays);
	free(net->stray_links);
	*net = (struct sw_sim_net){0};
}
