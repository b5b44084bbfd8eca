/* udp.c - frames over kernel datagram sockets: no DPDK, no privilege.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel owns addresses, routes, ARP and VLANs. Each pass through the
 * kernel is expensive, so several frames to one peer pass together: the kernel
 * (or a NIC) segments a large datagram into frames (UDP_SEGMENT, GSO) and joins
 * frames of one sender again (UDP_GRO). On the wire they are ordinary frames.
 *
 * Each endpoint has a socket, which its lcore's queue pair reads and writes.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#include "engine/wire/wire.h"
#include "pmd/dpdk/udp.h"
#include "pmd/dpdk/udp_address.h"

/* Frames to send singly after the kernel refused to segment a datagram. */
enum { SINGLES = 1024 };

/* --- receiving --- */

/* Read the ancillary data of a datagram: the length of the joined frames,
 * whether a switch has marked them, and how many frames were dropped at this
 * socket so far. */
static void read_notes(struct queue *q, struct msghdr *m)
{
	struct sw_udp_queue *u = q->udp;

	u->unit = u->len;
	u->is_marked = false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		uint32_t value;

		memcpy(&value, CMSG_DATA(c), sizeof(value));
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO &&
			value)
			u->unit = value;
		/* The TOS is one byte; its padding is readable, too. */
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
			(c->cmsg_level == IPPROTO_IPV6 &&
				c->cmsg_type == IPV6_TCLASS))
			u->is_marked = sw_outer_is_marked(value);
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL)
			continue;
		COUNT(q, rx_overrun, value - u->n_overruns[u->endpoint]);
		u->n_overruns[u->endpoint] = value;
	}
}

/* Read a datagram of @endpoint; returns false if none waits. */
static bool read_one(struct queue *q, uint16_t endpoint)
{
	struct sw_udp_queue *u = q->udp;
	_Alignas(struct cmsghdr) char notes[2 * CMSG_SPACE(sizeof(int)) +
					    CMSG_SPACE(sizeof(uint32_t))];
	struct iovec to = {u->in, sizeof(u->in)};
	union sw_udp_address from;
	struct msghdr m = {.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &to,
		.msg_iovlen = 1,
		.msg_control = notes,
		.msg_controllen = sizeof(notes)};
	ssize_t n = recvmsg(u->fds[endpoint], &m, MSG_DONTWAIT);

	if (n < 0)
		return false;
	u->at = 0;
	u->len = (uint32_t)n;
	u->endpoint = endpoint;
	u->from = (struct sw_path){.ip = sw_udp_address_ip(&from),
		.udp = ntohs(from.v4.sin_port), /* same place as v6.sin6_port */
		.port_i = q->port->index};
	read_notes(q, &m);
	COUNT(q, rx_reads, 1);
	COUNT(q, rx_short, n == 0);
	return true;
}

/* Read a datagram of any endpoint; endpoints take turns at being first. */
static bool read_any(struct queue *q)
{
	struct sw_udp_queue *u = q->udp;
	uint32_t n = q->port->params.n_udp;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t e = u->next;

		u->next = e + 1 < n ? e + 1 : 0;
		if (u->fds[e] >= 0 && read_one(q, (uint16_t)e))
			return true;
	}
	return false;
}

static uint32_t udp_rx(
	struct sw_port *base, struct sw_rx_frame *out, uint32_t max)
{
	struct queue *q = queue_of(base);
	struct sw_udp_queue *u = q->udp;
	uint32_t n = 0, bytes = 0;

	link_look(q);
	if (u->at == u->len && !read_any(q))
		return 0;
	for (; n < max && u->at < u->len;
		u->at += RTE_MIN(u->unit, u->len - u->at)) {
		uint32_t len = RTE_MIN(u->unit, u->len - u->at);

		if (len < SW_HEAD_BYTES) {
			COUNT(q, rx_short, 1);
			continue;
		}
		out[n++] = (struct sw_rx_frame){.data = u->in + u->at,
			.payload = u->in + u->at + SW_HEAD_BYTES,
			.len = len,
			.endpoint = u->endpoint,
			.landed = q->index,
			.is_marked = u->is_marked,
			.from = u->from};
		bytes += len + q->port->me.n_bytes;
	}
	COUNT(q, rx_frames, n);
	COUNT(q, rx_bytes, bytes);
	return n;
}

/* Do nothing: the datagram stays valid until the next one is read. */
static void udp_rx_release(struct sw_port *base)
{
	(void)base;
}

/* --- sending --- */

/* Return the @i-th held frame. */
static struct sw_udp_out *held(struct sw_udp_queue *u, uint32_t i)
{
	return &u->out[u->order[i]];
}

static uint8_t *slot_of(
	const struct sw_udp_queue *u, const struct sw_udp_out *o)
{
	return u->slots + (size_t)(o - u->out) * u->slot_bytes;
}

/* Free the slots of the @n held frames in @which (ascending), which were sent
 * or dropped. Their slot numbers move after the slots of frames still held. */
static void release(struct queue *q, const uint8_t *which, uint32_t n)
{
	struct sw_udp_queue *u = q->udp;
	uint8_t freed[SW_RX_BURST];
	uint32_t n_freed = 0, to = 0;

	for (uint32_t i = 0; i < q->n_tx_held; i++) {
		uint8_t slot = u->order[i];

		if (n_freed == n || which[n_freed] != i) {
			u->order[to++] = slot;
			continue;
		}
		if (u->out[slot].payload) /* all held frames are of this epoch
					   */
			rte_mbuf_ext_refcnt_update(queue_refs(q), -1);
		freed[n_freed++] = slot;
	}
	memcpy(u->order + to, freed, n);
	q->n_tx_held = to;
}

void sw_udp_drop_held(struct queue *q, uint32_t counter)
{
	uint8_t all[SW_RX_BURST];

	for (uint32_t i = 0; i < q->n_tx_held; i++)
		all[i] = (uint8_t)i;
	count(q, counter, q->n_tx_held);
	release(q, all, q->n_tx_held);
}

static bool is_same_way(const struct sw_udp_out *a, const struct sw_udp_out *b)
{
	return a->endpoint == b->endpoint && a->class == b->class &&
	       sw_ip_is_same(a->to.ip, b->to.ip) && a->to.udp == b->to.udp;
}

/* Choose the held frames of the next datagram: the first one and those with the
 * same path, all of equal length except the last, which may be shorter. A frame
 * that asks for an ACK also ends the datagram: if a queue drops a whole
 * datagram, the rest of the window still gets through. Keeps the frames' order;
 * returns their number. */
static uint32_t join(const struct queue *q, uint8_t which[SW_UDP_JOINED])
{
	struct sw_udp_queue *u = q->udp;
	const struct sw_udp_out *first = held(u, 0);
	uint32_t n = 1, most = SW_UDP_DATAGRAM / first->len;

	most = RTE_MIN(most, (uint32_t)SW_UDP_JOINED);
	which[0] = 0;
	if (u->n_single || first->asks)
		return 1;
	for (uint32_t i = 1; i < q->n_tx_held && n < most; i++) {
		const struct sw_udp_out *o = held(u, i);

		if (!is_same_way(o, first))
			continue;
		if (o->len > first->len)
			break;
		which[n++] = (uint8_t)i;
		if (o->len < first->len || o->asks)
			break;
	}
	return n;
}

static void note_add(struct msghdr *m, int level, int type, const void *value,
	uint32_t bytes)
{
	struct cmsghdr *c =
		(void *)((char *)m->msg_control + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(c), value, bytes);
	m->msg_controllen += CMSG_SPACE(bytes);
}

/* Send the held frames of @which as one datagram; returns as sendmsg. */
static ssize_t write_joined(struct queue *q, const uint8_t *which, uint32_t n)
{
	struct sw_udp_queue *u = q->udp;
	const struct sw_udp_out *first = held(u, 0);
	_Alignas(struct cmsghdr) char
		notes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t))];
	struct iovec from[2 * SW_UDP_JOINED];
	bool is_v6 = !sw_ip_is_v4(first->to.ip);
	union sw_udp_address to;
	struct msghdr m = {.msg_name = &to,
		.msg_namelen = sw_udp_address(&to, first->to.ip, first->to.udp),
		.msg_iov = from,
		.msg_control = notes};
	int tos = sw_outer_tos(first->class);
	uint16_t unit = (uint16_t)first->len;

	for (uint32_t i = 0; i < n; i++) {
		const struct sw_udp_out *o = held(u, which[i]);

		from[m.msg_iovlen++] = (struct iovec){slot_of(u, o),
			o->len - (o->payload ? o->payload_len : 0)};
		if (o->payload)
			from[m.msg_iovlen++] = (struct iovec){
				(void *)(uintptr_t)o->payload, o->payload_len};
	}
	note_add(&m, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP,
		is_v6 ? IPV6_TCLASS : IP_TOS, &tos, sizeof(tos));
	if (n > 1)
		note_add(&m, IPPROTO_UDP, UDP_SEGMENT, &unit, sizeof(unit));
	return sendmsg(u->fds[first->endpoint], &m, MSG_DONTWAIT);
}

/* Count and release the held frames of @which, which the kernel sent or, if
 * @err is set, refused for good. */
static void sent(struct queue *q, const uint8_t *which, uint32_t n, int err)
{
	struct sw_udp_queue *u = q->udp;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += held(u, which[i])->len + q->port->me.n_bytes;
	if (err) {
		atomic_store_explicit(
			&q->port->denied_errno, err, memory_order_relaxed);
		COUNT(q, tx_denied, n);
	} else {
		COUNT(q, tx_frames, n);
		COUNT(q, tx_bytes, bytes);
		COUNT(q, tx_writes, 1);
	}
	if (u->n_single)
		u->n_single--;
	release(q, which, n);
}

/* Send one datagram of held frames; returns false if the kernel accepts none
 * now. The kernel may refuse to segment, for IPsec or a device without
 * checksums: the next SINGLES frames are then sent singly before a retry. */
static bool write_some(struct queue *q)
{
	uint8_t which[SW_UDP_JOINED];
	uint32_t n = join(q, which);
	int err = write_joined(q, which, n) < 0 ? errno : 0;

	if (err == EAGAIN || err == ENOBUFS || err == EINTR) {
		COUNT(q, tx_full, 1);
		return false;
	}
	if (n > 1 && (err == EIO || err == EINVAL || err == EMSGSIZE ||
			     err == EOPNOTSUPP)) {
		COUNT(q, tx_uncut, 1);
		q->udp->n_single = SINGLES;
		return true;
	}
	sent(q, which, n, err);
	return true;
}

static void udp_tx_flush(struct sw_port *base)
{
	struct queue *q = queue_of(base);

	if (q->n_tx_held && !link_look(q))
		sw_udp_drop_held(q, SW_DPDK_I_tx_link_down);
	while (q->n_tx_held && write_some(q))
		;
}

static uint32_t udp_tx_room(struct sw_port *base)
{
	struct queue *q = queue_of(base);

	/* retry refused frames soon */
	if (q->n_tx_held)
		udp_tx_flush(base);
	return q->is_up ? q->port->burst - q->n_tx_held : 0;
}

/* Hold a frame. Returns whether its payload must be sent or copied before tx
 * returns. */
static bool hold(struct queue *q, const struct sw_tx_frame *f)
{
	struct sw_udp_queue *u = q->udp;
	bool is_copied = f->payload_len < GATHER_MIN_BYTES;
	struct sw_udp_out *o;
	uint8_t *slot;

	if (q->n_tx_held == q->port->burst || u->fds[f->endpoint] < 0 ||
		f->payload_len + FRAME_HEAD_BYTES > q->port->frame_max) {
		COUNT(q, tx_refused, 1);
		return false;
	}
	o = held(u, q->n_tx_held);
	slot = slot_of(u, o);
	*o = (struct sw_udp_out){.payload = is_copied ? NULL : f->payload,
		.payload_len = f->payload_len,
		.len = SW_HEAD_BYTES + f->payload_len,
		.to = {.ip = f->to.ip, .udp = f->to.udp},
		.endpoint = f->endpoint,
		.class = f->class,
		.asks = f->header.flags & SW_FLAG_ACK,
		.is_passing = !is_copied && !f->is_stable};
	memcpy(slot, f->head, SW_HEAD_BYTES);
	if (!is_copied)
		rte_mbuf_ext_refcnt_update(queue_refs(q), 1);
	else if (f->payload_len)
		memcpy(slot + SW_HEAD_BYTES, f->payload, f->payload_len);
	q->n_tx_held++;
	return o->is_passing;
}

/* Flush, then copy each payload that the kernel did not accept and whose memory
 * changes after tx. */
static void pass(struct queue *q)
{
	struct sw_udp_queue *u = q->udp;

	udp_tx_flush(&q->base);
	for (uint32_t i = 0; i < q->n_tx_held; i++) {
		struct sw_udp_out *o = held(u, i);

		if (!o->is_passing)
			continue;
		memcpy(slot_of(u, o) + SW_HEAD_BYTES, o->payload,
			o->payload_len);
		rte_mbuf_ext_refcnt_update(queue_refs(q), -1);
		o->payload = NULL;
		o->is_passing = false;
		COUNT(q, tx_copied, 1);
	}
}

static void udp_tx(
	struct sw_port *base, const struct sw_tx_frame *frames, uint32_t n)
{
	struct queue *q = queue_of(base);
	bool is_passing = false;

	for (uint32_t i = 0; i < n; i++)
		is_passing |= hold(q, &frames[i]);
	if (is_passing)
		pass(q);
}

const struct sw_port_ops sw_udp_ops = {
	.rx = udp_rx,
	.rx_release = udp_rx_release,
	.tx_room = udp_tx_room,
	.tx = udp_tx,
	.tx_flush = udp_tx_flush,
};
