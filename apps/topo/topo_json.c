/* topo_json.c - a machine and its plan as one JSON object.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "apps/cli/json.h"
#include "apps/topo/topo.h"

static double known(double value)
{
	return value > 0 ? value : NAN;
}

static void write_place(struct sw_json *j, const char *key, int place)
{
	if (place == SW_MACHINE_NONE)
		sw_json_text(j, key, NULL);
	else
		sw_json_u64(j, key, (uint64_t)place);
}

static void write_device(struct sw_json *j, const struct sw_machine_device *d)
{
	sw_json_text(j, "name", d->name[0] ? d->name : NULL);
	sw_json_text(j, "bus", d->bus[0] ? d->bus : NULL);
	write_place(j, "switch", d->switch_no);
	write_place(j, "numa_node", d->numa_node);
	sw_json_double(j, "pcie_bytes_s", known(d->link));
}

static void write_machine(struct sw_json *j, const struct sw_machine *m,
	const struct sw_topo_plan *p)
{
	sw_json_array_open(j, "numa_nodes");
	for (uint32_t i = 0; i < m->n_numa_nodes; i++) {
		sw_json_object_open(j, NULL);
		sw_json_u64(j, "numa_node", m->numa_nodes[i].id);
		sw_json_text(j, "cpus",
			m->numa_nodes[i].cpus[0] ? m->numa_nodes[i].cpus
						 : NULL);
		sw_json_close(j);
	}
	sw_json_close(j);
	sw_json_array_open(j, "switches");
	for (uint32_t i = 0; i < m->n_switches; i++) {
		const struct sw_machine_switch *s = &m->switches[i];

		sw_json_object_open(j, NULL);
		sw_json_text(j, "bus", s->bus[0] ? s->bus : NULL);
		write_place(j, "numa_node", s->numa_node);
		sw_json_double(j, "pcie_bytes_s", known(s->link));
		sw_json_close(j);
	}
	sw_json_close(j);
	sw_json_array_open(j, "gpus");
	for (uint32_t i = 0; i < m->n_gpus; i++) {
		sw_json_object_open(j, NULL);
		write_device(j, &m->gpus[i]);
		sw_json_double(j, "nvlink_bytes_s", known(m->gpus[i].nvlink));
		sw_json_close(j);
	}
	sw_json_close(j);
	sw_json_array_open(j, "nics");
	for (uint32_t i = 0; i < m->n_nics; i++) {
		sw_json_object_open(j, NULL);
		write_device(j, &m->nics[i]);
		sw_json_bool(j, "is_used", p->is_used[i]);
		sw_json_close(j);
	}
	sw_json_close(j);
}

/* Return the bytes that a GPU copies to its NUMA node, each way. */
static double copied(
	const struct sw_topo_plan *p, const struct sw_machine *m, uint32_t gpu)
{
	const struct sw_topo_choice *c = &p->choices[p->best];

	if (c->way == SW_TOPO_ROOT)
		return gpu == c->root ? p->m_bytes : 0;
	if (c->way == SW_TOPO_SCATTER)
		return p->m_bytes / m->n_gpus;
	return p->m_bytes / p->uplinks[p->uplink_of[gpu]].n_gpus;
}

static void write_choice(struct sw_json *j, const struct sw_topo_choice *c)
{
	bool has_root = c->way == SW_TOPO_ROOT || c->way == SW_TOPO_NEAR;

	sw_json_object_open(j, NULL);
	sw_json_text(j, "way", sw_topo_way_name(c->way));
	if (c->way == SW_TOPO_MIXED)
		sw_json_double(j, "x", c->x);
	if (has_root)
		sw_json_u64(j, "root", c->root);
	sw_json_double(j, "time_s", c->time_s);
	sw_json_text(j, "busiest_link", c->link);
	sw_json_close(j);
}

static void write_plan(struct sw_json *j, const struct sw_machine *m,
	const struct sw_topo_plan *p)
{
	const struct sw_topo_choice *best = &p->choices[p->best];

	sw_json_object_open(j, "plan");
	sw_json_u64(j, "s_n", p->s_n);
	sw_json_u64(j, "s_g", p->s_g);
	sw_json_bool(j, "has_nvlink", p->has_nvlink);
	sw_json_double(j, "bytes", p->m_bytes);
	sw_json_text(j, "way", sw_topo_way_name(best->way));
	if (best->way == SW_TOPO_ROOT)
		sw_json_u64(j, "root", best->root);
	sw_json_array_open(j, "copied_bytes");
	for (uint32_t i = 0; i < m->n_gpus; i++)
		sw_json_double(j, NULL, copied(p, m, i));
	sw_json_close(j);
	sw_json_array_open(j, "choices");
	for (uint32_t i = 0; i < p->n_choices; i++)
		write_choice(j, &p->choices[i]);
	sw_json_close(j);
	sw_json_double(j, "network_bytes", p->nic_bytes);
	sw_json_double(j, "network_s", known(p->wire_s));
	sw_json_close(j);
}

int sw_topo_write(const struct sw_machine *m, const struct sw_topo_plan *p)
{
	struct sw_json j;

	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	write_machine(&j, m, p);
	if (m->n_gpus)
		write_plan(&j, m, p);
	else
		sw_json_text(&j, "plan", NULL);
	sw_json_close(&j);
	return sw_json_fini(&j);
}
