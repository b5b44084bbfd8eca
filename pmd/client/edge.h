/* edge.h - interface between a training process and its agent.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages go over a Unix SOCK_SEQPACKET socket, one struct each.  Submits and
 * completions go through rings in the control segment.  A second socket pair,
 * the bell, carries wake-ups: a byte means "check your ring".
 *
 * The bell is a socket, not an eventfd, because O_NONBLOCK belongs to the open
 * file, which both processes share: a client that clears the flag could make
 * the agent's lcore block.  MSG_DONTWAIT applies to a single call.
 *
 * No wake-up is lost.  A sleeper sets its flag, executes a full fence, checks
 * its ring once more, then polls the bell.  A producer puts an entry, executes
 * a full fence, then checks the flag; if the flag is set, it clears the flag
 * and writes the bell.  One of the two fences comes first: either the sleeper
 * sees the entry, or the producer sees the flag.  A byte written before the
 * poll ends the poll at once.  A full bell is already readable. */
#ifndef SW_PMD_CLIENT_EDGE_H
#define SW_PMD_CLIENT_EDGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/flags.h"
#include "engine/base/ids.h"
#include "engine/base/limits.h"
#include "engine/base/spsc.h"

enum {
	SW_EDGE_MAGIC = 0x52495753, /* "SWIR" */
	/* attachment versions that this code speaks */
	SW_EDGE_VERSION_MIN = 15,
	SW_EDGE_VERSION_MAX = 15,
	SW_EDGE_TENSORS = SW_IDS, /* per client; also batches, entries */
	SW_EDGE_TENSOR_BITS = SW_ID_BITS,
	SW_EDGE_NAME_BYTES = 128,
	SW_EDGE_TEXT_BYTES = 320,
	SW_EDGE_WHY_BYTES = 160,
	SW_EDGE_POLICY_BYTES = 16,
	SW_EDGE_PIECE = 64, /* tensors per declare message */
	SW_EDGE_WINDOW_MIN = 4,
	SW_EDGE_WINDOW_MAX = 14, /* log2 of a stream's slots */
	SW_EDGE_COLLS = 1024,    /* collectives open per client */
	/* ranks of a group, at most all of a job */
	SW_EDGE_RANKS = SW_MAX_MEMBERS * SW_LOCAL_RANKS,
	SW_EDGE_RUNS = 64, /* local ranks with different stagger */
	/* a power of two, with room for all tensors and collectives */
	SW_EDGE_COMPLETIONS = 2 * SW_EDGE_TENSORS,
	SW_EDGE_NOTES = 2048,
};

/* Items that a client declares have ids (engine/base/ids.h).  Indices increase
 * in the order of declaration. */

/* Bit that marks a collective's handle in the rings; the low
 * SW_EDGE_TENSOR_BITS are the index of its stream's item. */
#define SW_EDGE_COLL_HANDLE UINT64_C(0x8000000000000000)

#define SW_EDGE_TENSOR_BYTES_MAX (UINT64_C(64) << 30)

/* A push_pull or broadcast, from the client to the agent. */
struct sw_submit {
	uint64_t handle; /* the client's; returned in the completion */
	uint32_t tensor; /* its id */
	uint16_t step;   /* low bits */
	uint16_t root;   /* 0: sum; else 1 + root's rank */
};

/* A place in declared memory. */
struct sw_edge_place_at {
	uint32_t item; /* its id */
	uint32_t pad;
	uint64_t offset;
};

/* A collective, from the client to the agent. */
struct sw_edge_coll {
	uint64_t handle, count;
	uint32_t stream; /* its id */
	uint16_t root;   /* a rank */
	uint8_t kind, dtype;
	struct sw_edge_place_at from, to;
	uint64_t whole; /* elements of the whole call that this piece is from */
	uint64_t stride; /* bytes between a buffer's parts; 0: contiguous */
	double scale;    /* SW_PREMUL_SUM */
	uint32_t call;   /* number of the call in the group, from 1 */
	uint8_t op, pad[3];
};

/* Completion of a push_pull or collective. */
struct sw_completion {
	uint64_t handle;
	int32_t status; /* 0 or negative enum sw_error */
	uint32_t pad;
};

enum sw_edge_note_kind {
	SW_EDGE_READY,    /* the rank made a call; its data is complete */
	SW_EDGE_COPY_IN,  /* copied into shared memory */
	SW_EDGE_COPY_OUT, /* copied a result out of shared memory */
	SW_EDGE_N_NOTES
};

/* A client's note for a trace, from the client to the agent. */
struct sw_edge_note {
	uint64_t t_ns;   /* end, by CLOCK_MONOTONIC */
	uint64_t handle; /* handle of the call, as in the rings */
	uint64_t bytes;  /* copied */
	uint32_t ns;     /* duration */
	uint32_t kind;   /* enum sw_edge_note_kind */
};

/* Current tuning; the agent's lcore writes the fields one by one. */
struct sw_edge_tuning {
	_Atomic uint64_t partition_bytes, credit_bytes, rate_bit_s;
	_Atomic uint64_t policy[SW_EDGE_POLICY_BYTES / 8]; /* its name */
	_Atomic uint32_t number, round;
};

/* Why a push_pull or collective failed. */
struct sw_edge_why {
	uint32_t conflict;    /* enum sw_conflict */
	uint32_t rank, other; /* ranks whose calls contradict each other */
	uint32_t number;      /* number of the collective in its group */
	char text[SW_EDGE_WHY_BYTES];
};

/* The control segment, one per client. */
struct sw_edge_control {
	_Alignas(64) _Atomic uint32_t agent_sleeps; /* a submit clears it */
	_Atomic uint32_t agent_naps; /* a client that waits clears it */
	_Alignas(64) _Atomic uint32_t client_sleeps;
	_Atomic uint32_t client_polls; /* it spins, so it needs no bell */
	/* Changes whenever a further part of any growing tensor is summed. */
	_Alignas(64) _Atomic uint32_t n_summed;
	/* Growing tensors, by order of declaration: bytes at the end not
	 * written yet.  The client sets the count before a submit, then lowers
	 * the count and raises the flag. */
	_Alignas(64) _Atomic uint64_t lacks[SW_EDGE_TENSORS];
	_Alignas(64) struct sw_flags grown;
	/* With several local ranks: offset of each tensor's result in the
	 * segment that they share, by order of declaration. */
	_Alignas(64) uint64_t results[SW_EDGE_TENSORS];
	_Alignas(64) unsigned char submits[SW_SPSC_BYTES(
		SW_EDGE_TENSORS, sizeof(struct sw_submit))];
	_Alignas(64) unsigned char colls[SW_SPSC_BYTES(
		SW_EDGE_COLLS, sizeof(struct sw_edge_coll))];
	_Alignas(64) unsigned char completions[SW_SPSC_BYTES(
		SW_EDGE_COMPLETIONS, sizeof(struct sw_completion))];
	_Alignas(64) struct sw_edge_tuning tuning;
	/* Groups of the job that have failed, because ranks did not call or
	 * called differently; a futex.  The agent counts a group before the
	 * group's calls complete.  The word also changes when the client
	 * leaves. */
	_Alignas(64) _Atomic uint32_t n_failed;
	_Atomic uint32_t is_traced; /* the client must write notes */
	_Alignas(64) _Atomic uint32_t n_unnoted; /* notes lost: full ring */
	_Alignas(64) unsigned char notes[SW_SPSC_BYTES(
		SW_EDGE_NOTES, sizeof(struct sw_edge_note))];
	/* Reason why a push_pull or collective ended with SW_EMISMATCH,
	 * SW_EABORTED, SW_EREFUSED, SW_EPEER, SW_ESTALL or SW_EEXPIRED,
	 * terminated; written before its completion, by order of declaration.
	 */
	struct sw_edge_why whys[SW_EDGE_TENSORS];
};

enum sw_edge_kind {
	SW_EDGE_ATTACH = 1, /* client: sw_edge_attach */
	SW_EDGE_DECLARE,    /* client: sw_edge_declare, piece by piece */
	SW_EDGE_CLOSE,      /* client: kind alone; or sw_edge_text, which ends
			       the job */
	SW_EDGE_ATTACHED,   /* agent: sw_edge_attached; descriptors of the
			       control segment and of the bell */
	SW_EDGE_REFUSED,    /* agent: sw_edge_text; the agent hangs up */
	SW_EDGE_DECLARED,   /* agent: sw_edge_declared; descriptors of the
			       data segment and, with several local ranks, of
			       the results that they share */
	SW_EDGE_FAILED,     /* agent: sw_edge_text; the batch is not declared */
	SW_EDGE_STATUS,     /* agent: sw_edge_text; progress, for the log */
	SW_EDGE_CLOSED,     /* agent: sw_edge_text; the agent hangs up */
	SW_EDGE_TUNE,       /* client: sw_edge_tune, one at a time */
	SW_EDGE_ANSWER,     /* agent: sw_edge_text; the answer, err 0: done */
	SW_EDGE_OPEN,       /* client: sw_edge_open, a batch of one stream */
	SW_EDGE_END,  /* client: sw_edge_end; answered as SW_EDGE_TUNE, and
			 only one of these at a time */
	SW_EDGE_FREE, /* client: sw_edge_free; answered in the same way */
};

enum sw_edge_end_kind {
	SW_EDGE_ABORT,       /* abort a group, with err and a sentence */
	SW_EDGE_CLOSE_GROUP, /* close a group: this process makes no later
				calls */
};

enum sw_edge_tune_kind {
	SW_EDGE_PARTITION, /* bytes, for this agent; 0: the policy's default */
	SW_EDGE_CREDIT,    /* the same */
	SW_EDGE_RATE,      /* rate of this agent's ports; bit/s, 0: no limit */
	SW_EDGE_JOB,       /* policy, partition and credit of all ranks */
};

/* The first message; its layout is the same in every version, from 6 on. */
struct sw_edge_attach {
	uint32_t kind, magic;
	uint16_t version_min, version_max; /* versions that the client speaks */
	uint32_t local_rank;               /* 1 + wanted local rank; 0: any */
};

/* Flag in the local rank of an attach: take another rank if it is not free. */
#define SW_EDGE_IF_FREE UINT32_C(0x80000000)

struct sw_edge_attached {
	uint32_t kind, rank, size, local_rank, local_size;
	uint32_t version;             /* the highest that both speak */
	uint64_t epoch;               /* epoch of the job */
	char job[SW_EDGE_NAME_BYTES]; /* its name, terminated */
	uint32_t is_async;            /* 1: the job is asynchronous */
	uint32_t pad;
};

/* Refusals use it, so its layout is the same in every version, from 1 on. */
struct sw_edge_text {
	uint32_t kind;
	int32_t err;
	uint32_t batch; /* SW_EDGE_FAILED: the batch */
	uint32_t pad;
	char text[SW_EDGE_TEXT_BYTES]; /* terminated */
};

enum sw_edge_item {
	SW_EDGE_SYNC,    /* a tensor */
	SW_EDGE_ASYNC,   /* an asynchronous tensor */
	SW_EDGE_GROWING, /* a growing tensor: pushed before it is complete */
	SW_EDGE_STREAM, /* n_elems: ranks of its group; dtype: log2 of its slots
			   at each server; only in sw_edge_open */
	SW_EDGE_MEMORY, /* memory for collectives, until freed; alone in its
			   batch */
	SW_EDGE_N_ITEMS,
};

struct sw_edge_desc {
	uint64_t n_elems;
	uint32_t dtype;
	uint32_t priority;
	uint32_t kind;  /* enum sw_edge_item */
	uint32_t again; /* reused index of a freed item: the id that follows the
			   freed id; 0: a new index */
	char name[SW_EDGE_NAME_BYTES]; /* terminated */
};

/* Tensors first_i … first_i + n - 1 of a batch of n_total. The message ends
 * after n descriptions. Pieces arrive in order. */
struct sw_edge_declare {
	uint32_t kind;
	uint32_t batch; /* number of this client's declare, from 0 */
	uint32_t n_total, first_i, n;
	uint32_t near; /* 1 + preferred NUMA node; 0, or a node that the agent
			  does not have: any */
	struct sw_edge_desc descs[SW_EDGE_PIECE];
};

/* A stream and the ranks of its group, in a single message that ends after
 * desc.n_elems ranks, so that a stream never arrives in part. */
struct sw_edge_open {
	uint32_t kind;
	uint32_t batch; /* as in sw_edge_declare */
	struct sw_edge_desc desc;
	uint16_t ranks[SW_EDGE_RANKS]; /* ranks of the job, in the group's
					  order */
};

struct sw_edge_tune {
	uint32_t kind;
	uint32_t what;     /* enum sw_edge_tune_kind */
	uint64_t value[2]; /* SW_EDGE_JOB: partition and credit */
	char policy[SW_EDGE_POLICY_BYTES]; /* SW_EDGE_JOB; terminated */
};

struct sw_edge_end {
	uint32_t kind;
	uint32_t what;   /* enum sw_edge_end_kind */
	uint32_t stream; /* id of any stream of the group */
	/* SW_EDGE_ABORT: SW_EABORTED or SW_EEXPIRED.  For SW_EEXPIRED the agent
	 * adds the missing ranks to the sentence. */
	int32_t err;
	char why[SW_EDGE_WHY_BYTES]; /* terminated */
};

/* Memory, or a stream of a closed group, that the client releases. */
struct sw_edge_free {
	uint32_t kind;
	uint32_t item; /* its id */
};

struct sw_edge_declared {
	uint32_t kind;
	uint32_t batch;
	uint64_t bytes; /* bytes of the data segment */
	/* SW_EMISMATCH: the batch is declared, but another rank declared one of
	 * its items differently; SW_EABORTED: the group was aborted;
	 * SW_EREFUSED: a server has no room. text is terminated. */
	int32_t err;
	char text[SW_EDGE_TEXT_BYTES];
	uint32_t pad;
};

_Static_assert(sizeof(struct sw_submit) == 16, "shared");
_Static_assert(sizeof(struct sw_edge_coll) == 88, "shared");
_Static_assert(sizeof(struct sw_completion) == 16, "shared");
_Static_assert(sizeof(struct sw_edge_note) == 32, "shared");
_Static_assert(sizeof(struct sw_edge_attach) == 16, "shared");
_Static_assert(
	sizeof(struct sw_edge_text) == 16 + SW_EDGE_TEXT_BYTES, "shared");
_Static_assert(sizeof(struct sw_edge_desc) == 152, "shared");
_Static_assert(sizeof(struct sw_edge_declare) == 24 + 64 * 152, "shared");
_Static_assert(
	sizeof(struct sw_edge_declared) == 24 + SW_EDGE_TEXT_BYTES, "shared");
_Static_assert(
	sizeof(struct sw_edge_open) == 160 + 2 * SW_EDGE_RANKS, "shared");
_Static_assert(sizeof(struct sw_edge_tune) == 40, "shared");
_Static_assert((int)SW_EDGE_TENSORS == (int)SW_FLAGS, "a flag for each");
_Static_assert(SW_EDGE_TENSORS % SW_EDGE_PIECE == 0, "pieces");

/* Room for every message except sw_edge_open.  It is larger than every message
 * that is sent, so that an oversized message is detected. */
union sw_edge_msg {
	uint32_t kind;
	struct sw_edge_attach attach;
	struct sw_edge_attached attached;
	struct sw_edge_text text;
	struct sw_edge_declare declare;
	struct sw_edge_end end;
	struct sw_edge_free free;
	struct sw_edge_declared declared;
	struct sw_edge_tune tune;
};

/* Room for every message of a client, and more, to detect an oversized message.
 */
union sw_edge_request {
	union sw_edge_msg any;
	struct sw_edge_open open;
	char room[sizeof(struct sw_edge_open) + 64];
};

/* sw_edge_place - return where a tensor of @bytes starts in a data segment.
 * @end      end of the previous tensor (0: none); set to the end of this tensor
 * All tensors of a local rank start at the same low 12 address bits.  These
 * bits differ as much as possible among the first 64 local ranks, because a sum
 * of eight sources with equal bits takes three times as long. */
uint64_t sw_edge_place(uint32_t local_rank, uint64_t bytes, uint64_t *end);

/* sw_edge_bytes - return the bytes of an item in its batch's data segment.  A
 * stream has as many bytes as its ranks take; they stay unused. */
static inline uint64_t sw_edge_bytes(
	uint32_t kind, uint64_t n_elems, uint32_t elem_bytes)
{
	return n_elems *
	       (kind == SW_EDGE_STREAM ? sizeof(uint16_t) : elem_bytes);
}

/* sw_edge_granules - return the offset of the granules of a growing tensor of
 * @bytes: one word per SW_GRANULE bytes, after the results.  There the agent
 * writes the number of the round that all results of the granule belong to.
 * sw_edge_room - return the bytes that an item of @bytes takes in a segment. */
static inline uint64_t sw_edge_granules(uint64_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

static inline uint64_t sw_edge_room(uint32_t kind, uint64_t bytes)
{
	uint64_t n = (bytes + SW_GRANULE - 1) / SW_GRANULE;

	return kind == SW_EDGE_GROWING
		       ? sw_edge_granules(bytes) + n * sizeof(uint32_t)
		       : bytes;
}

/* sw_edge_send - send one message with @n_fds (<= 2) descriptors; never blocks.
 * Errors: SW_EAGAIN the other side does not read; SW_ECLOSED. */
int sw_edge_send(int sock, const void *msg, size_t bytes, const int *fds,
	uint32_t n_fds);

/* sw_edge_recv - receive one message of up to @bytes; never blocks.
 * @fds      room for @max_fds (<= 2) descriptors, which the caller then owns;
 * -1 for each missing one Returns the message's bytes; SW_EAGAIN no message;
 * SW_ECLOSED hang-up; SW_EPROTO too long, or too many descriptors (all are
 * closed). */
int sw_edge_recv(int sock, void *msg, size_t bytes, int *fds, uint32_t max_fds);

/* sw_edge_text - fill a text message; cut the text to fit. */
void sw_edge_text(struct sw_edge_text *m, enum sw_edge_kind kind, int err,
	uint32_t batch, const char *text);

/* sw_edge_bell_write - wake the other side; never blocks. */
void sw_edge_bell_write(int bell);

/* sw_edge_bell_drain - discard past wake-ups; return false if the other side
 * hung up. */
bool sw_edge_bell_drain(int bell);

/* sw_edge_word_wake - wake all threads that wait for a changed word of shared
 * memory.
 * sw_edge_word_wait - sleep while the word has @value, at most until @until_ns;
 * may return early. */
void sw_edge_word_wake(_Atomic uint32_t *word);
void sw_edge_word_wait(
	_Atomic uint32_t *word, uint32_t value, uint64_t until_ns);

/* sw_edge_now_ns - return the monotonic clock. */
uint64_t sw_edge_now_ns(void);

/* sw_edge_doze - set @flag before this side sleeps.  The caller must check its
 * ring afterwards. */
static inline void sw_edge_doze(_Atomic uint32_t *flag)
{
	atomic_store_explicit(flag, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* sw_edge_is_asleep - return whether to wake the other side after a put; clears
 * @flag. */
static inline bool sw_edge_is_asleep(_Atomic uint32_t *flag)
{
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(flag, memory_order_relaxed) &&
	       atomic_exchange_explicit(flag, 0, memory_order_relaxed);
}

#endif
