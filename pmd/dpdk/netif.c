/* netif.c - what the kernel knows of one of its network interfaces.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/netif.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "engine/base/error.h"

enum { FDS_MAX = 4096 /* a driver's sockets are among the first */ };

static int query(int fd, const char *name, struct sw_netif *out)
{
	struct ifreq r = {0};
	short up = IFF_UP | IFF_RUNNING;

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFFLAGS, &r))
		return errno == ENODEV ? SW_ENOENT : SW_EIO;
	out->is_up = (r.ifr_flags & up) == up;
	if (ioctl(fd, SIOCGIFMTU, &r))
		return SW_EIO;
	out->mtu = (uint32_t)r.ifr_mtu;
	if (ioctl(fd, SIOCGIFINDEX, &r))
		return SW_EIO;
	out->index = (uint32_t)r.ifr_ifindex;
	return 0;
}

int sw_netif_get(const char *name, struct sw_netif *out)
{
	int fd, err;

	if (strlen(name) >= IFNAMSIZ)
		return SW_ENOENT;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return SW_EIO;
	err = query(fd, name, out);
	close(fd);
	return err;
}

/* What its driver answers to ethtool's @question; it stays where it does not.
 */
static void ethtool(const char *name, void *question)
{
	struct ifreq r = {.ifr_data = question};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	ioctl(fd, SIOCETHTOOL, &r);
	close(fd);
}

uint32_t sw_netif_queues(const char *name)
{
	struct ethtool_channels c = {.cmd = ETHTOOL_GCHANNELS};

	ethtool(name, &c);
	return c.combined_count + c.rx_count ? c.combined_count + c.rx_count
					     : 1;
}

bool sw_netif_strips_tags(const char *name)
{
	struct ethtool_value flags = {.cmd = ETHTOOL_GFLAGS};

	ethtool(name, &flags);
	return flags.data & ETH_FLAG_RXVLAN;
}

void sw_netif_names(char *out, size_t size)
{
	struct if_nameindex *list = if_nameindex();
	size_t at = 0;

	snprintf(out, size, "none");
	for (uint32_t i = 0; list && list[i].if_index && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s",
			i ? ", " : "", list[i].if_name);
	if_freenameindex(list);
}

static uint32_t ip_of(const struct sockaddr *a)
{
	return a && a->sa_family == AF_INET
		       ? ntohl(((const struct sockaddr_in *)(const void *)a)
					 ->sin_addr.s_addr)
		       : 0;
}

static bool has_ip(const struct ifaddrs *i, uint32_t ip)
{
	uint32_t has = ip_of(i->ifa_addr);
	uint32_t mask = i->ifa_flags & IFF_LOOPBACK ? ip_of(i->ifa_netmask)
						    : UINT32_MAX;

	return has && !((has ^ ip) & mask);
}

bool sw_netif_of_ip(uint32_t ip, const char *wanted, char *name, size_t size)
{
	struct ifaddrs *list = NULL;
	bool is_found = false, is_wanted = false;

	if (getifaddrs(&list))
		return false;
	for (struct ifaddrs *i = list; i && !is_wanted; i = i->ifa_next) {
		/* an address may have a label: eth0:1 */
		size_t n = strcspn(i->ifa_name, ":");

		if (!has_ip(i, ip))
			continue;
		is_wanted = wanted && strlen(wanted) == n &&
			    !memcmp(wanted, i->ifa_name, n);
		if (is_wanted || !is_found)
			snprintf(name, size, "%.*s", (int)n, i->ifa_name);
		is_found = true;
	}
	freeifaddrs(list);
	return is_found;
}

/* Where a field stands in a frame whose IPv4 header has no options. */
#define AT_IP(field)                              \
	(uint32_t)(sizeof(struct rte_ether_hdr) + \
		   offsetof(struct rte_ipv4_hdr, field))

enum { FILTER_HEAD = 14, FILTER_MAX = FILTER_HEAD + SW_NETIF_ENDPOINTS + 3 };

/* The kernel has taken a VLAN tag off before it filters, so offsets are those
 * of an untagged frame; which VLAN it was, and all else, the port checks.
 * The last two instructions take and drop.  Returns how many there are. */
static uint32_t filter_write(
	const struct sw_netif_filter *f, struct sock_filter code[FILTER_MAX])
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
	for (uint32_t e = 0; e < SW_NETIF_ENDPOINTS; e++)
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

int sw_netif_filter(int fd, const struct sw_netif_filter *f)
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

uint32_t sw_netif_sockets(uint32_t if_index, int fds[], uint32_t max)
{
	int most = (int)sysconf(_SC_OPEN_MAX);
	uint32_t n = 0;

	for (int fd = 0; fd < most && fd < FDS_MAX && n < max; fd++)
		if (is_open_to_all(fd, if_index))
			fds[n++] = fd;
	return n;
}

int sw_netif_fanout(const int fds[], uint32_t n)
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
