/* unit_conf_port.c - which options each type of port takes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/bytes.h"
#include "test/unit/conf/conf_files.h"

static void conf_load__bad_port(void **state)
{
	static const struct {
		const char *lines, *why;
	} rows[] = {
		{"args = a=b\n", "is for the types pci and vdev alone"},
		{"mtu = 9000\n", "is for the types pci and vdev alone"},
		{"mtu = 65536\n", "0 to 65535"},
		{"args = a b\n", "is not a list like"},
		{"id = 65536\n", "0 to 65535"},
		{"ring = 48\n", "none of 0, 16, 32"},
		{"ring = 2048\n", "none of 0, 16, 32"},
		{"burst = 65\n", "0 to 64"},
		{"type = af_packet\ndevice = eth0\n", "type = memif alone"},
		{"device = eth0\n", "has no meaning for a memif"},
		{"vlan = 5\n", "has no meaning for a memif"},
		{"vlan = 4095\n", "0 to 4094"},
		{"gateway = 10.0.0\n", "not an IPv4 or IPv6 address"},
		{"device = eth/0\n", "not the name of an interface"},
		{"fault_loss = 51%\n", "0% to 50%"},
		{"fault_loss = 5\n", "has no unit"},
		{"quota = 1GiB\n",
			"it belongs to [serve] or [share] or [agent]"},
		{"queues = 0\n", "1 to 16"},
		{"queues = 2\n", "2 queue pairs, but 1 polling lcore "},
	};
	char text[512];

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text), NODE PORT "%s" SERVER,
			rows[i].lines);
		refused(text, rows[i].why);
	}
	refused(NODE PORT SERVER "[job]\ncredit = 4\n",
		"[job] credit: 4 with policy bytescheduler: a credit has 1 KiB "
		"to 1 TiB");
	refused(NODE PORT SERVER "[job]\npolicy = fifo\ncredit = 4MiB\n",
		"[job] credit: 4194304 with policy fifo: this policy's "
		"partition and credit are fixed");
	refused(NODE PORT SERVER "[agent]\npartition = 12\n",
		"[agent] partition: 12 with policy bytescheduler: a partition "
		"has 1 KiB to 64 GiB");
	refused(NODE PORT SERVER "[share big]\nweight = 0\n",
		"[share big] weight: \"0\" is out of range: 1 to 100");
	refused(NODE "[port a]\nside = listen\nip = 10.0.0.2/24\n" SERVER,
		"3: [port a] socket: is missing");
	refused(NODE "[port a]\nsocket = /x\nip = 10.0.0.2/24\n" SERVER,
		"3: [port a] side: is missing");
	refused(NODE "[port a]\ntype = af_packet\nip = 10.0.0.2/24\n" SERVER,
		"3: [port a] device: is missing");
	refused(NODE KERNEL "queues = 2\n" SERVER,
		"[port a] queues: is for type = memif alone");
	refused(NODE KERNEL "mtu = 9000\n" SERVER,
		"[port a] mtu: is for the types pci and vdev alone");
	refused(NODE KERNEL "gateway = 10.0.1.1\n" SERVER,
		"another host of the port's network 10.0.0.0/24 expected");
	refused(NODE KERNEL "gateway = 10.0.0.2\n" SERVER,
		"another host of the port's network 10.0.0.0/24 expected");
}

static void conf_load__ipv6(void **state)
{
	struct sw_conf conf;
	struct said said;

	(void)state;
	assert_int_equal(load(NODE "[port a]\ntype = af_packet\ndevice = eth0\n"
				   "ip = fd00::2/64\ngateway = fd00::fe\n"
				   "[server s]\nip = fd00:1::1\nport = a\n",
				 &conf, &said),
		0);
	assert_int_equal(conf.ports[0].subnet.ip.high, 0xfd00ull << 48);
	assert_int_equal(conf.ports[0].subnet.ip.low, 2);
	assert_int_equal(conf.ports[0].subnet.bits, 64);
	assert_int_equal(conf.ports[0].gateway.low, 0xfe);
	assert_int_equal(conf.servers[0].ip.high, 0xfd000001ull << 32);
	assert_int_equal(load(NODE "[port a]\ntype = af_packet\ndevice = eth0\n"
				   "ip = fd00::2/64\ngateway = fe80::1\n"
				   "[server s]\nip = fd00:1::1\nport = a\n",
				 &conf, &said),
		0);
	refused(NODE "[port a]\ntype = af_packet\ndevice = eth0\n"
		     "ip = fd00::2/64\n[server s]\nip = fd00:1::1\nport = a\n",
		"fd00:1::1 is not in the network of [port a], fd00::/64, which "
		"has no gateway");
	refused(NODE "[port a]\ntype = af_packet\ndevice = eth0\n"
		     "ip = fd00::2/64\ngateway = 10.0.0.1\n"
		     "[server s]\nip = fd00::1\nport = a\n",
		"10.0.0.1: another host of the port's network fd00::/64 "
		"expected");
	refused(NODE "[port a]\ntype = af_packet\ndevice = eth0\n"
		     "ip = fd00::/64\n[server s]\nip = fd00::1\nport = a\n",
		"is the first address of its network");
}

static void conf_load__one_socket_twice(void **state)
{
	struct sw_conf conf;
	struct said said;

	refused(GOOD "[stats]\nsocket = agent.sock\n",
		"[stats] socket: [agent] has the same socket");
	refused(GOOD "[stats]\nsocket = /x\n",
		"[port a] socket: [stats] has the same socket");
	refused(GOOD "[agent]\nsocket = /x\n",
		"[port a] socket: [agent] has the same socket");
	/* a server's port has no agent; memif ports share a socket */
	assert_int_equal(load("[node]\nrole = server\n" PORT
			      "[port b]\nsocket = /x\nside = connect\nid = 1\n"
			      "ip = 10.0.0.3/24\n"
			      "[stats]\nsocket = agent.sock\n",
				 &conf, &said),
		0);
}

static void conf_load__kernel_port(void **state)
{
	struct sw_conf conf;
	struct said said;

	(void)state;
	assert_int_equal(
		load(NODE KERNEL "gateway = 10.0.0.254\nvlan = 7\n"
				 "[server a]\nip = 10.9.0.1\nport = a\n",
			&conf, &said),
		0);
	assert_int_equal(conf.ports[0].type, SW_PORT_AF_PACKET);
	assert_string_equal(conf.ports[0].device, "eth0");
	assert_int_equal((uint32_t)conf.ports[0].gateway.low, 0x0a0000fe);
	assert_int_equal(conf.ports[0].vlan, 7);
	assert_int_equal(load(NODE XDP SERVER, &conf, &said), 0);
	assert_int_equal(conf.ports[0].type, SW_PORT_AF_XDP);
}

/* A udp port needs no device or gateway, because the kernel has the address and
 * the routes. */
static void conf_load__udp(void **state)
{
	struct sw_conf conf;
	struct said said;

	(void)state;
	assert_int_equal(load(NODE UDP SERVER, &conf, &said), 0);
	assert_string_equal(said.text, "");
	assert_int_equal(conf.ports[0].type, SW_PORT_UDP);
	assert_string_equal(conf.ports[0].device, "");
	assert_int_equal(load(NODE UDP "device = eth0\nsteering = handoff\n"
				       "ring = 512\nrate = 1Gb/s\n"
				       "[server s]\nip = 10.9.0.1\nport = a\n",
				 &conf, &said),
		0);
	assert_string_equal(said.text, "");
	assert_string_equal(conf.ports[0].device, "eth0");
	assert_int_equal((uint32_t)conf.servers[0].ip.low, 0x0a090001);
	assert_int_equal(
		load(NODE UDP "steering = rules\n" SERVER, &conf, &said), 0);
	refused(NODE UDP "[server s]\nip = 10.0.0.2\nport = a\n",
		"is our own address");
}

static void conf_load__bad_udp(void **state)
{
	static const struct {
		const char *lines, *why;
	} rows[] = {
		{"vlan = 7\n", "3: [port a] vlan: is up to the kernel"},
		{"gateway = 10.0.0.254\n",
			"3: [port a] gateway: is up to the kernel"},
		{"fault_loss = 1%\n",
			"3: [port a] fault_loss: is not for type = udp"},
		{"fault_dup = 1%\n",
			"3: [port a] fault_dup: is not for type = udp"},
		{"fault_reorder = 1%\n",
			"3: [port a] fault_reorder: is not for type = udp"},
		{"steering = rss\n",
			"6: [port a] steering: rss is not for type = udp"},
		{"args = a=b\n", "args: is for the types pci and vdev alone"},
		{"mtu = 9000\n", "mtu: is for the types pci and vdev alone"},
		{"socket = /x\n", "socket: is for type = memif alone"},
		{"side = listen\n", "side: is for type = memif alone"},
		{"trusted = yes\n", "trusted: is for type = memif alone"},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text), NODE UDP "%s" SERVER,
			rows[i].lines);
		refused(text, rows[i].why);
	}
}

static void conf_load__nic(void **state)
{
	static const char *const bad[] = {"81:00.0", "0000:81:00.8",
		"0000:81:00.00", "0000:8g:00.0", "000:081:00.0", "0000.81:00.0",
		"eth0", "net_tap0"};
	struct sw_conf conf;
	struct said said;
	char text[512];

	(void)state;
	assert_int_equal(load(NODE NIC("0000:81:0A.7") "mtu = 9000\nargs = "
						       "x=1,y=2\n" SERVER,
				 &conf, &said),
		0);
	assert_int_equal(conf.ports[0].type, SW_PORT_PCI);
	assert_int_equal(conf.ports[0].mtu, 9000);
	assert_string_equal(conf.ports[0].device, "0000:81:0A.7");
	assert_string_equal(conf.ports[0].args, "x=1,y=2");
	for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++) {
		snprintf(text, sizeof(text), NODE NIC("%s") SERVER, bad[i]);
		refused(text, "is not a PCI address like 0000:81:00.0");
	}
	refused(NODE "[port a]\ntype = vdev\ndevice = tap0\nip = "
		     "10.0.0.2/24\n" SERVER,
		"is not a network driver of DPDK and a number, like net_tap0");
}

#define VDEV(name, ip)                                            \
	"[port " name "]\ntype = vdev\nip = " ip "/24\ndevice = " \
	"net_tap0\n"

static void conf_load__same_port_twice(void **state)
{
	refused(GOOD "[port b]\nsocket = /x\nside = connect\n"
		     "ip = 10.1.0.2/24\n",
		"11: [port b] socket: [port a] is the same side");
	refused(GOOD "[port b]\nsocket = /y\nside = connect\n"
		     "ip = 10.0.0.2/24\n",
		"13: [port b] ip: [port a] has the address 10.0.0.2 too");
	refused(NODE VDEV("a", "10.0.0.2") VDEV("b", "10.1.0.2") SERVER,
		"10: [port b] device: [port a] has the device net_tap0 too");
	refused(NODE NIC("0000:8a:00.0") "[port b]\ntype = pci\nip = "
					 "10.1.0.2/24\ndevice = "
					 "0000:8A:00.0\n" SERVER,
		"10: [port b] device: [port a] has the device 0000:8a:00.0");
}

static void conf_load__too_many_ports(void **state)
{
	char text[8192] = NODE PORT SERVER;
	struct sw_conf conf;
	struct said said;

	for (int i = 1; i < SW_CONF_MANY_MAX; i++)
		sprintf(text + strlen(text),
			"[port p%d]\nsocket = /x\n"
			"id = %d\nside = listen\nip = 10.1.%d.1/24\n",
			i, i, i);
	assert_int_equal(load(text, &conf, &said), 0);
	assert_int_equal(conf.n_ports, SW_CONF_MANY_MAX);
	strcat(text, "[port last]\nsocket = /z\n");
	refused(text, "there are more than 32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf_load__bad_port),
		cmocka_unit_test(conf_load__ipv6),
		cmocka_unit_test(conf_load__one_socket_twice),
		cmocka_unit_test(conf_load__kernel_port),
		cmocka_unit_test(conf_load__udp),
		cmocka_unit_test(conf_load__bad_udp),
		cmocka_unit_test(conf_load__nic),
		cmocka_unit_test(conf_load__same_port_twice),
		cmocka_unit_test(conf_load__too_many_ports),
	};

	return cmocka_run_group_tests_name("conf_port", tests, NULL, NULL);
}
