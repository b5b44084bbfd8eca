/* formula.c - theoretical curves: BytePS and ByteScheduler.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "apps/lab/figures/figure.h"
#include "apps/lab/array.h"
#include "apps/lab/plan_sim.h"
#include "apps/lab/sim/sim.h"
#include "apps/topo/plan_share.h"

enum formula { OPTIMAL, RING, SERVER, IDEAL, BOUND };

/* Nodes send at this part of a link's rate (node.c, is_paced). */
static const double PACED = 0.95;

/* Return the bytes of tensors per second on a link, without all headers, as
 * BytePS draws the optimum from the goodput of two nodes. */
static double goodput_of(const struct sw_sim_job *j)
{
	const struct sw_sim_desc_net *n = &j->sim->desc->net;
	double payload = j->params.payload;

	return (double)n->rate_bit_s / 8 * (n->is_paced ? PACED : 1) * payload /
	       (payload + SW_HEAD_BYTES + SW_SIM_WIRE);
}

static struct sw_model_tensor *tensors_of(const struct sw_sim_job *j)
{
	struct sw_model_tensor *t = sw_lab_array(j->n_tensors, sizeof(*t));

	for (uint32_t l = 0; l < j->n_layers; l++)
		for (uint32_t i = 0; i < j->layers[l].n; i++)
			t[j->layers[l].first + i] = (struct sw_model_tensor){
				.layer = l,
				.n_elems = j->n_elems[j->layers[l].first + i]};
	return t;
}

static struct sw_model_layer *layers_of(const struct sw_sim_job *j)
{
	struct sw_model_layer *l = sw_lab_array(j->n_layers, sizeof(*l));

	for (uint32_t i = 0; i < j->n_layers; i++)
		l[i] = (struct sw_model_layer){
			.forward_ns = j->layers[i].forward_ns,
			.backward_ns = j->layers[i].backward_ns,
			.first = j->layers[i].first,
			.n_tensors = j->layers[i].n};
	return l;
}

/* Return the time of Theorem 1's iteration.  With @has_bound, add the bound of
 * section 4.1 for partitions of finite size. */
static double iteration_s(
	const struct sw_sim_job *j, double rate_bytes_s, bool has_bound)
{
	struct sw_model m = {.layers = layers_of(j),
		.tensors = tensors_of(j),
		.n_layers = j->n_layers,
		.n_tensors = j->n_tensors,
		.bytes = j->bytes};
	struct sw_plan_run run = {.model = &m,
		.link = {.rate_bytes_s = rate_bytes_s, .is_sorted = true},
		.time_scale = 1};
	uint64_t part = j->desc->agent.part_bytes;
	double s;

	if (!part)
		part = sw_policies[SW_POLICY_BYTESCHEDULER].part_bytes;
	if (sw_plan_ideal(&run, &s))
		s = NAN;
	if (has_bound)
		s += sw_plan_bound(&run, part);
	free(m.layers);
	free(m.tensors);
	return s;
}

static double seconds_of(const struct sw_sim_job *j, enum formula formula)
{
	double rate = goodput_of(j), bytes = (double)j->bytes;
	struct sw_plan_share share = sw_plan_share(
		j->n_agents, j->n_servers - j->n_colocated, bytes, rate);

	switch (formula) {
	case OPTIMAL:
		return share.optimal_s;
	case RING:
		return share.allreduce_s;
	case SERVER:
		return share.ps_s;
	case IDEAL:
	case BOUND:
		return iteration_s(
			j, bytes / share.optimal_s, formula == BOUND);
	}
	return NAN;
}

double sw_figure_formula(
	const struct sw_figure *f, uint32_t c, uint32_t point, bool is_rate)
{
	struct sw_sim *s = malloc(sizeof(*s));
	struct sw_sim_file file = f->file;
	struct sw_sim_desc *d;
	double seconds = NAN;

	if (!s)
		abort();
	if (!sw_sim_desc_read(&file, point, &d)) {
		if (!sw_sim_open(s, d) && s->n_jobs)
			seconds = seconds_of(&s->jobs[0], d->curves[c].formula);
		if (is_rate && s->n_jobs)
			seconds = (double)s->jobs[0].bytes * 8 / seconds;
		sw_sim_end(s);
		sw_sim_desc_free(d);
	}
	free(s);
	return is_rate ? seconds : 1e9 * seconds;
}
