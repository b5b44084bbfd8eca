/* topo.c - sumwire-lab topo: the devices of a machine, and how its GPUs sum.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/topo/topo.h"

#include <stdio.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/topo/plan_share.h"
#include "engine/base/error.h"

enum { MACHINES = 1024 };

struct topo {
	const char *xml, *conf;
	bool is_bare, is_json;
	uint64_t bytes, pcie_bits_s, cross_bits_s, wire_bits_s;
	uint32_t n, k; /* numbers of machines with GPUs and of CPU machines */
	struct sw_arg_list nics;
	struct sw_machine machine;
	struct sw_topo_plan plan;
};

static int parse(struct topo *o, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"--xml", SW_ARG_PATH, {.string = &o->xml}, 0, 0,
			"read a machine from an XML file of lstopo instead of "
			"looking at this one"},
		{"--conf", SW_ARG_PATH, {.string = &o->conf}, 0, 0,
			"description that adds to the machine or changes it"},
		{"--bare", SW_ARG_FLAG, {.flag = &o->is_bare}, 0, 0,
			"start from nothing: --conf describes the whole "
			"machine"},
		{"--nic", SW_ARG_LIST, {.list = &o->nics}, 0, 0,
			"NIC to use [default: those with the widest PCIe "
			"link]"},
		{"--size", SW_ARG_BYTES, {.u64 = &o->bytes}, 1, 1ULL << 44,
			"bytes of gradients on each GPU (M)"},
		{"--pcie", SW_ARG_RATE, {.u64 = &o->pcie_bits_s}, 0, 1e13,
			"bandwidth of every PCIe link, each way; 0: from hwloc "
			"or --conf, else 104.8Gb/s"},
		{"--cross", SW_ARG_RATE, {.u64 = &o->cross_bits_s}, 0, 1e13,
			"bandwidth of copies between GPUs under different "
			"switches; 0: from --conf, else that of the slowest "
			"PCIe link"},
		{"--rate", SW_ARG_RATE, {.u64 = &o->wire_bits_s}, 1e6, 1e13,
			"rate of each NIC, each way, unless --conf gives it"},
		{"--gpus", SW_ARG_U32, {.u32 = &o->n}, 1, MACHINES,
			"number of GPU machines of the job, to compute the "
			"NICs' load"},
		{"--cpus", SW_ARG_U32, {.u32 = &o->k}, 0, MACHINES,
			"number of CPU machines that sum, to compute the NICs' "
			"load"},
		{"--json", SW_ARG_FLAG, {.flag = &o->is_json}, 0, 0,
			"print one JSON object"},
	};
	const struct sw_args args = {.name = "sumwire-lab topo",
		.summary = "show PCIe switches, NUMA nodes, NICs and GPUs of a "
			   "machine, and BytePS's plan for its sums",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0])};
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err;
	if (o->is_bare && (!o->conf || o->xml)) {
		fprintf(stderr, "sumwire-lab topo: --bare needs --conf, and "
				"excludes --xml\n");
		return SW_EINVAL;
	}
	return 0;
}

/* --- the machine --- */

static void say(void *ctx, enum sw_log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	fprintf(stderr, "sumwire-lab topo: %s\n", text);
}

static void set_links(struct sw_machine *m, double link)
{
	for (uint32_t i = 0; i < m->n_switches; i++)
		m->switches[i].link = link;
	for (uint32_t i = 0; i < m->n_gpus; i++)
		m->gpus[i].link = link;
	for (uint32_t i = 0; i < m->n_nics; i++)
		m->nics[i].link = link;
}

static int find_machine(struct topo *o)
{
	const struct sw_log log = {.line = say, .level = SW_LOG_ERROR};
	struct sw_machine *m = &o->machine;
	char why[256];
	int err = 0;

	if (o->xml)
		err = sw_topo_read(m, o->xml, why, sizeof(why));
	else if (!o->is_bare)
		err = sw_machine_read(m, NULL, why, sizeof(why));
	if (err) {
		fprintf(stderr, "sumwire-lab topo: %s%s%s\n",
			o->xml ? o->xml : "", o->xml ? ": " : "", why);
		return err;
	}
	if (o->conf)
		err = sw_topo_describe(m, &o->plan.cross, o->conf, &log);
	if (err)
		return err;
	if (sw_topo_check(m, why, sizeof(why))) {
		fprintf(stderr, "sumwire-lab topo: %s\n", why);
		return SW_ECONF;
	}
	return 0;
}

/* --- the plan --- */

/* Return the bytes of the NICs with colocated servers and optimal shares
 * (plan_share.h). */
static double nic_bytes(const struct topo *o)
{
	return sw_plan_share(o->n, o->k, (double)o->bytes, 1).optimal_s;
}

static int plan(struct topo *o)
{
	struct sw_topo_plan *p = &o->plan;
	const char *unknown =
		sw_topo_use(p, &o->machine, o->nics.items, o->nics.n);

	if (unknown) {
		fprintf(stderr,
			"sumwire-lab topo: this machine has no NIC \"%s\"\n",
			unknown);
		return SW_ENOENT;
	}
	if (o->pcie_bits_s)
		set_links(&o->machine, (double)o->pcie_bits_s / 8);
	if (o->cross_bits_s)
		p->cross = (double)o->cross_bits_s / 8;
	p->wire = (double)o->wire_bits_s / 8;
	p->m_bytes = (double)o->bytes;
	p->nic_bytes = nic_bytes(o);
	if (o->machine.n_gpus)
		sw_topo_make_plan(p, &o->machine);
	return 0;
}

static int print(const struct topo *o)
{
	int err = 0;

	if (o->is_json)
		err = sw_topo_write(&o->machine, &o->plan);
	else
		sw_topo_draw(&o->machine, &o->plan);
	if (!o->machine.n_gpus) {
		fflush(stdout);
		fprintf(stderr,
			"sumwire-lab topo: there is no GPU, so there is "
			"nothing to plan\n");
		return SW_ENOENT;
	}
	if (!o->is_json)
		sw_topo_tell(&o->machine, &o->plan);
	return err;
}

int sw_cmd_topo(int argc, char **argv)
{
	struct topo o = {.bytes = 1000000000,
		.wire_bits_s = 100ULL * 1000 * 1000 * 1000,
		.n = 8};
	int err = parse(&o, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (find_machine(&o))
		return 2;
	return plan(&o) ? 2 : print(&o) ? 1 : 0;
}
