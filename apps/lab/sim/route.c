/* route.c - the links of a description, and the routes over them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "engine/base/error.h"
#include "engine/base/params.h"

struct build {
	struct sw_sim_net *net;
	const struct sw_sim_desc *d;
	char *why;
	uint32_t size; /* allocated links */
};

static const uint32_t NONE = UINT32_MAX;

/* Properties of a link: its own, or those of [net]. */
struct kind {
	uint64_t rate_bit_s, delay_ns, buffer_bytes, bucket_bytes;
	uint32_t mtu;
};

static bool has_faults(const struct sw_sim_faults *x)
{
	return x->loss || x->corrupt || x->duplicate || x->reorder || x->bad;
}

static struct sw_sim_link *add_way(
	struct build *b, uint32_t from, uint32_t to, const struct kind *k)
{
	struct sw_sim_net *net = b->net;
	const struct sw_sim_desc_net *n = &b->d->net;
	struct sw_sim_link *l = &net->links[net->n_links];
	bool is_host = from < net->n_nodes;
	uint64_t ns_q16 = (8 * SW_S << 16) / k->rate_bit_s;

	*l = (struct sw_sim_link){.index = net->n_links++,
		.from = from,
		.to = to,
		.rate_bit_s = k->rate_bit_s,
		.delay_ns = k->delay_ns,
		.ns_q16 = (uint32_t)ns_q16,
		.bucket_ns = is_host ? 0 : k->bucket_bytes * ns_q16 >> 16,
		.buffer_bytes = is_host ? UINT64_MAX : k->buffer_bytes,
		.most_bytes = k->mtu + 18,
		.ecn_bytes = is_host ? 0 : n->ecn_bytes,
		.ecn_most_bytes = n->ecn_most_bytes,
		.pool = is_host || !n->is_shared
				? NULL
				: &net->pools[from - net->n_nodes],
		.faults = has_faults(&net->faults) ? &net->faults : NULL,
		.rng = net->seed ^ (uint64_t)net->n_links << 20};
	l->last = &l->first;
	return l;
}

static void add_link(
	struct build *b, uint32_t a, uint32_t s, const struct kind *k)
{
	struct sw_sim_net *net = b->net;

	add_way(b, a, s, k);
	if (a < net->n_nodes) {
		net->switch_of[a] = s - net->n_nodes;
		net->down[a] = net->n_links;
	}
	add_way(b, s, a, k);
}

/* --- the topologies --- */

static struct kind kind_of(const struct sw_sim_desc_net *n)
{
	return (struct kind){n->rate_bit_s, n->delay_ns, n->buffer_bytes,
		n->bucket_bytes, n->mtu};
}

static void add_star(struct build *b)
{
	struct kind k = kind_of(&b->d->net);

	for (uint32_t i = 0; i < b->net->n_nodes; i++)
		add_link(b, i, b->net->n_nodes, &k);
}

static void add_leaves(struct build *b)
{
	const struct sw_sim_desc_net *n = &b->d->net;
	uint32_t n_nodes = b->net->n_nodes;
	uint32_t each = (n_nodes + n->leaves - 1) / n->leaves;
	struct kind k = kind_of(n);

	for (uint32_t i = 0; i < n_nodes; i++)
		add_link(b, i, n_nodes + i / each, &k);
	k.rate_bit_s = n->rate_bit_s * each / n->oversubscription / n->spines;
	for (uint32_t l = 0; l < n->leaves; l++)
		for (uint32_t s = 0; s < n->spines; s++)
			add_link(b, n_nodes + l, n_nodes + n->leaves + s, &k);
}

struct end {
	struct build *b;
	const struct sw_sim_desc_link *link;
	uint32_t to;
	bool is_wrong;
};

static bool add_end(void *ctx, const char *name)
{
	struct end *e = ctx;
	struct build *b = e->b;
	uint32_t from = sw_sim_find(b->d, name);

	if (e->is_wrong)
		return true;
	if (from == NONE || from == e->to)
		snprintf(b->why, SW_SIM_TEXT,
			"[link %s] from: there is no node or other switch "
			"called %s",
			e->link->label, name);
	else if (from < b->net->n_nodes && b->net->switch_of[from] != NONE)
		snprintf(b->why, SW_SIM_TEXT,
			"[link %s] from: node %s has a link already, and one "
			"alone",
			e->link->label, name);
	else if (b->net->n_links + 2 > b->size)
		snprintf(b->why, SW_SIM_TEXT, "[link %s]: more than %u links",
			e->link->label, b->size / 2);
	else {
		const struct sw_sim_desc_link *l = e->link;
		struct kind k = kind_of(&b->d->net);

		k.rate_bit_s = l->rate_bit_s ? l->rate_bit_s : k.rate_bit_s;
		k.delay_ns = l->delay_ns ? l->delay_ns : k.delay_ns;
		k.buffer_bytes = l->buffer_bytes;
		k.bucket_bytes =
			l->bucket_bytes ? l->bucket_bytes : k.bucket_bytes;
		k.mtu = l->mtu;
		add_link(b, from, e->to, &k);
		return true;
	}
	e->is_wrong = true;
	return true;
}

static int add_links(struct build *b)
{
	for (uint32_t i = 0; i < b->d->n_links; i++) {
		const struct sw_sim_desc_link *l = &b->d->links[i];
		struct end e = {.b = b, .link = l};
		char why[200] = "";

		e.to = sw_sim_find(b->d, l->to);
		if (e.to == NONE || e.to < b->net->n_nodes) {
			snprintf(b->why, SW_SIM_TEXT,
				"[link %s] to: there is no switch called "
				"\"%.40s\"",
				l->label, l->to);
			return SW_ECONF;
		}
		if (!sw_sim_names(l->from, add_end, &e, why, sizeof(why))) {
			snprintf(b->why, SW_SIM_TEXT, "[link %s] from: %s",
				l->label, why);
			return SW_ECONF;
		}
		if (e.is_wrong)
			return SW_ECONF;
	}
	return 0;
}

/* --- routes --- */

/* Write the number of hops from each switch to @t into @far. */
static void measure(const struct sw_sim_net *net, uint32_t t, uint32_t *far)
{
	uint32_t n = net->n_switches, n_new = 1;

	for (uint32_t s = 0; s < n; s++)
		far[s] = NONE;
	far[t] = 0;
	for (uint32_t d = 0; n_new; d++) {
		n_new = 0;
		for (uint32_t i = 0; i < net->n_links; i++) {
			const struct sw_sim_link *l = &net->links[i];
			uint32_t from = l->from - net->n_nodes;
			uint32_t to = l->to - net->n_nodes;

			if (l->from < net->n_nodes || l->to < net->n_nodes ||
				far[to] != d || far[from] != NONE)
				continue;
			far[from] = d + 1;
			n_new++;
		}
	}
}

/* List the core links that lead nearer to @t, by the switch where they
 * begin. */
static void find_hops(struct sw_sim_net *net, uint32_t t, const uint32_t *far,
	uint32_t *n_used)
{
	for (uint32_t s = 0; s < net->n_switches; s++) {
		struct sw_sim_hops *h = &net->hops[s * net->n_switches + t];

		h->first = *n_used;
		for (uint32_t i = 0; i < net->n_links; i++) {
			const struct sw_sim_link *l = &net->links[i];

			if (l->from == net->n_nodes + s &&
				l->to >= net->n_nodes && far[s] != NONE &&
				far[l->to - net->n_nodes] + 1 == far[s])
				net->hop_links[(*n_used)++] = i;
		}
		h->n = *n_used - h->first;
	}
}

static uint32_t n_core(const struct sw_sim_net *net)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < net->n_links; i++)
		n += net->links[i].from >= net->n_nodes &&
		     net->links[i].to >= net->n_nodes;
	return n;
}

static int find_ways(struct build *b)
{
	struct sw_sim_net *net = b->net;
	uint32_t n = net->n_switches, n_used = 0;
	uint32_t *far = sw_lab_array(n + 1, sizeof(*far));

	net->hops = sw_lab_array((size_t)n * n, sizeof(*net->hops));
	net->hop_links = sw_lab_array(
		(size_t)n_core(net) * n + 1, sizeof(*net->hop_links));
	for (uint32_t t = 0; t < n; t++) {
		measure(net, t, far);
		find_hops(net, t, far, &n_used);
		for (uint32_t i = 0; i < net->n_nodes; i++) {
			if (far[net->switch_of[i]] != NONE)
				continue;
			for (uint32_t k = 0; k < net->n_nodes; k++)
				if (net->switch_of[k] == t && !*b->why)
					snprintf(b->why, SW_SIM_TEXT,
						"[net] topology: the network "
						"is not connected: "
						"no way from %s to %s",
						b->d->names[i], b->d->names[k]);
		}
	}
	free(far);
	return *b->why ? SW_ECONF : 0;
}

static int check_ends(struct build *b)
{
	for (uint32_t i = 0; i < b->net->n_nodes; i++) {
		if (b->net->switch_of[i] != NONE) {
			b->net->nodes[i].up =
				&b->net->links[b->net->down[i] - 1];
			continue;
		}
		snprintf(b->why, SW_SIM_TEXT,
			"[net] topology: the network is not connected: node %s "
			"has no [link]",
			b->d->names[i]);
		return SW_ECONF;
	}
	return 0;
}

static uint32_t n_switches(const struct sw_sim_desc *d)
{
	switch (d->net.topology) {
	case SW_SIM_SWITCH:
		return 1;
	case SW_SIM_LEAF_SPINE:
		return d->net.leaves + d->net.spines;
	default:
		return d->n_switches;
	}
}

static void allocate(struct build *b)
{
	struct sw_sim_net *net = b->net;
	const struct sw_sim_desc_net *n = &b->d->net;

	net->n_nodes = b->d->n_nodes;
	net->n_switches = n_switches(b->d);
	b->size = 2 * (net->n_nodes + n->leaves * n->spines + 4096);
	net->n_cores = net->n_nodes * b->d->most_lcores;
	net->nodes = sw_lab_lines(net->n_cores, sizeof(*net->nodes));
	net->links = sw_lab_lines(b->size, sizeof(*net->links));
	net->pools = sw_lab_array(net->n_switches, sizeof(*net->pools));
	net->switch_of = sw_lab_array(net->n_nodes, sizeof(*net->switch_of));
	net->down = sw_lab_array(net->n_nodes, sizeof(*net->down));
	for (uint32_t i = 0; i < net->n_switches; i++)
		net->pools[i] = (struct sw_sim_pool){
			.bytes = n->buffer_bytes, .alpha_ppm = n->alpha};
	for (uint32_t i = 0; i < net->n_nodes; i++) {
		struct sw_sim_node *node = &net->nodes[i];

		net->switch_of[i] = NONE;
		node->net = net;
		node->index = i;
		memcpy(node->name, b->d->names[i], sizeof(node->name));
	}
}

/* Read the distributions of stalls, and give each core a start of its own. */
static int open_stalls(struct build *b)
{
	const struct sw_sim_desc_net *n = &b->d->net;
	struct sw_sim_net *net = b->net;
	char why[SW_SIM_TEXT - 100];
	const char *key = "stall";
	int err;

	if (!*n->stall)
		return 0;
	net->stall = sw_lab_array(1, sizeof(*net->stall));
	net->stall_gap = sw_lab_array(1, sizeof(*net->stall_gap));
	err = sw_sim_straggler_open(net->stall, n->stall, why, sizeof(why));
	if (!err) {
		key = "stall_gap";
		err = sw_sim_straggler_open(
			net->stall_gap, n->stall_gap, why, sizeof(why));
	}
	if (err)
		snprintf(b->why, SW_SIM_TEXT, "[net] %s: %s", key, why);
	for (uint32_t i = 0; i < net->n_cores; i++) {
		net->nodes[i].stall_rng = net->seed ^ (i + 1ULL) << 42;
		net->nodes[i].stall_end_ns = net->now_ns;
	}
	return err;
}

int sw_sim_build(struct sw_sim_net *net, const struct sw_sim_desc *d, char *why)
{
	const struct sw_sim_desc_net *n = &d->net;
	struct build b = {.net = net, .d = d, .why = why};
	int err = 0;

	*why = '\0';
	net->now_ns = SW_S;
	net->seed = d->run.seed;
	net->turn_ns = n->turn_ns;
	net->frame_ns = n->frame_ns;
	net->is_paced = n->is_paced;
	net->port_bit_s = n->port_bit_s;
	net->ring = n->ring;
	net->is_bare = !d->run.has_oracle;
	net->faults = (struct sw_sim_faults){.loss = n->loss,
		.corrupt = n->corrupt,
		.duplicate = n->duplicate,
		.reorder = n->reorder,
		.reorder_ns = n->reorder_ns,
		.bad = n->bad,
		.good = n->good,
		.bad_loss = n->bad_loss};
	allocate(&b);
	err = open_stalls(&b);
	if (err)
		return err;
	if (n->topology == SW_SIM_SWITCH)
		add_star(&b);
	else if (n->topology == SW_SIM_LEAF_SPINE)
		add_leaves(&b);
	else
		err = add_links(&b);
	sw_sim_events_init(&net->events);
	if (!err)
		err = check_ends(&b);
	return err ? err : find_ways(&b);
}

const char *sw_sim_name_of(const struct sw_sim_net *net,
	const struct sw_sim_desc *d, uint32_t i, char buf[SW_SIM_NAME])
{
	uint32_t s = i - net->n_nodes;

	if (i < net->n_nodes || d->net.topology == SW_SIM_EXPLICIT)
		return d->names[i];
	if (d->net.topology == SW_SIM_SWITCH)
		return "switch";
	if (s < d->net.leaves)
		snprintf(buf, SW_SIM_NAME, "leaf%u", s);
	else
		snprintf(buf, SW_SIM_NAME, "spine%u", s - d->net.leaves);
	return buf;
}

struct sw_sim_link *sw_sim_link_between(struct sw_sim_net *net,
	const struct sw_sim_desc *d, const char *from, const char *to)
{
	char buf[SW_SIM_NAME];

	for (uint32_t i = 0; i < net->n_links; i++) {
		struct sw_sim_link *l = &net->links[i];

		if (!strcmp(sw_sim_name_of(net, d, l->from, buf), from) &&
			!strcmp(sw_sim_name_of(net, d, l->to, buf), to))
			return l;
	}
	return NULL;
}
