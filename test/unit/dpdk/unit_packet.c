/* unit_packet.c - find the packet sockets of a driver in this process.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pmd/dpdk/packet.h"

/* A socket that receives all frames of the loopback interface. */
static int open_socket(uint32_t if_index)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_index};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0)
		skip(); /* the test needs CAP_NET_RAW */
	assert_int_equal(bind(fd, (void *)&at, sizeof(at)), 0);
	return fd;
}

/* A driver's socket is found even if its descriptor is large. */
static void sockets__behind_many_descriptors(void **state)
{
	uint32_t lo = if_nametoindex("lo");
	int fd = open_socket(lo), far, fds[2] = {-1, -1};
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < 8192)
		skip();
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	far = fcntl(fd, F_DUPFD, 6000);
	assert_true(far >= 6000);
	close(fd);
	assert_int_equal(sw_packet_sockets(lo, fds, 2), 1);
	assert_int_equal(fds[0], far);
	assert_int_equal(sw_packet_sockets(lo + 1, fds, 2), 0);
	close(far);
}

/* Sockets are found in the order of their creation, but only while they have no
 * filter. */
static void sockets__in_order(void **state)
{
	const struct sw_packet_filter filter = {
		.ip = {0, SW_IP_V4_MAPPED | 0x7f000001},
		.udp = 1,
		.n_udp = 1,
		.n_endpoints = 1};
	uint32_t lo = if_nametoindex("lo");
	int a = open_socket(lo), b = open_socket(lo), c = open_socket(lo);
	int fds[4];

	(void)state;
	assert_int_equal(sw_packet_sockets(lo, fds, 2), 2);
	assert_int_equal(sw_packet_filter(b, &filter), 0);
	assert_int_equal(sw_packet_sockets(lo, fds, 4), 2);
	assert_int_equal(fds[0], a);
	assert_int_equal(fds[1], c);
	close(a);
	close(b);
	close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets__behind_many_descriptors),
		cmocka_unit_test(sockets__in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
