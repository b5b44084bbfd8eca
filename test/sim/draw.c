/* draw.c - a job drawn from a seed: size, faults, timing.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/bytes.h"
#include "test/sim/job.h"

static uint32_t below(struct sim_job *job, uint64_t n)
{
	return (uint32_t)sim_below(&job->rng, n);
}

static bool one_in(struct sim_job *job, uint32_t n)
{
	return below(job, n) == 0;
}

/* Draw a moment in the life of a job, mostly early: most jobs are short. */
static uint64_t moment(struct sim_job *job)
{
	return sim_below(&job->rng, 100 * SW_US << below(job, 12));
}

static void draw_losses(struct sim_job *job)
{
	static const uint32_t types[] = {1u << SW_ACK, 1u << SW_RESULT,
		1u << SW_PUSH | 1u << SW_WANT, 1u << SW_QUERY | 1u << SW_ANSWER,
		1u << SW_PUSH | 1u << SW_RESULT,
		1u << SW_STATUS | 1u << SW_ACCEPT | 1u << SW_COOKIE |
			1u << SW_DECLARED | 1u << SW_LEFT};
	struct sim_faults *x = &job->net.faults;

	x->loss = below(job, 4) * below(job, 100000);
	if (one_in(job, 5)) {
		x->burst_enter = below(job, 5000);
		x->burst_loss = 500000 + below(job, 500001);
		x->burst_ns =
			1 + sim_below(&job->rng, 100 * SW_US << below(job, 11));
	}
	if (one_in(job, 5)) {
		uint32_t i = below(job, SW_ARRAY_SIZE(types));

		x->type_mask = types[i];
		x->type_loss = 100000 + below(job, 600000);
		x->last_only = i == 4;
		/* A worker that gets no answer for dead_after is rightly
		 * declared dead, so lose less. */
		if (i == 5) {
			x->loss /= 2;
			x->type_loss /= 4;
		}
	}
	if (one_in(job, 6)) { /* one direction is cut, then heals */
		x->cut_from = (uint32_t)test_random(&job->rng);
		x->cut_to = (uint32_t)test_random(&job->rng);
		x->cut_at_ns = job->net.now_ns + moment(job);
		x->cut_until_ns = x->cut_at_ns + sim_below(&job->rng, 4 * SW_S);
	}
	if (one_in(job, 5))
		x->false_ack = below(job, 300000);
}

static void draw_delays(struct sim_job *job)
{
	struct sim_faults *x = &job->net.faults;
	uint64_t *rng = &job->rng;

	x->dup = below(job, 3) * below(job, 50000);
	x->jitter_ns = sim_below(rng, 3) * sim_below(rng, 100 * SW_US);
	x->corrupt = below(job, 2) * below(job, 20000);
	x->truncate = below(job, 2) * below(job, 10000);
	x->nap = below(job, 3) * below(job, 2000);
	x->nap_ns = below(job, 2) ? 5 * SW_MS : 300 * SW_MS;
	x->gather_ns = one_in(job, 4)
			       ? sim_below(rng, 10 * SW_US << below(job, 10))
			       : 0;
	x->queue_bytes =
		one_in(job, 5) ? (20 << 10) + below(job, 256 << 10) : 0;
	if (one_in(job, 10)) { /* a long job with very late replays */
		x->loss %= 100000;
		x->late = 20000;
		x->late_ns = 300 * SW_S;
		job->pause_ns = 60 * SW_S;
	} else {
		x->late = below(job, 20000);
		x->late_ns = 200 * SW_MS;
		job->pause_ns = sim_below(rng, 20 * SW_MS);
	}
	if (one_in(job, 8)) { /* one node stops polling, then resumes */
		job->freeze_node =
			below(job, sim_job_first(job) + job->n_workers);
		job->freeze_at_ns = moment(job);
		job->freeze_ns = 15 * SW_S;
		job->params.dead_after = 40 * SW_S;
	}
	/* In one of about a thousand jobs, ten KEEPALIVEs in a row are lost. */
	if (x->loss > 200000)
		job->params.dead_after = 40 * SW_S;
}

/* 16-bit types have one result slot, so draw them often. Their sums must fit
 * into their mantissa. */
static void draw_dtype(struct sim_job *job)
{
	switch (below(job, 6)) {
	case 0:
		job->dtype = SW_F32;
		break;
	case 1:
		job->dtype = job->n_workers <= 5 ? SW_F16 : SW_F32;
		break;
	case 2:
		job->dtype = job->n_workers <= 4 ? SW_BF16 : SW_F32;
		break;
	default:
		job->dtype = SW_I32;
	}
}

/* Each worker has its own number of lcores. */
static void draw_lanes(struct sim_job *job)
{
	uint32_t engines = job->n_servers * job->n_lcores;
	uint32_t left = SIM_NODES - engines - job->n_workers;

	if (!one_in(job, 3))
		return;
	for (uint32_t r = 0; r < job->n_workers; r++) {
		uint64_t most =
			sw_min64(sw_min64(engines, SIM_LANES), left + 1);

		job->n_lanes[r] = (uint8_t)(1 + below(job, most));
		left -= job->n_lanes[r] - 1;
	}
}

static void draw_size(struct sim_job *job)
{
	job->n_workers = 1 + below(job, 5);
	if (one_in(job, 20))
		job->n_workers = 12;
	job->n_servers = 1 + below(job, 3);
	if (job->n_workers <= 5 && one_in(job, 3)) { /* 0 <= k <= n */
		job->n_colocated = job->n_workers;
		job->n_servers =
			job->n_workers + below(job, job->n_workers + 1);
	} else if (one_in(job, 4)) {
		job->n_jobs =
			1 + below(job, sw_min64(job->n_workers, SIM_JOBS));
	}
	if (one_in(job, 3))
		job->n_lcores = 1 + below(job, 4);
	job->net.steering = (enum sw_steering)(SW_STEER_RULES + below(job, 3));
	job->net.hash_key = test_random(&job->rng);
	job->net.is_deaf = one_in(job, 10);
	if (one_in(job, 3))
		job->net.rehash_ns = job->net.now_ns + moment(job);
	while (job->n_servers * job->n_lcores > SIM_ENGINES ||
		job->n_servers * job->n_lcores + job->n_workers > SIM_NODES)
		job->n_lcores--;
	draw_lanes(job);
	job->n_tensors = 1 + below(job, 4);
	if (one_in(job, 10)) { /* declare in several frames */
		job->n_tensors = 1 + below(job, SIM_TENSORS);
		job->name_bytes = below(job, SW_NAME_MAX);
	}
	job->n_first = 1 + below(job, job->n_tensors);
	job->n_rounds = 2 + below(job, 6);
	for (uint32_t t = 0; t < job->n_tensors; t++)
		job->n_elems[t] = 1 + below(job, job->n_tensors > 4 ? 1000
						 : below(job, 4)    ? 4000
								    : 60000);
	for (uint32_t r = 0; r < job->n_workers; r++)
		job->n_local[r] = (uint16_t)(1 + below(job, 4));
	job->params.payload = below(job, 3) ? 1344 : 8192;
	job->params.window_bytes = job->params.payload * (1 + below(job, 64));
	job->leaves = below(job, 2);
	job->copies = below(job, 2) * below(job, 1000001);
	draw_dtype(job);
	if (one_in(job, 4)) /* with or without sums */
		job->async = below(job, 2) ? UINT32_MAX
					   : (uint32_t)test_random(&job->rng);
}

/* Draw tuning changes in mid-job; all workers of the job request them. */
static void draw_tunes(struct sim_job *job)
{
	uint64_t x = ~job->seed;

	if (sim_below(&x, 4))
		return;
	job->tunes = 100 << sim_below(&x, 10);
	job->n_rounds += (uint32_t)sim_below(&x, 10);
}

/* Draw buffers that the process writes while they are pushed, often or rarely:
 * an idle node has ten turns a second, and a tensor without progress for 600 s
 * counts as stalled. */
static void draw_grows(struct sim_job *job)
{
	uint64_t x = ~job->seed / 3;

	if (!sim_below(&x, 3))
		job->grows = 20000 << sim_below(&x, 6);
}

/* Draw policy, credit, priorities and pacing of ports. */
static void draw_schedule(struct sim_job *job)
{
	static const uint32_t steps[] = {1, 1, 9, 1000};
	uint64_t x = job->seed ^ 0x7363686564;
	uint64_t y = ~x;

	job->params.queue_bytes =
		job->params.payload * (1 + (uint32_t)sim_below(&y, 64));
	job->params.policy =
		sw_policy_at((uint32_t)sim_below(&x, 2) *
			     (uint32_t)sim_below(&x, SW_N_POLICIES));
	if (job->params.policy->is_tunable && !sim_below(&x, 3)) {
		job->params.part_bytes = SW_PART_MIN << sim_below(&x, 8);
		job->params.credit_bytes = SW_CREDIT_MIN << sim_below(&x, 12);
	}
	job->priority_step = steps[sim_below(&x, SW_ARRAY_SIZE(steps))];
	job->is_by_use = !sim_below(&x, 4);
	job->is_reversed = !sim_below(&x, 8);
	if (!sim_below(&x, 6))
		job->worker_bit_s = (1 + sim_below(&x, 25)) * 1000000000;
	if (!sim_below(&x, 6))
		job->server_bit_s = (1 + sim_below(&x, 25)) * 1000000000;
}

/* Draw groups in the same job as tensors. Streams trust acknowledgements, so
 * forge none. */
static void draw_groups(struct sim_job *job)
{
	uint64_t x = ~job->seed ^ 0x67726f7570;

	if ((!getenv("SIM_GROUPS") && sim_below(&x, 3)) || job->n_jobs > 1 ||
		job->async)
		return;
	job->net.faults.false_ack = 0;
	sim_groups_draw(job);
}

/* Give a quarter of the jobs a secret. A secret also prevents false ACKs. */
static void draw_keys(struct sim_job *job)
{
	uint64_t x = job->seed ^ 0x6b657973;

	job->is_keyed = getenv("SIM_KEYS") || !sim_below(&x, 4);
	job->params.is_encrypted = job->is_keyed && sim_below(&x, 2);
	if (sim_below(&x, 2))
		job->params.era_folds = 20 + sim_below(&x, 400);
	if (job->is_keyed)
		job->net.faults.false_ack = 0;
}

void sim_job_draw(struct sim_job *job, uint64_t seed)
{
	sim_job_init(job, seed);
	job->has_late_memory = seed % 2;
	draw_size(job);
	draw_losses(job);
	draw_delays(job);
	/* Without CRC no frame may be damaged. */
	job->params.has_crc = job->net.faults.corrupt || below(job, 4);
	if (one_in(job, 12)) /* no fault at all */
		job->net.faults = (struct sim_faults){0};
	sim_mtus_draw(job);
	draw_tunes(job);
	draw_grows(job);
	draw_schedule(job);
	sim_doom_draw(job);
	draw_groups(job);
	sim_mismatch_draw(job);
	sim_clash_draw(job);
	draw_keys(job);
}

/* Draw bursts of 1 to 64 frames, and often nodes that poll so rarely that
 * frames pile up. */
static void draw_bursts(struct sim_job *job)
{
	uint32_t seldom = below(job, 2) * below(job, 7);

	job->net.rx_burst = 1 + below(job, SW_RX_BURST);
	job->net.tx_burst = 1 + below(job, SW_RX_BURST);
	for (uint32_t i = 0; i < job->net.n_nodes; i++)
		job->net.nodes[i].turn_ns <<= seldom;
}

#define SLOWEST_NS SW_MS /* between two turns of a node */

/* Draw one node with a slow link or a slow loop. It still handles a thousand
 * frames a second, or all nodes would wait for minutes. Call after
 * sim_job_open, which makes the nodes. */
void sim_job_draw_nodes(struct sim_job *job)
{
	struct sim_node *n = &job->net.nodes[below(job, job->net.n_nodes)];

	draw_bursts(job);
	if (!one_in(job, 5))
		return;
	if (below(job, 2))
		n->rate_bits_s >>= 1 + below(job, 6);
	else
		n->turn_ns =
			sw_min64(n->turn_ns << (1 + below(job, 9)), SLOWEST_NS);
}

static void describe_faults(
	const struct sim_faults *x, const struct sim_job *job)
{
	printf("# ppm: loss %u dup %u late %u corrupt %u truncate %u nap %u, "
	       "false acks %u, burst %u of %u, types %x %u last %u\n",
		x->loss, x->dup, x->late, x->corrupt, x->truncate, x->nap,
		x->false_ack, x->burst_enter, x->burst_loss, x->type_mask,
		x->type_loss, x->last_only);
	printf("# us: jitter %llu gather %llu burst %llu; cut %x to %x for "
	       "%llu us; queue %u bytes; node %u stops for %llu s\n",
		(unsigned long long)x->jitter_ns / 1000,
		(unsigned long long)x->gather_ns / 1000,
		(unsigned long long)x->burst_ns / 1000, x->cut_from, x->cut_to,
		(unsigned long long)(x->cut_until_ns - x->cut_at_ns) / 1000,
		x->queue_bytes, job->freeze_node,
		(unsigned long long)(job->freeze_ns / SW_S));
}

void sim_job_describe(const struct sim_job *job)
{
	printf("# seed %llu: %u jobs, %u workers, %u servers (%u colocated) of "
	       "%u lcores, %u tensors (%u first), %u rounds of %s, %u ppm "
	       "broadcasts, async %x, payload %u, crc %u, keyed %u, "
	       "encrypted %u, window %u KiB, "
	       "leaves %u, %u "
	       "ppm tunes, %u grows\n",
		(unsigned long long)job->seed, job->n_jobs, job->n_workers,
		job->n_servers, job->n_colocated, job->n_lcores, job->n_tensors,
		job->n_first, job->n_rounds, sw_dtype_name(job->dtype),
		job->copies, job->async, job->params.payload,
		job->params.has_crc, job->is_keyed, job->params.is_encrypted,
		job->params.window_bytes >> 10, job->leaves, job->tunes,
		job->grows);
	printf("# payloads of the machines:");
	for (uint32_t i = 0; i < job->net.n_nodes; i++)
		printf(" %u", job->carries[i]);
	printf("; %u B from %llx to %llx\n# lcores of the workers:",
		job->net.narrow.max_len,
		(unsigned long long)job->net.narrow.from_mask,
		(unsigned long long)job->net.narrow.to_mask);
	for (uint32_t r = 0; r < job->n_workers; r++)
		printf(" %u", job->n_lanes[r]);
	printf("\n");
	describe_faults(&job->net.faults, job);
	printf("# bursts of %u in, %u out\n", job->net.rx_burst,
		job->net.tx_burst);
	printf("# policy %s, partition %llu, credit %llu, priorities by %u%s; "
	       "paced to %llu and %llu Mb/s\n",
		job->params.policy->name,
		(unsigned long long)job->params.part_bytes,
		(unsigned long long)job->params.credit_bytes,
		job->priority_step, job->is_by_use ? ", by use" : "",
		(unsigned long long)job->worker_bit_s / 1000000,
		(unsigned long long)job->server_bit_s / 1000000);
	printf("# doom %u of %u at %.6f s, %u rounds\n", job->doom, job->victim,
		(double)job->doom_at_ns / 1e9, job->odd_rounds);
	printf("# mismatch %u by worker %u (local rank %d) in round %u of "
	       "tensor %u\n",
		job->mismatch, job->mismatch_by, (int)job->mismatch_at,
		job->mismatch_in, job->mismatch_tensor);
	printf("# steering %u, hash %llx%s changes at %.6f s\n",
		job->net.steering, (unsigned long long)job->net.hash_key,
		job->net.is_deaf ? " of addresses alone" : "",
		(double)job->net.rehash_ns / 1e9);
	sim_groups_describe(job);
	printf("# %llu frames, %llu lost, %llu false acks, %llu looked into, "
	       "%.6f s virtual\n",
		(unsigned long long)job->net.n_frames,
		(unsigned long long)job->net.n_lost,
		(unsigned long long)job->net.n_false_acks,
		(unsigned long long)job->n_checked,
		(double)job->net.now_ns / 1e9 - 1);
}
