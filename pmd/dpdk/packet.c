/* packet.c - a driver's packet sockets: which they are, what they receive.
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

/* Where a field stands in a frame whose IPv4 header has no options. */
#define AT_IP(field)                              \
	(uint32_t)(sizeof(struct rte_ether_hdr) + \
		   offsetof(struct rte_ipv4_hdr, field))

enum { FILTER_HEAD = 14, FILTER_MAX = FILTER_HEAD + SW_PACKET_ENDPOINTS + 3 };

/* The kernel has taken a VLAN tag off before it filters, so offsets are those
 * of an untagged frame; which VLAN it was, and all else, the port checks.
 * The last two instructions take and drop.  Returns how many there are. */
static uint32_t filter_write(
	const struct sw_packet_filter *f, struct sock_filter code[FILTER_MAX])
{
	uint32_t n = (uint32_t)__builtin_popcount(f->endpoints);
	uint32_t take = FILTER_HEAD + n + 1, drop = take + 1, at = FILTER_HEAD;
#define TO(target, from) ((uint8_t)((target) - (from)-1))
	const struct sock_filter head[FILTER_HEAD] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			(uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING,
			TO(drop, 1), 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS,
			offsetof(struct rte_ether_hdr, ether_type)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RTE_ETHER_TYPE_ARP,
			TO(f->has_arp ? take : drop, 3), 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RTE_ETHER_TYPE_IPV4, 0,
			TO(drop, 4)),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_IP(next_proto_id)),
		BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, TO(drop, 6)),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_IP(dst_addr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, f->ip, 0, TO(drop, 8)),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, AT_IP(version_ihl)),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND,
			sizeof(struct rte_ether_hdr) +
				offsetof(struct rte_udp_hdr, dst_port)),
		BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, f->udp),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, f->n_udp, TO(drop, 12), 0),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, f->n_endpoints),
	};

	memcpy(code, head, sizeof(head));
	for (uint32_t e = 0; e < SW_PACKET_ENDPOINTS; e++)
		if (f->endpoints >> e & 1) {
			code[at] = (struct sock_filter)BPF_JUMP(
				BPF_JMP | BPF_JEQ | BPF_K, e, TO(take, at), 0);
			at++;
		}
#undef TO
	code[at] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1);
	code[take] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	code[drop] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	return drop + 1;
}

int sw_packet_filter(int fd, const struct sw_packet_filter *f)
{
	struct sock_filter code[FILTER_MAX];
	struct sock_fprog prog = {(unsigned short)filter_write(f, code), code};

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
		/* not our setsockopt: the driver is to join no group */
		if (syscall(SYS_setsockopt, fds[i], SOL_PACKET, PACKET_FANOUT,
			    &arg, sizeof(arg)))
			return SW_EIO;
		if (!i && getsockopt(fds[0], SOL_PACKET, PACKET_FANOUT, &arg,
				  &len))
			return SW_EIO;
	}
	return 0;
}
