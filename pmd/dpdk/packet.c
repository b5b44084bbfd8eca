/* packet.c - find a driver's packet sockets, and filter their frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/packet.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "engine/base/error.h"
#include "pmd/dpdk/frame.h"

/* Offset of a header field in a frame without VLAN tag, because the kernel
 * strips the tag before it filters. The port itself checks the VLAN and all
 * other fields. */
#define AT_IP(header, field)                      \
	(uint32_t)(sizeof(struct rte_ether_hdr) + \
		   offsetof(struct rte_##header##_hdr, field))

enum {
	FILTER_MAX = 32 + SW_PACKET_ENDPOINTS,
	/* Placeholder jump targets, which end() replaces. */
	DROP = UINT8_MAX,
	TAKE = UINT8_MAX - 1,
	ICMPV6_TYPE =
		sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv6_hdr),
};

struct filter {
	struct sock_filter code[FILTER_MAX];
	uint32_t n;
};

static void add(
	struct filter *f, uint16_t op, uint8_t yes, uint8_t no, uint32_t k)
{
	f->code[f->n++] =
		(struct sock_filter){.code = op, .jt = yes, .jf = no, .k = k};
}

/* Drop the frame unless the field of size @op at @at is @value. */
static void need(struct filter *f, uint16_t op, uint32_t at, uint32_t value)
{
	add(f, (uint16_t)(BPF_LD | op | BPF_ABS), 0, 0, at);
	add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, DROP, value);
}

/* Accept ARP if @has_neighbours, drop all frames except UDP to @ip, and load
 * the UDP port. */
static void head_v4(struct filter *f, uint32_t ip, bool has_neighbours)
{
	add(f, BPF_LD | BPF_H | BPF_ABS, 0, 0,
		offsetof(struct rte_ether_hdr, ether_type));
	add(f, BPF_JMP | BPF_JEQ | BPF_K, has_neighbours ? TAKE : DROP, 0,
		RTE_ETHER_TYPE_ARP);
	add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, DROP, RTE_ETHER_TYPE_IPV4);
	need(f, BPF_B, AT_IP(ipv4, next_proto_id), IPPROTO_UDP);
	need(f, BPF_W, AT_IP(ipv4, dst_addr), ip);
	add(f, BPF_LDX | BPF_B | BPF_MSH, 0, 0, AT_IP(ipv4, version_ihl));
	add(f, BPF_LD | BPF_H | BPF_IND, 0, 0,
		sizeof(struct rte_ether_hdr) +
			offsetof(struct rte_udp_hdr, dst_port));
}

/* Do the same for IPv6, with neighbour discovery instead of ARP. */
static void head_v6(struct filter *f, struct sw_ip ip, bool has_neighbours)
{
	uint32_t dst = AT_IP(ipv6, dst_addr);

	need(f, BPF_H, offsetof(struct rte_ether_hdr, ether_type),
		RTE_ETHER_TYPE_IPV6);
	add(f, BPF_LD | BPF_B | BPF_ABS, 0, 0, AT_IP(ipv6, proto));
	add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, IPPROTO_ICMPV6);
	add(f, BPF_LD | BPF_B | BPF_ABS, 0, 0, ICMPV6_TYPE);
	add(f, BPF_JMP | BPF_JGT | BPF_K, DROP, 0, SW_ND_ADVERTISEMENT);
	add(f, BPF_JMP | BPF_JGE | BPF_K, has_neighbours ? TAKE : DROP, DROP,
		SW_ND_SOLICITATION);
	add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, DROP, IPPROTO_UDP);
	need(f, BPF_W, dst, (uint32_t)(ip.high >> 32));
	need(f, BPF_W, dst + 4, (uint32_t)ip.high);
	need(f, BPF_W, dst + 8, (uint32_t)(ip.low >> 32));
	need(f, BPF_W, dst + 12, (uint32_t)ip.low);
	add(f, BPF_LD | BPF_H | BPF_ABS, 0, 0,
		ICMPV6_TYPE + offsetof(struct rte_udp_hdr, dst_port));
}

/* Append the instructions that accept and drop, and resolve jumps to them. */
static void end(struct filter *f)
{
	uint32_t take = f->n + 1, drop = f->n + 2;

	add(f, BPF_JMP | BPF_JA, 0, 0, drop - take);
	add(f, BPF_RET | BPF_K, 0, 0, UINT32_MAX);
	add(f, BPF_RET | BPF_K, 0, 0, 0);
	for (uint32_t i = 0; i < take - 1; i++) {
		struct sock_filter *c = &f->code[i];
		uint8_t *jumps[] = {&c->jt, &c->jf};

		for (uint32_t k = 0; k < 2; k++)
			if (*jumps[k] >= TAKE)
				*jumps[k] =
					(uint8_t)((*jumps[k] == TAKE ? take
								     : drop) -
						  i - 1);
	}
}

static void filter_write(const struct sw_packet_filter *p, struct filter *f)
{
	f->n = 0;
	add(f, BPF_LD | BPF_W | BPF_ABS, 0, 0,
		(uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE));
	add(f, BPF_JMP | BPF_JEQ | BPF_K, DROP, 0, PACKET_OUTGOING);
	if (sw_ip_is_v4(p->ip))
		head_v4(f, (uint32_t)p->ip.low, p->has_neighbours);
	else
		head_v6(f, p->ip, p->has_neighbours);
	add(f, BPF_ALU | BPF_SUB | BPF_K, 0, 0, p->udp);
	add(f, BPF_JMP | BPF_JGE | BPF_K, DROP, 0, p->n_udp);
	add(f, BPF_ALU | BPF_MOD | BPF_K, 0, 0, p->n_endpoints);
	for (uint32_t e = 0; e < SW_PACKET_ENDPOINTS; e++)
		if (p->endpoints >> e & 1)
			add(f, BPF_JMP | BPF_JEQ | BPF_K, TAKE, 0, e);
	end(f);
}

int sw_packet_filter(int fd, const struct sw_packet_filter *f)
{
	struct filter filter;
	struct sock_fprog prog = {0, filter.code};

	filter_write(f, &filter);
	prog.len = (unsigned short)filter.n;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog))
		       ? SW_EIO
		       : 0;
}

static bool is_open_to_all(int fd, uint32_t if_index)
{
	struct sockaddr_ll at = {0};
	socklen_t n = sizeof(at), n_code = 0;

	return !getsockname(fd, (struct sockaddr *)&at, &n) &&
	       at.sll_family == AF_PACKET &&
	       (uint32_t)at.sll_ifindex == if_index &&
	       !getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &n_code) &&
	       !n_code;
}

uint32_t sw_packet_sockets(uint32_t if_index, int fds[], uint32_t max)
{
	DIR *all = opendir("/proc/self/fd");
	const struct dirent *e;
	uint32_t n = 0;

	while (all && n < max && (e = readdir(all)))
		if (e->d_name[0] != '.' &&
			is_open_to_all(atoi(e->d_name), if_index))
			fds[n++] = atoi(e->d_name);
	if (all)
		closedir(all);
	return n;
}

int sw_packet_fanout(const int fds[], uint32_t n)
{
	uint32_t arg = (PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
	socklen_t len = sizeof(arg);

	for (uint32_t i = 0; i < n; i++) {
		/* bypass gate.c's setsockopt, which ignores fan-out groups */
		if (syscall(SYS_setsockopt, fds[i], SOL_PACKET, PACKET_FANOUT,
			    &arg, sizeof(arg)))
			return SW_EIO;
		if (!i && getsockopt(fds[0], SOL_PACKET, PACKET_FANOUT, &arg,
				  &len))
			return SW_EIO;
	}
	return 0;
}
