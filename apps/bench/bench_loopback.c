/* bench_loopback.c - a small job on this machine, for one benchmark.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "apps/launch/run.h"
#include "conf/value.h"

enum { COLOCATED = 2, KEYS = 192 };

#define QUOTA (UINT64_C(64) << 30)

const char *sw_bench_cpus(uint32_t i, uint32_t n, char out[BENCH_CPUS])
{
	uint32_t first = i * n, seen = 0, n_cpus;
	cpu_set_t set;
	size_t at = 0;

	snprintf(out, BENCH_CPUS, "auto");
	if (sched_getaffinity(0, sizeof(set), &set))
		return out;
	n_cpus = (uint32_t)CPU_COUNT(&set);
	if (n_cpus < 2 * n)
		first = 0; /* both sides share the CPUs */
	if (n_cpus < n || n_cpus < 2)
		return out;
	for (int cpu = 0; cpu < CPU_SETSIZE && seen < first + n; cpu++)
		if (CPU_ISSET(cpu, &set) && seen++ >= first)
			at += (size_t)snprintf(out + at, BENCH_CPUS - at,
				"%s%d", at ? "," : "", cpu);
	return out;
}

const char *sw_bench_device(const struct bench_options *o, uint32_t i)
{
	static const char *const names[] = {"sw0", "sw1", "sw2", "sw3"};

	return i < o->devices.n ? o->devices.items[i] : names[i];
}

/* Return the network. udp ports are on lo, so each benchmark has its own
 * network. */
struct sw_ip sw_bench_net(const struct bench_options *o)
{
	if (o->is_ipv6)
		return (struct sw_ip){.high = UINT64_C(0xfd00000000000077)};
	return sw_ip_v4(
		strcmp(o->port, "udp")
			? 10u << 24 | 77u << 16
			: 127u << 24 | ((uint32_t)getpid() & 0xffff) << 8);
}

static void write_keys(const struct bench_options *o, bool is_server, char *out)
{
	const char *faults = o->faults ? o->faults : "0%";
	uint64_t bit_s = o->rate_bit_s;
	char rate[32];

	if (is_server && o->is_results)
		bit_s /= 2;
	sw_value_format(bit_s, SW_UNIT_RATE, rate, sizeof(rate));
	snprintf(out, KEYS,
		"ring = %u\nburst = %u\nrate = %s\nfault_loss = %s\n"
		"fault_dup = %s\nfault_reorder = %s\n",
		o->ring, o->burst, rate, faults, faults, faults);
}

struct work {
	const struct bench_options *o;
	int (*measure)(const struct bench_options *o);
};

/* Measure in the process of the rank, as if the user had named the agents. */
static int work(void *ctx, const struct sw_net *net)
{
	const struct work *w = ctx;
	struct bench_options o = *w->o;
	char agents[COLOCATED][SW_NET_PATH_BYTES];

	setenv("SUMWIRE_LAUNCHER", "none", 1); /* the files assign the ranks */
	o.folder = sw_net_folder(net);
	for (uint32_t i = 0; i < net->n_agents; i++) {
		sw_net_agent(net, i, agents[i]);
		for (uint32_t k = 0; k < o.local_ranks; k++)
			o.agents.items[o.agents.n++] = agents[i];
	}
	return w->measure(&o) ? 1 : 0;
}

int sw_bench_loopback(const struct bench_options *o,
	int (*measure)(const struct bench_options *o))
{
	bool has_device = strcmp(o->port, "memif") && strcmp(o->port, "udp");
	struct work w = {.o = o, .measure = measure};
	char job[80], keys[2][KEYS], cpus[2][BENCH_CPUS];
	struct sw_run run = {.who = "sumwire bench",
		.n_ranks = 1,
		.work = work,
		.ctx = &w,
		.work_name = "the measurement",
		.net = {.n_agents = o->is_colocated ? COLOCATED : 1,
			.is_colocated = o->is_colocated,
			.n_local = o->local_ranks,
			.n_lcores = o->n_lcores,
			.log_level = "warn",
			.quota_bytes = QUOTA,
			.job_keys = job,
			.is_keyed = o->is_keyed || o->is_encrypted,
			.port_type = o->port,
			.ip = o->net}};

	snprintf(job, sizeof(job),
		"policy = %s\ncrc = %s\norder = %s\nencrypt = %s\n", o->policy,
		o->has_no_crc ? "no" : "yes", o->order,
		o->is_encrypted ? "yes" : "no");
	for (uint32_t i = 0; i < 2; i++) {
		write_keys(o, i == 0, keys[i]);
		run.net.ends[i] = (struct sw_net_end){
			.device = has_device ? sw_bench_device(o, i) : NULL,
			.cpus = sw_bench_cpus(i, o->n_lcores, cpus[i]),
			.keys = keys[i]};
	}
	return sw_run_all(&run);
}
