/* io.c - send and receive frames: the packet path of a port.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_udp.h>

#include "pmd/dpdk/frame.h"
#include "pmd/dpdk/gate.h"
#include "pmd/dpdk/io.h"

/* The counter of each verdict on a received frame. */
static const uint8_t verdict_counters[] = {
	[SW_OUTER_OURS] = SW_DPDK_I_rx_frames,
	[SW_OUTER_NOT_OURS] = SW_DPDK_I_rx_not_ours,
	[SW_OUTER_BAD_IP] = SW_DPDK_I_rx_bad_ip,
	[SW_OUTER_OPTIONS] = SW_DPDK_I_rx_options,
	[SW_OUTER_FRAGMENT] = SW_DPDK_I_rx_fragment,
	[SW_OUTER_SHORT] = SW_DPDK_I_rx_short,
	[SW_OUTER_BAD_UDP] = SW_DPDK_I_rx_bad_udp,
	[SW_OUTER_NEIGHBOUR] = SW_DPDK_I_rx_neighbour,
};

/* Send a request for @ip or, if @mac is not 0, the answer to @ip there. Drop
 * the frame if no buffer or ring slot is free, as if the network had lost
 * it. */
static void neigh_send(struct queue *q, struct sw_ip ip, uint64_t mac)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(q->copy_pool);
	struct sw_gate *g;
	uint16_t n = 0;

	if (!m)
		return;
	m->data_len = (uint16_t)sw_neigh_write(
		&q->port->me, rte_pktmbuf_mtod(m, uint8_t *), ip, mac);
	m->pkt_len = m->data_len;
	g = sw_gate_enter();
	if (port_is_up(q->port))
		n = rte_eth_tx_burst(q->port->eth_i, q->index, &m, 1);
	sw_gate_leave(g);
	COUNT(q, tx_neighbour, n);
	if (!n)
		rte_pktmbuf_free(m);
}

static void neigh_rx(struct queue *q, const struct sw_rx_frame *f)
{
	struct sw_ip ip;
	uint64_t mac;

	if (q->port->neigh &&
		sw_neigh_take(q->port->neigh, f->data, f->len, &ip, &mac))
		neigh_send(q, ip, mac);
}

static void neigh_ask(struct queue *q)
{
	uint32_t from = 0;

	for (;;) {
		struct sw_ip ip = sw_neigh_due(q->port->neigh, &from);

		if (sw_ip_is_none(ip))
			return;
		neigh_send(q, ip, 0);
	}
}

static struct sw_outer_done rx_done(const struct rte_mbuf *m)
{
	uint64_t sum = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
	uint64_t udp = m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;

	return (struct sw_outer_done){
		.is_tag_off = m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED,
		.vlan = m->vlan_tci,
		.is_sum_good = sum == RTE_MBUF_F_RX_IP_CKSUM_GOOD,
		.is_udp_bad = udp == RTE_MBUF_F_RX_L4_CKSUM_BAD};
}

/* Return true and describe @m in @out if @m is for us; otherwise count the
 * reason and return false. */
static bool rx_take(
	struct queue *q, const struct rte_mbuf *m, struct sw_rx_frame *out)
{
	enum sw_outer_verdict v;

	if (m->nb_segs != 1) {
		COUNT(q, rx_segments, 1);
		return false;
	}
	v = sw_outer_check(&q->port->me, rte_pktmbuf_mtod(m, const uint8_t *),
		m->data_len, rx_done(m), out);
	if (v != SW_OUTER_OURS) {
		count(q, verdict_counters[v], 1);
		if (v == SW_OUTER_NEIGHBOUR)
			neigh_rx(q, out);
		return false;
	}
	out->from.port_i = q->port->index;
	out->landed = q->index;
	out->is_misrouted = false;
	return true;
}

/* After a link goes down, held frames would be stale when it returns. */
void sw_io_drop_held(struct queue *q, uint32_t counter)
{
	rte_pktmbuf_free_bulk(q->tx_held, q->n_tx_held);
	count(q, counter, q->n_tx_held);
	q->n_tx_held = 0;
}

/* Allow the watch to replace the device and its buffers. Called when the link
 * is down and no received frame is held; drops frames held for sending. */
static void let_device_go(struct queue *q)
{
	if (!atomic_load_explicit(&q->is_in_use, memory_order_relaxed))
		return;
	sw_io_drop_held(q, SW_DPDK_I_tx_link_down);
	atomic_store_explicit(&q->is_in_use, false, memory_order_release);
}

static void io_rx_release(struct sw_port *base)
{
	struct queue *q = queue_of(base);

	rte_pktmbuf_free_bulk(q->rx_held, q->n_rx_held);
	q->n_rx_held = 0;
}

static uint32_t driver_rx(struct queue *q, struct rte_mbuf **in, uint32_t max)
{
	struct sw_gate *g = sw_gate_enter();
	bool is_up = link_look(q);
	uint32_t n = 0;

	if (is_up)
		n = rte_eth_rx_burst(
			q->port->eth_i, q->index, in, (uint16_t)max);
	sw_gate_leave(g);
	if (!is_up)
		let_device_go(q);
	return n;
}

static uint32_t io_rx(
	struct sw_port *base, struct sw_rx_frame *out, uint32_t max)
{
	struct queue *q = queue_of(base);
	struct rte_mbuf *in[SW_RX_BURST];
	uint32_t n_in, n = 0;
	uint64_t bytes = 0;

	if (q->n_rx_held)
		io_rx_release(base);
	if (q->port->neigh && q->is_up &&
		atomic_load_explicit(
			&q->port->neigh->is_due, memory_order_relaxed))
		neigh_ask(q);
	n_in = driver_rx(q, in, RTE_MIN(max, q->port->burst));
	for (uint32_t i = 0; i < n_in; i++) {
		if (!rx_take(q, in[i], &out[n])) {
			rte_pktmbuf_free(in[i]);
			continue;
		}
		bytes += in[i]->data_len;
		q->rx_held[n++] = in[i];
	}
	q->n_rx_held = n;
	if (n) {
		COUNT(q, rx_frames, n);
		COUNT(q, rx_bytes, bytes);
	}
	return n;
}

/* Count the first @n held frames, which the driver accepted. */
static void tx_count(struct queue *q, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += q->tx_bytes[i];
	COUNT(q, tx_frames, n);
	COUNT(q, tx_bytes, bytes);
}

static void io_tx_flush(struct sw_port *base)
{
	struct queue *q = queue_of(base);
	uint32_t n = q->n_tx_held, sent = 0;
	struct sw_gate *g;
	bool is_up;

	if (!n)
		return;
	g = sw_gate_enter();
	is_up = link_look(q);
	if (is_up)
		sent = rte_eth_tx_burst(
			q->port->eth_i, q->index, q->tx_held, (uint16_t)n);
	sw_gate_leave(g);
	if (!is_up) {
		sw_io_drop_held(q, SW_DPDK_I_tx_link_down);
		return;
	}
	tx_count(q, sent);
	q->n_tx_held = n - sent;
	if (!q->n_tx_held)
		return;
	COUNT(q, tx_full, 1);
	memmove(q->tx_held, q->tx_held + sent,
		q->n_tx_held * sizeof(q->tx_held[0]));
	memmove(q->tx_bytes, q->tx_bytes + sent,
		q->n_tx_held * sizeof(q->tx_bytes[0]));
}

static uint32_t io_tx_room(struct sw_port *base)
{
	struct queue *q = queue_of(base);

	/* Retry refused frames here, so that they do not wait for a later
	 * frame's flush. */
	if (q->n_tx_held)
		io_tx_flush(base);
	return q->is_up ? q->port->burst - q->n_tx_held : 0;
}

/* Buffers for the frames of a burst, allocated from one pool in one call. */
struct stock {
	struct rte_mbuf *m[2 * SW_RX_BURST];
	uint32_t n, n_used;
};

static void stock_take(struct stock *s, struct rte_mempool *pool, uint32_t n)
{
	s->n_used = 0;
	s->n = n && !rte_pktmbuf_alloc_bulk(pool, s->m, n) ? n : 0;
}

/* Return the next @n buffers of the stock, or NULL. */
static struct rte_mbuf **stock_next(struct stock *s, uint32_t n)
{
	if (s->n_used + n > s->n)
		return NULL;
	s->n_used += n;
	return &s->m[s->n_used - n];
}

static void stock_give_back(struct stock *s)
{
	if (s->n_used < s->n)
		rte_pktmbuf_free_bulk(s->m + s->n_used, s->n - s->n_used);
}

/* State of a burst while io_tx fills buffers. */
struct burst {
	struct stock gathered, copied;
	uint32_t n_stable, n_passing; /* gathered frames whose memory is stable,
					 or changes after tx */
	/* The previous frame and its headers, which often also fit the next
	 * frame; NULL: none. */
	const struct sw_tx_frame *last;
	const uint8_t *last_at;
};

/* Return whether to gather the payload of @f instead of copying it. Memory that
 * changes after tx may be gathered only if the driver copies it during the
 * call. */
static bool is_gathered(const struct queue *q, const struct sw_tx_frame *f)
{
	return q->port->can_gather && f->payload_len >= GATHER_MIN_BYTES &&
	       (f->is_stable || q->port->type->is_sync);
}

/* Build a frame of two segments: its headers, and the caller's memory. Returns
 * NULL if no buffers are left. */
static struct rte_mbuf *tx_gather(
	struct queue *q, struct burst *b, const struct sw_tx_frame *f)
{
	struct rte_mbuf **m = stock_next(&b->gathered, 2);

	if (!m)
		return NULL;
	b->n_stable += f->is_stable;
	b->n_passing += !f->is_stable;
	/* IO addresses are virtual addresses (--iova-mode=va). */
	rte_pktmbuf_attach_extbuf(m[1], (void *)(uintptr_t)f->payload,
		(rte_iova_t)(uintptr_t)f->payload, (uint16_t)f->payload_len,
		f->is_stable ? queue_refs(q) : &q->passing);
	m[1]->data_off = 0;
	m[1]->data_len = (uint16_t)f->payload_len;
	m[0]->data_len = (uint16_t)q->port->head_bytes;
	m[0]->pkt_len = q->port->head_bytes + f->payload_len;
	m[0]->nb_segs = 2;
	m[0]->next = m[1];
	return m[0];
}

static struct rte_mbuf *tx_copy(
	struct queue *q, struct stock *s, const struct sw_tx_frame *f)
{
	struct rte_mbuf **m = stock_next(s, 1);

	if (!m)
		return NULL;
	m[0]->data_len = (uint16_t)(q->port->head_bytes + f->payload_len);
	m[0]->pkt_len = m[0]->data_len;
	COUNT(q, tx_copied, f->payload_len >= GATHER_MIN_BYTES);
	if (f->payload_len)
		memcpy(rte_pktmbuf_mtod_offset(
			       m[0], uint8_t *, q->port->head_bytes),
			f->payload, f->payload_len);
	return m[0];
}

static bool has_same_outer(
	const struct sw_tx_frame *a, const struct sw_tx_frame *b)
{
	return sw_ip_is_same(a->to.ip, b->to.ip) && a->to.udp == b->to.udp &&
	       a->payload_len == b->payload_len && a->class == b->class &&
	       a->endpoint == b->endpoint && a->way == b->way;
}

/* Return the Ethernet address of the next hop of @f; 0 if unknown, which is
 * counted. */
static uint64_t next_hop(struct queue *q, const struct sw_tx_frame *f)
{
	uint64_t mac = q->port->neigh ? sw_neigh_find(q->port->neigh, f->to.ip)
				      : sw_mac_of_ip(f->to.ip);

	COUNT(q, tx_no_neighbour, !mac);
	return mac;
}

/* Write all headers of @f to @at. If @mac is 0, copy the outer headers of the
 * previous frame. */
static void write_heads(struct queue *q, struct burst *b,
	const struct sw_tx_frame *f, uint8_t *at, uint64_t mac)
{
	const struct sw_outer *me = &q->port->me;

	if (!mac)
		memcpy(at, b->last_at, me->n_bytes);
	else
		sw_outer_write(me, at, mac,
			(uint16_t)(f->endpoint + f->way * me->n_udp), &f->to,
			f->class, SW_HEAD_BYTES + f->payload_len);
	memcpy(at + me->n_bytes, f->head, SW_HEAD_BYTES);
	if (q->port->must_sum)
		sw_outer_sum(me, at, f->payload, f->payload_len);
	b->last = f;
	b->last_at = at;
}

static void tx_one(
	struct queue *q, struct burst *b, const struct sw_tx_frame *f)
{
	const struct port *p = q->port;
	bool is_same = b->last && has_same_outer(b->last, f);
	uint64_t mac = is_same ? 0 : next_hop(q, f);
	struct rte_mbuf *m;

	if (!is_same && !mac)
		return;
	m = is_gathered(q, f) ? tx_gather(q, b, f) : tx_copy(q, &b->copied, f);
	if (!m) {
		COUNT(q, tx_no_buffer, 1);
		return;
	}
	write_heads(q, b, f, rte_pktmbuf_mtod(m, uint8_t *), mac);
	m->ol_flags |= p->tx_flags;
	m->l2_len = p->me.n_bytes - p->me.n_inner;
	m->l3_len = p->me.n_inner - (uint32_t)sizeof(struct rte_udp_hdr);
	q->tx_held[q->n_tx_held] = m;
	q->tx_bytes[q->n_tx_held++] = (uint16_t)m->pkt_len;
}

/* Copy the payload of a held frame whose memory is about to change.  Returns
 * false if there is no buffer. */
static bool keep(struct queue *q, struct rte_mbuf *m)
{
	struct rte_mbuf *from = m->next, *to = rte_pktmbuf_alloc(q->copy_pool);

	if (!to)
		return false;
	to->data_len = from->data_len;
	memcpy(rte_pktmbuf_mtod(to, void *),
		rte_pktmbuf_mtod(from, const void *), from->data_len);
	m->next = to;
	rte_pktmbuf_free_seg(from);
	return true;
}

/* Flush, then copy each payload that the driver did not accept and whose memory
 * changes after tx. */
static void pass(struct queue *q)
{
	uint32_t n = 0;

	io_tx_flush(&q->base);
	for (uint32_t i = 0; i < q->n_tx_held; i++) {
		struct rte_mbuf *m = q->tx_held[i];

		if (m->next && m->next->shinfo == &q->passing) {
			COUNT(q, tx_copied, 1);
			if (!keep(q, m)) {
				COUNT(q, tx_no_buffer, 1);
				rte_pktmbuf_free(m);
				continue;
			}
		}
		q->tx_held[n] = m;
		q->tx_bytes[n++] = q->tx_bytes[i];
	}
	q->n_tx_held = n;
}

/* Return how many of @n frames to send: as many as there is room for, and none
 * from the first that is too long. Counts the rest as refused. */
static uint32_t tx_fit(
	struct queue *q, const struct sw_tx_frame *frames, uint32_t n)
{
	uint32_t room = q->port->burst - q->n_tx_held, fit = 0;

	while (fit < n && fit < room &&
		frames[fit].payload_len + q->port->head_bytes <=
			q->port->frame_max)
		fit++;
	COUNT(q, tx_refused, n - fit);
	return fit;
}

static void io_tx(
	struct sw_port *base, const struct sw_tx_frame *frames, uint32_t n)
{
	struct queue *q = queue_of(base);
	uint32_t fit = tx_fit(q, frames, n), n_gathered = 0;
	struct burst b;

	for (uint32_t i = 0; i < fit; i++)
		n_gathered += is_gathered(q, &frames[i]);
	b.last = NULL;
	b.n_stable = b.n_passing = 0;
	stock_take(&b.gathered, q->head_pool, 2 * n_gathered);
	stock_take(&b.copied, q->copy_pool, fit - n_gathered);
	for (uint32_t i = 0; i < fit; i++)
		tx_one(q, &b, &frames[i]);
	if (b.n_stable)
		rte_mbuf_ext_refcnt_update(queue_refs(q), (int16_t)b.n_stable);
	stock_give_back(&b.gathered);
	stock_give_back(&b.copied);
	if (b.n_passing) {
		rte_mbuf_ext_refcnt_update(&q->passing, (int16_t)b.n_passing);
		pass(q);
	}
}

const struct sw_port_ops sw_dpdk_ops = {
	.rx = io_rx,
	.rx_release = io_rx_release,
	.tx_room = io_tx_room,
	.tx = io_tx,
	.tx_flush = io_tx_flush,
};
