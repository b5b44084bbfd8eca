/* netif.c - what the kernel knows of one of its network interfaces.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/netif.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/error.h"

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

bool sw_netif_of_ip(uint32_t ip, char *name, size_t size)
{
	struct ifaddrs *list = NULL;
	bool is_found = false;

	if (getifaddrs(&list))
		return false;
	for (struct ifaddrs *i = list; i && !is_found; i = i->ifa_next) {
		const struct sockaddr_in *a = (const void *)i->ifa_addr;

		if (!a || a->sin_family != AF_INET ||
			ntohl(a->sin_addr.s_addr) != ip)
			continue;
		snprintf(name, size, "%s", i->ifa_name);
		is_found = true;
	}
	freeifaddrs(list);
	return is_found;
}

/* The kernel has taken a VLAN tag off before it filters, so offsets are those
 * of an untagged frame; which VLAN it was, and all else, the port checks. */
static int filter_attach(int fd, uint32_t ip, uint16_t udp, uint16_t n_udp)
{
	enum {
		N = 15
	}; /* instructions; the last drops, the one before takes */
	struct sock_filter code[N] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			(uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, N - 3, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_ARP, N - 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, N - 6),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, N - 8),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 30),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ip, 0, N - 10),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, udp, 0, N - 13),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)udp + n_udp,
			N - 14, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = {N, code};

	return setsockopt(
		fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
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

uint32_t sw_netif_filter(
	uint32_t if_index, uint32_t ip, uint16_t udp, uint16_t n_udp)
{
	int most = (int)sysconf(_SC_OPEN_MAX);
	uint32_t n = 0;

	for (int fd = 0; fd < most && fd < 4096; fd++)
		if (is_open_to_all(fd, if_index) &&
			!filter_attach(fd, ip, udp, n_udp))
			n++;
	return n;
}
