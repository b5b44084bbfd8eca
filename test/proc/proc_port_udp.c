/* proc_port_udp.c - a port over the kernel's sockets, and a plain socket.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The plain socket shows what is on the wire. Both are on lo, at addresses of
 * this process alone. Argument: the name of a single case to run.
 */
#include "proc_port_node.h"
#include "engine/wire/wire.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	FULL = SW_HEAD_BYTES + SW_PAYLOAD_MAX,
	FIT = 7, /* number of full frames in a datagram */
	ENDPOINTS = 3,
	ASKING = 40,
	WAIT_MS = WAIT_S * 1000,
};

/* Return 127.x.y.@host, with x and y from the pid. */
static uint32_t ip_of(uint32_t host)
{
	return 127u << 24 | ((uint32_t)getpid() & 0xffff) << 8 | host;
}

/* Open a plain socket at @host. */
static int plain(uint32_t host, uint16_t udp)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(udp),
		.sin_addr.s_addr = htonl(ip_of(host))};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), room = 4 << 20;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	need(!bind(fd, (struct sockaddr *)&at, sizeof(at)));
	return fd;
}

static void params_udp(struct node *n)
{
	n->port.type = SW_DPDK_UDP;
	n->port.ip = sw_ip_v4(ip_of(1));
	n->port.n_udp = ENDPOINTS;
	n->port.prefix_bits = 8;
}

static void up(struct node *n)
{
	struct sw_rx_frame in[SW_RX_BURST];

	params_udp(n);
	node_up(n);
	need(n->p->ops->rx(n->p, in, SW_RX_BURST) == 0); /* sees the link */
	need(!strcmp(n->p->name, "p0") && n->p->max_payload == SW_PAYLOAD_MAX);
}

/* Byte 4 is the flags: from ASKING on, each fourth frame asks for an ACK. */
static uint8_t byte_of(uint32_t frame, uint32_t at)
{
	if (at == 4)
		return frame >= ASKING && frame % 4 == 3 ? SW_FLAG_ACK : 0;
	return (uint8_t)(frame * 151 + at * 7 + (at >> 8));
}

/* Send one frame; every byte depends on its number. */
static void tx(struct node *n, uint32_t i, uint32_t payload_len, bool is_stable,
	struct sw_path to, uint8_t class)
{
	static uint8_t memory[SW_RX_BURST][SW_PAYLOAD_MAX], passing[FULL];
	uint8_t *payload = is_stable ? memory[i] : passing;
	struct sw_tx_frame f = {.payload = payload,
		.payload_len = payload_len,
		.is_stable = is_stable,
		.class = class,
		.endpoint = 1,
		.to = to};

	for (uint32_t k = 0; k < SW_HEAD_BYTES; k++)
		f.head[k] = byte_of(i, k);
	for (uint32_t k = 0; k < payload_len; k++)
		payload[k] = byte_of(i, SW_HEAD_BYTES + k);
	n->p->ops->tx(n->p, &f, 1);
	memset(passing, 0, sizeof(passing)); /* tx copied or sent it */
}

static bool is_frame(const uint8_t *at, uint32_t len, uint32_t i)
{
	for (uint32_t k = 0; k < len; k++)
		if (at[k] != byte_of(i, k))
			return false;
	return true;
}

/* Check that the next datagram at @fd is frame @i of @len bytes, from endpoint
 * 1. */
static void need_datagram(int fd, uint32_t len, uint32_t i)
{
	static uint8_t in[65536];
	struct sockaddr_in from = {0};
	socklen_t n_from = sizeof(from);
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	need(poll(&wait, 1, WAIT_MS) == 1);
	need(recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from,
		     &n_from) == (ssize_t)len);
	need(is_frame(in, len, i));
	need(ntohs(from.sin_port) == UDP + 1);
	need(ntohl(from.sin_addr.s_addr) == ip_of(1));
}

static uint64_t counter(const struct node *n, uint32_t i)
{
	struct sw_dpdk_port_stats st;
	uint64_t all[SW_DPDK_N_COUNTERS];

	sw_dpdk_port_stats_get(n->p, &st);
	memcpy(all, &st, sizeof(all));
	return all[i];
}

/* Frames of one peer, class and length leave as one datagram, which looks like
 * single ones on the wire. */
static void joined_run(struct node *n)
{
	int a = plain(2, UDP), b = plain(3, UDP + 9);
	struct sw_path to_a = {.ip = sw_ip_v4(ip_of(2)), .udp = UDP};
	struct sw_path to_b = {.ip = sw_ip_v4(ip_of(3)), .udp = UDP + 9};
	uint32_t i = 0;

	n->port.burst = 32;
	up(n);
	for (; i < 10; i++) /* one full datagram, and 3 */
		tx(n, i, SW_PAYLOAD_MAX, true, to_a, 5);
	tx(n, i++, 100, false, to_a, 5); /* joins them as the last one */
	tx(n, i++, 100, true, to_a, 5);  /* starts a new datagram and ends it */
	tx(n, i++, 8000, true, to_a, 5);
	tx(n, i++, 0, true, to_a, 5);   /* joins it: a header alone */
	tx(n, i++, 300, true, to_a, 4); /* another class */
	tx(n, i++, 300, true, to_b, 4); /* alternates with another peer */
	tx(n, i++, 300, true, to_a, 4);
	tx(n, i++, 300, true, to_b, 4);
	need(!sw_dpdk_port_is_drained(n->p));
	n->p->ops->tx_flush(n->p);
	need(sw_dpdk_port_is_drained(n->p));
	for (i = 0; i < 10; i++)
		need_datagram(a, FULL, i);
	need_datagram(a, SW_HEAD_BYTES + 100, i++);
	need_datagram(a, SW_HEAD_BYTES + 100, i++);
	need_datagram(a, SW_HEAD_BYTES + 8000, i++);
	need_datagram(a, SW_HEAD_BYTES, i++);
	need_datagram(a, SW_HEAD_BYTES + 300, i++);
	need_datagram(b, SW_HEAD_BYTES + 300, i++);
	need_datagram(a, SW_HEAD_BYTES + 300, i++);
	need_datagram(b, SW_HEAD_BYTES + 300, i++);
	need(counter(n, SW_DPDK_I_tx_frames) == i);
	need(counter(n, SW_DPDK_I_tx_writes) == 6);
	need(counter(n, SW_DPDK_I_tx_bytes) ==
		10 * (42 + FULL) + 8 * (42 + SW_HEAD_BYTES) + 8000 + 2 * 100 +
			4 * 300);
	node_down(n);
}

/* A queue on the path may drop a whole datagram, so a frame that asks for an
 * ACK ends it. */
static void asking_run(struct node *n)
{
	struct sw_path to = {.ip = sw_ip_v4(ip_of(2)), .udp = UDP};
	int a = plain(2, UDP);

	n->port.burst = 32;
	up(n);
	for (uint32_t i = ASKING; i < ASKING + 12; i++)
		tx(n, i, 1344, true, to, 5);
	n->p->ops->tx_flush(n->p);
	for (uint32_t i = ASKING; i < ASKING + 12; i++)
		need_datagram(a, SW_HEAD_BYTES + 1344, i);
	need(counter(n, SW_DPDK_I_tx_writes) == 3);
	node_down(n);
}

/* Make the kernel refuse all datagrams of this process from now on. */
static void refuse_to_send(void)
{
	struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sendmsg, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog filter = {SW_ARRAY_SIZE(code), code};

	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

/* Send @n_frames from memory that changes when tx returns. */
static void tx_passing(struct node *n, uint32_t n_frames, struct sw_path to)
{
	static uint8_t memory[SW_RX_BURST][SW_PAYLOAD_MAX];
	struct sw_tx_frame f[SW_RX_BURST] = {0};

	for (uint32_t i = 0; i < n_frames; i++) {
		f[i] = (struct sw_tx_frame){.payload = memory[i],
			.payload_len = SW_PAYLOAD_MAX,
			.endpoint = 1,
			.to = to};
		for (uint32_t k = 0; k < SW_HEAD_BYTES; k++)
			f[i].head[k] = byte_of(i, k);
		for (uint32_t k = 0; k < SW_PAYLOAD_MAX; k++)
			memory[i][k] = byte_of(i, SW_HEAD_BYTES + k);
	}
	n->p->ops->tx(n->p, f, n_frames);
	memset(memory, 0, sizeof(memory));
}

/* Frames whose memory changes leave at once, without a copy; the port copies
 * only frames that the kernel refuses. */
static void passing_run(struct node *n)
{
	struct sw_path to = {.ip = sw_ip_v4(ip_of(2)), .udp = UDP};
	int a = plain(2, UDP);

	n->port.burst = 32;
	up(n);
	tx_passing(n, 10, to);
	for (uint32_t i = 0; i < 10; i++)
		need_datagram(a, FULL, i);
	need(counter(n, SW_DPDK_I_tx_writes) == 2);
	need(counter(n, SW_DPDK_I_tx_copied) == 0);
	refuse_to_send();
	tx_passing(n, 3, to);
	need(counter(n, SW_DPDK_I_tx_copied) == 3);
	need(sw_dpdk_port_is_drained(n->p));
	need(n->p->ops->tx_room(n->p) == 32 - 3);
	node_down(n);
}

/* Return the port's socket for endpoint @e. */
static int socket_of(uint32_t e)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_in at = {0};
		socklen_t n = sizeof(at);

		if (!getsockname(fd, (struct sockaddr *)&at, &n) &&
			at.sin_family == AF_INET &&
			ntohl(at.sin_addr.s_addr) == ip_of(1) &&
			ntohs(at.sin_port) == UDP + e)
			return fd;
	}
	need(false);
	return -1;
}

/* Where the kernel refuses to split datagrams, as it does without checksums,
 * the port sends frames one by one. */
static void uncut_run(struct node *n)
{
	struct sw_path to = {.ip = sw_ip_v4(ip_of(2)), .udp = UDP};
	int a = plain(2, UDP), on = 1;

	up(n);
	need(!setsockopt(
		socket_of(1), SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)));
	for (uint32_t i = 0; i < 10; i++)
		tx(n, i, SW_PAYLOAD_MAX, true, to, 5);
	n->p->ops->tx_flush(n->p);
	need(sw_dpdk_port_is_drained(n->p));
	for (uint32_t i = 0; i < 10; i++)
		need_datagram(a, FULL, i);
	need(counter(n, SW_DPDK_I_tx_uncut) == 1);
	need(counter(n, SW_DPDK_I_tx_writes) == 10);
	need(counter(n, SW_DPDK_I_tx_frames) == 10);
	node_down(n);
}

/* Send @bytes at @from to endpoint @e, split into datagrams of @unit. */
static void plain_send(
	int fd, uint32_t e, const void *from, uint32_t bytes, int unit)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(UDP + e)),
		.sin_addr.s_addr = htonl(ip_of(1))};

	need(!setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &unit, sizeof(unit)));
	need(sendto(fd, from, bytes, 0, (struct sockaddr *)&to, sizeof(to)) ==
		(ssize_t)bytes);
}

/* Receive at most @max frames; at least one must arrive. */
static uint32_t rx(struct node *n, struct sw_rx_frame *in, uint32_t max)
{
	double start = now_s();
	uint32_t got;

	while (!(got = n->p->ops->rx(n->p, in, max)))
		need(now_s() - start < WAIT_S);
	return got;
}

/* A joined datagram is handed out frame by frame, as many as requested. */
static void split_run(struct node *n)
{
	static uint8_t out[FIT * FULL + 200];
	struct sw_rx_frame in[SW_RX_BURST];
	int fd = plain(2, UDP + 9);

	up(n);
	for (uint32_t i = 0; i <= FIT; i++)
		for (uint32_t k = 0; k < (i < FIT ? FULL : 200u); k++)
			out[i * FULL + k] = byte_of(i, k);
	plain_send(fd, 2, out, sizeof(out), FULL);
	for (uint32_t i = 0; i <= FIT;) {
		uint32_t got = rx(n, in, 3);

		need(got <= 3);
		for (uint32_t k = 0; k < got; k++, i++) {
			uint32_t len = i < FIT ? FULL : 200;

			need(in[k].len == len && is_frame(in[k].data, len, i));
			need(in[k].payload == in[k].data + SW_HEAD_BYTES);
			need(in[k].endpoint == 2 && !in[k].is_lent);
			need((uint32_t)in[k].from.ip.low == ip_of(2));
			need(in[k].from.udp == UDP + 9);
		}
		n->p->ops->rx_release(n->p);
	}
	need(n->p->ops->rx(n->p, in, SW_RX_BURST) == 0);
	need(counter(n, SW_DPDK_I_rx_frames) == FIT + 1);
	need(counter(n, SW_DPDK_I_rx_reads) <= 2);
	need(counter(n, SW_DPDK_I_rx_bytes) == sizeof(out) + (FIT + 1) * 42);
	node_down(n);
}

/* The congestion mark of a joined datagram applies to all its frames. */
static void marked_run(struct node *n)
{
	static uint8_t out[2 * FULL];
	struct sw_rx_frame in[SW_RX_BURST];
	int fd = plain(2, UDP + 9);

	up(n);
	for (int tos = 0; tos < 8; tos++) {
		need(!setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)));
		plain_send(fd, 1, out, sizeof(out), FULL);
		for (uint32_t i = 0; i < 2; i++) {
			need(rx(n, in, 1) == 1);
			need(in->is_marked == (tos % 4 == 3));
			n->p->ops->rx_release(n->p);
		}
	}
	node_down(n);
}

/* A datagram too short for a header is counted, whichever way it arrives. */
static void short_run(struct node *n)
{
	static uint8_t out[SW_HEAD_BYTES * 4];
	struct sw_rx_frame in[SW_RX_BURST];
	int fd = plain(2, UDP + 9);
	uint32_t got = 0;
	double start = now_s();

	up(n);
	plain_send(fd, 0, out, 0, 0);
	plain_send(fd, 0, out, SW_HEAD_BYTES - 1, 0);
	plain_send(fd, 1, out, 90, 30);
	plain_send(fd, 1, out, SW_HEAD_BYTES + 20, SW_HEAD_BYTES);
	plain_send(fd, 2, out, SW_HEAD_BYTES, 0);
	while (counter(n, SW_DPDK_I_rx_short) < 6 || got < 2) {
		uint32_t now = n->p->ops->rx(n->p, in, SW_RX_BURST);

		for (uint32_t i = 0; i < now; i++)
			need(in[i].len == SW_HEAD_BYTES);
		got += now;
		need(now_s() - start < WAIT_S);
	}
	need(n->p->ops->rx(n->p, in, SW_RX_BURST) == 0);
	need(got == 2 && counter(n, SW_DPDK_I_rx_short) == 6);
	node_down(n);
}

/* The kernel's drops while nobody reads are counted at the next datagram. */
static void overrun_run(struct node *n)
{
	static uint8_t out[FULL];
	struct sw_rx_frame in[SW_RX_BURST];
	int fd = plain(2, UDP + 9);
	uint32_t sent = 300, got = 0;
	double start = now_s();

	n->port.ring_slots = 16;
	up(n);
	for (uint32_t i = 0; i < sent; i++)
		plain_send(fd, 0, out, FULL, 0);
	while (n->p->ops->rx(n->p, in, SW_RX_BURST))
		got++;
	need(got >= 16 && got < sent);
	while (!counter(n, SW_DPDK_I_rx_overrun)) {
		plain_send(fd, 0, out, FULL, 0);
		got += rx(n, in, SW_RX_BURST);
		sent++;
		need(now_s() - start < WAIT_S);
	}
	need(counter(n, SW_DPDK_I_rx_overrun) == sent - got);
	node_down(n);
}

/* A frame that the kernel refuses is dropped and counted; held frames can still
 * leave. */
static void denied_run(struct node *n)
{
	struct sw_path nobody = {
		.ip = sw_ip_v4(UINT32_MAX), .udp = UDP}; /* EACCES */
	struct sw_path peer = {.ip = sw_ip_v4(ip_of(2)), .udp = UDP};

	up(n);
	tx(n, 0, SW_PAYLOAD_MAX, true, nobody, 0);
	tx(n, 1, SW_PAYLOAD_MAX, true, nobody, 0);
	n->p->ops->tx_flush(n->p);
	need(counter(n, SW_DPDK_I_tx_denied) == 2);
	need(sw_dpdk_port_is_drained(n->p));
	tx(n, 2, SW_PAYLOAD_MAX, true, peer, 0);
	need(!sw_dpdk_port_is_drained(n->p));
	need(sw_dpdk_port_release(n->p, sw_dpdk_port_mark(n->p)));
	need(counter(n, SW_DPDK_I_tx_released) == 1);
	need(counter(n, SW_DPDK_I_tx_frames) == 0);
	node_down(n);
}

/* Too many frames for the burst, another lcore's endpoint, a payload too large:
 * each is refused. */
static void refused_run(struct node *n)
{
	static uint8_t memory[SW_PAYLOAD_MAX + 64];
	struct sw_path to = {.ip = sw_ip_v4(ip_of(2)), .udp = UDP};
	struct sw_tx_frame f = {.payload = memory, .is_stable = true, .to = to};
	struct sw_port *second;
	uint32_t room;

	n->port.n_queues = 2;
	n->port.owners[1] = 1;
	up(n);
	second = sw_dpdk_port_queue(n->p, 1);
	need(second && n->p->steering == SW_STEER_RULES);
	room = n->p->ops->tx_room(n->p);
	need(room == 2 * FIT);
	for (uint32_t i = 0; i <= room; i++)
		n->p->ops->tx(n->p, &f, 1);
	need(counter(n, SW_DPDK_I_tx_refused) == 1);
	n->p->ops->tx_flush(n->p);
	f.endpoint = 1;
	n->p->ops->tx(n->p, &f, 1);
	need(counter(n, SW_DPDK_I_tx_refused) == 2);
	f.endpoint = 0;
	f.payload_len = sizeof(memory);
	n->p->ops->tx(n->p, &f, 1);
	need(counter(n, SW_DPDK_I_tx_refused) == 3);
	need(n->p->ops->tx_room(n->p) == 2 * FIT);
	node_down(n);
}

static void refuse(struct node *n, int want)
{
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == want);
}

/* Each configuration is refused, and the port can still open afterwards. */
static void conf_run(struct node *n)
{
	int fd = plain(1, UDP + 2);

	params_udp(n);
	n->eal.ports_bytes = sw_dpdk_port_bytes(&n->port);
	need(sw_dpdk_open(&n->eal, &n->dpdk) == 0);
	refuse(n, SW_EBUSY);
	close(fd);
	n->port.ip = sw_ip_v4(0xc6336409); /* 198.51.100.9, for documentation */
	refuse(n, SW_ECONF);
	n->port.ip = sw_ip_v4(ip_of(1));
	n->port.device = "sw-nothing";
	refuse(n, SW_ECONF);
	n->port.device = "lo";
	n->port.fault_loss_ppm = 10000;
	refuse(n, SW_ECONF);
	n->port.fault_loss_ppm = 0;
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == 0);
	node_down(n);
}

#define CASE(name)                                   \
	static void udp__##name(void **state)        \
	{                                            \
		const struct suite *s = *state;      \
		struct node *n = node_new(s, false); \
		wait_ok(fork_node(n, name##_run));   \
		free(n);                             \
	}
CASE(joined)
CASE(asking)
CASE(passing)
CASE(uncut)
CASE(split)
CASE(marked)
CASE(short)
CASE(overrun)
CASE(denied)
CASE(refused)
CASE(conf)

int main(int argc, char **argv)
{
	struct suite s = {.dir = "/tmp/sw-port-XXXXXX"};
	int failed;

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (!mkdtemp(s.dir))
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(udp__joined, &s),
		cmocka_unit_test_prestate(udp__asking, &s),
		cmocka_unit_test_prestate(udp__passing, &s),
		cmocka_unit_test_prestate(udp__uncut, &s),
		cmocka_unit_test_prestate(udp__split, &s),
		cmocka_unit_test_prestate(udp__marked, &s),
		cmocka_unit_test_prestate(udp__short, &s),
		cmocka_unit_test_prestate(udp__overrun, &s),
		cmocka_unit_test_prestate(udp__denied, &s),
		cmocka_unit_test_prestate(udp__refused, &s),
		cmocka_unit_test_prestate(udp__conf, &s),
	};
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	suite_clean(&s);
	return failed;
}
