/* job.h - a simulated job: servers, workers, tensors, and the oracle.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Member w adds d * 4^w to every element, with d = 1, 2 or 3 drawn from tensor,
 * round and element; there may be several jobs, and member w is of job w %
 * n_jobs.  Every base-4 digit of a sum must then be d: a missing, a double or a
 * foreign contribution shows, and so does one of another round.  Buffers are in
 * place: the sum is written over the gradient.  Where a member has several
 * local ranks, each has a buffer of its own, with the member's d in its share
 * of the elements and 0 in the others'; the sum goes to one more.
 *
 * The oracle also sees every frame that an engine gives to its port: a PUSH
 * must carry the gradient of its rank and round, a RESULT the whole sum, even
 * if the receiver would not have noticed.  At the end every contribution must
 * have been folded exactly once.
 */
#ifndef SW_TEST_SIM_JOB_H
#define SW_TEST_SIM_JOB_H

#include "engine/server/server_int.h"
#include "engine/worker/worker.h"
#include "test/sim/net.h"
#include "test/sim/stream.h"

enum {
	SIM_WORKERS = 64,
	SIM_SERVERS = 32,
	SIM_ENGINES = 32, /* servers times their lcores */
	SIM_TENSORS = 32,
	SIM_KEYS = SIM_TENSORS + SIM_GROUPS,
	SIM_NONCES = 1 << 14,
	SIM_LANES = 4,
	SIM_JOBS = 4,
	SIM_GRANULES = 16, /* granules of a growing tensor */
};

struct sim_job;

/* A node's fate in mid-job. */
enum sim_doom {
	SIM_NONE,
	SIM_DIES,
	SIM_SERVER_DIES,
	SIM_RESTARTS,
	SIM_LEAVES,
	SIM_RANK_DIES, /* one of a worker's several ranks dies */
};

/* How one worker's call of a tensor differs from the others'. */
enum sim_mismatch {
	SIM_ALIKE,
	SIM_OTHER_STEP,
	SIM_OTHER_OPERATION,
	SIM_OTHER_ROOT, /* of a broadcast */
	SIM_OTHER_SIZE, /* it declares one element more */
};

/* A payload that a key of results has encrypted. */
struct sim_nonce {
	uint8_t key[8]; /* first bytes of the key */
	uint32_t place[3], era;
	uint32_t crc; /* CRC of the encrypted bytes */
};

struct sim_worker {
	struct sw_worker engine; /* lane 0 */
	struct sim_job *job;
	struct sim_node *node;
	struct sw_worker *others; /* lanes 1 to n_lanes - 1 */
	struct sw_lane *lanes;    /* between lane 0 and each of them */
	struct sim_node *lcores[SIM_LANES]; /* nodes of each lane, from 0 */
	uint32_t rank, n_lanes;
	uint16_t n_local;
	uint8_t *data[SIM_TENSORS]; /* where results go */
	uint8_t *from[SIM_LOCAL][SIM_TENSORS];
	uint64_t pause_until_ns;
	bool is_open;
	/* Fields of one life. */
	bool is_running, has_failed, has_left;
	bool has_lost_rank; /* the last of its local ones has died */
	uint32_t kept;      /* lanes that have released the buffers */
	uint32_t hearing;   /* the lane that takes what the others say now */
	int err;
	uint64_t failed_ns;
	char text[SW_TEXT_MAX];        /* why it failed */
	char told[2 * SW_TEXT_MAX];    /* last line for the person who waits */
	uint32_t round[SIM_TENSORS];   /* completed */
	uint32_t asked[SIM_TENSORS];   /* local ranks that have pushed */
	uint32_t dead_in[SIM_TENSORS]; /* 1 + the round that failed */
	/* Bytes at the end of a buffer that is asked for, and not written. */
	uint64_t lacks[SIM_LOCAL][SIM_TENSORS];
	_Atomic uint32_t granules[SIM_TENSORS][SIM_GRANULES];
	/* the same, when it was told last */
	_Atomic uint32_t summed[SIM_TENSORS][SIM_GRANULES];
	uint64_t done_ns[SIM_TENSORS];
	uint32_t index[SIM_TENSORS]; /* ours -> the engine's */
	uint32_t n_declared, n_admitted;
	/* The batch that its control thread builds, and the lanes that have
	 * it. */
	struct sw_worker_tensor batch[SIM_TENSORS + SIM_GROUPS];
	char names[SIM_TENSORS + SIM_GROUPS][SW_NAME_MAX];
	uint32_t n_batch, built;
	struct sim_of_group of_group[SIM_SEATS];
	uint32_t n_gone;   /* streams that it has closed */
	uint64_t n_wrong;  /* elements and weights */
	uint32_t n_errors; /* push_pulls that ended with one */
	int last_err;      /* of those */
};

struct sim_job {
	/* Fields that a test may set before sim_job_open. */
	uint64_t seed;
	struct sim_net net;
	struct sw_params params;
	struct sw_log log;
	uint32_t n_workers, n_servers, n_tensors, n_rounds;
	uint32_t n_colocated; /* last servers, on workers' machines: 0 or all */
	uint32_t n_jobs;   /* on the same workers and servers; 1: colocated */
	uint32_t n_lcores; /* lcores of each server; server i is engines i *
			      n_lcores to that + n_lcores - 1 */
	uint32_t n_first;  /* tensors in the first DECLARE */
	uint32_t n_elems[SIM_TENSORS];
	uint32_t name_bytes; /* names are filled up to so many */
	uint32_t dtype;
	/* The payload that each machine's MTU allows; 0: params.payload. */
	uint16_t carries[SIM_NODES];
	uint16_t n_local[SIM_WORKERS];
	uint8_t n_lanes[SIM_WORKERS]; /* at most as many as engines */
	uint32_t async;    /* tensors that are asynchronous, a bit for each */
	uint32_t copies;   /* rounds that are broadcasts, in a million */
	uint32_t n_groups; /* of collectives (stream.h) */
	struct sim_group groups[SIM_GROUPS];
	struct sim_clash clash;
	uint32_t grows;  /* in how many of its turns more of what a local rank
			    has asked for is there, ppm; 0: all is at once */
	bool is_by_hand; /* a test says how much is there: at a submit n_there
			    elements, then sim_grow_to */
	uint64_t n_there;
	uint32_t tunes;    /* turns in which a worker asks for tuning, too */
	uint64_t pause_ns; /* between two rounds of a worker, at most */
	uint64_t quota_bytes;
	uint32_t priority_step;              /* 0: 1 from tensor to tensor */
	uint64_t worker_bit_s, server_bit_s; /* paced to; 0: not */
	uint64_t absent; /* workers that are not opened with the others */
	bool is_keyed;   /* frames between machines have tags */
	struct sw_keyring_entry entry;
	struct sw_keyring keyring;
	struct sim_nonce nonces[SIM_NONCES]; /* the last, by hash */
	uint8_t plain[SW_PAYLOAD_MAX]; /* payload of the frame that is judged */
	bool is_by_use;   /* tensors have no priorities of their own */
	bool is_in_order; /* a worker pushes in the order of its tensors */
	bool is_reversed; /* odd ranks in the reversed order */
	bool leaves;      /* a worker leaves when it has all rounds */
	bool is_edited;   /* the test changes buffers under pushes */
	bool is_careless; /* a node's server drops lent payloads early */
	uint32_t freeze_node;
	uint64_t freeze_at_ns, freeze_ns;
	enum sim_doom doom;
	uint32_t victim; /* a worker, or a server */
	uint64_t doom_at_ns;
	/* Worker @odd_one differs. */
	uint32_t odd_one;
	uint32_t odd_elems, odd_priority, odd_step, odd_rounds;
	uint32_t odd_members;
	bool has_odd_dtype;
	/* mismatch.c: worker @mismatch_by, there its local rank @mismatch_at or
	 * all, differs in round @mismatch_in (from 0) of one tensor. */
	enum sim_mismatch mismatch;
	uint32_t mismatch_by, mismatch_at, mismatch_tensor, mismatch_in;
	/* The rest is the simulation's. */
	uint32_t most; /* payload that all paths of the job carry */
	/* The payload that each job has agreed on; 0: it does not run yet. */
	uint32_t agreed[SIM_JOBS];
	uint64_t rng, rng_mem;
	bool has_late_memory; /* two of three times that an engine asks */
	struct sw_env env;
	struct sw_server *servers[SIM_ENGINES];
	struct sim_node *lcores[SIM_ENGINES]; /* where each runs */
	struct sim_worker workers[SIM_WORKERS];
	const struct sw_share *shares; /* the servers' jobs'; may be NULL */
	uint32_t n_shares;
	uint32_t elem_bytes, weight[SIM_JOBS];
	/* elements by digit */
	uint64_t grads[SIM_WORKERS][4], sums[SIM_JOBS][4];
	uint32_t by_key[SIM_JOBS][SIM_KEYS];
	uint32_t group_keys[SIM_GROUPS]; /* 1 + key; 0: not known yet */
	struct sim_chunk_log seen[SIM_ENGINES][SIM_GROUPS];
	uint64_t n_bad_pushes, n_bad_results; /* frames */
	uint64_t mem_bytes, n_mem_gets;       /* held by engines; requests */
	uint64_t n_checked; /* frames that the oracle looked into */
	char oracle[256];   /* first thing that was wrong */
};

/* Two workers, one server, one tensor of one chunk, i32, no faults. */
void sim_job_init(struct sim_job *job, uint64_t seed);

/* draw.c: draw a job from a seed: size, faults, timing; print it. */
void sim_job_draw(struct sim_job *job, uint64_t seed);
/* After sim_job_open: maybe one node is slow. */
void sim_job_draw_nodes(struct sim_job *job);
void sim_job_describe(const struct sim_job *job);

/* Build nodes and engines as the fields say. */
void sim_job_open(struct sim_job *job);
void sim_job_close(struct sim_job *job);

/* A worker that was absent comes; one stops, as by kill -9, and with it the
 * server of its machine. */
void sim_worker_start(struct sim_job *job, uint32_t rank);
void sim_worker_kill(struct sim_job *job, uint32_t rank);
/* A server stops; it comes again without memory of its past. */
void sim_server_kill(struct sim_job *job, uint32_t i);
void sim_server_start(struct sim_job *job, uint32_t i);

/* A worker leaves, whatever it does; @err and @text as of sw_worker_leave. */
void sim_worker_leave(struct sim_worker *w, int err, const char *text);

/* A worker asks for tuning drawn by chance. */
void sim_worker_tune(struct sim_worker *w);

/* Run until every worker has completed all rounds (and left, if they leave),
 * one failed, or virtual @limit_ns have passed.  Returns true when all
 * completed. */
bool sim_job_run(struct sim_job *job, uint64_t limit_ns);

/* Has it all rounds? */
bool sim_worker_has_completed(const struct sim_worker *w);

/* doom.c: draw somebody who dies, or who leaves before the others are through;
 * run such a job.  Returns what is wrong with how it ends for the others, or
 * NULL. */
void sim_doom_draw(struct sim_job *job);
const char *sim_doom_run(struct sim_job *job, uint64_t limit_ns);
/* The last local rank of a worker dies. */
void sim_rank_kill(struct sim_worker *w);
/* Is another worker of @group, or a rank of this one, gone?  Does @why name one
 * that is? */
bool sim_doom_is_in(const struct sim_worker *w, uint32_t group);
bool sim_doom_is_named(
	const struct sim_worker *w, uint32_t group, const char *why);

/* mismatch.c: draw one; does this local rank's next call, or anybody's in that
 * round, differ? Draw the wrong call. */
void sim_mismatch_draw(struct sim_job *job);
bool sim_mismatch_is_of(
	const struct sim_worker *w, uint32_t tensor, uint32_t local);
bool sim_mismatch_is_in(
	const struct sim_job *job, uint32_t i, uint32_t tensor, uint32_t round);
void sim_mismatch_apply(
	const struct sim_worker *w, struct sw_worker_round *round);
/* After a complete run: NULL, or how it did not end as it must: that round
 * fails at all members of that job, and nothing else does. */
const char *sim_mismatch_wrong(struct sim_job *job);
/* Has it failed because others left, whose declarations were refused?  Servers
 * other than the coordinator do not know that the tensor has ended, since those
 * never declared it there: if the coordinator's END is lost, such a server may
 * name them first. */
bool sim_mismatch_has_failed(const struct sim_worker *w);

/* Push a tensor of a local rank by hand, for a job of 0 rounds; its bit is in
 * asked while it is open. */
void sim_worker_submit(struct sim_worker *w, uint32_t tensor, uint32_t local);

/* Run for @ns, whatever happens. */
void sim_job_pass(struct sim_job *job, uint64_t ns);

/* After a complete run: NULL, or what the oracle has against it. */
const char *sim_job_wrong(struct sim_job *job);

/* Node of worker 0; the others follow.  Server i is on node i. */
static inline uint32_t sim_job_first(const struct sim_job *job)
{
	return job->n_servers - job->n_colocated;
}

/* Counters of all lanes. */
struct sw_stats sim_worker_stats(const struct sim_worker *w);

/* Which job a worker is of; its rank there; how many are of that job. */
static inline uint32_t sim_job_of(const struct sim_job *job, uint32_t worker)
{
	return worker % job->n_jobs;
}

static inline uint16_t sim_job_rank(const struct sim_job *job, uint32_t worker)
{
	return (uint16_t)(worker / job->n_jobs);
}

static inline uint16_t sim_job_members(const struct sim_job *job, uint32_t i)
{
	return (uint16_t)((job->n_workers - i + job->n_jobs - 1) / job->n_jobs);
}

/* --- mtu.c: machines and paths of different MTUs --- */

/* Draw them. */
void sim_mtus_draw(struct sim_job *job);
/* The parameters of an engine on a machine. */
struct sw_params sim_mtu_params(const struct sim_job *job, uint32_t machine);
/* The payload of job @i: the agreed one, once it runs. */
static inline uint32_t sim_job_payload(const struct sim_job *job, uint32_t i)
{
	return job->agreed[i] ? job->agreed[i] : job->params.payload;
}

/* The payload that all paths of the job carry. */
uint32_t sim_mtus_most(const struct sim_job *job);
/* A worker runs: the job has the payload that it must have. */
void sim_mtus_check(struct sim_worker *w);

/* --- between job.c and worker.c --- */

/* A worker's engine calls these; its lcores run them after each turn. */
struct sw_worker_events sim_worker_events(struct sim_worker *w);
void sim_worker_step(void *ctx, uint64_t now_ns);
void sim_lane_step(void *ctx, uint64_t now_ns);

/* --- grow.c: buffers that are written while they are pushed --- */

/* Where the engine says of a tensor which of its granules are summed; NULL: it
 * has too many, or does not grow. */
_Atomic uint32_t *sim_grow_granules(struct sim_worker *w, uint32_t tensor);
/* The end of a buffer that is about to be pushed is not written; returns its
 * bytes.  Then so many of its elements are, in all; more is, as the seed says.
 */
uint64_t sim_grow_hold_back(
	struct sim_worker *w, uint32_t tensor, uint32_t local);
void sim_grow_to(struct sim_worker *w, uint32_t tensor, uint32_t local,
	uint64_t n_there);
void sim_grow_some(struct sim_worker *w);
/* The worker learns that all elements of the granules with a round's number are
 * sums of that round. When a round has ended all have been told of.
 */
void sim_grow_summed(void *ctx);
void sim_grow_check(struct sim_worker *w, uint32_t tensor);

/* --- oracle.c --- */

void sim_oracle_open(struct sim_job *job);
/* The worker whose bytes the others of job @i get in that round (from 0),
 * SIM_WORKERS: it is a sum. */
uint32_t sim_oracle_root(
	const struct sim_job *job, uint32_t i, uint32_t tensor, uint32_t round);
/* A small number as an element, and back: exact in the dtype. */
uint64_t sim_oracle_encode(uint32_t dtype, int64_t v);
int64_t sim_oracle_decode(uint32_t dtype, const uint8_t *p);
/* Is this element those bits?  Asked of all that is pushed and summed, so sizes
 * are constants. */
static inline bool sim_elem_is(const uint8_t *p, uint64_t bits, uint32_t bytes)
{
	switch (bytes) {
	case 1:
		return *p == (uint8_t)bits;
	case 2:
		return !memcmp(p, &bits, 2);
	case 4:
		return !memcmp(p, &bits, 4);
	default:
		return !memcmp(p, &bits, 8);
	}
}

/* Will all get a copy of what one rank pushes next? */
bool sim_oracle_is_copy(const struct sim_worker *w, uint32_t tensor);
/* Does this local rank have the element in its next push? */
bool sim_oracle_has_share(const struct sim_worker *w, uint32_t tensor,
	uint32_t local, bool is_copy, uint64_t elem);
/* The gradient of the round that a worker is about to push. */
void sim_oracle_fill(struct sim_worker *w, uint32_t tensor, uint32_t local);
/* sim_oracle_fill_some - elements from @from on, below @end. */
void sim_oracle_fill_some(struct sim_worker *w, uint32_t tensor, uint32_t local,
	uint64_t from, uint64_t end);
/* Elements from @from on, below @end, of a result that are not the sums of a
 * round (from 0); how many contributions those have. */
uint64_t sim_oracle_wrong(const struct sim_worker *w, uint32_t tensor,
	uint32_t round, uint64_t from, uint64_t end, uint32_t *weight);
/* Does the buffer hold the sum of that round?  Counts what does not. */
void sim_oracle_check(struct sim_worker *w, uint32_t tensor, uint32_t weight);
/* A frame that node @from gave to its port. */
void sim_oracle_on_tx(void *ctx, uint32_t from, const struct sw_tx_frame *t);
uint32_t sim_oracle_n_chunks(void *ctx, uint32_t key);
/* Chunks of a tensor in job @i. */
uint32_t sim_job_chunks(const struct sim_job *job, uint32_t i, uint32_t tensor);

/* cipher.c: sim_cipher_open - set @out to the frame as its receiver reads it.
 * False: it cannot. */
bool sim_cipher_open(struct sim_job *job, uint32_t from,
	const struct sw_tx_frame *t, struct sw_tx_frame *out);

/* oracle_async.c: the same of asynchronous tensors. Return the number of
 * errors; @worker sends or receives; the frame's first element is
 * @first.
 */
static inline bool sim_job_is_async(const struct sim_job *job, uint32_t tensor)
{
	return job->async >> tensor & 1;
}
void sim_async_fill(struct sim_worker *w, uint32_t tensor, uint32_t local);
uint64_t sim_async_check(const struct sim_worker *w, uint32_t tensor);
uint64_t sim_async_on_tx(struct sim_job *job, const struct sw_tx_frame *t,
	uint32_t worker, uint32_t tensor, uint64_t first);

/* Name of a tensor; to @out[SW_NAME_MAX], which it returns. */
const char *sim_job_name(const struct sim_job *job, uint32_t tensor, char *out);

#endif
