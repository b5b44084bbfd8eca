/* road.c - deliver a frame between two nodes, with all faults.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/params.h"
#include "engine/wire/wire.h"
#include "sum/sum.h"
#include "test/sim/net.h"
#include "test/support/header.h"

static void damage(struct sim_net *net, struct sim_frame *f)
{
	const struct sim_faults *x = &net->faults;

	if (sim_chance(&net->rng, x->corrupt)) {
		uint64_t bit = sim_below(&net->rng, 8ULL * f->len);

		f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	if (sim_chance(&net->rng, x->truncate))
		f->len = (uint32_t)sim_below(&net->rng, f->len);
}

static struct sim_frame *twin_of(const struct sim_frame *f)
{
	struct sim_frame *twin = malloc(sizeof(*twin) + f->len);

	if (!twin)
		abort();
	memcpy(twin, f, sizeof(*twin) + f->len);
	return twin;
}

static void put_twin(
	struct sim_net *net, const struct sim_frame *f, uint64_t delay_ns)
{
	struct sim_frame *twin = twin_of(f);

	twin->at_ns = f->at_ns + delay_ns;
	sim_heap_put(net, twin);
}

/* Make an ACK acknowledge everything up to its largest number. */
static void falsify(
	struct sim_net *net, struct sim_frame *f, struct sw_header *h)
{
	uint8_t *payload = f->bytes + SW_HEAD_BYTES;
	struct sw_sack k;

	for (uint32_t at = 0; at < h->payload_len; at += sizeof(k)) {
		memcpy(&k, payload + at, sizeof(k));
		k.largest += sim_below(&net->rng, 3);
		memset(k.bits, 0xff, sizeof(k.bits));
		memcpy(payload + at, &k, sizeof(k));
	}
	h->payload_crc = sw_crc32c(0, payload, h->payload_len);
	header_encode(h, f->bytes);
	net->n_false_acks++;
}

/* Switch the sender's link between good and bad; return whether it is bad. */
static bool is_in_burst(struct sim_net *net, struct sim_node *n)
{
	const struct sim_faults *x = &net->faults;

	if (!x->burst_enter)
		return false;
	if (sim_chance(&net->rng, x->burst_enter))
		n->bad_until_ns =
			net->now_ns + sim_below(&net->rng, x->burst_ns);
	return net->now_ns < n->bad_until_ns &&
	       sim_chance(&net->rng, x->burst_loss);
}

static bool is_cut(const struct sim_net *net, const struct sim_frame *f)
{
	const struct sim_faults *x = &net->faults;

	return (x->cut_from >> f->from % 32 & 1) &&
	       (x->cut_to >> f->to % 32 & 1) && net->now_ns >= x->cut_at_ns &&
	       net->now_ns < x->cut_until_ns;
}

static bool is_lost_by_type(struct sim_net *net, const struct sw_header *h)
{
	const struct sim_faults *x = &net->faults;

	if (!(x->type_mask >> h->type & 1))
		return false;
	if (x->last_only && net->n_chunks &&
		h->chunk + 1 != net->n_chunks(net->ctx, h->key))
		return false;
	return sim_chance(&net->rng, x->type_loss);
}

static enum sim_fate judge(struct sim_net *net, struct sim_frame *f)
{
	struct sim_node *from = &net->nodes[f->from];
	enum sim_fate fate = SIM_PASS;
	struct sw_header h;
	bool is_ours = header_decode(f->bytes, f->len, &h) == HEADER_GOOD ||
		       header_read(f->bytes, f->len, &h);

	if (net->hook)
		fate = net->hook(net->hook_ctx, f);
	if (fate != SIM_PASS)
		return fate;
	if (f->to >= net->n_nodes || is_in_burst(net, from) || is_cut(net, f) ||
		sim_chance(&net->rng, net->faults.loss) ||
		(is_ours && is_lost_by_type(net, &h)))
		return SIM_LOST;
	if (is_ours && h.type == SW_ACK &&
		sim_chance(&net->rng, net->faults.false_ack))
		falsify(net, f, &h);
	return SIM_PASS;
}

static bool is_too_long(const struct sim_net *net, const struct sim_frame *f)
{
	const struct sim_narrow *x = &net->narrow;

	return x->max_len && f->len > x->max_len &&
	       x->from_mask >> f->from % 64 & 1 && x->to_mask >> f->to % 64 & 1;
}

/* The trunk between the two nodes, or NULL. */
static struct sim_trunk *trunk_of(
	struct sim_net *net, const struct sim_frame *f)
{
	for (uint32_t i = 0; i < SIM_TRUNKS; i++) {
		struct sim_trunk *t = &net->trunks[i];

		if (t->rate_bits_s && t->from_mask >> f->from % 64 & 1 &&
			t->to_mask >> f->to % 64 & 1)
			return t;
	}
	return NULL;
}

/* Queue the frame at the trunk; set *@at_ns to when it leaves. Return false if
 * the queue is full. */
static bool pass_trunk(
	struct sim_trunk *t, struct sim_frame *f, uint64_t *at_ns)
{
	uint64_t busy = sw_max64(t->busy_until_ns, *at_ns);
	uint64_t queued = (busy - *at_ns) * t->rate_bits_s / 8 / SW_S;

	t->n_data += sw_type_is_data(f->bytes[3]);
	t->max_queued = sw_max64(t->max_queued, queued);
	if (queued + f->len + SIM_WIRE_BYTES > t->queue_bytes) {
		t->n_dropped++;
		return false;
	}
	f->is_marked = t->mark_bytes && queued + 1 >= t->mark_bytes;
	t->n_marked += f->is_marked;
	t->busy_until_ns =
		busy + (f->len + SIM_WIRE_BYTES) * 8 * SW_S / t->rate_bits_s;
	*at_ns = t->busy_until_ns;
	return true;
}

/* Pass the trunk, then the switch's queue for the receiver; return false if
 * either drops the frame. */
static bool pass_switch(struct sim_net *net, struct sim_frame *f)
{
	struct sim_node *to = &net->nodes[f->to];
	struct sim_trunk *trunk = trunk_of(net, f);
	uint64_t at = net->now_ns + net->latency_ns;
	uint64_t busy;

	if (is_too_long(net, f) || (trunk && !pass_trunk(trunk, f, &at)))
		return false;
	busy = sw_max64(to->queued_until_ns, at);
	if (net->faults.queue_bytes &&
		(busy - at) * to->rate_bits_s / 8 / SW_S + f->len >
			net->faults.queue_bytes)
		return false;
	to->queued_until_ns = busy + (f->len + SIM_WIRE_BYTES + 0ULL) * 8 *
					     SW_S / to->rate_bits_s;
	f->at_ns = net->faults.queue_bytes ? to->queued_until_ns : at;
	return true;
}

static void note(
	struct sim_net *net, const struct sim_frame *f, enum sim_fate fate)
{
	struct sim_line *l = &net->story[net->n_story++ % SIM_STORY];

	*l = (struct sim_line){.at_ns = net->now_ns,
		.from = f->from,
		.to = f->to,
		.len = f->len,
		.fate = fate};
	memcpy(l->head, f->bytes, sizeof(l->head));
}

static void travel(struct sim_net *net, struct sim_frame *f)
{
	const struct sim_faults *x = &net->faults;

	f->at_ns += sim_below(&net->rng, x->jitter_ns);
	if (sim_chance(&net->rng, x->dup))
		put_twin(net, f, sim_below(&net->rng, SW_MS));
	if (sim_chance(&net->rng, x->late))
		put_twin(net, f, sim_below(&net->rng, x->late_ns));
	damage(net, f);
	sim_heap_put(net, f);
}

void sim_road_depart(struct sim_net *net, struct sim_frame *f)
{
	enum sim_fate fate;

	f->is_leaving = false;
	if (f->payload)
		memcpy(f->bytes + SW_HEAD_BYTES, f->payload,
			f->len - SW_HEAD_BYTES);
	f->payload = NULL;
	fate = judge(net, f);
	if (fate == SIM_PASS && !pass_switch(net, f)) {
		fate = SIM_LOST;
		net->n_overflown[f->bytes[3] % SW_N_TYPES]++;
	}
	net->n_frames++;
	net->n_lost += fate == SIM_LOST;
	note(net, f, fate);
	if (fate == SIM_PASS)
		travel(net, f);
	else if (fate == SIM_HOLD && net->n_held < SIM_HELD)
		net->held[net->n_held++] = f;
	else
		free(f);
}

void sim_net_replay(struct sim_net *net, const struct sim_frame *f)
{
	struct sim_frame *twin = twin_of(f);

	twin->at_ns = net->now_ns + net->latency_ns;
	sim_heap_put(net, twin);
}

void sim_net_release(struct sim_net *net, uint32_t i)
{
	struct sim_frame *f = net->held[i];

	net->n_held--;
	memmove(&net->held[i], &net->held[i + 1],
		(net->n_held - i) * sizeof(net->held[0]));
	f->at_ns = net->now_ns + net->latency_ns;
	sim_heap_put(net, f);
}
