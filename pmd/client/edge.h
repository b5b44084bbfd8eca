/* edge.h - what a training process and its agent share: messages and memory.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages go over a Unix SOCK_SEQPACKET socket, one struct each.  Submits and
 * completions go through two rings in the control segment.  A second socket
 * pair, the bell, carries wake-ups: one byte that means "look at your ring".
 *
 * The bell is a socket and not an eventfd because O_NONBLOCK belongs to the
 * open file, which both processes share: a client that clears it could make
 * the agent's lcore block.  MSG_DONTWAIT belongs to the call.
 *
 * Why no wake-up is lost.  Who goes to sleep sets its flag, then a full fence,
 * then looks at its ring once more, then polls the bell.  Who has put an entry
 * does a full fence, then looks at the flag, and if it is set clears it and
 * writes the bell.  Of two such fences one comes first: either the sleeper
 * sees the entry, or the other side sees the flag, and a byte written before
 * the poll ends the poll at once.  A bell that is full is readable already.
 */
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
	/* of the attachment; this code speaks all in between */
	SW_EDGE_VERSION_MIN = 11,
	SW_EDGE_VERSION_MAX = 11,
	SW_EDGE_TENSORS = SW_IDS, /* per client, so batches and ring entries */
	SW_EDGE_TENSOR_BITS = SW_ID_BITS,
	SW_EDGE_NAME_BYTES = 128,
	SW_EDGE_TEXT_BYTES = 320,
	SW_EDGE_WHY_BYTES = 160,
	SW_EDGE_POLICY_BYTES = 16,
	SW_EDGE_PIECE = 64, /* tensors per declare message */
	SW_EDGE_WINDOW_MIN = 4,
	SW_EDGE_WINDOW_MAX = 14, /* log2 of a stream's slots */
	SW_EDGE_COLLS = 1024,    /* collectives open per client */
	/* of a group: all that a job may have */
	SW_EDGE_RANKS = SW_MAX_MEMBERS * SW_LOCAL_RANKS,
	SW_EDGE_RUNS = 64, /* local ranks that are staggered apart */
	/* a power of two, with a place for each tensor and collective */
	SW_EDGE_COMPLETIONS = 2 * SW_EDGE_TENSORS,
};

/* What a client declares, its items, have ids (engine/base/ids.h); their
 * indices count on in the order of declaration. */

/* Set in the handle that a collective has in the rings; its low
 * SW_EDGE_TENSOR_BITS are the index of its stream's item. */
#define SW_EDGE_COLL_HANDLE UINT64_C(0x8000000000000000)

#define SW_EDGE_TENSOR_BYTES_MAX (UINT64_C(64) << 30)

/* A push_pull or broadcast on its way to the agent. */
struct sw_submit {
	uint64_t handle; /* the client's; comes back in the completion */
	uint32_t tensor; /* its id */
	uint16_t step;   /* low bits */
	uint16_t root;   /* 0: sum; else 1 + the rank that broadcasts */
};

/* A place in memory that was declared. */
struct sw_edge_place_at {
	uint32_t item; /* its id */
	uint32_t pad;
	uint64_t offset;
};

/* A collective on its way to the agent. */
struct sw_edge_coll {
	uint64_t handle, count;
	uint32_t stream; /* its id */
	uint16_t root;   /* a rank */
	uint8_t kind, dtype;
	struct sw_edge_place_at from, to;
	uint64_t whole;  /* elements of the call of which this is a piece */
	uint64_t stride; /* bytes from part to part, where a buffer has many;
			    0: one lies behind the other */
	double scale;    /* SW_PREMUL_SUM */
	uint32_t call;   /* its number in the group, from 1 */
	uint8_t op, pad[3];
};

/* The end of a push_pull or collective. */
struct sw_completion {
	uint64_t handle;
	int32_t status; /* 0 or negative enum sw_error */
	uint32_t pad;
};

/* The tuning in use, as the agent's lcore writes them, one by one. */
struct sw_edge_tuning {
	_Atomic uint64_t partition_bytes, credit_bytes, rate_bit_s;
	_Atomic uint64_t policy[SW_EDGE_POLICY_BYTES / 8]; /* its name */
	_Atomic uint32_t number, round;
};

/* The control segment, one per client. */
struct sw_edge_control {
	_Alignas(64) _Atomic uint32_t agent_sleeps; /* a submit ends it */
	_Atomic uint32_t agent_naps; /* a client that begins to wait ends it */
	_Alignas(64) _Atomic uint32_t client_sleeps;
	_Atomic uint32_t client_polls; /* it waits, but needs no bell */
	/* Of growing tensors: changes when more of them is summed, of any. */
	_Alignas(64) _Atomic uint32_t n_summed;
	/* The client's: bytes at its end that are not there yet, written before
	 * a submit, then less and less, and a flag that it is less; by the
	 * order of declaration. */
	_Alignas(64) _Atomic uint64_t lacks[SW_EDGE_TENSORS];
	_Alignas(64) struct sw_flags grown;
	/* Of several local ranks: where a tensor's result is in the segment
	 * that they share, by the order of declaration. */
	_Alignas(64) uint64_t results[SW_EDGE_TENSORS];
	_Alignas(64) unsigned char submits[SW_SPSC_BYTES(
		SW_EDGE_TENSORS, sizeof(struct sw_submit))];
	_Alignas(64) unsigned char colls[SW_SPSC_BYTES(
		SW_EDGE_COLLS, sizeof(struct sw_edge_coll))];
	_Alignas(64) unsigned char completions[SW_SPSC_BYTES(
		SW_EDGE_COMPLETIONS, sizeof(struct sw_completion))];
	_Alignas(64) struct sw_edge_tuning tuning;
	/* Why a push_pull or collective ended with SW_EMISMATCH, SW_EABORTED,
	 * SW_EREFUSED, SW_EPEER, SW_ESTALL or SW_EEXPIRED, terminated; written
	 * before its completion, by the order of declaration. */
	char whys[SW_EDGE_TENSORS][SW_EDGE_WHY_BYTES];
};

enum sw_edge_kind {
	SW_EDGE_ATTACH = 1, /* client: sw_edge_attach */
	SW_EDGE_DECLARE,    /* client: sw_edge_declare, piece by piece */
	SW_EDGE_CLOSE,      /* client: kind alone; or sw_edge_text: the job is
			       to end with it */
	SW_EDGE_ATTACHED,   /* agent: sw_edge_attached; descriptors of the
			       control segment and of the bell */
	SW_EDGE_REFUSED,    /* agent: sw_edge_text; the agent hangs up */
	SW_EDGE_DECLARED,   /* agent: sw_edge_declared; descriptors of the
			       data segment and, with several local ranks, of
			       the results that they share */
	SW_EDGE_FAILED,     /* agent: sw_edge_text; the batch is forgotten */
	SW_EDGE_STATUS,     /* agent: sw_edge_text; progress, for the log */
	SW_EDGE_CLOSED,     /* agent: sw_edge_text; the agent hangs up */
	SW_EDGE_TUNE,       /* client: sw_edge_tune, one at a time */
	SW_EDGE_TUNED,      /* agent: sw_edge_text; the answer, err 0: done */
	SW_EDGE_OPEN,       /* client: sw_edge_open, a batch of one stream */
	SW_EDGE_END,  /* client: sw_edge_end; answered as SW_EDGE_TUNE, and
			 only one of these at a time */
	SW_EDGE_FREE, /* client: sw_edge_free; answered in the same way */
};

enum sw_edge_end_kind {
	SW_EDGE_ABORT,       /* of a group: with err and a sentence */
	SW_EDGE_CLOSE_GROUP, /* this process calls nothing else on it */
};

enum sw_edge_tune_kind {
	SW_EDGE_PARTITION, /* of this agent; bytes, 0: the policy's */
	SW_EDGE_CREDIT,    /* the same */
	SW_EDGE_RATE,      /* of its ports; bits per second, 0: no limit */
	SW_EDGE_JOB,       /* policy, partition and credit of all ranks */
};

/* The first message; its form is the same in every version, from 6 on. */
struct sw_edge_attach {
	uint32_t kind, magic;
	uint16_t version_min, version_max; /* that the client speaks */
	uint32_t local_rank; /* 1 + the one it wants to be; 0: any */
};

/* In the local rank of an attach: any other will do, too. */
#define SW_EDGE_IF_FREE UINT32_C(0x80000000)

struct sw_edge_attached {
	uint32_t kind, rank, size, local_rank, local_size;
	uint32_t version;             /* the highest that both speak */
	uint64_t epoch;               /* of the job */
	char job[SW_EDGE_NAME_BYTES]; /* its name, terminated */
};

/* Also a refusal, so its form too is the same in every version, from 1 on. */
struct sw_edge_text {
	uint32_t kind;
	int32_t err;
	uint32_t batch; /* SW_EDGE_FAILED: which */
	uint32_t pad;
	char text[SW_EDGE_TEXT_BYTES]; /* terminated */
};

enum sw_edge_item {
	SW_EDGE_SYNC,    /* a tensor */
	SW_EDGE_ASYNC,   /* an asynchronous one */
	SW_EDGE_GROWING, /* one that is pushed before all of it is there */
	SW_EDGE_STREAM,  /* n_elems: ranks of its group; dtype: log2 of its
			    slots at each server; by sw_edge_open alone */
	SW_EDGE_MEMORY,  /* for collectives; alone in its batch; until it is
			    freed */
	SW_EDGE_N_ITEMS,
};

struct sw_edge_desc {
	uint64_t n_elems;
	uint32_t dtype;
	uint32_t priority;
	uint32_t kind;  /* enum sw_edge_item */
	uint32_t again; /* its id, at the index of an item that was freed,
			   which follows that one's; 0: at a new index */
	char name[SW_EDGE_NAME_BYTES]; /* terminated */
};

/* Tensors first_i … first_i + n - 1 of a batch of n_total.  The message ends
 * after n descriptions.  Pieces come in order. */
struct sw_edge_declare {
	uint32_t kind;
	uint32_t batch; /* counts this client's declares from 0 */
	uint32_t n_total, first_i, n;
	uint32_t near; /* 1 + the NUMA node where they are to lie; 0, or one
			  that the agent does not have: where it likes */
	struct sw_edge_desc descs[SW_EDGE_PIECE];
};

/* A stream and the ranks of its group, all in one message, which ends after
 * desc.n_elems of them: so there is no half of it. */
struct sw_edge_open {
	uint32_t kind;
	uint32_t batch; /* as of sw_edge_declare */
	struct sw_edge_desc desc;
	uint16_t ranks[SW_EDGE_RANKS]; /* of the job, in the group's order */
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
	uint32_t stream; /* the id of any of the group's */
	/* SW_EDGE_ABORT: SW_EABORTED, or SW_EEXPIRED; the agent adds to the
	 * sentence who is missing. */
	int32_t err;
	char why[SW_EDGE_WHY_BYTES]; /* terminated */
};

/* Memory that the client does not use any more. */
struct sw_edge_free {
	uint32_t kind;
	uint32_t item; /* its id */
};

struct sw_edge_declared {
	uint32_t kind;
	uint32_t batch;
	uint64_t bytes; /* of the data segment */
	/* SW_EMISMATCH: all are declared, but another rank declared at least
	 * one of them otherwise; SW_EABORTED: its group was aborted;
	 * SW_EREFUSED: a server has no room for it; terminated */
	int32_t err;
	char text[SW_EDGE_TEXT_BYTES];
	uint32_t pad;
};

_Static_assert(sizeof(struct sw_submit) == 16, "shared");
_Static_assert(sizeof(struct sw_edge_coll) == 88, "shared");
_Static_assert(sizeof(struct sw_completion) == 16, "shared");
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

/* Room for every message but the long one, and its end, to see one that is too
 * long. */
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

/* Whatever a client may send, and its end. */
union sw_edge_request {
	union sw_edge_msg any;
	struct sw_edge_open open;
	char room[sizeof(struct sw_edge_open) + 64];
};

/* sw_edge_place - where a tensor of @bytes starts in a data segment.
 * @end      end of the tensor before it (0: none); set to this one's end
 * Every tensor of a local rank starts at the same low 12 address bits, and the
 * first 64 local ranks all differ in theirs, as far apart as possible: sources
 * that share them make a sum of eight three times slower. */
uint64_t sw_edge_place(uint32_t local_rank, uint64_t bytes, uint64_t *end);

/* sw_edge_bytes - of an item, in its batch's data segment; a stream has as many
 * there as the agent keeps of its ranks, and nobody uses them. */
static inline uint64_t sw_edge_bytes(
	uint32_t kind, uint64_t n_elems, uint32_t elem_bytes)
{
	return n_elems *
	       (kind == SW_EDGE_STREAM ? sizeof(uint16_t) : elem_bytes);
}

/* sw_edge_granules - where those of a growing tensor of @bytes are, behind it:
 * a word for each SW_GRANULE bytes.  The agent writes them where the results
 * are: the number of the round of which all results that lie there are.
 * sw_edge_room - what an item of @bytes takes of a segment. */
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
 * @fds      room for @max_fds (<= 2) descriptors, owned by the caller then;
 *           -1 where none came
 * Returns its bytes; SW_EAGAIN none there; SW_ECLOSED hang-up; SW_EPROTO too
 * long, or with more descriptors than allowed (all are closed). */
int sw_edge_recv(int sock, void *msg, size_t bytes, int *fds, uint32_t max_fds);

/* sw_edge_text - fill a text message; text is cut to its room. */
void sw_edge_text(struct sw_edge_text *m, enum sw_edge_kind kind, int err,
	uint32_t batch, const char *text);

/* sw_edge_bell_write - wake the other side; never blocks. */
void sw_edge_bell_write(int bell);

/* sw_edge_bell_drain - forget past wake-ups; false: the other side hung up. */
bool sw_edge_bell_drain(int bell);

/* sw_edge_now_ns - the monotonic clock. */
uint64_t sw_edge_now_ns(void);

/* sw_edge_doze - say in @flag that this side is about to sleep; look at the
 * ring after it. */
static inline void sw_edge_doze(_Atomic uint32_t *flag)
{
	atomic_store_explicit(flag, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* sw_edge_is_asleep - after a put: must the other side be woken? */
static inline bool sw_edge_is_asleep(_Atomic uint32_t *flag)
{
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(flag, memory_order_relaxed) &&
	       atomic_exchange_explicit(flag, 0, memory_order_relaxed);
}

#endif
