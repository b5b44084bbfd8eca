/* links.c - checks of network interfaces and of their NUMA nodes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/doctor/checks.h"
#include "pmd/dpdk/netif.h"

enum { NAME = 64, MTU_LEAST = 1280, MTU_JUMBO = 9000, INTERFACES = 32 };

/* State of interface @name from sysfs. speed is in Mb/s; 0: unknown. */
struct link {
	char state[32];
	int64_t mtu, speed;
	int64_t numa_node; /* -1: unknown */
};

static void link_read(
	const struct sw_eyes *e, const char *name, struct link *out)
{
	char path[SW_EYES_PATH];
	struct sw_netif now;
	int64_t speed;

	snprintf(path, sizeof(path), "/sys/class/net/%s/operstate", name);
	sw_eyes_read(e, path, out->state, sizeof(out->state));
	snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", name);
	out->mtu = sw_eyes_number(e, path, 0);
	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	speed = sw_eyes_number(e, path, 0);
	out->speed = speed > 0 ? speed : 0;
	snprintf(
		path, sizeof(path), "/sys/class/net/%s/device/numa_node", name);
	out->numa_node = sw_eyes_number(e, path, -1);
	/* /sys may belong to another network namespace */
	if (*e->root || sw_netif_get(name, &now))
		return;
	out->mtu = now.mtu;
	snprintf(out->state, sizeof(out->state), now.is_up ? "up" : "down");
}

/* Return whether the interface segments large UDP datagrams itself; -1:
 * unknown. */
static int segments_udp(const struct sw_eyes *e, const char *name)
{
	struct ethtool_value v = {.cmd = ETHTOOL_GGSO};
	struct ifreq ask = {.ifr_data = (char *)&v};
	int fd, err;

	if (*e->root || strlen(name) >= sizeof(ask.ifr_name))
		return -1;
	strcpy(ask.ifr_name, name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	err = fd < 0 ? -1 : ioctl(fd, SIOCETHTOOL, &ask);
	if (fd >= 0)
		close(fd);
	return err ? -1 : (int)v.data;
}

static void link_check(const struct sw_eyes *e, const char *check,
	const char *name, bool is_port, struct sw_doctor_report *r)
{
	struct link l;
	char mend[SW_DOCTOR_TEXT], speed[48] = "speed not known";
	const char *cut;

	link_read(e, name, &l);
	if (l.speed)
		snprintf(speed, sizeof(speed), "%" PRId64 " Mb/s", l.speed);
	cut = is_port && !segments_udp(e, name) ? ", no segmentation" : "";
	if (is_port && strcmp(l.state, "up") && strcmp(l.state, "unknown")) {
		snprintf(mend, sizeof(mend),
			"sudo ip link set dev %s up, and check the cable",
			name);
		sw_doctor_wrong(r, check, "nothing passes the port", mend,
			"%s: %s", name, *l.state ? l.state : "not there");
	} else if (is_port && l.mtu < MTU_LEAST) {
		snprintf(mend, sizeof(mend), "sudo ip link set dev %s mtu 1500",
			name);
		sw_doctor_wrong(r, check,
			"the smallest frames of tensors do not pass", mend,
			"%s: MTU %" PRId64, name, l.mtu);
	} else if (is_port && *cut) {
		snprintf(mend, sizeof(mend), "sudo ethtool -K %s gso on", name);
		sw_doctor_wrong(r, check,
			"the kernel cuts each datagram earlier, which costs "
			"CPU time of udp ports",
			mend, "%s: generic segmentation is off", name);
	} else {
		sw_doctor_ok(r, check, "%s: %s, MTU %" PRId64 "%s, %s", name,
			l.state, l.mtu,
			is_port && l.mtu < MTU_JUMBO
				? " (9000 costs less CPU time)"
				: "",
			speed);
	}
}

/* Check the interfaces of the configuration's ports. */
static void ports_check(
	const struct sw_eyes *e, const char *check, struct sw_doctor_report *r)
{
	char name[NAME];
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->conf->n_ports; i++) {
		const struct sw_conf_port *p = &e->conf->ports[i];

		if (sw_eyes_device(p, name, sizeof(name))) {
			link_check(e, check, name, true, r);
			n++;
		} else if (p->type == SW_PORT_UDP) {
			char ip[SW_IP_TEXT], mend[SW_DOCTOR_TEXT];

			sw_ip_text(p->subnet.ip, ip);
			snprintf(mend, sizeof(mend),
				"sudo ip address add %s/%u dev INTERFACE, or "
				"correct [port %s] ip",
				ip, p->subnet.bits, p->label);
			sw_doctor_wrong(r, check, "the daemon does not start",
				mend, "port %s: no interface has %s", p->label,
				ip);
			n++;
		}
	}
	if (!n)
		sw_doctor_ok(r, check,
			"no port of the configuration uses one of the kernel");
}

static void check_interfaces(
	const struct sw_eyes *e, const char *check, struct sw_doctor_report *r)
{
	char path[SW_EYES_PATH];
	struct dirent *at;
	uint32_t n = 0;
	DIR *dir;

	if (e->conf) {
		ports_check(e, check, r);
		return;
	}
	sw_eyes_path(e, path, "/sys/class/net");
	dir = opendir(path);
	while (dir && n < INTERFACES && (at = readdir(dir)))
		if (at->d_name[0] != '.' && strcmp(at->d_name, "lo")) {
			link_check(e, check, at->d_name, false, r);
			n++;
		}
	if (dir)
		closedir(dir);
	if (!n)
		sw_doctor_wrong(r, check, "no other machine is reached",
			"ip link shows what there is; in a container, give it "
			"a network",
			"there is no interface except lo");
}

/* --- NUMA nodes --- */

static int64_t node_of_cpu(const struct sw_eyes *e, uint32_t cpu)
{
	char path[SW_EYES_PATH], list[512];

	for (int64_t node = 0; node < 64; node++) {
		snprintf(path, sizeof(path),
			"/sys/devices/system/node/node%" PRId64 "/cpulist",
			node);
		if (sw_eyes_read(e, path, list, sizeof(list)) &&
			sw_eyes_has(list, cpu))
			return node;
	}
	return -1;
}

static int64_t node_of_port(
	const struct sw_eyes *e, const struct sw_conf_port *p)
{
	char path[SW_EYES_PATH], name[NAME];
	struct link l;

	if (p->type == SW_PORT_PCI) {
		snprintf(path, sizeof(path),
			"/sys/bus/pci/devices/%s/numa_node", p->device);
		return sw_eyes_number(e, path, -1);
	}
	if (!sw_eyes_device(p, name, sizeof(name)))
		return -1;
	link_read(e, name, &l);
	return l.numa_node;
}

static void check_nodes(
	const struct sw_eyes *e, const char *check, struct sw_doctor_report *r)
{
	uint32_t cpus[SW_CONF_CPUS_MAX], n = sw_eyes_own_cpus(e, cpus);
	char list[512], mend[SW_DOCTOR_TEXT], path[SW_EYES_PATH];

	for (uint32_t i = 0; n && i < e->conf->n_ports; i++) {
		const struct sw_conf_port *p = &e->conf->ports[i];
		int64_t node = node_of_port(e, p);

		for (uint32_t k = 0; node >= 0 && k < n; k++) {
			int64_t of_cpu = node_of_cpu(e, cpus[k]);

			if (of_cpu < 0 || of_cpu == node)
				continue;
			snprintf(path, sizeof(path),
				"/sys/devices/system/node/node%" PRId64
				"/cpulist",
				node);
			sw_eyes_read(e, path, list, sizeof(list));
			snprintf(mend, sizeof(mend),
				"set [lcore] cpus to CPUs of node %" PRId64
				": %.200s",
				node, list);
			sw_doctor_wrong(r, check,
				"every frame crosses the link between the "
				"sockets",
				mend,
				"port %s is on node %" PRId64
				", CPU %u on node %" PRId64,
				p->label, node, cpus[k], of_cpu);
			return;
		}
	}
	sw_doctor_ok(r, check, "%s",
		n ? "polling cores and ports are on the same nodes, as far as "
		    "known"
		  : "[lcore] cpus names no CPUs");
}

const struct sw_doctor_check sw_doctor_links[] = {
	{"interface", check_interfaces},
	{"NUMA", check_nodes},
	{NULL, NULL},
};
