/* topo_draw.c - a machine as a tree, and its plan in words.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "apps/topo/topo.h"

/* --- the tree --- */

/* Line being drawn: its level, and whether the line above each level
 * continues. */
struct tree {
	bool is_last[4]; /* by level */
};

static void branch(struct tree *t, uint32_t depth, bool is_last)
{
	t->is_last[depth] = is_last;
	for (uint32_t i = 0; i < depth; i++)
		printf("%s", t->is_last[i] ? "    " : "|   ");
	printf("%s", is_last ? "`-- " : "|-- ");
}

static void print_link(double link)
{
	if (link > 0)
		printf(", %.3g GB/s", 1e-9 * link);
}

static void print_bus(const char *bus)
{
	if (*bus)
		printf(", %s", bus);
}

static void print_gpu(const struct sw_machine *m, uint32_t i)
{
	const struct sw_machine_device *d = &m->gpus[i];

	printf("GPU%u", i);
	if (d->name[0])
		printf(", %s", d->name);
	print_bus(d->bus);
	print_link(d->link);
	if (d->nvlink > 0)
		printf(", NVLink %.3g GB/s", 1e-9 * d->nvlink);
	printf("\n");
}

static void print_nic(
	const struct sw_machine *m, const struct sw_topo_plan *p, uint32_t i)
{
	const struct sw_machine_device *d = &m->nics[i];

	printf("%s, NIC", d->name);
	if (strcmp(d->name, d->bus))
		print_bus(d->bus);
	print_link(d->link);
	if (d->wire > 0)
		printf(", %.3g Gb/s to the network", 8e-9 * d->wire);
	printf("%s\n", p->is_used[i] ? "" : " (not used)");
}

static bool is_at(
	const struct sw_machine_device *d, int numa_node, int switch_no)
{
	return d->switch_no == switch_no &&
	       (switch_no != SW_MACHINE_NONE || d->numa_node == numa_node);
}

static uint32_t count(const struct sw_machine *m, int numa_node, int switch_no)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_gpus; i++)
		n += is_at(&m->gpus[i], numa_node, switch_no);
	for (uint32_t i = 0; i < m->n_nics; i++)
		n += is_at(&m->nics[i], numa_node, switch_no);
	return n;
}

/* Draw the devices under switch @switch_no, or at root ports of @numa_node. */
static void draw_devices(struct tree *t, uint32_t depth,
	const struct sw_machine *m, const struct sw_topo_plan *p, int numa_node,
	int switch_no)
{
	uint32_t left = count(m, numa_node, switch_no);

	for (uint32_t i = 0; i < m->n_gpus; i++)
		if (is_at(&m->gpus[i], numa_node, switch_no)) {
			branch(t, depth, --left == 0);
			print_gpu(m, i);
		}
	for (uint32_t i = 0; i < m->n_nics; i++)
		if (is_at(&m->nics[i], numa_node, switch_no)) {
			branch(t, depth, --left == 0);
			print_nic(m, p, i);
		}
}

static void draw_below(struct tree *t, const struct sw_machine *m,
	const struct sw_topo_plan *p, int numa_node)
{
	uint32_t left = count(m, numa_node, SW_MACHINE_NONE);

	for (uint32_t i = 0; i < m->n_switches; i++)
		left += m->switches[i].numa_node == numa_node;
	for (uint32_t i = 0; i < m->n_switches; i++) {
		if (m->switches[i].numa_node != numa_node)
			continue;
		branch(t, 1, --left == 0);
		printf("P%u, PCIe switch", i);
		print_bus(m->switches[i].bus);
		print_link(m->switches[i].link);
		printf("\n");
		draw_devices(t, 2, m, p, numa_node, (int)i);
	}
	draw_devices(t, 1, m, p, numa_node, SW_MACHINE_NONE);
}

static bool has_homeless(const struct sw_machine *m)
{
	bool found = count(m, SW_MACHINE_NONE, SW_MACHINE_NONE) > 0;

	for (uint32_t i = 0; i < m->n_switches; i++)
		found |= m->switches[i].numa_node == SW_MACHINE_NONE;
	return found;
}

void sw_topo_draw(const struct sw_machine *m, const struct sw_topo_plan *p)
{
	bool is_more = has_homeless(m);
	struct tree t = {{false}};

	printf("machine\n");
	for (uint32_t i = 0; i < m->n_numa_nodes; i++) {
		const struct sw_machine_numa_node *n = &m->numa_nodes[i];

		branch(&t, 0, i + 1 == m->n_numa_nodes && !is_more);
		printf("NUMA node %u%s%s\n", n->id, n->cpus[0] ? ", CPUs " : "",
			n->cpus);
		draw_below(&t, m, p, (int)n->id);
	}
	if (!is_more)
		return;
	branch(&t, 0, true);
	printf("at no NUMA node that is known\n");
	draw_below(&t, m, p, SW_MACHINE_NONE);
}

/* --- the plan --- */

static const char *size_text(double bytes, char out[32])
{
	if (bytes >= 1e9)
		snprintf(out, 32, "%.4g GB", 1e-9 * bytes);
	else
		snprintf(out, 32, "%.4g MB", 1e-6 * bytes);
	return out;
}

static const char *node_text(int numa_node, char out[32])
{
	if (numa_node == SW_MACHINE_NONE)
		return "the CPU";
	snprintf(out, 32, "NUMA node %d", numa_node);
	return out;
}

/* Print the GPUs of @uplink, such as "GPU0 to GPU3" or "GPU0, GPU4". */
static void print_gpus(const struct sw_machine *m, const struct sw_topo_plan *p,
	uint32_t uplink)
{
	const char *before = "";

	for (uint32_t i = 0; i < m->n_gpus; i++) {
		uint32_t end = i;

		if (p->uplink_of[i] != uplink)
			continue;
		while (end + 1 < m->n_gpus && p->uplink_of[end + 1] == uplink)
			end++;
		printf("%sGPU%u", before, i);
		if (end > i)
			printf("%sGPU%u", end > i + 1 ? " to " : ", ", end);
		before = ", ";
		i = end;
	}
}

static const struct sw_topo_uplink *uplink_of(
	const struct sw_topo_plan *p, uint32_t gpu)
{
	return &p->uplinks[p->uplink_of[gpu]];
}

static void tell_assisted(
	const struct sw_machine *m, const struct sw_topo_plan *p)
{
	char all[32], part[32], node[32];

	size_text(p->m_bytes, all);
	for (uint32_t i = 0; i < p->n_uplinks; i++) {
		const struct sw_topo_uplink *o = &p->uplinks[i];

		if (!o->n_gpus)
			continue;
		printf("  %s: ", o->name);
		print_gpus(m, p, i);
		if (o->n_gpus > 1)
			printf(" reduce-scatter %s under it; each", all);
		printf(" copies %s to %s: %s over %s's link\n",
			size_text(p->m_bytes / o->n_gpus, part),
			node_text(o->numa_node, node), all, o->name);
	}
	if (p->s_n + p->s_g > 1)
		printf("  the CPU adds what the %u bring\n", p->s_n + p->s_g);
	printf("  back: the same copies, then all-gather under each\n");
}

static void tell_root(
	const struct sw_machine *m, const struct sw_topo_plan *p, uint32_t root)
{
	char all[32], node[32];

	size_text(p->m_bytes, all);
	printf("  all GPUs reduce %s to GPU%u, which shares no switch with a "
	       "NIC\n"
	       "  GPU%u copies %s to %s over %s's link\n"
	       "  back: GPU%u copies %s, and broadcasts it to all GPUs\n",
		all, root, root, all,
		node_text(uplink_of(p, root)->numa_node, node),
		uplink_of(p, root)->name, root, all);
	(void)m;
}

static void tell_scatter(
	const struct sw_machine *m, const struct sw_topo_plan *p)
{
	char all[32], part[32];

	printf("  all GPUs reduce-scatter %s over NVLink; each copies %s to "
	       "the CPU over its switch's link\n"
	       "  back: the same copies, then all-gather over NVLink\n",
		size_text(p->m_bytes, all),
		size_text(p->m_bytes / m->n_gpus, part));
}

static void tell_steps(const struct sw_machine *m, const struct sw_topo_plan *p)
{
	const struct sw_topo_choice *c = &p->choices[p->best];
	char all[32], node[32];

	if (c->way == SW_TOPO_ASSISTED)
		tell_assisted(m, p);
	else if (c->way == SW_TOPO_ROOT)
		tell_root(m, p, c->root);
	else if (c->way == SW_TOPO_SCATTER)
		tell_scatter(m, p);
	else
		printf("  GPU0 copies %s to %s over its link, and back\n",
			size_text(p->m_bytes, all),
			node_text(uplink_of(p, 0)->numa_node, node));
}

static const char *const words[SW_N_TOPO_WAYS] = {"copy",
	"CPU-assisted aggregation", "mixture of both", "brute-force copy",
	"ring over all GPUs", "reduce and broadcast",
	"reduce and broadcast, beside the NIC",
	"reduce-scatter and all-gather"};

static void tell_choices(const struct sw_topo_plan *p)
{
	char what[64];

	printf("\n  %-48s %10s  %s\n", "choice (* BytePS's)", "J",
		"busiest link");
	for (uint32_t i = 0; i < p->n_choices; i++) {
		const struct sw_topo_choice *c = &p->choices[i];
		int n = snprintf(what, sizeof(what), "%s", words[c->way]);

		if (c->way == SW_TOPO_MIXED)
			snprintf(what + n, sizeof(what) - (size_t)n,
				", x = %.3g", c->x);
		if (c->way == SW_TOPO_ROOT || c->way == SW_TOPO_NEAR)
			snprintf(what + n, sizeof(what) - (size_t)n,
				", root GPU%u", c->root);
		printf("%c %-48s %8.3f s  %s\n", i == p->best ? '*' : ' ', what,
			c->time_s, c->link);
	}
}

static void tell_nics(const struct sw_machine *m, const struct sw_topo_plan *p)
{
	char text[32];

	printf("\nnetwork: ");
	if (!p->n_used)
		printf("no NIC");
	for (uint32_t i = 0, n = 0; i < m->n_nics; i++)
		if (p->is_used[i])
			printf("%s%s", n++ ? ", " : "", m->nics[i].name);
	printf(" of %s each way: %.3f s\n", size_text(p->nic_bytes, text),
		p->wire_s);
}

/* Advise the agent's lcores and memory: they should be near the NIC. */
static void tell_agent(const struct sw_machine *m, const struct sw_topo_plan *p)
{
	int numa_node = SW_MACHINE_NONE;

	for (uint32_t i = 0; i < m->n_nics && numa_node == SW_MACHINE_NONE; i++)
		if (p->is_used[i])
			numa_node = m->nics[i].numa_node;
	for (uint32_t i = 0; i < m->n_numa_nodes && m->n_numa_nodes > 1; i++)
		if ((int)m->numa_nodes[i].id == numa_node)
			printf("agent: [lcore] cpus of NUMA node %d%s%s, the "
			       "NIC's\n",
				numa_node, m->numa_nodes[i].cpus[0] ? ": " : "",
				m->numa_nodes[i].cpus);
}

void sw_topo_tell(const struct sw_machine *m, const struct sw_topo_plan *p)
{
	char text[32];

	printf("\nBytePS's plan for %s (S_n = %u, S_g = %u, %s NVLink): %s\n",
		size_text(p->m_bytes, text), p->s_n, p->s_g,
		p->has_nvlink ? "with" : "without",
		words[p->choices[p->best].way]);
	tell_steps(m, p);
	tell_choices(p);
	tell_nics(m, p);
	tell_agent(m, p);
}
