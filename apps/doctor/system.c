/* system.c - checks of kernels, memory, limits, rights and the clock.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/doctor/checks.h"
#include "engine/base/params.h"
#include "pmd/dpdk/udp_need.h"

enum {
	/* enough for a daemon with a few ports and lcores */
	FILES_LEAST = 1024,
	PRIVILEGED = 1024, /* first UDP port that needs no right */
	CAP_OF_BPF = 39,   /* CAP_BPF, which old headers lack */
	HEADS = 82,        /* IPv4, UDP and our header */
	HEADS_V6 = 102,
	OUTER = 128, /* outer headers of a frame, rounded up */
	MTU_UNKNOWN = 9000,
};

static void check_kernels(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	if (e->is_level_low)
		sw_doctor_wrong(r, name,
			"sums run element by element, and limit the rate of "
			"a server",
			"run on a CPU with AVX2; of a virtual machine, pass "
			"the host's CPU through (qemu: -cpu host)",
			"sums use the kernels \"%s\": this CPU has no AVX2",
			e->level);
	else
		sw_doctor_ok(r, name, "sums use the kernels \"%s\"", e->level);
}

/* --- limits: the soft and hard values of /proc/self/limits --- */

static bool limit_read(const struct sw_eyes *e, const char *row, uint64_t *soft,
	uint64_t *hard)
{
	char text[128], a[32], b[32];

	if (!sw_eyes_field(e, "/proc/self/limits", row, text, sizeof(text)) ||
		sscanf(text, "%31s %31s", a, b) != 2)
		return false;
	*soft = a[0] == 'u' ? UINT64_MAX : strtoull(a, NULL, 10);
	*hard = b[0] == 'u' ? UINT64_MAX : strtoull(b, NULL, 10);
	return true;
}

static void check_memlock(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	bool has_rings = sw_eyes_has_port(e, SW_PORT_AF_PACKET) ||
			 sw_eyes_has_port(e, SW_PORT_AF_XDP);
	uint64_t soft, hard;

	if (sw_eyes_capability(e, CAP_IPC_LOCK))
		sw_doctor_ok(r, name, "no limit (CAP_IPC_LOCK)");
	else if (!limit_read(e, "Max locked memory", &soft, &hard))
		sw_doctor_ok(r, name, "the limit is not known");
	else if (!has_rings && hard >= UINT64_C(64) << 10)
		sw_doctor_ok(r, name,
			"%" PRIu64 " KiB may be locked; only ports of type "
			"af_packet and af_xdp need more",
			hard >> 10);
	else if (hard >= UINT64_C(64) << 20)
		sw_doctor_ok(
			r, name, "%" PRIu64 " MiB may be locked", hard >> 20);
	else
		sw_doctor_wrong(r, name,
			"rings of packet and AF_XDP sockets cannot be "
			"registered, and secrets of jobs may be swapped",
			"ulimit -l unlimited, or LimitMEMLOCK=infinity in the "
			"unit",
			"only %" PRIu64 " KiB may be locked", hard >> 10);
}

static void check_files(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	uint64_t soft, hard, need = FILES_LEAST;

	if (e->conf && e->conf->node.role != SW_ROLE_SERVER)
		need += 6 * (uint64_t)e->conf->agent.local_ranks;
	if (!limit_read(e, "Max open files", &soft, &hard))
		sw_doctor_ok(r, name, "the limit is not known");
	else if (hard >= need)
		sw_doctor_ok(r, name, "%" PRIu64 " may be open", hard);
	else
		sw_doctor_wrong(r, name,
			"a daemon with many ports or processes does not start",
			"ulimit -n 65536, or LimitNOFILE=65536 in the unit",
			"only %" PRIu64 " may be open, %" PRIu64 " are needed",
			hard, need);
}

static void check_shared(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	uint64_t soft, hard;

	if (e->memfd_errno)
		sw_doctor_wrong(r, name, "no process can attach to an agent",
			"allow the system call memfd_create in the "
			"container's seccomp profile",
			"memfd_create fails: %s", strerror(e->memfd_errno));
	else if (limit_read(e, "Max file size", &soft, &hard) &&
		 soft < UINT64_C(1) << 30)
		sw_doctor_wrong(r, name,
			"larger tensors are refused, since their memory is a "
			"file",
			"ulimit -f unlimited, or LimitFSIZE=infinity in the "
			"unit",
			"files have at most %" PRIu64 " MiB", soft >> 20);
	else if (limit_read(e, "Max address space", &soft, &hard) &&
		 soft < UINT64_C(8) << 30)
		sw_doctor_wrong(r, name,
			"a daemon may fail to map its memory and that of "
			"processes",
			"ulimit -v unlimited, or LimitAS=infinity in the unit",
			"the address space has at most %" PRIu64 " MiB",
			soft >> 20);
	else
		sw_doctor_ok(r, name, "processes can share memory (memfd)");
}

/* --- huge pages --- */

static void check_hugepages(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	bool is_nic = sw_eyes_has_port(e, SW_PORT_PCI);
	char total[64], free_now[64], size[64];

	if (!sw_eyes_field(e, "/proc/meminfo", "HugePages_Total:", total,
		    sizeof(total)))
		snprintf(total, sizeof(total), "0");
	if (!sw_eyes_field(e, "/proc/meminfo", "HugePages_Free:", free_now,
		    sizeof(free_now)))
		snprintf(free_now, sizeof(free_now), "0");
	sw_eyes_field(e, "/proc/meminfo", "Hugepagesize:", size, sizeof(size));
	if (atoll(total) && (atoll(free_now) || !is_nic))
		sw_doctor_ok(r, name, "%s of %s are free, of %s", free_now,
			total, size);
	else if (is_nic)
		sw_doctor_wrong(r, name, "ports of type pci do not start",
			"sudo sysctl vm.nr_hugepages=512", "%s",
			atoll(total) ? "all are in use" : "none are reserved");
	else
		sw_doctor_ok(r, name,
			"none; only ports of type pci need huge pages");
}

/* --- rights --- */

static bool rights_port(const struct sw_eyes *e, const char *name,
	const struct sw_conf_port *p, struct sw_doctor_report *r)
{
	const char *lacks = NULL;

	if (p->type == SW_PORT_AF_PACKET || p->type == SW_PORT_AF_XDP)
		lacks = sw_eyes_capability(e, CAP_NET_RAW) ? NULL
							   : "CAP_NET_RAW";
	if (p->type == SW_PORT_AF_XDP && !lacks)
		lacks = !sw_eyes_capability(e, CAP_NET_ADMIN) ? "CAP_NET_ADMIN"
			: !sw_eyes_capability(e, CAP_OF_BPF) &&
					!sw_eyes_capability(e, CAP_SYS_ADMIN)
				? "CAP_BPF"
				: NULL;
	if (p->type == SW_PORT_UDP && e->conf->serve.udp_port < PRIVILEGED &&
		!sw_eyes_capability(e, CAP_NET_BIND_SERVICE))
		lacks = "CAP_NET_BIND_SERVICE";
	if (lacks)
		sw_doctor_wrong(r, name, "the daemon does not start",
			"run it as root, or grant the right: "
			"AmbientCapabilities= in the unit, or setcap",
			"port %s lacks %s", p->label, lacks);
	return !lacks;
}

/* Check that a PCI device is bound to a driver that DPDK can use. */
static bool rights_pci(const struct sw_eyes *e, const char *name,
	const struct sw_conf_port *p, struct sw_doctor_report *r)
{
	char path[SW_EYES_PATH], driver[256], mend[SW_DOCTOR_TEXT];
	const char *bound = "none";
	ssize_t n;

	sw_eyes_path(e, path, "/sys/bus/pci/devices/%s/driver", p->device);
	n = readlink(path, driver, sizeof(driver) - 1);
	if (n > 0) {
		driver[n] = '\0';
		bound = strrchr(driver, '/') ? strrchr(driver, '/') + 1
					     : driver;
	}
	/* a Mellanox NIC keeps its kernel driver */
	if (!strcmp(bound, "vfio-pci") || !strcmp(bound, "mlx5_core"))
		return true;
	snprintf(mend, sizeof(mend), "sudo dpdk-devbind.py -b vfio-pci %s",
		p->device);
	sw_doctor_wrong(r, name, "the daemon does not start", mend,
		"port %s: %s is bound to the driver \"%s\"", p->label,
		p->device, bound);
	return false;
}

static void check_rights(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	bool is_good = true;

	if (!e->conf) {
		sw_doctor_ok(r, name,
			"depend on the ports: give the configuration "
			"(--config)");
		return;
	}
	for (uint32_t i = 0; i < e->conf->n_ports; i++) {
		const struct sw_conf_port *p = &e->conf->ports[i];

		is_good &= p->type == SW_PORT_PCI ? rights_pci(e, name, p, r)
						  : rights_port(e, name, p, r);
	}
	if (is_good)
		sw_doctor_ok(r, name, "enough for the %u port%s",
			e->conf->n_ports, e->conf->n_ports == 1 ? "" : "s");
}

/* --- buffers of UDP sockets --- */

static uint32_t mtu_of(const struct sw_eyes *e, const struct sw_conf_port *p)
{
	char device[64], path[128];

	if (!sw_eyes_device(p, device, sizeof(device)))
		return MTU_UNKNOWN;
	snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", device);
	return (uint32_t)sw_eyes_number(e, path, MTU_UNKNOWN);
}

static uint32_t payload_of(
	const struct sw_eyes *e, const struct sw_conf_port *p)
{
	uint32_t heads = sw_ip_is_v4(p->subnet.ip) ? HEADS : HEADS_V6;
	uint32_t mtu = mtu_of(e, p), payload;

	if (e->conf->job.payload_bytes)
		return e->conf->job.payload_bytes;
	payload = mtu > heads ? (mtu - heads) & ~63u : 1152;
	return payload > 8192 ? 8192 : payload < 1152 ? 1152 : payload;
}

/* Return the buffer size that one socket of the port requests
 * (pmd/dpdk/udp_open.c), in bytes. */
static uint32_t receive_bytes(
	const struct sw_eyes *e, const struct sw_conf_port *p)
{
	uint32_t payload = payload_of(e, p);
	uint32_t ring = p->ring_slots ? p->ring_slots : 256;
	struct sw_params params;

	sw_params_init(&params);
	if (e->conf->node.queue_bytes)
		params.queue_bytes = (uint32_t)e->conf->node.queue_bytes;
	if (e->conf->node.role == SW_ROLE_BOTH)
		params.queue_bytes /= 2;
	params.queue_bytes /= sw_conf_n_lcores(e->conf);
	return sw_udp_slots(ring, params.queue_bytes, payload) *
	       sw_udp_charge(payload, OUTER + payload);
}

static void check_rmem(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	int64_t max = sw_eyes_number(e, "/proc/sys/net/core/rmem_max", -1);
	uint32_t need = 0;
	char mend[SW_DOCTOR_TEXT];

	for (uint32_t i = 0; e->conf && i < e->conf->n_ports; i++) {
		const struct sw_conf_port *p = &e->conf->ports[i];
		uint32_t n = p->type == SW_PORT_UDP ? receive_bytes(e, p) : 0;

		need = n > need ? n : need;
	}
	snprintf(mend, sizeof(mend), "sudo sysctl net.core.rmem_max=%u", need);
	if (max < 0)
		sw_doctor_ok(r, name, "the limit is not known");
	else if (!need)
		sw_doctor_ok(r, name,
			"%" PRId64 " bytes; only ports of type udp need more",
			max);
	else if (sw_eyes_capability(e, CAP_NET_ADMIN))
		sw_doctor_ok(
			r, name, "no limit (CAP_NET_ADMIN); %u needed", need);
	else if (max >= need)
		sw_doctor_ok(
			r, name, "%" PRId64 " bytes, %u needed", max, need);
	else
		sw_doctor_wrong(r, name,
			"peers may send less at once, or frames overrun the "
			"socket",
			mend,
			"a socket may have %" PRId64
			" bytes, and the port asks for %u",
			max, need);
}

static void check_wmem(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	int64_t max = sw_eyes_number(e, "/proc/sys/net/core/wmem_max", -1);
	char mend[SW_DOCTOR_TEXT];

	snprintf(mend, sizeof(mend), "sudo sysctl net.core.wmem_max=%d",
		SW_UDP_SEND_BYTES);
	if (max < 0)
		sw_doctor_ok(r, name, "the limit is not known");
	else if (!sw_eyes_has_port(e, SW_PORT_UDP))
		sw_doctor_ok(r, name,
			"%" PRId64 " bytes; only ports of type udp need more",
			max);
	else if (sw_eyes_capability(e, CAP_NET_ADMIN) ||
		 max >= SW_UDP_SEND_BYTES)
		sw_doctor_ok(r, name, "enough for %d bytes", SW_UDP_SEND_BYTES);
	else
		sw_doctor_wrong(r, name,
			"a polling core waits more often for the kernel", mend,
			"a socket may have %" PRId64
			" bytes, and the port asks for %d",
			max, SW_UDP_SEND_BYTES);
}

static void check_clock(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	static const char *const path =
		"/sys/devices/system/clocksource/clocksource0/";
	char now[64], all[256], file[128];

	snprintf(file, sizeof(file), "%scurrent_clocksource", path);
	if (!sw_eyes_read(e, file, now, sizeof(now))) {
		sw_doctor_ok(r, name, "the clock's source is not known");
		return;
	}
	snprintf(file, sizeof(file), "%savailable_clocksource", path);
	sw_eyes_read(e, file, all, sizeof(all));
	if (!strcmp(now, "hpet") || !strcmp(now, "acpi_pm") ||
		!strcmp(now, "jiffies") || !strcmp(now, "refined-jiffies"))
		sw_doctor_wrong(r, name,
			"each look at the clock is a slow access to a device",
			strstr(all, "tsc")
				? "echo tsc | sudo tee /sys/devices/system/"
				  "clocksource/clocksource0/"
				  "current_clocksource"
				: "look in dmesg why the kernel gave up tsc; "
				  "boot with tsc=reliable if the CPU's is good",
			"the kernel's clock is %s", now);
	else
		sw_doctor_ok(r, name, "%s", now);
}

/* Report the module for small sums.  A machine without PyTorch does not need
 * it, so its absence is no problem. */
static void check_quick(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	if (e->has_quick)
		sw_doctor_ok(r, name,
			"quick.abi3.so carries small synchronous sums");
	else
		sw_doctor_ok(r, name,
			"small sums go through Python and are slower: "
			"quick.abi3.so is not beside this command");
}

const struct sw_doctor_check sw_doctor_system[] = {
	{"kernels", check_kernels},
	{"memlock", check_memlock},
	{"open files", check_files},
	{"shared memory", check_shared},
	{"hugepages", check_hugepages},
	{"rights", check_rights},
	{"rmem_max", check_rmem},
	{"wmem_max", check_wmem},
	{"clock", check_clock},
	{"PyTorch", check_quick},
	{NULL, NULL},
};
