/* mtu.c - machines and paths of different MTUs.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/base/bytes.h"
#include "test/sim/job.h"

struct sw_params sim_mtu_params(const struct sim_job *job, uint32_t machine)
{
	struct sw_params params = job->params;

	if (job->carries[machine])
		params.payload = job->carries[machine];
	return params;
}

static uint32_t draw(uint64_t *rng)
{
	/* MTUs of 1280, 1400, 1450, 1500, 4096 and 9000 */
	static const uint16_t usual[] = {1152, 1280, 1344, 1408, 3968, 8192};
	uint32_t n = (SW_PAYLOAD_MAX - SW_PAYLOAD_MIN) / SW_PAYLOAD_UNIT + 1;

	if (sim_below(rng, 2))
		return usual[sim_below(rng, SW_ARRAY_SIZE(usual))];
	return SW_PAYLOAD_MIN + SW_PAYLOAD_UNIT * (uint32_t)sim_below(rng, n);
}

void sim_mtus_draw(struct sim_job *job)
{
	uint64_t x = ~job->seed ^ 0x6d7475;

	/* the oracle supports one payload, so require one job */
	if (job->n_jobs > 1 || sim_below(&x, 4))
		return;
	job->params.payload = SW_PAYLOAD_MAX;
	job->params.window_bytes =
		(uint32_t)sw_max64(job->params.window_bytes, SW_PAYLOAD_MAX);
	for (uint32_t i = 0; i < SIM_NODES; i++)
		job->carries[i] = (uint16_t)draw(&x);
	if (sim_below(&x, 2))
		job->net.narrow = (struct sim_narrow){
			.from_mask = test_random(&x),
			.to_mask = test_random(&x),
			.max_len = SW_HEAD_BYTES + draw(&x) +
				   (uint32_t)sim_below(&x, SW_PAYLOAD_UNIT)};
}

static uint32_t carried(const struct sim_job *job, uint32_t machine)
{
	return sim_mtu_params(job, machine).payload;
}

static bool is_narrow(const struct sim_job *job, uint32_t from, uint32_t to)
{
	const struct sim_narrow *x = &job->net.narrow;

	return from != to && x->max_len && x->from_mask >> from % 64 & 1 &&
	       x->to_mask >> to % 64 & 1;
}

uint32_t sim_mtus_most(const struct sim_job *job)
{
	uint64_t most = SW_PAYLOAD_MAX;

	for (uint32_t r = 0; r < job->n_workers; r++) {
		uint32_t w = sim_job_first(job) + r;

		for (uint32_t s = 0; s < job->n_servers; s++) {
			most = sw_min64(most, carried(job, w));
			most = sw_min64(most, carried(job, s));
			if (is_narrow(job, w, s) || is_narrow(job, s, w))
				most = sw_min64(
					most, sw_payload_within(
						      job->net.narrow.max_len -
						      SW_HEAD_BYTES));
		}
	}
	return (uint32_t)most;
}

/* Can all probes of one size have been lost? Then a smaller payload is
 * correct. */
static bool is_unsure(const struct sim_job *job)
{
	const struct sim_faults *x = &job->net.faults;

	return x->loss > 50000 || x->burst_enter || x->cut_until_ns || x->nap ||
	       x->queue_bytes || job->freeze_ns;
}

void sim_mtus_check(struct sim_worker *w)
{
	struct sim_job *job = w->job;
	uint32_t payload = sw_worker_payload(&w->engine);

	job->agreed[sim_job_of(job, w->rank)] = payload;
	if (payload == job->most || (payload < job->most && is_unsure(job)) ||
		job->oracle[0])
		return;
	snprintf(job->oracle, sizeof(job->oracle),
		"a payload of %u, though all paths carry %u", payload,
		job->most);
}
