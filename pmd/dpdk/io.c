/* io.c - frames in and out: the packet path of a port.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "pmd/dpdk/frame.h"
#include "pmd/dpdk/gate.h"
#include "pmd/dpdk/port_int.h"

/* Where a frame that is not for us is counted. */
static const uint8_t verdict_counters[] = {
	[SW_FRAME_OURS] = SW_DPDK_I_rx_frames,
	[SW_FRAME_NOT_OURS] = SW_DPDK_I_rx_not_ours,
	[SW_FRAME_BAD_IP] = SW_DPDK_I_rx_bad_ip,
	[SW_FRAME_OPTIONS] = SW_DPDK_I_rx_options,
	[SW_FRAME_FRAGMENT] = SW_DPDK_I_rx_fragment,
	[SW_FRAME_SHORT] = SW_DPDK_I_rx_short,
	[SW_FRAME_ARP] = SW_DPDK_I_rx_arp,
};

/* Send the ARP question or answer for @ip; lost if there is no room, as it may
 * be on the way too. */
static void arp_send(struct port *p, uint32_t ip, uint64_t mac)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->copy_pool);
	struct sw_gate *g;
	uint16_t n = 0;

	if (!m)
		return;
	m->data_len = (uint16_t)sw_arp_write(
		&p->me, rte_pktmbuf_mtod(m, uint8_t *), ip, mac);
	m->pkt_len = m->data_len;
	g = sw_gate_enter();
	if (port_is_up(p))
		n = rte_eth_tx_burst(p->eth_i, 0, &m, 1);
	sw_gate_leave(g);
	COUNT(p, tx_arp, n);
	if (!n)
		rte_pktmbuf_free(m);
}

static void arp_rx(struct port *p, const struct sw_rx_frame *f)
{
	uint32_t ip;
	uint64_t mac;

	if (p->arp && sw_arp_take(p->arp, f->data, f->len, &ip, &mac))
		arp_send(p, ip, mac);
}

static void arp_ask(struct port *p)
{
	uint32_t ip, from = 0;

	while ((ip = sw_arp_due(p->arp, &from)))
		arp_send(p, ip, 0);
}

static struct sw_outer_done rx_done(const struct rte_mbuf *m)
{
	uint64_t sum = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;

	return (struct sw_outer_done){
		.is_tag_off = m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED,
		.vlan = m->vlan_tci,
		.is_sum_good = sum == RTE_MBUF_F_RX_IP_CKSUM_GOOD};
}

/* Is @m for us?  Then describe it in @out, else count why not. */
static bool rx_take(
	struct port *p, const struct rte_mbuf *m, struct sw_rx_frame *out)
{
	enum sw_verdict v;

	if (m->nb_segs != 1) {
		COUNT(p, rx_segments, 1);
		return false;
	}
	v = sw_outer_check(&p->me, rte_pktmbuf_mtod(m, const uint8_t *),
		m->data_len, rx_done(m), out);
	if (v != SW_FRAME_OURS) {
		count(p, verdict_counters[v], 1);
		if (v == SW_FRAME_ARP)
			arp_rx(p, out);
		return false;
	}
	out->from.port_i = p->index;
	return true;
}

/* What is held for a link that went down is stale when it comes back. */
static void tx_drop_held(struct port *p, uint32_t counter)
{
	rte_pktmbuf_free_bulk(p->tx_held, p->n_tx_held);
	count(p, counter, p->n_tx_held);
	p->n_tx_held = 0;
}

/* Look at the link; from inside the gate, where it stays as seen or the driver
 * is left before its rings go. */
static bool link_look(struct port *p)
{
	bool is_up = port_is_up(p);

	if (is_up && !p->is_up) {
		COUNT(p, link_ups, 1);
		atomic_store_explicit(
			&p->is_in_use, true, memory_order_release);
	}
	p->is_up = is_up;
	return is_up;
}

/* The link is down and nothing received is held: with what was to be sent gone
 * too, the device may be made anew, and its buffers. */
static void let_device_go(struct port *p)
{
	if (!atomic_load_explicit(&p->is_in_use, memory_order_relaxed))
		return;
	tx_drop_held(p, SW_DPDK_I_tx_link_down);
	atomic_store_explicit(&p->is_in_use, false, memory_order_release);
}

static void io_rx_release(struct sw_port *base)
{
	struct port *p = port_of(base);

	rte_pktmbuf_free_bulk(p->rx_held, p->n_rx_held);
	p->n_rx_held = 0;
}

static uint32_t driver_rx(struct port *p, struct rte_mbuf **in, uint32_t max)
{
	struct sw_gate *g = sw_gate_enter();
	bool is_up = link_look(p);
	uint32_t n = 0;

	if (is_up)
		n = rte_eth_rx_burst(p->eth_i, 0, in, (uint16_t)max);
	sw_gate_leave(g);
	if (!is_up)
		let_device_go(p);
	return n;
}

static uint32_t io_rx(
	struct sw_port *base, struct sw_rx_frame *out, uint32_t max)
{
	struct port *p = port_of(base);
	struct rte_mbuf *in[SW_RX_BURST];
	uint32_t n_in, n = 0;
	uint64_t bytes = 0;

	if (p->n_rx_held)
		io_rx_release(base);
	if (p->arp && p->is_up &&
		atomic_load_explicit(&p->arp->is_due, memory_order_relaxed))
		arp_ask(p);
	n_in = driver_rx(p, in, RTE_MIN(max, p->burst));
	for (uint32_t i = 0; i < n_in; i++) {
		if (!rx_take(p, in[i], &out[n])) {
			rte_pktmbuf_free(in[i]);
			continue;
		}
		bytes += in[i]->data_len;
		p->rx_held[n++] = in[i];
	}
	p->n_rx_held = n;
	if (n) {
		COUNT(p, rx_frames, n);
		COUNT(p, rx_bytes, bytes);
	}
	return n;
}

/* @p's counters of the first @n held frames, which the driver took. */
static void tx_count(struct port *p, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += p->tx_bytes[i];
	COUNT(p, tx_frames, n);
	COUNT(p, tx_bytes, bytes);
}

static void io_tx_flush(struct sw_port *base)
{
	struct port *p = port_of(base);
	uint32_t n = p->n_tx_held, sent = 0;
	struct sw_gate *g;
	bool is_up;

	if (!n)
		return;
	g = sw_gate_enter();
	is_up = link_look(p);
	if (is_up)
		sent = rte_eth_tx_burst(p->eth_i, 0, p->tx_held, (uint16_t)n);
	sw_gate_leave(g);
	if (!is_up) {
		tx_drop_held(p, SW_DPDK_I_tx_link_down);
		return;
	}
	tx_count(p, sent);
	p->n_tx_held = n - sent;
	if (!p->n_tx_held)
		return;
	COUNT(p, tx_full, 1);
	memmove(p->tx_held, p->tx_held + sent,
		p->n_tx_held * sizeof(p->tx_held[0]));
	memmove(p->tx_bytes, p->tx_bytes + sent,
		p->n_tx_held * sizeof(p->tx_bytes[0]));
}

bool sw_dpdk_port_let_go(struct sw_port *base)
{
	if (!sw_dpdk_port_is_drained(base))
		tx_drop_held(port_of(base), SW_DPDK_I_tx_let_go);
	return sw_dpdk_port_is_drained(base);
}

static uint32_t io_tx_room(struct sw_port *base)
{
	struct port *p = port_of(base);

	/* frames that the driver refused come first, and must not grow old
	 * because there is nothing behind them */
	if (p->n_tx_held)
		io_tx_flush(base);
	return p->is_up ? p->burst - p->n_tx_held : 0;
}

/* Header in one segment, the caller's memory as the other. */
static struct rte_mbuf *tx_gather(struct port *p, const struct sw_tx_frame *f)
{
	struct rte_mbuf *m[2];

	if (rte_pktmbuf_alloc_bulk(p->head_pool, m, 2))
		return NULL;
	/* Drivers that do DMA run with IO addresses equal to ours. */
	rte_pktmbuf_attach_extbuf(m[1], (void *)(uintptr_t)f->payload,
		(rte_iova_t)(uintptr_t)f->payload, (uint16_t)f->payload_len,
		&p->shinfo);
	rte_mbuf_ext_refcnt_update(&p->shinfo, 1);
	m[1]->data_off = 0;
	m[1]->data_len = (uint16_t)f->payload_len;
	m[0]->data_len = (uint16_t)p->head_bytes;
	m[0]->pkt_len = p->head_bytes + f->payload_len;
	m[0]->nb_segs = 2;
	m[0]->next = m[1];
	return m[0];
}

static struct rte_mbuf *tx_copy(struct port *p, const struct sw_tx_frame *f)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->copy_pool);

	if (!m)
		return NULL;
	m->data_len = (uint16_t)(p->head_bytes + f->payload_len);
	m->pkt_len = m->data_len;
	if (f->payload_len)
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, p->head_bytes),
			f->payload, f->payload_len);
	return m;
}

/* @f as a frame of the driver's, without its headers. */
static struct rte_mbuf *tx_make(struct port *p, const struct sw_tx_frame *f)
{
	struct rte_mbuf *m;

	if (f->is_stable && p->can_gather && f->payload_len >= GATHER_MIN_BYTES)
		m = tx_gather(p, f);
	else
		m = tx_copy(p, f);
	if (!m)
		COUNT(p, tx_no_buffer, 1);
	return m;
}

static void io_tx(struct sw_port *base, const struct sw_tx_frame *f)
{
	struct port *p = port_of(base);
	struct rte_mbuf *m;
	uint64_t mac;
	uint8_t *at;

	if (p->n_tx_held == p->burst ||
		f->payload_len + p->head_bytes > p->frame_max) {
		COUNT(p, tx_refused, 1);
		return;
	}
	mac = p->arp ? sw_arp_find(p->arp, f->to.ip) : sw_mac_of_ip(f->to.ip);
	if (!mac) {
		COUNT(p, tx_no_arp, 1);
		return;
	}
	m = tx_make(p, f);
	if (!m)
		return;
	at = rte_pktmbuf_mtod(m, uint8_t *);
	sw_outer_write(&p->me, at, mac, f->endpoint, &f->to, f->class,
		SW_HEAD_BYTES + f->payload_len);
	memcpy(at + p->me.n_bytes, f->head, SW_HEAD_BYTES);
	m->ol_flags |= p->tx_flags;
	m->l2_len = p->me.n_bytes - 28;
	m->l3_len = 20;
	p->tx_held[p->n_tx_held] = m;
	p->tx_bytes[p->n_tx_held++] = (uint16_t)m->pkt_len;
}

const struct sw_port_ops sw_dpdk_ops = {
	.rx = io_rx,
	.rx_release = io_rx_release,
	.tx_room = io_tx_room,
	.tx = io_tx,
	.tx_flush = io_tx_flush,
};
