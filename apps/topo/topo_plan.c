/* topo_plan.c - the ways to sum in a machine, and the time of each.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/topo/topo.h"

/* Bandwidth of an unknown PCIe link: 13.1 GB/s, as BytePS measured on PCIe 3.0
 * x16. */
#define PCIE_BYTES_S 13.1e9

enum { STEPS = 60 }; /* search steps in [0, 1]: precise to 1e-10 */

static const char *const names[SW_N_TOPO_WAYS] = {"copy", "cpu_assisted",
	"mixed", "brute_force", "ring", "root", "root_beside_nic",
	"reduce_scatter"};

const char *sw_topo_way_name(enum sw_topo_way way)
{
	return names[way];
}

static double link_of(double known)
{
	return known > 0 ? known : PCIE_BYTES_S;
}

static double gpu_link(const struct sw_machine *m, uint32_t gpu)
{
	return link_of(m->gpus[gpu].link);
}

/* --- checks --- */

static bool has_node(const struct sw_machine *m, int numa_node)
{
	bool is_there = numa_node == SW_MACHINE_NONE;

	for (uint32_t i = 0; i < m->n_numa_nodes; i++)
		is_there |= (int)m->numa_nodes[i].id == numa_node;
	return is_there;
}

static const char *check_device(const struct sw_machine *m, const char *name,
	const struct sw_machine_device *d, char *why, size_t size)
{
	int at = d->switch_no;

	if (!has_node(m, d->numa_node))
		snprintf(why, size,
			"the machine contradicts itself: %s is at NUMA node "
			"%d, "
			"which it does not have",
			name, d->numa_node);
	else if (at != SW_MACHINE_NONE &&
		 d->numa_node != m->switches[at].numa_node)
		snprintf(why, size,
			"the machine contradicts itself: %s is at NUMA node "
			"%d, but "
			"its switch P%d at NUMA node %d",
			name, d->numa_node, at, m->switches[at].numa_node);
	else if (at == SW_MACHINE_NONE && d->numa_node == SW_MACHINE_NONE &&
		 !d->bus[0])
		snprintf(why, size,
			"%s is nowhere: its switch or its NUMA node has to be "
			"given",
			name);
	else
		return NULL;
	return why;
}

static bool is_empty(const struct sw_machine *m, int at)
{
	bool is_used = false;

	for (uint32_t i = 0; i < m->n_gpus; i++)
		is_used |= m->gpus[i].switch_no == at;
	for (uint32_t i = 0; i < m->n_nics; i++)
		is_used |= m->nics[i].switch_no == at;
	return !is_used;
}

static const char *check_switch(
	const struct sw_machine *m, uint32_t i, char *why, size_t size)
{
	if (!has_node(m, m->switches[i].numa_node))
		snprintf(why, size,
			"the machine contradicts itself: P%u is at NUMA node "
			"%d, "
			"which it does not have",
			i, m->switches[i].numa_node);
	else if (is_empty(m, (int)i))
		snprintf(why, size,
			"the machine contradicts itself: P%u has neither GPU "
			"nor NIC",
			i);
	else
		return NULL;
	return why;
}

const char *sw_topo_check(const struct sw_machine *m, char *why, size_t size)
{
	const char *fault = NULL;
	uint32_t n_linked = 0;
	char name[16];

	for (uint32_t i = 0; i < m->n_switches && !fault; i++)
		fault = check_switch(m, i, why, size);
	for (uint32_t i = 0; i < m->n_gpus && !fault; i++) {
		snprintf(name, sizeof(name), "GPU%u", i);
		fault = check_device(m, name, &m->gpus[i], why, size);
		n_linked += m->gpus[i].nvlink > 0;
	}
	for (uint32_t i = 0; i < m->n_nics && !fault; i++)
		fault = check_device(
			m, m->nics[i].name, &m->nics[i], why, size);
	if (!fault && n_linked == 1) {
		snprintf(why, size,
			"the machine contradicts itself: one GPU alone has "
			"NVLink");
		fault = why;
	}
	return fault;
}

/* --- NICs and uplinks --- */

static const char *use_named(struct sw_topo_plan *p, const struct sw_machine *m,
	const char *const *wanted, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		bool is_there = false;

		for (uint32_t k = 0; k < m->n_nics; k++)
			if (!strcmp(m->nics[k].name, wanted[i]))
				p->is_used[k] = is_there = true;
		if (!is_there)
			return wanted[i];
	}
	return NULL;
}

const char *sw_topo_use(struct sw_topo_plan *p, const struct sw_machine *m,
	const char *const *wanted, uint32_t n)
{
	const char *fault = use_named(p, m, wanted, n);
	double widest = 0;

	for (uint32_t i = 0; i < m->n_nics; i++)
		widest = fmax(widest, m->nics[i].link);
	for (uint32_t i = 0; i < m->n_nics; i++) {
		if (!n)
			p->is_used[i] = m->nics[i].link >= widest;
		p->n_used += p->is_used[i];
	}
	return fault;
}

static void open_uplinks(struct sw_topo_plan *p, const struct sw_machine *m)
{
	p->n_uplinks = m->n_switches;
	for (uint32_t i = 0; i < m->n_switches; i++) {
		p->uplinks[i] = (struct sw_topo_uplink){
			.numa_node = m->switches[i].numa_node,
			.link = link_of(m->switches[i].link)};
		snprintf(p->uplinks[i].name, sizeof(p->uplinks[i].name), "P%u",
			i);
	}
	for (uint32_t i = 0; i < m->n_gpus; i++) {
		const struct sw_machine_device *d = &m->gpus[i];
		struct sw_topo_uplink *own = &p->uplinks[p->n_uplinks];

		p->uplink_of[i] = (uint32_t)d->switch_no;
		if (d->switch_no == SW_MACHINE_NONE) {
			*own = (struct sw_topo_uplink){
				.numa_node = d->numa_node,
				.link = gpu_link(m, i)};
			snprintf(own->name, sizeof(own->name), "GPU%u", i);
			p->uplink_of[i] = p->n_uplinks++;
		}
		p->uplinks[p->uplink_of[i]].n_gpus++;
	}
	for (uint32_t i = 0; i < m->n_nics; i++)
		if (p->is_used[i] && m->nics[i].switch_no != SW_MACHINE_NONE)
			p->uplinks[m->nics[i].switch_no].n_nics++;
	for (uint32_t i = 0; i < p->n_uplinks; i++) {
		p->s_n += p->uplinks[i].n_gpus && p->uplinks[i].n_nics;
		p->s_g += p->uplinks[i].n_gpus && !p->uplinks[i].n_nics;
	}
}

/* --- the time of a way --- */

/* Bytes that each link carries, each way. */
struct traffic {
	const struct sw_topo_plan *p;
	const struct sw_machine *m;
	double gpu[SW_MACHINE_MAX], uplink[2 * SW_MACHINE_MAX];
	double nvlink; /* at each GPU */
	double cross;  /* between switches, by copies of the GPUs */
};

static struct traffic nic_traffic(
	const struct sw_topo_plan *p, const struct sw_machine *m)
{
	struct traffic t = {.p = p, .m = m};

	for (uint32_t i = 0; i < p->n_uplinks && p->n_used; i++)
		t.uplink[i] = p->nic_bytes * p->uplinks[i].n_nics / p->n_used;
	return t;
}

static void busier(
	struct sw_topo_choice *c, double bytes, double rate, const char *link)
{
	double s = rate > 0 ? bytes / rate : 0;

	if (s <= c->time_s * (1 + 1e-9))
		return;
	c->time_s = s;
	snprintf(c->link, sizeof(c->link), "%s", link);
}

/* Return the bandwidth from GPU to GPU under different switches.  If it is
 * unknown, assume the slowest link of a GPU or switch. */
static double cross_rate(const struct traffic *t)
{
	double slowest = INFINITY;

	if (t->p->cross > 0)
		return t->p->cross;
	for (uint32_t i = 0; i < t->m->n_gpus; i++)
		slowest = fmin(slowest, gpu_link(t->m, i));
	for (uint32_t i = 0; i < t->p->n_uplinks; i++)
		slowest = fmin(slowest, t->p->uplinks[i].link);
	return slowest;
}

static void set_time(struct sw_topo_choice *c, const struct traffic *t)
{
	char name[24];

	c->time_s = 0;
	for (uint32_t i = 0; i < t->p->n_uplinks; i++) {
		snprintf(
			name, sizeof(name), "%s to CPU", t->p->uplinks[i].name);
		busier(c, t->uplink[i], t->p->uplinks[i].link, name);
	}
	for (uint32_t i = 0; i < t->m->n_gpus; i++) {
		snprintf(name, sizeof(name), "GPU%u", i);
		busier(c, t->gpu[i], gpu_link(t->m, i), name);
		busier(c, t->nvlink, t->m->gpus[i].nvlink, "NVLink");
	}
	busier(c, t->cross, cross_rate(t), "switch to switch");
}

/* Equations 8 and 9, applied to each switch separately. */
static void mix(struct sw_topo_choice *c, const struct sw_topo_plan *p,
	const struct sw_machine *m)
{
	struct traffic t = nic_traffic(p, m);
	double x = c->x, y = 1 - x;

	for (uint32_t i = 0; i < p->n_uplinks; i++)
		if (p->uplinks[i].n_gpus)
			t.uplink[i] +=
				(p->uplinks[i].n_gpus * x + y) * p->m_bytes;
	for (uint32_t i = 0; i < m->n_gpus; i++) {
		double n = p->uplinks[p->uplink_of[i]].n_gpus;

		t.gpu[i] = (x + (2 * n - 1) / n * y) * p->m_bytes;
	}
	set_time(c, &t);
}

/* Find the best x.  The time is convex in x, so shrink [0, 1] by thirds. */
static void mix_best(struct sw_topo_choice *c, const struct sw_topo_plan *p,
	const struct sw_machine *m)
{
	double low = 0, high = 1;
	struct sw_topo_choice a = *c, b = *c;

	for (uint32_t i = 0; i < STEPS; i++) {
		a.x = low + (high - low) / 3;
		b.x = high - (high - low) / 3;
		mix(&a, p, m);
		mix(&b, p, m);
		if (a.time_s > b.time_s)
			low = a.x;
		else
			high = b.x;
	}
	c->x = round((low + high) / 2 * 1e9) / 1e9;
	mix(c, p, m);
}

/* Compute J of a ring over all GPUs.  Below a single switch, the ring loads no
 * uplink. */
static void ring(struct sw_topo_choice *c, const struct sw_topo_plan *p,
	const struct sw_machine *m)
{
	struct traffic t = nic_traffic(p, m);
	double bytes = 2 * (m->n_gpus - 1.0) / m->n_gpus * p->m_bytes;

	for (uint32_t i = 0; i < m->n_gpus; i++)
		t.gpu[i] = bytes;
	if (p->s_n + p->s_g > 1) {
		t.cross = bytes;
		for (uint32_t i = 0; i < p->n_uplinks; i++)
			t.uplink[i] += p->uplinks[i].n_gpus ? bytes : 0;
	}
	set_time(c, &t);
}

/* Each GPU sends its sum to the next until the root has the total, which it
 * copies.  The result returns the same way.  Over NVLink only the root's PCIe
 * link carries data. */
static void to_root(struct sw_topo_choice *c, const struct sw_topo_plan *p,
	const struct sw_machine *m)
{
	struct traffic t = nic_traffic(p, m);
	double both = 2 * p->m_bytes;

	t.uplink[p->uplink_of[c->root]] += p->m_bytes;
	t.gpu[c->root] = p->m_bytes;
	if (p->has_nvlink)
		t.nvlink = both;
	for (uint32_t i = 0; i < m->n_gpus && !p->has_nvlink; i++)
		t.gpu[i] = both;
	if (!p->has_nvlink && p->s_n + p->s_g > 1) {
		t.cross = both;
		for (uint32_t i = 0; i < p->n_uplinks; i++)
			t.uplink[i] += p->uplinks[i].n_gpus ? p->m_bytes : 0;
	}
	set_time(c, &t);
}

/* Reduce-scatter over NVLink; each GPU copies its part. */
static void scatter(struct sw_topo_choice *c, const struct sw_topo_plan *p,
	const struct sw_machine *m)
{
	struct traffic t = nic_traffic(p, m);
	double part = p->m_bytes / m->n_gpus;

	for (uint32_t i = 0; i < p->n_uplinks; i++)
		t.uplink[i] += p->uplinks[i].n_gpus * part;
	for (uint32_t i = 0; i < m->n_gpus; i++)
		t.gpu[i] = part;
	t.nvlink = 2 * (p->m_bytes - part);
	set_time(c, &t);
}

/* --- the plan --- */

/* Return a GPU whose uplink carries a NIC in use, or without @is_beside_nic no
 * such NIC.  Prefers a GPU at the NUMA node of a NIC in use.  Returns n_gpus if
 * there is none. */
static uint32_t root_of(const struct sw_topo_plan *p,
	const struct sw_machine *m, bool is_beside_nic)
{
	uint32_t best = m->n_gpus;
	bool is_near = false;

	for (uint32_t i = 0; i < m->n_gpus; i++) {
		bool is_at_node = false;

		if (!p->uplinks[p->uplink_of[i]].n_nics == is_beside_nic)
			continue;
		for (uint32_t k = 0; k < m->n_nics; k++)
			is_at_node |=
				p->is_used[k] &&
				m->nics[k].numa_node == m->gpus[i].numa_node;
		if (best == m->n_gpus || (is_at_node && !is_near)) {
			best = i;
			is_near = is_at_node;
		}
	}
	return best;
}

static void add(struct sw_topo_plan *p, const struct sw_machine *m,
	enum sw_topo_way way, uint32_t root)
{
	struct sw_topo_choice *c = &p->choices[p->n_choices];

	*c = (struct sw_topo_choice){
		.way = way, .x = way == SW_TOPO_BRUTE, .root = root};
	if (root == m->n_gpus)
		return;
	if (way == SW_TOPO_MIXED)
		mix_best(c, p, m);
	else if (way == SW_TOPO_RING)
		ring(c, p, m);
	else if (way == SW_TOPO_ROOT || way == SW_TOPO_NEAR)
		to_root(c, p, m);
	else if (way == SW_TOPO_SCATTER)
		scatter(c, p, m);
	else
		mix(c, p, m);
	p->n_choices++;
}

static enum sw_topo_way bytepss(
	const struct sw_topo_plan *p, const struct sw_machine *m)
{
	if (m->n_gpus == 1)
		return SW_TOPO_COPY;
	if (p->s_n && p->s_g)
		return SW_TOPO_ROOT;
	return p->has_nvlink ? SW_TOPO_SCATTER : SW_TOPO_ASSISTED;
}

static void add_all(struct sw_topo_plan *p, const struct sw_machine *m)
{
	uint32_t far = root_of(p, m, false), beside = root_of(p, m, true);

	if (m->n_gpus == 1) {
		add(p, m, SW_TOPO_COPY, 0);
		return;
	}
	if (p->has_nvlink || (p->s_n && p->s_g))
		add(p, m, SW_TOPO_ROOT, far);
	if (p->has_nvlink) {
		add(p, m, SW_TOPO_NEAR, beside);
		add(p, m, SW_TOPO_SCATTER, 0);
	}
	add(p, m, SW_TOPO_ASSISTED, 0);
	if (!p->has_nvlink) {
		add(p, m, SW_TOPO_MIXED, 0);
		add(p, m, SW_TOPO_BRUTE, 0);
		add(p, m, SW_TOPO_RING, 0);
	}
}

void sw_topo_make_plan(struct sw_topo_plan *p, const struct sw_machine *m)
{
	enum sw_topo_way way;

	p->has_nvlink = m->n_gpus > 1;
	for (uint32_t i = 0; i < m->n_gpus; i++)
		p->has_nvlink &= m->gpus[i].nvlink > 0;
	open_uplinks(p, m);
	add_all(p, m);
	way = bytepss(p, m);
	for (uint32_t i = 0; i < p->n_choices; i++)
		if (p->choices[i].way == way)
			p->best = i;
	for (uint32_t i = 0; i < m->n_nics; i++) {
		double wire = m->nics[i].wire > 0 ? m->nics[i].wire : p->wire;

		if (p->is_used[i] && wire > 0)
			p->wire_s = fmax(
				p->wire_s, p->nic_bytes / p->n_used / wire);
	}
}
