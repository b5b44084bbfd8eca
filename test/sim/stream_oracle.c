/* stream_oracle.c - check frames of streams and the end of collectives.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The place of a PUSH in its member's buffer shows which elements chunk j at a
 * server has. All members' pushes and all results must agree. So the oracle
 * does not depend on how collectives are divided and placed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/sums/stream.h"
#include "engine/worker/stream.h"
#include "test/sim/job.h"
#include "test/support/header.h"

/* --- frames --- */

/* A frame of a stream as its engine gave it to a port. */
struct sight {
	struct sim_job *job;
	const struct sim_worker *w; /* the worker that sends or receives it */
	uint32_t group, engine;
	struct sw_header h;
	const uint8_t *payload;
	bool is_push;
};

static void accuse(const struct sight *s, const char *what)
{
	struct sim_job *job = s->job;

	*(s->is_push ? &job->n_bad_pushes : &job->n_bad_results) += 1;
	if (!job->oracle[0])
		snprintf(job->oracle, sizeof(job->oracle),
			"a %s of worker %u at engine %u, chunk %u of group %u, "
			"collective %u: %s",
			s->is_push ? "PUSH" : "RESULT", s->w->rank, s->engine,
			s->h.round, s->group, s->h.chunk - 1, what);
}

static bool find_group(const struct sim_job *job, uint32_t key, uint32_t *out)
{
	for (*out = 0; *out < job->n_groups; ++*out)
		if (job->group_keys[*out] == key + 1)
			return true;
	return false;
}

/* Return the server's engine: the receiver of a PUSH, or the sender of a
 * RESULT. */
static uint32_t engine_of(const struct sim_job *job, uint32_t from,
	bool is_push, const struct sw_tx_frame *t)
{
	uint32_t lcore = (uint32_t)(t->to.udp - SIM_UDP) % SIM_ENDPOINTS;

	if (!is_push)
		return from * job->n_lcores + t->endpoint;
	if ((uint32_t)t->to.ip.low == SW_LOOPBACK_IP)
		return from * job->n_lcores + t->to.udp;
	return ((uint32_t)t->to.ip.low - sim_ip(0)) * job->n_lcores + lcore;
}

static struct sim_seen *seen_of(const struct sight *s)
{
	struct sim_chunk_log *log = &s->job->seen[s->engine][s->group];
	uint32_t start = s->job->groups[s->group].start;
	uint32_t i = s->h.round - (start ? start : 1);

	if (i >= 1u << 20)
		return NULL;
	if (i >= log->n) {
		uint32_t n = 2 * i + 64;

		log->seen = realloc(log->seen, n * sizeof(*log->seen));
		if (!log->seen)
			abort();
		memset(log->seen + log->n, 0,
			(n - log->n) * sizeof(*log->seen));
		log->n = n;
	}
	return &log->seen[i];
}

/* Count wrong elements. */
static uint64_t count_wrong(const struct sight *s, const struct sim_coll *c,
	uint64_t first, uint32_t n)
{
	uint32_t bytes = sw_dtype_bytes(c->dtype), coll = s->h.chunk - 1;
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < n; i++) {
		int64_t v = s->is_push ? sim_coll_given(s->job, s->group, coll,
						 s->w->rank, first + i)
				       : sim_coll_sum(s->job, s->group, coll,
						 first + i);
		uint64_t bits = sim_oracle_encode(c->dtype, v);

		wrong += !sim_elem_is(s->payload + i * bytes, bits, bytes);
	}
	return wrong;
}

/* Return the member that is the root of a chunk. */
static uint32_t root_of(const struct sim_job *job, const struct sim_group *g,
	const struct sim_coll *c, const struct sim_seen *x)
{
	if (c->kind == SW_BCAST || c->kind == SW_REDUCE)
		return sim_rank_worker(job, c->root);
	return sim_rank_worker(
		job, g->ranks[sim_coll_n_parts(g, c) > 1 ? x->first / c->n_elems
							 : 0]);
}

/* Check that all members' pushes of a chunk agree. */
static void agree(const struct sight *s, const struct sim_coll *c,
	uint64_t first, uint32_t n)
{
	const struct sim_group *g = &s->job->groups[s->group];
	struct sim_seen *x = seen_of(s);

	if (!x || (x->pushed && x->coll != s->h.chunk)) {
		accuse(s, "its number is another chunk's");
		return;
	}
	x->coll = s->h.chunk;
	x->pushed |= 1ULL << s->w->rank;
	if (!n)
		return;
	if (x->n && (x->first != first || x->n != n))
		accuse(s, "others push other elements");
	x->first = first;
	x->n = n;
	if (first % c->n_elems + n > c->n_elems)
		accuse(s, "it is of two parts");
	if (s->h.aux != root_of(s->job, g, c, x))
		accuse(s, "wrong root");
}

/* Return the first element of the chunk that a worker's lane has at this link
 * and number, counted through all parts; UINT64_MAX: none. */
static uint64_t place_in(const struct sight *s, const struct sw_worker *lane,
	const struct sim_coll *c)
{
	const struct sw_wtensor *t =
		&lane->tensors[s->w->of_group[s->group].index];
	const struct sw_piece *p;
	uint32_t chunk;

	for (uint32_t l = 0; l < lane->n_links; l++) {
		if (lane->links[l].server_i != s->engine ||
			!sw_stream_find(t, &lane->links[l], s->h.round, &chunk))
			continue;
		p = &t->stream->pieces[chunk];
		return p->part * c->n_elems + (uint64_t)p->at *
						      p->coll->chunk_bytes /
						      sw_dtype_bytes(c->dtype);
	}
	return UINT64_MAX;
}

/* Return the first element of a PUSH: from the address of bytes in a rank's
 * buffer, or, if several ranks' bytes were summed first, from the worker's
 * state. */
static uint64_t first_of(
	const struct sight *s, uint32_t coll, const struct sim_coll *c)
{
	uint64_t first;

	for (uint32_t i = s->group; i < SIM_SEATS; i += SIM_GROUPS)
		if (sim_seat_is_taken(s->w, i) &&
			sim_coll_find(s->w, i, coll, s->payload, &first))
			return first;
	first = place_in(s, &s->w->engine, c);
	for (uint32_t i = 1; i < s->w->n_lanes && first == UINT64_MAX; i++)
		first = place_in(s, &s->w->others[i - 1], c);
	return first;
}

/* Return a rank of the worker that has the collective open, or whose worker has
 * ended (other lanes may learn that later); SIM_SEATS: none. */
static uint32_t find_open(const struct sight *s, uint32_t coll)
{
	uint32_t seat = s->group;

	for (; seat < SIM_SEATS; seat += SIM_GROUPS) {
		const struct sim_of_group *of = &s->w->of_group[seat];

		if (coll < of->n_submitted &&
			(of->fates[coll] == SIM_OPEN ||
				(of->fates[coll] == SIM_ENDED_BADLY &&
					sw_worker_end_of(&s->w->engine))))
			return seat;
	}
	return SIM_SEATS;
}

static void check_push(const struct sight *s)
{
	uint32_t coll = s->h.chunk - 1, seat = find_open(s, coll), n = 0;
	struct sim_coll c;
	uint64_t first = 0;

	if (seat == SIM_SEATS) {
		accuse(s, "that is not open");
		return;
	}
	c = sim_coll_of(s->w, seat, coll);
	if (s->h.dtype != c.dtype || s->h.op != sw_coll_op(c.kind, c.op))
		accuse(s, "wrong kind, operation or dtype");
	if (s->h.payload_len) {
		n = s->h.payload_len / sw_dtype_bytes(c.dtype);
		first = first_of(s, coll, &c);
		if (first == UINT64_MAX || count_wrong(s, &c, first, n))
			accuse(s, "wrong elements");
	}
	if (!sim_clash_is_in(s->job, s->group, coll))
		agree(s, &c, first, n);
}

/* Check each chunk that a WANT asks for. */
static void check_want(struct sight s)
{
	if (!s.h.weight || s.h.weight > SW_WANT_MAX || s.h.payload_len)
		accuse(&s, "a WANT of none, of too many, or with bytes");
	for (uint32_t i = 0; i < s.h.weight; i++, s.h.round++)
		check_push(&s);
}

static void check_result(const struct sight *s)
{
	const struct sim_group *g = &s->job->groups[s->group];
	uint32_t coll = s->h.chunk - 1;
	const struct sim_coll *c = &g->colls[coll];
	const struct sim_seen *x = seen_of(s);
	uint64_t to;

	if (coll < g->n_colls && sim_clash_is_in(s->job, s->group, coll))
		return; /* checked when a rank's call ends well */
	if (!x || !x->n || x->coll != s->h.chunk) {
		accuse(s, "nobody pushed it");
		return;
	}
	to = sw_coll_to(c->kind, g->members, root_of(s->job, g, c, x)) &
	     x->pushed;
	if (!(to >> s->w->rank & 1))
		accuse(s, "it does not wait for it");
	if (s->h.dtype != c->dtype || s->h.op != sw_coll_op(c->kind, c->op) ||
		s->h.payload_len != x->n * sw_dtype_bytes(c->dtype))
		accuse(s, "wrong kind, operation, dtype or length");
	else if (count_wrong(s, c, x->first, x->n))
		accuse(s, "wrong elements");
	if (s->h.weight != (sw_coll_is_sum(c->kind) ? g->n_ranks : 1))
		accuse(s, "wrong weight");
}

bool sim_stream_on_tx(struct sim_job *job, uint32_t from, uint32_t worker,
	bool is_push, const struct sw_tx_frame *t)
{
	struct sight s = {.job = job,
		.engine = engine_of(job, from, is_push, t),
		.payload = t->payload,
		.is_push = is_push};

	/* Read the fields where an engine writes them. */
	memcpy(&s.h.key, t->head + 16, 4);
	memcpy(&s.h.round, t->head + 20, 4);
	memcpy(&s.h.chunk, t->head + 24, 4);
	if (!find_group(job, s.h.key, &s.group))
		return false;
	if (header_decode(t->head, SW_HEAD_BYTES + t->payload_len, &s.h) !=
		HEADER_GOOD)
		abort();
	if ((uint32_t)t->to.ip.low == SW_LOOPBACK_IP)
		worker = from - sim_job_first(job);
	s.w = &job->workers[worker];
	job->n_checked++;
	if (s.h.type == SW_WANT)
		check_want(s);
	else if (is_push)
		check_push(&s);
	else
		check_result(&s);
	return true;
}

void sim_seen_close(struct sim_job *job)
{
	for (uint32_t e = 0; e < SIM_ENGINES; e++)
		for (uint32_t g = 0; g < SIM_GROUPS; g++)
			free(job->seen[e][g].seen);
}

/* --- the end --- */

/* Does the group have one worker only? Then no server takes part. */
static bool is_here(const struct sim_group *g)
{
	return !(g->members & (g->members - 1));
}

/* Return the number of chunks that servers see. */
static uint64_t n_chunks_of(const struct sim_job *job, uint32_t group)
{
	const struct sim_group *g = &job->groups[group];
	uint64_t n = 0;

	if (is_here(g))
		return 0;
	for (uint32_t k = 0; k < g->n_colls; k++) {
		const struct sim_coll *c = &g->colls[k];
		uint64_t per =
			sim_job_payload(job, 0) / sw_dtype_bytes(c->dtype);

		n += ((c->n_elems - 1) / per + 1) * sim_coll_n_parts(g, c);
	}
	return n;
}

void sim_groups_count(const struct sim_job *job, uint64_t *n_chunks,
	uint64_t *n_pushes, uint64_t *n_less)
{
	*n_chunks = *n_pushes = *n_less = 0;
	for (uint32_t i = 0; i < job->n_groups; i++) {
		uint64_t n = n_chunks_of(job, i);
		uint64_t members =
			(uint64_t)__builtin_popcountll(job->groups[i].members);

		*n_chunks += n;
		*n_pushes += n * members;
		if (job->clash.how && job->clash.group == i)
			*n_less = n * members + 64;
	}
}

/* Check a stream of this group at a server after the run; return NULL or the
 * error. Add its complete chunks to *n_done. */
static const char *stream_wrong(const struct sim_job *job, uint32_t group,
	const struct sw_job *sj, uint64_t *n_done)
{
	const struct sim_group *g = &job->groups[group];
	const struct sw_stensor *t =
		sw_shard_tensor(&sj->shard, job->group_keys[group] - 1);
	uint64_t window = is_here(g) ? 16 : 1u << g->window_log2;
	uint64_t marks = (window + 63) / 64 + (window > 64 ? 1 : 0);
	uint64_t apart = job->params.is_by_rank
				 ? (uint64_t)__builtin_popcountll(g->members)
				 : 0;

	if (!t)
		return "a server has no stream of a group";
	*n_done += t->base - (g->start ? g->start : 1);
	if (t->window != window || t->members != g->members)
		return "a stream with another window or members";
	if (t->mem_bytes !=
		window * (3 * sim_job_payload(job, 0) + 64 +
				 apart * (sim_job_payload(job, 0) + 192)) +
			(marks * 8 + 4) * job->n_workers)
		return "a stream with more memory than its window";
	if (t->group->from)
		return NULL;
	if (t->n_open || t->n_ready)
		return "a server waits for a chunk, or has marks";
	for (uint32_t i = 0; i < t->window; i++) {
		const struct sw_slot *s =
			(const struct sw_slot *)(t->records + i * 64);

		if (s->chunk && (!s->is_done || s->inflight))
			return "a slot is not done";
	}
	return NULL;
}

static const char *servers_wrong(const struct sim_job *job, uint32_t group)
{
	const char *wrong = NULL;
	uint64_t n_done = 0;

	for (uint32_t i = 0; i < job->n_servers * job->n_lcores && !wrong; i++)
		for (uint32_t j = 0; j < SW_MAX_JOBS && !wrong; j++) {
			const struct sw_job *sj = &job->servers[i]->jobs[j];

			if (!sj->n_sessions)
				continue;
			if (sj->shard.n_open && !job->clash.how)
				return "a server still waits for a chunk";
			wrong = stream_wrong(job, group, sj, &n_done);
		}
	if (!wrong && n_done != n_chunks_of(job, group) &&
		!sim_clash_is_in(job, group, SIM_COLLS))
		wrong = "base of a group is not behind its chunks";
	return wrong;
}

/* Does @why name a rank of this worker? */
static bool names(const char *why, const struct sim_worker *w)
{
	char rank[16];

	for (uint32_t l = 0; l < w->n_local; l++) {
		snprintf(
			rank, sizeof(rank), "rank %u", sim_seat_rank(w, 0) + l);
		if (strstr(why, rank))
			return true;
	}
	return false;
}

static bool is_in(const struct sim_job *job, uint32_t group, uint32_t rank)
{
	for (uint32_t r = 0; r < job->n_workers; r++) {
		uint32_t local = rank - sim_seat_rank(&job->workers[r], 0);

		if (local < job->workers[r].n_local)
			return job->groups[group].here[r] >> local & 1;
	}
	return false;
}

/* Check that the error names the group, and two of its ranks or the rank that
 * ended it. */
static const char *sentence_wrong(
	const struct sim_job *job, uint32_t group, const char *why)
{
	const char *at = why;
	uint32_t n = 0, rank;
	char name[16];

	snprintf(name, sizeof(name), "group%u", group);
	if (!strstr(why, name))
		return "a sentence that does not name the group";
	if (job->clash.how >= SIM_ABORTS)
		return names(why, &job->workers[job->clash.by])
			       ? NULL
			       : "a sentence that does not name who ended it";
	for (; (at = strstr(at, "rank ")); at++, n++)
		if (sscanf(at, "rank %u", &rank) != 1 ||
			!is_in(job, group, rank))
			return "a sentence that names who is not in the group";
	return n > 1 ? NULL : "a sentence that does not name two ranks";
}

/* Check how a rank's collectives of a group have ended. */
static const char *ends_wrong(const struct sim_worker *w, uint32_t seat)
{
	const struct sim_job *job = w->job;
	const struct sim_of_group *of = &w->of_group[seat];
	uint32_t group = seat % SIM_GROUPS;
	const char *why;

	for (uint32_t c = 0; c < of->n_submitted; c++) {
		if (of->fates[c] == SIM_OPEN)
			return "a collective has not ended";
		if (of->fates[c] != SIM_ENDED_BADLY &&
			sim_coll_is_written(w, seat, c))
			return "a buffer was written after its end";
	}
	if (w->has_left || w->has_failed || !w->is_open)
		return NULL;
	why = of->why[0] ? of->why
			 : sw_worker_why(&w->engine, of->index,
				   (char[SW_TEXT_MAX]){0});
	if (sw_worker_death(&w->engine, of->index) == SW_EPEER)
		return sim_doom_is_named(w, group, why)
			       ? NULL
			       : "a sentence that does not name who is gone";
	if (why && !sim_clash_is_in(job, group, SIM_COLLS))
		return "a group is dead";
	if (!why && of->err) /* may be lost only after success */
		return "a member knows of no clash";
	return why ? sentence_wrong(job, group, why) : NULL;
}

/* Check all ranks of a worker, except a rank that was killed. */
static const char *worker_wrong(const struct sim_worker *w)
{
	const struct sim_job *job = w->job;
	const char *wrong = NULL;

	if (job->doom == SIM_DIES && w->rank == job->victim)
		return NULL;
	for (uint32_t i = 0; i < SIM_SEATS && !wrong; i++)
		if (sim_seat_is_taken(w, i))
			wrong = ends_wrong(w, i);
	return wrong;
}

const char *sim_groups_wrong(struct sim_job *job)
{
	const char *wrong = NULL;

	for (uint32_t r = 0; r < job->n_workers && !wrong; r++)
		wrong = worker_wrong(&job->workers[r]);
	for (uint32_t i = 0; i < job->n_groups && !wrong; i++)
		if (!job->leaves && !job->doom)
			wrong = servers_wrong(job, i);
	return wrong;
}
