/* udp_open.c - the sockets of a port of type udp: open, close, buffers.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "engine/base/error.h"
#include "engine/wire/wire.h"
#include "pmd/dpdk/steer.h"
#include "pmd/dpdk/udp.h"
#include "pmd/dpdk/udp_address.h"
#include "pmd/dpdk/udp_need.h"

enum {
	/* Default burst, in full datagrams. */
	DATAGRAMS = 2,
};

/* Request a receive buffer of @bytes, above the machine's limit if we have the
 * right to. Returns the bytes granted. The kernel doubles them for its own
 * use. */
static uint32_t buffers_set(int fd, uint32_t bytes)
{
	int want = (int)bytes, sent = SW_UDP_SEND_BYTES, got = 0;
	socklen_t n = sizeof(got);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &sent, sizeof(sent)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sent, sizeof(sent));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &n))
		return 0;
	return (uint32_t)got / 2;
}

/* Forbid fragmentation and ignore ICMP's path MTU, which anyone may forge: the
 * JOIN probes sizes instead. */
static int options_set(int fd, bool is_v6)
{
	int on = 1, probe = is_v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;

	if (setsockopt(fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP,
		    is_v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &probe,
		    sizeof(probe)))
		return -1;
	setsockopt(fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP,
		is_v6 ? IPV6_RECVTCLASS : IP_RECVTOS, &on, sizeof(on));
	/* Older kernels support neither: frames then arrive singly, and drops
	 * are not counted. */
	setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
	return 0;
}

static int refused(const struct port *p, uint16_t udp, const char *what)
{
	char at[SW_IP_PORT_TEXT];
	int cause = errno, err = cause == EADDRINUSE ? SW_EBUSY : SW_EIO;

	sw_log(p->log, SW_LOG_ERROR, "port %s: a socket for %s: %s: %s",
		p->params.name, sw_ip_port_text(p->params.ip, udp, at), what,
		strerror(cause));
	return err;
}

static int socket_open(struct queue *q, uint32_t endpoint)
{
	const struct sw_dpdk_port_params *c = &q->port->params;
	uint16_t udp = (uint16_t)(c->udp + endpoint);
	bool is_v6 = !sw_ip_is_v4(c->ip);
	union sw_udp_address at;
	socklen_t n = sw_udp_address(&at, c->ip, udp);
	int fd = socket(is_v6 ? AF_INET6 : AF_INET,
		SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	q->udp->fds[endpoint] = fd;
	if (fd < 0)
		return refused(q->port, udp, "the kernel gives none");
	if (options_set(fd, is_v6))
		return refused(q->port, udp, "IP_MTU_DISCOVER");
	if (bind(fd, &at.any, n))
		return refused(q->port, udp, "bind");
	return 0;
}

/* Return the credit of a full frame, in quanta. */
static uint32_t quanta_of(const struct port *p)
{
	return sw_quanta(p->params.payload_bytes);
}

/* Set the buffers of all sockets of @u, and record how much payload fits within
 * the machine's limit. Relies on half of the kernel's memory, because the
 * kernel frees some of it late. */
static void buffers_make(struct port *p, const struct sw_udp_queue *u)
{
	uint32_t quanta = quanta_of(p),
		 slots = sw_udp_slots(p->params.ring_slots,
			 p->params.queue_bytes, p->params.payload_bytes);
	uint32_t charge = sw_udp_charge(p->params.payload_bytes, p->frame_max);
	uint32_t got = slots * charge;

	p->rmem_bytes = got;
	for (uint32_t e = 0; e < p->params.n_udp; e++)
		if (u->fds[e] >= 0)
			got = RTE_MIN(got, buffers_set(u->fds[e], got));
	p->holds_bytes = RTE_MIN(p->holds_bytes ? p->holds_bytes : UINT32_MAX,
		RTE_MAX(got / charge, 1u) * quanta * SW_QUANTUM);
	if (got == slots * charge)
		return;
	sw_log(p->log, SW_LOG_WARN,
		"port %s: its sockets hold only %u of %u frames, so less is "
		"sent to it at once: set net.core.rmem_max to %u (sysctl)",
		p->params.name, got / charge, slots, p->rmem_bytes);
}

static uint32_t slot_bytes(const struct sw_dpdk_port_params *p)
{
	return RTE_ALIGN_CEIL(FRAME_REST_BYTES + p->payload_bytes, 64u);
}

static uint64_t udp_bytes(const struct sw_dpdk_port_params *p)
{
	return (uint64_t)p->n_queues *
	       (sizeof(struct sw_udp_queue) +
		       (uint64_t)SW_RX_BURST * slot_bytes(p));
}

static int queue_open(struct queue *q)
{
	struct port *p = q->port;
	struct sw_udp_queue *u = rte_zmalloc("udp", sizeof(*u), 64);
	int err = 0;

	if (!u)
		return SW_ENOMEM;
	q->udp = u;
	u->slot_bytes = slot_bytes(&p->params);
	for (uint32_t i = 0; i < SW_RX_BURST; i++)
		u->order[i] = (uint8_t)i;
	for (uint32_t e = 0; e < SW_DPDK_ENDPOINTS; e++)
		u->fds[e] = -1;
	u->slots = rte_malloc("udp", SW_RX_BURST * u->slot_bytes, 64);
	if (!u->slots)
		return SW_ENOMEM;
	for (uint32_t e = 0; e < p->params.n_udp && !err; e++)
		if (sw_dpdk_queue_of(p, e) == q->index)
			err = socket_open(q, e);
	if (err)
		return err;
	buffers_make(p, u);
	return 0;
}

static void queue_close(struct queue *q)
{
	struct sw_udp_queue *u = q->udp;

	if (!u)
		return;
	for (uint32_t e = 0; e < SW_DPDK_ENDPOINTS; e++)
		if (u->fds[e] >= 0)
			close(u->fds[e]);
	rte_free(u->slots);
	rte_free(u);
	q->udp = NULL;
	q->n_tx_held = 0;
}

uint32_t sw_udp_fds(const struct queue *q, int fds[], uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t e = 0; e < q->port->params.n_udp; e++)
		if (q->udp->fds[e] >= 0 && n++ < max)
			fds[n - 1] = q->udp->fds[e];
	return n;
}

void sw_udp_plan(struct port *p)
{
	uint32_t frame = SW_HEAD_BYTES + p->params.payload_bytes;

	p->n_queues = p->params.n_queues;
	p->steering = p->n_queues > 1   ? SW_STEER_RULES
		      : p->n_lcores > 1 ? SW_STEER_HANDOFF
					: SW_STEER_ONE;
	if (!p->params.burst)
		p->burst =
			(uint16_t)RTE_MIN(DATAGRAMS * (SW_UDP_DATAGRAM / frame),
				(uint32_t)SW_RX_BURST);
}

int sw_udp_open(struct port *p)
{
	int err = 0;

	/* only for counters: the kernel writes the headers */
	p->me.n_bytes =
		SW_OUTER_BYTES + (sw_ip_is_v4(p->params.ip) ? 0 : SW_V6_MORE);
	for (uint32_t i = 0; i < p->n_queues && !err; i++) {
		p->queues[i]->base.ops = &sw_udp_ops;
		err = queue_open(p->queues[i]);
	}
	if (err)
		return err;
	sw_log(p->log, SW_LOG_INFO,
		"port %s: udp on %s, %u queue pair%s, ring %u, burst %u; %llu "
		"KiB",
		p->params.name, p->params.device, p->n_queues,
		p->n_queues == 1 ? "" : "s", p->params.ring_slots, p->burst,
		(unsigned long long)udp_bytes(&p->params) >> 10);
	return 0;
}

void sw_udp_close(struct port *p)
{
	for (uint32_t i = 0; i < p->n_queues; i++) {
		if (p->queues[i])
			queue_close(p->queues[i]);
	}
}

const struct port_type sw_dpdk_udp = {
	.name = "udp",
	.ring_slots = 256,
	.is_sync = true,
	.is_kernel = true,
	.bytes = udp_bytes,
};
