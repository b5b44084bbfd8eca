/* oracle.c - check sums, frames and the end of a job.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "test/sim/job.h"

const char *sim_job_name(const struct sim_job *job, uint32_t tensor, char *out)
{
	int n = snprintf(out, SW_NAME_MAX, "fc%u.%s", tensor / 2 + 1,
		tensor % 2 ? "bias" : "weight");

	for (; n < (int)job->name_bytes; n++)
		out[n] = '_';
	out[n] = 0;
	return out;
}

/* Encode a small integer as an element. It does not use the kernels, so that it
 * can check them. All values that occur are exact in the dtype. */
static uint64_t float_bits(uint32_t v, uint32_t mantissa, uint32_t bias)
{
	uint32_t e = 31 - (uint32_t)__builtin_clz(v | 1);
	uint64_t m = mantissa >= e ? (uint64_t)v << (mantissa - e)
				   : v >> (e - mantissa);

	if (!v)
		return 0;
	return (uint64_t)(e + bias) << mantissa |
	       (m & ((1ULL << mantissa) - 1));
}

uint64_t sim_oracle_encode(uint32_t dtype, int64_t v)
{
	uint32_t n = (uint32_t)(v < 0 ? -(uint64_t)v : (uint64_t)v);
	uint64_t sign = v < 0;

	switch (dtype) {
	case SW_F32:
		return float_bits(n, 23, 127) | sign << 31;
	case SW_F64:
		return float_bits(n, 52, 1023) | sign << 63;
	case SW_F16:
		return float_bits(n, 10, 15) | sign << 15;
	case SW_BF16:
		return float_bits(n, 7, 127) | sign << 15;
	default:
		return (uint64_t)v;
	}
}

/* Decode an element that is at least 1; return -1 if it is not a whole
 * number. */
static int64_t float_value(uint64_t bits, uint32_t mantissa, uint32_t bias)
{
	int64_t m = (int64_t)(bits & ((1ULL << mantissa) - 1)) |
		    INT64_C(1) << mantissa;
	int64_t e = (int64_t)(bits >> mantissa) - bias;

	if (e < 0 || e > 40 ||
		(e < mantissa && m & ((INT64_C(1) << (mantissa - e)) - 1)))
		return -1;
	return e < mantissa ? m >> (mantissa - e) : m << (e - mantissa);
}

int64_t sim_oracle_decode(uint32_t dtype, const uint8_t *p)
{
	uint64_t bits = 0;

	memcpy(&bits, p, sw_dtype_bytes(dtype));
	switch (dtype) {
	case SW_F32:
		return float_value(bits, 23, 127);
	case SW_F16:
		return float_value(bits, 10, 15);
	case SW_BF16:
		return float_value(bits, 7, 127);
	default:
		return (int64_t)bits;
	}
}

void sim_oracle_open(struct sim_job *job)
{
	/* With more than 12 members, give each one bit of an i64 instead of two
	 * of an i32. */
	uint32_t bits = job->n_workers > 12 ? 1 : 2;
	uint64_t ones[SIM_JOBS] = {0};

	job->elem_bytes = sw_dtype_bytes(job->dtype);
	memset(job->weight, 0, sizeof(job->weight));
	for (uint32_t r = 0; r < job->n_workers; r++) {
		ones[sim_job_of(job, r)] |= 1ULL << bits * r;
		job->weight[sim_job_of(job, r)] += job->n_local[r];
		for (uint32_t d = 1; d < 4; d++)
			job->grads[r][d] = sim_oracle_encode(
				job->dtype, (bits == 1 ? 1ULL : d) << bits * r);
	}
	for (uint32_t i = 0; i < job->n_jobs; i++)
		for (uint32_t d = 1; d < 4; d++)
			job->sums[i][d] = sim_oracle_encode(
				job->dtype, (bits == 1 ? 1 : d) * ones[i]);
	memset(job->by_key, 0xff, sizeof(job->by_key)); /* SW_KEY_NONE */
}

static uint32_t digit(const struct sim_job *job, uint32_t tensor,
	uint32_t round, uint64_t elem)
{
	uint64_t x = job->seed ^ (uint64_t)tensor << 48 ^
		     (uint64_t)round << 24 ^ elem;

	return 1 + (uint32_t)(test_random(&x) % 3);
}

uint32_t sim_oracle_root(
	const struct sim_job *job, uint32_t i, uint32_t tensor, uint32_t round)
{
	uint64_t x = ~job->seed ^ (uint64_t)tensor << 48 ^ round;
	bool is_async = sim_job_is_async(job, tensor);

	return sim_chance(&x, !is_async ? job->copies
			      : round   ? 0
					: 1000000)
		       ? (uint32_t)sim_below(&x, sim_job_members(job, i)) *
					 job->n_jobs +
				 i
		       : SIM_WORKERS;
}

/* Return the final elements of that round of job @i, by digit. */
static const uint64_t *outcome(const struct sim_job *job, uint32_t i,
	uint32_t tensor, uint32_t round, uint32_t *weight)
{
	uint32_t root = sim_oracle_root(job, i, tensor, round);

	*weight = root < SIM_WORKERS ? 1 : job->weight[i];
	return root < SIM_WORKERS ? job->grads[root] : job->sums[i];
}

bool sim_oracle_is_copy(const struct sim_worker *w, uint32_t tensor)
{
	return sim_oracle_root(w->job, sim_job_of(w->job, w->rank), tensor,
		       w->round[tensor]) < SIM_WORKERS;
}

bool sim_oracle_has_share(const struct sim_worker *w, uint32_t tensor,
	uint32_t local, bool is_copy, uint64_t elem)
{
	if (is_copy)
		return local == tensor % w->n_local;
	return (elem + w->round[tensor]) % w->n_local == local;
}

void sim_oracle_fill(struct sim_worker *w, uint32_t tensor, uint32_t local)
{
	if (sim_job_is_async(w->job, tensor))
		sim_async_fill(w, tensor, local);
	else
		sim_oracle_fill_some(
			w, tensor, local, 0, w->job->n_elems[tensor]);
}

void sim_oracle_fill_some(struct sim_worker *w, uint32_t tensor, uint32_t local,
	uint64_t from, uint64_t end)
{
	const struct sim_job *job = w->job;
	uint8_t *p = w->from[local][tensor] + from * job->elem_bytes;
	bool is_copy = sim_oracle_is_copy(w, tensor);

	for (uint32_t i = (uint32_t)from; i < end; i++, p += job->elem_bytes) {
		uint32_t d = digit(job, tensor, w->round[tensor], i);

		if (!sim_oracle_has_share(w, tensor, local, is_copy, i))
			d = 0;
		memcpy(p, &job->grads[w->rank][d], job->elem_bytes);
	}
}

/* Count elements among the @n at @p that are not @want[digit]; the first is
 * element @from of the tensor. */
static uint64_t count_wrong(const struct sim_job *job, const uint8_t *p,
	const uint64_t want[4], uint32_t tensor, uint32_t round, uint64_t from,
	uint64_t n)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < n; i++, p += job->elem_bytes)
		wrong += !sim_elem_is(p,
			want[digit(job, tensor, round, from + i)],
			job->elem_bytes);
	return wrong;
}

uint64_t sim_oracle_wrong(const struct sim_worker *w, uint32_t tensor,
	uint32_t round, uint64_t from, uint64_t end, uint32_t *weight)
{
	const struct sim_job *job = w->job;
	const uint64_t *want =
		outcome(job, sim_job_of(job, w->rank), tensor, round, weight);

	return count_wrong(job, w->data[tensor] + from * job->elem_bytes, want,
		tensor, round, from, end - from);
}

void sim_oracle_check(struct sim_worker *w, uint32_t tensor, uint32_t weight)
{
	struct sim_job *job = w->job;
	uint32_t expected;
	uint64_t wrong = sim_oracle_wrong(w, tensor, w->round[tensor], 0,
		job->n_elems[tensor], &expected);
	char name[SW_NAME_MAX];

	if (sim_job_is_async(job, tensor)) {
		wrong = sim_async_check(w, tensor);
		expected = 1;
	}
	w->n_wrong += wrong + (weight != expected);
	if (w->n_wrong && !job->oracle[0])
		snprintf(job->oracle, sizeof(job->oracle),
			"rank %u got %llu wrong elements, weight %u of %u, in "
			"round %u of %s",
			w->rank, (unsigned long long)wrong, weight, expected,
			w->round[tensor] + 1, sim_job_name(job, tensor, name));
}

uint32_t sim_job_chunks(const struct sim_job *job, uint32_t i, uint32_t tensor)
{
	uint32_t per = sim_job_payload(job, i) / job->elem_bytes;

	return (job->n_elems[tensor] - 1) / per + 1;
}

uint32_t sim_oracle_n_chunks(void *ctx, uint32_t key)
{
	const struct sim_job *job = ctx;

	return key < SIM_KEYS && job->by_key[0][key] != SW_KEY_NONE
		       ? sim_job_chunks(job, 0, job->by_key[0][key])
		       : 0;
}

/* Return the payload length of a push in this round; @full is the chunk's. */
static uint32_t push_bytes(const struct sim_job *job, uint32_t worker,
	uint32_t tensor, uint32_t round, uint32_t full)
{
	uint32_t root =
		sim_oracle_root(job, sim_job_of(job, worker), tensor, round);

	return root == worker || root == SIM_WORKERS ? full : 0;
}

/* Reject a result of a round in which members differ. */
static void check_mismatch(struct sim_job *job, bool is_push)
{
	if (is_push || job->oracle[0])
		return;
	job->n_bad_results++;
	snprintf(job->oracle, sizeof(job->oracle),
		"a result of a round in which members differ");
}

/* A push must carry its rank's gradient and nothing else (A6), or nothing if
 * another rank broadcasts. A result must carry the whole sum or the root's
 * bytes, the same for all (I2, I3, A2). */
void sim_oracle_on_tx(void *ctx, uint32_t from, const struct sw_tx_frame *sent)
{
	struct sim_job *job = ctx;
	struct sw_tx_frame open;
	const struct sw_tx_frame *t = &open;
	uint32_t tensor, worker, i, weight, per, bytes;
	uint64_t first, wrong;
	const uint64_t *want;
	struct sw_header h;
	uint8_t type = sent->head[3];
	bool is_push = type != SW_RESULT;
	char name[SW_NAME_MAX];

	if (!sw_type_is_data(type) || job->is_edited ||
		!sim_cipher_open(job, from, sent, &open))
		return;
	/* Read the remaining header fields where an engine writes them. */
	memcpy(&h.key, t->head + 16, 4);
	memcpy(&h.round, t->head + 20, 4);
	memcpy(&h.chunk, t->head + 24, 4);
	memcpy(&h.weight, t->head + 30, 2);
	worker = is_push || t->to.port_i == SIM_LOOPBACK
			 ? from
			 : (uint32_t)t->to.ip.low - sim_ip(0);
	worker -= sim_job_first(job);
	if (sim_stream_on_tx(job, from, worker, is_push, t))
		return;
	i = sim_job_of(job, worker);
	tensor = h.key < SIM_KEYS ? job->by_key[i][h.key] : SW_KEY_NONE;
	if (tensor == SW_KEY_NONE)
		return;
	if (sim_mismatch_is_in(job, i, tensor, h.round - 1)) {
		check_mismatch(job, is_push);
		return;
	}
	want = outcome(job, i, tensor, h.round - 1, &weight);
	per = sim_job_payload(job, i) / job->elem_bytes;
	first = (uint64_t)h.chunk * per;
	bytes = job->elem_bytes *
		(uint32_t)sw_min64(per, job->n_elems[tensor] - first);
	if (is_push) {
		want = job->grads[worker];
		bytes = push_bytes(job, worker, tensor, h.round - 1, bytes);
	}
	if (sim_job_is_async(job, tensor)) {
		wrong = sim_async_on_tx(job, t, worker, tensor, first);
		weight = 1;
	} else
		wrong = count_wrong(job, t->payload, want, tensor, h.round - 1,
			first, t->payload_len / job->elem_bytes);
	wrong += !is_push && h.weight != weight;
	wrong += t->payload_len != bytes;
	job->n_checked++;
	if (!wrong)
		return;
	*(is_push ? &job->n_bad_pushes : &job->n_bad_results) += 1;
	if (!job->oracle[0])
		snprintf(job->oracle, sizeof(job->oracle),
			"node %u sent a %s of round %u, chunk %u of %s with "
			"%llu wrong elements (or weight %u)",
			from, is_push ? "PUSH" : "RESULT", h.round, h.chunk,
			sim_job_name(job, tensor, name),
			(unsigned long long)wrong, h.weight);
}

/* Sum the counters of all servers. */
static void count_servers(const struct sim_job *job, struct sw_stats *out)
{
	*out = (struct sw_stats){0};
	for (uint32_t i = 0; i < job->n_servers * job->n_lcores; i++) {
		const struct sw_stats *s = &job->servers[i]->stats;

		out->push_folded += s->push_folded;
		out->chunks_done += s->chunks_done;
		out->rx_payload_crc += s->rx_payload_crc;
		out->rx_round += s->rx_round;
	}
	for (uint32_t r = 0; r < job->n_workers; r++)
		out->rx_payload_crc +=
			sim_worker_stats(&job->workers[r]).rx_payload_crc;
}

/* Count the chunks of all rounds, or of the rounds before members differed. */
static uint64_t n_chunks_done(
	const struct sim_job *job, uint32_t i, uint32_t tensor)
{
	bool dies = sim_mismatch_is_in(job, i, tensor, job->mismatch_in);

	return (uint64_t)sim_job_chunks(job, i, tensor) *
	       (dies ? job->mismatch_in : job->n_rounds);
}

const char *sim_job_wrong(struct sim_job *job)
{
	const struct sim_faults *x = &job->net.faults;
	struct sw_stats got;
	uint64_t folds, more, less, sums, open = 0;

	count_servers(job, &got);
	sim_groups_count(job, &sums, &folds, &less);
	for (uint32_t i = 0; i < job->n_jobs; i++)
		for (uint32_t t = 0; t < job->n_tensors; t++) {
			uint64_t n = n_chunks_done(job, i, t);

			folds += n * sim_job_members(job, i);
			sums += sim_job_is_async(job, t) ? 0 : n;
		}
	more = job->mismatch
		       ? sim_job_chunks(job, sim_job_of(job, job->mismatch_by),
				 job->mismatch_tensor) *
				 job->n_workers
		       : 0;
	for (uint32_t i = 0; i < job->n_servers * job->n_lcores; i++)
		open += sw_server_open_chunks(job->servers[i]);
	if (job->oracle[0])
		return job->oracle;
	if (got.push_folded + less < folds ||
		got.push_folded > folds + more + less ||
		got.chunks_done + less < sums ||
		got.chunks_done > sums + less || open)
		snprintf(job->oracle, sizeof(job->oracle),
			"%llu folds of %llu, %llu chunks done of %llu, %llu "
			"open",
			(unsigned long long)got.push_folded,
			(unsigned long long)folds,
			(unsigned long long)got.chunks_done,
			(unsigned long long)sums, (unsigned long long)open);
	else if (got.rx_round)
		snprintf(job->oracle, sizeof(job->oracle),
			"%llu pushes were ahead of what their rank may push",
			(unsigned long long)got.rx_round);
	else if (got.rx_payload_crc && !x->corrupt && !job->mismatch &&
		 !job->clash.how)
		/* A tensor that dies returns its buffer while ports may still
		 * gather frames from it. */
		snprintf(job->oracle, sizeof(job->oracle),
			"%llu payloads failed their CRC, nothing was damaged",
			(unsigned long long)got.rx_payload_crc);
	return job->oracle[0] ? job->oracle : NULL;
}
