/* job.h - a simulated job: servers, workers, tensors, and the oracle.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Member w adds d * 4^w to every element, with d = 1, 2 or 3 drawn from tensor,
 * round and element. With several jobs, member w belongs to job w % n_jobs. So
 * every base-4 digit of a sum must be d: a missing, duplicate or foreign
 * contribution shows, and so does one of another round. Sums are in place: a
 * result overwrites the gradient. If a member has several local ranks, each has
 * a buffer of its own, with the member's d in its share of the elements and 0
 * elsewhere; the sum goes to one more buffer.
 *
 * The oracle also sees every frame that an engine gives to its port. A PUSH
 * must carry the gradient of its rank and round, a RESULT the whole sum, even
 * if the receiver would not notice an error. At the end, servers must have
 * folded every contribution exactly once.
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
	SIM_ENGINES = 32, /* servers times lcores */
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
	SIM_RANK_DIES, /* one of the local ranks of a worker dies */
};

/* How one worker's call of a tensor differs from the calls of other workers. */
enum sim_mismatch {
	SIM_ALIKE,
	SIM_OTHER_STEP,
	SIM_OTHER_OPERATION,
	SIM_OTHER_ROOT, /* for a broadcast */
	SIM_OTHER_SIZE, /* the worker declares one element more */
};

/* A payload encrypted with a result key. */
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
	struct sim_node *lcores[SIM_LANES]; /* node of each lane, from lane 0 */
	uint32_t rank, n_lanes;
	uint16_t n_local;
	uint8_t *data[SIM_TENSORS]; /* results */
	uint8_t *from[SIM_LOCAL][SIM_TENSORS];
	uint64_t pause_until_ns;
	bool is_open;
	/* Fields of one life of the worker. */
	bool is_running, has_failed, has_left;
	bool has_lost_rank; /* its last local rank has died */
	uint32_t kept;      /* lanes that have released the buffers */
	uint32_t hearing;   /* lane that takes messages of others */
	int err;
	uint64_t failed_ns;
	char text[SW_TEXT_MAX];        /* why the worker failed */
	char told[2 * SW_TEXT_MAX];    /* last log line for the user */
	uint32_t round[SIM_TENSORS];   /* completed rounds */
	uint32_t asked[SIM_TENSORS];   /* local ranks with an open push */
	uint32_t dead_in[SIM_TENSORS]; /* 1 + the round that failed */
	/* Bytes at the end of a submitted buffer that are not yet written. */
	uint64_t lacks[SIM_LOCAL][SIM_TENSORS];
	_Atomic uint32_t granules[SIM_TENSORS][SIM_GRANULES];
	/* granules as of the last report to the worker */
	_Atomic uint32_t summed[SIM_TENSORS][SIM_GRANULES];
	uint64_t done_ns[SIM_TENSORS];
	uint32_t index[SIM_TENSORS]; /* index in the engine, by index here */
	uint32_t n_declared, n_admitted;
	/* The batch that the control thread builds, and the lanes that hold
	 * it. */
	struct sw_worker_tensor batch[SIM_TENSORS + SIM_GROUPS];
	char names[SIM_TENSORS + SIM_GROUPS][SW_NAME_MAX];
	uint32_t n_batch, built;
	struct sim_of_group of_group[SIM_SEATS];
	uint32_t n_gone;   /* streams that the worker has closed */
	uint64_t n_wrong;  /* wrong elements and weights */
	uint32_t n_errors; /* push_pulls that ended with an error */
	int last_err;      /* the last such error */
};

struct sim_job {
	/* Fields that a test may set before sim_job_open. */
	uint64_t seed;
	struct sim_net net;
	struct sw_params params;
	struct sw_log log;
	uint32_t n_workers, n_servers, n_tensors, n_rounds;
	uint32_t n_colocated; /* last servers, on workers' machines: 0 or all */
	uint32_t n_jobs; /* on the same servers, or each on its workers' own */
	/* Lcores of each server; server i has engines i * n_lcores and
	 * following. */
	uint32_t n_lcores;
	uint32_t n_first; /* tensors in the first DECLARE */
	uint32_t n_elems[SIM_TENSORS];
	uint32_t name_bytes; /* pad names to this length */
	uint32_t dtype;
	/* The payload that each machine's MTU allows; 0: params.payload. */
	uint16_t carries[SIM_NODES];
	uint16_t n_local[SIM_WORKERS];
	uint8_t n_lanes[SIM_WORKERS]; /* at most the number of engines */
	uint32_t async;               /* asynchronous tensors, as bits */
	uint32_t copies;   /* chance that a round is a broadcast, ppm */
	uint32_t n_groups; /* groups for collectives (stream.h) */
	struct sim_group groups[SIM_GROUPS];
	struct sim_clash clash;
	uint32_t grows; /* chance per turn to write more, ppm; 0: all at once */
	bool is_by_hand; /* a test writes: n_there elements, then sim_grow_to */
	uint64_t n_there;
	uint32_t tunes;    /* chance per turn to request tuning, ppm */
	uint64_t pause_ns; /* longest pause between two rounds of a worker */
	uint64_t quota_bytes;
	uint32_t priority_step;              /* step between tensors; 0: 1 */
	uint64_t worker_bit_s, server_bit_s; /* pacing; 0: off */
	uint64_t absent; /* workers that sim_job_open does not start */
	bool is_keyed;   /* frames between machines carry tags */
	struct sw_keyring_entry entry;
	struct sw_keyring keyring;
	struct sim_nonce nonces[SIM_NONCES]; /* the latest, by hash */
	uint8_t plain[SW_PAYLOAD_MAX];       /* payload under check */
	bool is_by_use;   /* declare tensors without priorities */
	bool is_in_order; /* a worker pushes in the order of its tensors */
	bool is_reversed; /* odd ranks push in reversed order */
	bool leaves;      /* a worker leaves after its last round */
	bool is_edited;   /* the test changes buffers during pushes */
	bool is_careless; /* a node frees payloads lent to its server early */
	uint32_t freeze_node;
	uint64_t freeze_at_ns, freeze_ns;
	enum sim_doom doom;
	uint32_t victim; /* index of a worker or a server */
	uint64_t doom_at_ns;
	/* Worker @odd_one differs from the others. */
	uint32_t odd_one;
	uint32_t odd_elems, odd_priority, odd_step, odd_rounds;
	uint32_t odd_members;
	bool has_odd_dtype;
	/* mismatch.c: in round @mismatch_in (from 0) of one tensor, local rank
	 * @mismatch_at of worker @mismatch_by differs, or all its local ranks
	 * do. */
	enum sim_mismatch mismatch;
	uint32_t mismatch_by, mismatch_at, mismatch_tensor, mismatch_in;
	/* The simulation owns the fields below. */
	uint32_t most; /* largest payload that all paths of the job carry */
	/* The payload that each job has agreed on; 0: the job does not run
	 * yet. */
	uint32_t agreed[SIM_JOBS];
	uint64_t rng, rng_mem;
	bool has_late_memory; /* two of three requests are answered late */
	struct sw_env env;
	struct sw_server *servers[SIM_ENGINES];
	struct sim_node *lcores[SIM_ENGINES]; /* node of each engine */
	struct sim_worker workers[SIM_WORKERS];
	const struct sw_share *shares; /* of the servers' jobs; may be NULL */
	uint32_t n_shares;
	uint32_t elem_bytes, weight[SIM_JOBS];
	/* Elements by digit. */
	uint64_t grads[SIM_WORKERS][4], sums[SIM_JOBS][4];
	uint32_t by_key[SIM_JOBS][SIM_KEYS];
	uint32_t group_keys[SIM_GROUPS]; /* 1 + key; 0: unknown */
	struct sim_chunk_log seen[SIM_ENGINES][SIM_GROUPS];
	uint64_t n_bad_pushes, n_bad_results; /* rejected by the oracle */
	uint64_t mem_bytes, n_mem_gets;       /* held by engines; requests */
	uint64_t n_checked; /* frames that the oracle has checked */
	char oracle[256];   /* first error that the oracle found */
};

/* Set defaults: two workers, one server, one i32 tensor of one chunk, no
 * faults. */
void sim_job_init(struct sim_job *job, uint64_t seed);

/* draw.c: draw size, faults and timing of a job from a seed; print them. */
void sim_job_draw(struct sim_job *job, uint64_t seed);
/* Make one node slow, or none. Call after sim_job_open. */
void sim_job_draw_nodes(struct sim_job *job);
void sim_job_describe(const struct sim_job *job);

/* Create nodes and engines as the fields say. */
void sim_job_open(struct sim_job *job);
void sim_job_close(struct sim_job *job);

/* Start a worker that was absent. Kill a worker, as by kill -9, and the server
 * of its machine with it. */
void sim_worker_start(struct sim_job *job, uint32_t rank);
void sim_worker_kill(struct sim_job *job, uint32_t rank);
/* Kill a server; start it again, with empty memory. */
void sim_server_kill(struct sim_job *job, uint32_t i);
void sim_server_start(struct sim_job *job, uint32_t i);

/* Make a worker leave at once; @err and @text are as for sw_worker_leave. */
void sim_worker_leave(struct sim_worker *w, int err, const char *text);

/* Request random tuning from a worker. */
void sim_worker_tune(struct sim_worker *w);

/* Run until every worker has completed all rounds (and left, if workers leave),
 * one has failed, or virtual @limit_ns have passed. Return whether all
 * completed. */
bool sim_job_run(struct sim_job *job, uint64_t limit_ns);

/* Has the worker completed all rounds? */
bool sim_worker_has_completed(const struct sim_worker *w);

/* doom.c: draw a node that dies, or a worker that leaves early; run such a job.
 * Return NULL, or what is wrong with how the other workers ended. */
void sim_doom_draw(struct sim_job *job);
const char *sim_doom_run(struct sim_job *job, uint64_t limit_ns);
/* Kill the last local rank of a worker. */
void sim_rank_kill(struct sim_worker *w);
/* Is another worker of @group, or a rank of this one, dead? Does @why name one
 * of them? */
bool sim_doom_is_in(const struct sim_worker *w, uint32_t group);
bool sim_doom_is_named(
	const struct sim_worker *w, uint32_t group, const char *why);

/* mismatch.c: draw a mismatch; does the next call of this local rank differ, or
 * the call of any rank in that round? Draw the wrong call. */
void sim_mismatch_draw(struct sim_job *job);
bool sim_mismatch_is_of(
	const struct sim_worker *w, uint32_t tensor, uint32_t local);
bool sim_mismatch_is_in(
	const struct sim_job *job, uint32_t i, uint32_t tensor, uint32_t round);
void sim_mismatch_apply(
	const struct sim_worker *w, struct sw_worker_round *round);
/* After a complete run: return NULL, or what is wrong. That round must fail at
 * all members of that job, and everything else must succeed. */
const char *sim_mismatch_wrong(struct sim_job *job);
/* Has the worker failed because other workers left after their declarations
 * were refused? Only the coordinator's END tells that the tensor has ended. If
 * END is lost, another server may name the ranks that left first. */
bool sim_mismatch_has_failed(const struct sim_worker *w);

/* Push a tensor of a local rank, in a job of 0 rounds; the rank's bit in asked
 * is set while the push is open. */
void sim_worker_submit(struct sim_worker *w, uint32_t tensor, uint32_t local);

/* Run for @ns, even if workers fail. */
void sim_job_pass(struct sim_job *job, uint64_t ns);

/* After a complete run: return NULL, or the oracle's complaint. */
const char *sim_job_wrong(struct sim_job *job);

/* Return the index of worker 0's node; the other workers' nodes follow. Server
 * i is on node i. */
static inline uint32_t sim_job_first(const struct sim_job *job)
{
	return job->n_servers - job->n_colocated;
}

/* Return the sum of the counters of all lanes. */
struct sw_stats sim_worker_stats(const struct sim_worker *w);

/* Return the job of a worker, its rank there, and the number of workers of that
 * job. */
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

/* Draw the MTUs. */
void sim_mtus_draw(struct sim_job *job);
/* Return the parameters of an engine on a machine. */
struct sw_params sim_mtu_params(const struct sim_job *job, uint32_t machine);
/* Return the payload of job @i: the agreed one, once the job runs. */
static inline uint32_t sim_job_payload(const struct sim_job *job, uint32_t i)
{
	return job->agreed[i] ? job->agreed[i] : job->params.payload;
}

/* Return the largest payload that all paths of the job carry. */
uint32_t sim_mtus_most(const struct sim_job *job);
/* Check the job's payload when a worker starts to run. */
void sim_mtus_check(struct sim_worker *w);

/* --- between job.c and worker.c --- */

/* The callbacks of a worker's engine; its lcores run them after each turn. */
struct sw_worker_events sim_worker_events(struct sim_worker *w);
void sim_worker_step(void *ctx, uint64_t now_ns);
void sim_lane_step(void *ctx, uint64_t now_ns);

/* --- grow.c: buffers that are written while they are pushed --- */

/* Return where the engine reports which granules of a tensor are summed; NULL
 * if the tensor has too many granules or is written before the push. */
_Atomic uint32_t *sim_grow_granules(struct sim_worker *w, uint32_t tensor);
/* Mark the end of a buffer as not yet written; return its length in bytes. Call
 * before the push. Then write more: until @n_there elements are written in all,
 * or as many as the seed says. */
uint64_t sim_grow_hold_back(
	struct sim_worker *w, uint32_t tensor, uint32_t local);
void sim_grow_to(struct sim_worker *w, uint32_t tensor, uint32_t local,
	uint64_t n_there);
void sim_grow_some(struct sim_worker *w);
/* Check the granules newly reported as summed in a round: all their elements
 * must be sums of that round. When a round ends, check that every granule was
 * reported. */
void sim_grow_summed(void *ctx);
void sim_grow_check(struct sim_worker *w, uint32_t tensor);

/* --- oracle.c --- */

void sim_oracle_open(struct sim_job *job);
/* Return the worker whose bytes all workers of job @i receive in that round
 * (from 0), or SIM_WORKERS if the round is a sum. */
uint32_t sim_oracle_root(
	const struct sim_job *job, uint32_t i, uint32_t tensor, uint32_t round);
/* Encode a small number as an element, and decode it; both are exact in the
 * dtype. */
uint64_t sim_oracle_encode(uint32_t dtype, int64_t v);
int64_t sim_oracle_decode(uint32_t dtype, const uint8_t *p);
/* Does this element have these bits? Called for every element pushed or summed,
 * so sizes are constants. */
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

/* Is this rank's next push a broadcast? */
bool sim_oracle_is_copy(const struct sim_worker *w, uint32_t tensor);
/* Does this local rank give the element in its next push? */
bool sim_oracle_has_share(const struct sim_worker *w, uint32_t tensor,
	uint32_t local, bool is_copy, uint64_t elem);
/* Write the gradient of the worker's next round to its buffer. */
void sim_oracle_fill(struct sim_worker *w, uint32_t tensor, uint32_t local);
/* sim_oracle_fill_some - write elements @from to @end - 1. */
void sim_oracle_fill_some(struct sim_worker *w, uint32_t tensor, uint32_t local,
	uint64_t from, uint64_t end);
/* Count the elements from @from below @end of a result that are not the sums of
 * a round (from 0); set the number of contributions. */
uint64_t sim_oracle_wrong(const struct sim_worker *w, uint32_t tensor,
	uint32_t round, uint64_t from, uint64_t end, uint32_t *weight);
/* Check that the buffer holds the sum of that round; count wrong elements. */
void sim_oracle_check(struct sim_worker *w, uint32_t tensor, uint32_t weight);
/* Check a frame that node @from gave to its port. */
void sim_oracle_on_tx(void *ctx, uint32_t from, const struct sw_tx_frame *t);
uint32_t sim_oracle_n_chunks(void *ctx, uint32_t key);
/* Return the number of chunks of a tensor in job @i. */
uint32_t sim_job_chunks(const struct sim_job *job, uint32_t i, uint32_t tensor);

/* cipher.c: sim_cipher_open - set @out to the frame as its receiver decrypts
 * it. Return false if the receiver cannot decrypt it. */
bool sim_cipher_open(struct sim_job *job, uint32_t from,
	const struct sw_tx_frame *t, struct sw_tx_frame *out);

/* oracle_async.c: check and fill asynchronous tensors. Return the number of
 * errors; @worker sends or receives; the frame's first element is @first. */
static inline bool sim_job_is_async(const struct sim_job *job, uint32_t tensor)
{
	return job->async >> tensor & 1;
}
void sim_async_fill(struct sim_worker *w, uint32_t tensor, uint32_t local);
uint64_t sim_async_check(const struct sim_worker *w, uint32_t tensor);
uint64_t sim_async_on_tx(struct sim_job *job, const struct sw_tx_frame *t,
	uint32_t worker, uint32_t tensor, uint64_t first);

/* Write the name of a tensor to @out[SW_NAME_MAX]; return @out. */
const char *sim_job_name(const struct sim_job *job, uint32_t tensor, char *out);

#endif
