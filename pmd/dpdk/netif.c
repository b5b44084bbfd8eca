/* netif.c - read the kernel's network interfaces by rtnetlink.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/netif.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_byteorder.h>

#include "engine/base/error.h"

enum {
	QUESTION_BYTES = 256,
	ANSWER_BYTES = 32768, /* largest message of the kernel */
	LOOPBACK = 1,         /* index of lo, in every kernel */
	TRIES = 8,            /* tries of a dump, which changes may interrupt */
};

/* --- questions --- */

static int ask_over(struct mnl_socket *s, const struct nlmsghdr *h,
	mnl_cb_t take, void *arg)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	int ret;

	if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0 ||
		mnl_socket_sendto(s, h, h->nlmsg_len) < 0)
		return -1;
	do {
		ssize_t n = mnl_socket_recvfrom(s, answer, sizeof(answer));

		ret = n < 0 ? -1
			    : mnl_cb_run(answer, (size_t)n, h->nlmsg_seq,
				      mnl_socket_get_portid(s), take, arg);
	} while (ret > MNL_CB_STOP);
	return ret;
}

/* Send @h and pass each message of the answer to @take with @arg. Returns 0 or
 * an errno; EINTR if the data changed during the dump. */
static int ask(const void *h, mnl_cb_t take, void *arg)
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	int err;

	if (!s)
		return errno;
	err = ask_over(s, h, take, arg) < 0 ? errno : 0;
	mnl_socket_close(s);
	return err;
}

/* Begin a request of @type at @at; returns its extra header of @bytes. */
static void *question(void *at, uint16_t type, uint16_t flags, size_t bytes)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(at);

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	return mnl_nlmsg_put_extra_header(h, bytes);
}

/* --- interfaces --- */

static int take_link(const struct nlmsghdr *h, void *arg)
{
	const struct ifinfomsg *m = mnl_nlmsg_get_payload(h);
	const uint32_t up = IFF_UP | IFF_RUNNING;
	const struct nlattr *a;
	struct sw_netif *out = arg;

	*out = (struct sw_netif){.index = (uint32_t)m->ifi_index,
		.is_up = (m->ifi_flags & up) == up};
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		if (mnl_attr_get_type(a) == IFLA_MTU)
			out->mtu = mnl_attr_get_u32(a);
	}
	return MNL_CB_STOP;
}

int sw_netif_get(const char *name, struct sw_netif *out)
{
	_Alignas(struct nlmsghdr) char at[QUESTION_BYTES];
	int err;

	if (!*name || strlen(name) >= IFNAMSIZ)
		return SW_ENOENT;
	question(at, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
	mnl_attr_put_strz((void *)at, IFLA_IFNAME, name);
	err = ask(at, take_link, out);
	if (err)
		return err == ENODEV ? SW_ENOENT : SW_EIO;
	return 0;
}

struct names {
	char *out;
	size_t size, at;
};

static int take_name(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *a;
	struct names *n = arg;

	mnl_attr_for_each(a, h, sizeof(struct ifinfomsg))
	{
		if (mnl_attr_get_type(a) != IFLA_IFNAME || n->at >= n->size)
			continue;
		n->at += (size_t)snprintf(n->out + n->at, n->size - n->at,
			"%s%s", n->at ? ", " : "", mnl_attr_get_str(a));
	}
	return MNL_CB_OK;
}

void sw_netif_names(char *out, size_t size)
{
	_Alignas(struct nlmsghdr) char at[QUESTION_BYTES];
	struct names n = {.out = out, .size = size};

	snprintf(out, size, "none");
	question(at, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
	ask(at, take_name, &n);
}

/* Ask the driver an ethtool @question; it stays unchanged if there is no
 * answer. */
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

/* --- addresses --- */

struct search {
	struct sw_ip ip;
	const char *wanted;
	char *name;
	size_t size;
	bool is_found, is_wanted;
};

static bool has_ip(const struct ifaddrmsg *m, struct sw_ip has, struct sw_ip ip)
{
	if (sw_ip_is_none(has))
		return false;
	if (m->ifa_index == LOOPBACK)
		return sw_ip_is_near(has, ip, m->ifa_prefixlen);
	return sw_ip_is_same(has, ip);
}

/* Return the address in @a, an attribute of @m. */
static struct sw_ip address_in(
	const struct ifaddrmsg *m, const struct nlattr *a)
{
	if (m->ifa_family == AF_INET6)
		return sw_ip_load(mnl_attr_get_payload(a));
	return sw_ip_v4(rte_be_to_cpu_32(mnl_attr_get_u32(a)));
}

static int take_address(const struct nlmsghdr *h, void *arg)
{
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(h);
	bool is_v6 = m->ifa_family == AF_INET6;
	char index_name[IF_NAMESIZE];
	const char *label =
		is_v6 ? if_indextoname(m->ifa_index, index_name) : NULL;
	struct sw_ip has = {0, 0};
	const struct nlattr *a;
	struct search *s = arg;
	size_t n;

	mnl_attr_for_each(a, h, sizeof(*m))
	{
		if (mnl_attr_get_type(a) == (is_v6 ? IFA_ADDRESS : IFA_LOCAL))
			has = address_in(m, a);
		if (mnl_attr_get_type(a) == IFA_LABEL && !is_v6)
			label = mnl_attr_get_str(a);
	}
	if (s->is_wanted || !label || !has_ip(m, has, s->ip))
		return MNL_CB_OK;
	n = strcspn(label, ":"); /* a label may have a suffix: eth0:1 */
	s->is_wanted = s->wanted && strlen(s->wanted) == n &&
		       !memcmp(s->wanted, label, n);
	if (s->is_wanted || !s->is_found)
		snprintf(s->name, s->size, "%.*s", (int)n, label);
	s->is_found = true;
	return MNL_CB_OK;
}

bool sw_netif_of_ip(
	struct sw_ip ip, const char *wanted, char *name, size_t size)
{
	struct search s = {
		.ip = ip, .wanted = wanted, .name = name, .size = size};
	_Alignas(struct nlmsghdr) char at[QUESTION_BYTES];
	struct ifaddrmsg *m =
		question(at, RTM_GETADDR, NLM_F_DUMP, sizeof(struct ifaddrmsg));

	m->ifa_family = sw_ip_is_v4(ip) ? AF_INET : AF_INET6;
	for (int i = 0; i < TRIES; i++)
		if (ask(at, take_address, &s) != EINTR)
			break;
	return s.is_found;
}

/* --- changes --- */

struct mnl_socket *sw_netif_changes_open(void)
{
	struct mnl_socket *s =
		mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (!s || mnl_socket_bind(s,
			  RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
			  MNL_SOCKET_AUTOPID) >= 0)
		return s;
	mnl_socket_close(s);
	return NULL;
}

bool sw_netif_has_changed(struct mnl_socket *s)
{
	char change[ANSWER_BYTES];
	bool is_any = false;

	/* ENOBUFS: the kernel has dropped notifications */
	while (mnl_socket_recvfrom(s, change, sizeof(change)) >= 0 ||
		errno == ENOBUFS || errno == ENOSPC)
		is_any = true;
	return is_any;
}

void sw_netif_changes_close(struct mnl_socket **s)
{
	if (*s)
		mnl_socket_close(*s);
	*s = NULL;
}
