/* host.h - inside of the agent's side: slots, batches, clients.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_HOST_H
#define SW_PMD_HOST_HOST_H

#include <stdbool.h>

#include "engine/base/limits.h"
#include "pmd/client/segment.h"
#include "pmd/host/attach.h"
#include "pmd/host/names.h"
#include "pmd/host/nodes.h"

enum {
	SW_HOST_LOCAL_MAX = SW_LOCAL_RANKS,
	/* two jobs of as many local ranks, and some */
	SW_HOST_CLIENTS_MAX = 2 * SW_HOST_LOCAL_MAX + 8,
	/* places for processes that have not said who they are */
	SW_HOST_SPARE_SLOTS = 8,
	SW_HOST_SLOTS_MAX = SW_HOST_CLIENTS_MAX + SW_HOST_SPARE_SLOTS,
	SW_HOST_SLOT_BITS = 12,
};

_Static_assert(2 * (int)SW_EDGE_COLLS <= UINT16_MAX, "n_waiting");
_Static_assert((int)SW_HOST_SLOTS_MAX <= 1 << SW_HOST_SLOT_BITS, "ids");

enum sw_slot_state {
	SW_SLOT_FREE,
	SW_SLOT_HELLO,    /* connected, has not said who it is */
	SW_SLOT_ASKED,    /* on_attach called, not answered */
	SW_SLOT_ATTACHED, /* an lcore has it */
	SW_SLOT_DETACHED, /* hung up; waits for sw_host_release */
};

enum sw_batch_state {
	SW_BATCH_ARRIVING,  /* pieces are missing */
	SW_BATCH_WAITING,   /* for the batch of another local rank */
	SW_BATCH_RESERVING, /* pages are being reserved, slice by slice */
	SW_BATCH_ASKED,     /* on_declare called, not answered */
};

struct sw_batch {
	struct sw_segment data;
	struct sw_host_tensor *tensors;
	char (*names)[SW_EDGE_NAME_BYTES];
	uint16_t *ranks; /* of a stream, which is alone in its batch */
	uint32_t n, n_arrived;
	uint32_t number; /* counts the client's declares */
	uint32_t first;  /* of its tensors, once it is admitted */
	uint32_t again;  /* the id of the item that it is; 0: a new one */
	uint32_t near;   /* as of sw_edge_declare */
	uint64_t reserved_bytes;
	/* of several local ranks: what this batch added to the results */
	uint32_t first_result;
	uint64_t results_from, results_to;
	enum sw_batch_state state;
	int err; /* what is wrong with it, 0: nothing yet */
	char why[SW_EDGE_TEXT_BYTES];
};

/* What one client has declared.  Tensors are counted in the order of
 * declaration, failed batches left out. */
struct sw_declared_list {
	struct sw_names names; /* those of the open batch at the end */
	struct sw_batch *batches[SW_EDGE_TENSORS];
	struct sw_batch *open;         /* not admitted yet, or NULL */
	uint32_t n_tensors, n_batches; /* admitted */
	uint32_t next_number;
};

/* A tensor of several local ranks. */
struct sw_result {
	uint32_t id;
	uint64_t n_elems, bytes;
	uint64_t at;   /* of its result in the arena */
	uint64_t room; /* there */
	uint32_t dtype, priority;
	uint8_t kind; /* enum sw_edge_item */
	char name[SW_EDGE_NAME_BYTES];
};

/* What the local ranks of a job have declared together, and the memory for the
 * results, which all of them map to read.  It grows batch by batch, one at a
 * time, and goes when the last local rank is released. */
struct sw_results {
	struct sw_segment arena; /* as large as the quota; pages come later */
	uint64_t end;            /* bytes in use, whole pages */
	struct sw_batch *busy;   /* not admitted yet, or NULL */
	/* Of the row that it has again: its place before. */
	uint64_t was_at, was_room;
	struct sw_names names; /* a row for each */
	uint32_t n_free;       /* rows of streams that have gone: */
	uint16_t free[SW_EDGE_TENSORS];
	struct sw_result rows[SW_EDGE_TENSORS];
};

/* Something declared, as the lcore needs it. */
struct sw_host_item {
	uint32_t id;      /* as the client calls it */
	uint32_t name;    /* the worker's id of a tensor or stream */
	uint16_t n_ranks; /* of a stream's group */
	/* enum sw_edge_item; set last.  The lcore sets what is freed to
	 * SW_EDGE_N_ITEMS. */
	_Atomic uint8_t kind;
	uint16_t n_waiting; /* the lcore's: of memory, buffers there of
			       collectives that wait */
	char *base;         /* of memory */
	uint64_t bytes;
};

/* Collectives that wait until their stream has room, a row for each stream as
 * the client counts them.  Places are counted from 1; 0: none. */
struct sw_waiting_place {
	struct sw_host_coll coll;
	uint16_t next; /* in its row, or of those that are free */
};

struct sw_waiting_row {
	uint16_t first, last;
};

struct sw_waiting {
	struct sw_waiting_place places[SW_EDGE_COLLS];
	struct sw_waiting_row rows[SW_EDGE_TENSORS];
	uint64_t ready[SW_EDGE_TENSORS / 64]; /* rows that may have room now */
	uint32_t n_ready;
	uint16_t free, n_used; /* that were used once */
};

/* One client as its lcore sees it. */
struct sw_host_client {
	/* written at attach, then read only */
	struct sw_edge_control *control; /* hostile */
	int bell;
	int kick_fd; /* wakes the control thread */
	/* the lcore's */
	_Alignas(64) struct sw_spsc submits, colls, completions;
	bool is_bell_gone;
	uint32_t n_summed; /* as it was told */
	struct sw_waiting waiting;
	/* control thread to lcore: valid up to n_tensors */
	_Alignas(64) _Atomic uint32_t n_tensors;
	struct sw_host_item items[SW_EDGE_TENSORS];
	/* lcore to control thread: valid once is_evicted */
	_Alignas(64) _Atomic bool is_evicted;
	const char *reason;
	uint64_t value;
};

struct sw_slot {
	struct sw_host *host;
	uint32_t id; /* generation << SW_HOST_SLOT_BITS | index */
	enum sw_slot_state state;
	int sock, pid_fd;
	bool is_tuning;   /* on_tune, on_end or on_free called, not answered */
	bool is_freeing;  /* it was on_free */
	uint32_t freeing; /* the item, then */
	bool is_deaf;     /* has let its socket fill up with answers */
	uint32_t pid, uid;
	uint32_t local_rank;
	uint32_t version;     /* of the attachment, that both speak */
	uint64_t deadline_ns; /* of SW_SLOT_HELLO */
	struct sw_segment control;
	struct sw_host_client *client;
	struct sw_declared_list *declared;
};

struct sw_host {
	struct sw_host_params p;
	uint32_t *uids;
	int listener, kick_fd;
	/* Lines about processes that are not attached: in this period. */
	uint64_t period_ns;
	uint32_t n_said, n_unsaid;
	bool is_full; /* no descriptor was left for the last caller */
	uint64_t sock_dev, sock_ino; /* of the socket file that is ours */
	uint64_t used_bytes;         /* of the quota */
	struct sw_results *results;  /* NULL: none yet, or one local rank */
	uint64_t epoch; /* of the job, as attached clients are told */
	char job[SW_EDGE_NAME_BYTES];
	uint32_t n_slots;
	struct sw_slot slots[];
};

/* listen.c: the socket itself, besides sw_host_listen: its path is good, and
 * free. */
int sw_host_check_path(const struct sw_host *h);
void sw_host_unlisten(struct sw_host *h);
bool sw_host_admits(const struct sw_host *h, uint32_t uid);

/* Take @bytes of the agent's quota; false: not enough left. */
static inline bool sw_quota_take(struct sw_host *h, uint64_t bytes)
{
	if (bytes > h->p.quota_bytes - h->used_bytes)
		return false;
	h->used_bytes += bytes;
	return true;
}

static inline void sw_quota_give(struct sw_host *h, uint64_t bytes)
{
	h->used_bytes -= bytes;
}

/* The files call down, in this order: poll.c; attach.c, declare.c; slot.c;
 * declared.c; results.c; batch.c.  On
 * the lcore: colls.c, which calls lcore.c. */

/* slot.c: may another line be written about a process that is not attached?
 * Write how many were not, once that period is over. */
bool sw_host_may_say(struct sw_host *h);
void sw_host_say_unsaid(struct sw_host *h);

/* slot.c: hang up, tell the agent why; say that it is not admitted, free it. */
struct sw_slot *sw_slot_find(struct sw_host *h, uint32_t id);
void sw_slot_say(struct sw_slot *s, enum sw_edge_kind kind, int err,
	uint32_t batch, const char *text);
void sw_slot_hang_up(struct sw_slot *s);
void sw_slot_detach(struct sw_slot *s, enum sw_host_why why, const char *fmt,
	...) __attribute__((format(printf, 3, 4)));
void sw_slot_refuse(struct sw_slot *s, int err, const char *text);
void sw_slot_free(struct sw_slot *s);

/* declare.c: one piece has come, or a stream; one slice of reserving. */
void sw_slot_rx_declare(
	struct sw_slot *s, const struct sw_edge_declare *m, size_t bytes);
void sw_slot_rx_open(
	struct sw_slot *s, const struct sw_edge_open *m, size_t bytes);
void sw_slot_reserve(struct sw_slot *s);
bool sw_slot_is_reserving(const struct sw_slot *s);

/* declared.c: enter the names of the open batch, which must be new (or it is
 * blamed); it is admitted; unmap memory; forget the open batch and its names;
 * free everything. */
void sw_declared_enter(struct sw_declared_list *d);
void sw_declared_admit(struct sw_declared_list *d);
void sw_declared_unmap(
	struct sw_host *h, struct sw_declared_list *d, uint32_t item);
void sw_declared_forget(struct sw_host *h, struct sw_declared_list *d);
void sw_declared_close(struct sw_host *h, struct sw_declared_list **d);

/* results.c: enter the tensors of @b and place their results (not of those that
 * are known as something else); 0, or an error of the batch (blamed).  It is
 * admitted: what others declare is compared with it.  Undo that; free
 * everything. */
int sw_results_enter(struct sw_host *h, struct sw_batch *b);
void sw_results_admit(struct sw_host *h, const struct sw_batch *b);
void sw_results_undo(struct sw_host *h, struct sw_batch *b);
void sw_results_close(struct sw_host *h);

/* batch.c: a batch of @n tensors, NULL: no memory.  Copy and check one
 * description; of a stream, @ranks too.  Remember what is wrong with it; the
 * first fault counts.  Take
 * @bytes of the quota, or blame it. */
struct sw_batch *sw_batch_new(uint32_t number, uint32_t n);
void sw_batch_free(struct sw_batch **b);
void sw_batch_add(struct sw_batch *b, const struct sw_edge_desc *desc,
	const uint16_t *ranks);
void sw_batch_blame(struct sw_batch *b, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool sw_batch_charge(struct sw_host *h, struct sw_batch *b, uint64_t bytes,
	const char *what_for);

static inline bool sw_host_is_evicted(const struct sw_host_client *p)
{
	return atomic_load_explicit(&p->is_evicted, memory_order_relaxed);
}

/* A row may have room now, or not. */
static inline void sw_waiting_set_ready(
	struct sw_waiting *w, uint32_t stream, bool is_ready)
{
	uint64_t *word = &w->ready[stream / 64], bit = 1ULL << stream % 64;

	w->n_ready += is_ready;
	w->n_ready -= (*word & bit) != 0;
	*word = is_ready ? *word | bit : *word & ~bit;
}

/* A collective of @stream, as the client counts it, has ended. */
static inline void sw_host_note_room(struct sw_host_client *p, uint32_t stream)
{
	if (p->waiting.rows[stream].first)
		sw_waiting_set_ready(&p->waiting, stream, true);
}

/* Is there one that sw_host_take_coll may give? */
static inline bool sw_host_has_coll(const struct sw_host_client *p)
{
	return p->waiting.n_ready || !sw_spsc_is_empty(&p->colls);
}

/* sw_host_item - the item that a client calls @id; NULL: it is none, was freed,
 * or has another one's index now.  Either thread. */
static inline struct sw_host_item *sw_host_item(
	struct sw_host_client *p, uint32_t id)
{
	uint32_t n = atomic_load_explicit(&p->n_tensors, memory_order_acquire);
	struct sw_host_item *m = &p->items[sw_id_index(id)];

	/* What was freed the control thread may be writing. */
	return sw_id_index(id) < n &&
			       atomic_load_explicit(
				       &m->kind, memory_order_acquire) !=
				       SW_EDGE_N_ITEMS &&
			       m->id == id
		       ? m
		       : NULL;
}

/* lcore.c: make and free a client over a control segment. */
int sw_host_client_open(struct sw_edge_control *control, int bell, int kick_fd,
	struct sw_host_client **out);
void sw_host_client_close(struct sw_host_client **p);
/* The control thread writes an item at its index; a new one counts when the
 * next function says that @n more are there. */
void sw_host_client_enter(
	struct sw_host_client *p, const struct sw_host_item *item);
void sw_host_client_admit(struct sw_host_client *p, uint32_t n);

#endif
