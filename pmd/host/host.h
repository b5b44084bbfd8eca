/* host.h - internals of the agent's side: slots, batches, clients.
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
	/* two jobs of the most local ranks, plus 8 */
	SW_HOST_CLIENTS_MAX = 2 * SW_HOST_LOCAL_MAX + 8,
	/* slots for processes that have not identified themselves */
	SW_HOST_SPARE_SLOTS = 8,
	SW_HOST_SLOTS_MAX = SW_HOST_CLIENTS_MAX + SW_HOST_SPARE_SLOTS,
	SW_HOST_SLOT_BITS = 12,
};

_Static_assert(2 * (int)SW_EDGE_COLLS <= UINT16_MAX, "n_waiting");
_Static_assert((int)SW_HOST_SLOTS_MAX <= 1 << SW_HOST_SLOT_BITS, "ids");

enum sw_slot_state {
	SW_SLOT_FREE,
	SW_SLOT_HELLO,    /* connected, has not identified itself */
	SW_SLOT_ASKED,    /* on_attach called, not answered */
	SW_SLOT_ATTACHED, /* attached to an lcore */
	SW_SLOT_DETACHED, /* hung up; waits for sw_host_release */
};

enum sw_batch_state {
	SW_BATCH_ARRIVING,  /* pieces are missing */
	SW_BATCH_WAITING,   /* waits for the batch of another local rank */
	SW_BATCH_RESERVING, /* pages are being reserved, slice by slice */
	SW_BATCH_ASKED,     /* on_declare called, not answered */
};

struct sw_batch {
	struct sw_segment data;
	struct sw_host_tensor *tensors;
	char (*names)[SW_EDGE_NAME_BYTES];
	uint16_t *ranks; /* ranks of a stream, which is alone in its batch */
	uint32_t n, n_arrived;
	uint32_t number; /* number of the client's declare */
	uint32_t first;  /* id of its first tensor, once admitted */
	uint32_t again;  /* id at a reused index; 0: a new item */
	uint32_t near;   /* as in sw_edge_declare */
	uint64_t reserved_bytes;
	/* several local ranks: what this batch added to the results */
	uint32_t first_result;
	uint64_t results_from, results_to;
	enum sw_batch_state state;
	int err; /* first fault; 0: none yet */
	char why[SW_EDGE_TEXT_BYTES];
};

/* Items declared by one client. Tensors are counted in the order of
 * declaration, without failed batches. */
struct sw_declared_list {
	struct sw_names names; /* the names of the open batch are last */
	struct sw_batch *batches[SW_EDGE_TENSORS];
	struct sw_batch *open;         /* not admitted yet, or NULL */
	uint32_t n_tensors, n_batches; /* admitted */
	uint32_t next_number;
};

/* A tensor that several local ranks share. */
struct sw_result {
	uint32_t id;
	uint64_t n_elems, bytes;
	uint64_t at;   /* offset of its result in the arena */
	uint64_t room; /* bytes reserved there */
	uint32_t dtype, priority;
	uint8_t kind; /* enum sw_edge_item */
	char name[SW_EDGE_NAME_BYTES];
};

/* Tensors that the local ranks of a job have declared together, and the memory
 * for results, which every local rank maps read-only. The memory grows by one
 * batch at a time and is freed when the last local rank is released. */
struct sw_results {
	struct sw_segment arena; /* quota-sized; pages are added later */
	uint64_t end;            /* bytes in use, whole pages */
	struct sw_batch *busy;   /* not admitted yet, or NULL */
	/* If the batch reuses a row: the row's previous place. */
	uint64_t was_at, was_room;
	struct sw_names names; /* one name per row */
	uint32_t n_free;       /* rows of ended streams, in free */
	uint16_t free[SW_EDGE_TENSORS];
	struct sw_result rows[SW_EDGE_TENSORS];
};

/* A declared item, as the lcore needs it. */
struct sw_host_item {
	uint32_t id;      /* the client's id */
	uint32_t name;    /* the worker's id of a tensor or stream */
	uint16_t n_ranks; /* ranks of a stream's group */
	/* enum sw_edge_item; set last. The lcore sets it to SW_EDGE_N_ITEMS
	 * when the item is freed. */
	_Atomic uint8_t kind;
	uint16_t n_waiting; /* buffers of waiting collectives in this memory;
			       written by the lcore */
	char *base;         /* memory */
	uint64_t bytes;
};

/* Collectives that wait for room in their stream, a row for each stream in the
 * client's numbering. Places count from 1; 0: none. */
struct sw_waiting_place {
	struct sw_host_coll coll;
	uint16_t next; /* next in its row, or next free place */
};

struct sw_waiting_row {
	uint16_t first, last;
};

struct sw_waiting {
	struct sw_waiting_place places[SW_EDGE_COLLS];
	struct sw_waiting_row rows[SW_EDGE_TENSORS];
	uint64_t ready[SW_EDGE_TENSORS / 64]; /* rows whose stream may have
						 room */
	uint32_t n_ready;
	uint16_t free, n_used; /* places used so far */
};

/* One client as its lcore sees it. */
struct sw_host_client {
	/* written at attach, then read only */
	struct sw_edge_control *control; /* hostile */
	int bell;
	int kick_fd; /* wakes the control thread */
	/* the lcore writes */
	_Alignas(64) struct sw_spsc submits, colls, completions;
	bool is_bell_gone;
	uint32_t n_summed; /* as announced to the client */
	struct sw_waiting waiting;
	/* control thread to lcore; valid below n_tensors */
	_Alignas(64) _Atomic uint32_t n_tensors;
	struct sw_host_item items[SW_EDGE_TENSORS];
	/* lcore to control thread; valid once is_evicted */
	_Alignas(64) _Atomic bool is_evicted;
	const char *reason;
	uint64_t value;
};

struct sw_slot {
	struct sw_host *host;
	uint32_t id; /* generation << SW_HOST_SLOT_BITS | index */
	enum sw_slot_state state;
	int sock, pid_fd;
	bool is_asking; /* on_tune, on_end or on_free called and not answered */
	bool is_freeing;  /* the unanswered call is on_free */
	uint32_t freeing; /* the item to free */
	bool is_deaf;     /* does not read: its socket is full */
	uint32_t pid, uid;
	uint32_t local_rank;
	uint32_t version;     /* attachment version that both speak */
	uint64_t deadline_ns; /* deadline of SW_SLOT_HELLO */
	struct sw_segment control;
	struct sw_spsc notes; /* for a trace */
	uint32_t n_unnoted;   /* as the client last reported */
	struct sw_host_client *client;
	struct sw_declared_list *declared;
};

struct sw_host {
	struct sw_host_params p;
	uint32_t *uids;
	int listener, kick_fd;
	/* Log lines about unattached processes, in the current period. */
	uint64_t period_ns;
	uint32_t n_said, n_unsaid;
	bool is_full; /* no descriptor was left for the last connection */
	uint64_t sock_dev, sock_ino; /* identity of our socket file */
	uint64_t used_bytes;         /* bytes of the quota in use */
	struct sw_results *results; /* NULL: none yet, or a single local rank */
	uint64_t epoch;             /* epoch of the job, as sent to clients */
	bool is_async; /* the job is asynchronous; also sent to clients */
	char job[SW_EDGE_NAME_BYTES];
	bool is_traced;     /* clients write notes */
	uint32_t n_unnoted; /* notes lost since the trace began */
	uint32_t n_slots;
	struct sw_slot slots[];
};

/* listen.c, besides sw_host_listen: check that the path is valid and free;
 * remove the socket; return whether a user is admitted. */
int sw_host_check_path(const struct sw_host *h);
void sw_host_unlisten(struct sw_host *h);
bool sw_host_admits(const struct sw_host *h, uint32_t uid);

/* Take @bytes of the agent's quota; return false if not enough is left. */
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

/* The files call down, in this order: poll.c; attach.c, declare.c; notes.c;
 * slot.c; declared.c; results.c; batch.c.  On the lcore: colls.c, which calls
 * lcore.c. */

/* slot.c: return whether one more line about an unattached process may be
 * logged; log how many were suppressed, once the period is over. */
bool sw_host_may_say(struct sw_host *h);
void sw_host_say_unsaid(struct sw_host *h);

/* slot.c: find a slot by id; send a text message; hang up; hang up and report
 * to the agent; refuse to admit it; free it. */
struct sw_slot *sw_slot_find(struct sw_host *h, uint32_t id);
void sw_slot_say(struct sw_slot *s, enum sw_edge_kind kind, int err,
	uint32_t batch, const char *text);
void sw_slot_hang_up(struct sw_slot *s);
void sw_slot_detach(struct sw_slot *s, enum sw_host_why why, const char *fmt,
	...) __attribute__((format(printf, 3, 4)));
void sw_slot_refuse(struct sw_slot *s, int err, const char *text);
void sw_slot_free(struct sw_slot *s);

/* declare.c: handle a piece of a batch, or a stream; reserve one slice of
 * memory. */
void sw_slot_rx_declare(
	struct sw_slot *s, const struct sw_edge_declare *m, size_t bytes);
void sw_slot_rx_open(
	struct sw_slot *s, const struct sw_edge_open *m, size_t bytes);
void sw_slot_reserve(struct sw_slot *s);
bool sw_slot_is_reserving(const struct sw_slot *s);

/* declared.c: enter the names of the open batch, and blame it for a name that
 * is not new; admit it; unmap an item's memory; drop the open batch and its
 * names; free everything. */
void sw_declared_enter(struct sw_declared_list *d);
void sw_declared_admit(struct sw_declared_list *d);
void sw_declared_unmap(
	struct sw_host *h, struct sw_declared_list *d, uint32_t item);
void sw_declared_forget(struct sw_host *h, struct sw_declared_list *d);
void sw_declared_close(struct sw_host *h, struct sw_declared_list **d);

/* results.c: enter the tensors of @b and place their results, except for names
 * that another rank declared differently; return 0, or the error for which @b
 * was blamed. Admit @b: later declarations are compared with it. Undo the
 * entry. Free everything. */
int sw_results_enter(struct sw_host *h, struct sw_batch *b);
void sw_results_admit(struct sw_host *h, const struct sw_batch *b);
void sw_results_undo(struct sw_host *h, struct sw_batch *b);
void sw_results_close(struct sw_host *h);

/* notes.c: make a client write notes if the host is traced. */
void sw_slot_trace(struct sw_slot *s);

/* batch.c: make a batch of @n tensors, NULL: no memory; copy and check one
 * description, and for a stream its @ranks; record its first fault; take @bytes
 * of the quota, or blame the batch. */
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

/* Note whether a row's stream may have room. */
static inline void sw_waiting_set_ready(
	struct sw_waiting *w, uint32_t stream, bool is_ready)
{
	uint64_t *word = &w->ready[stream / 64], bit = 1ULL << stream % 64;

	w->n_ready += is_ready;
	w->n_ready -= (*word & bit) != 0;
	*word = is_ready ? *word | bit : *word & ~bit;
}

/* Note that a collective of @stream, in the client's numbering, has ended. */
static inline void sw_host_note_room(struct sw_host_client *p, uint32_t stream)
{
	if (p->waiting.rows[stream].first)
		sw_waiting_set_ready(&p->waiting, stream, true);
}

/* Return whether sw_host_take_coll may have a collective to take. */
static inline bool sw_host_has_coll(const struct sw_host_client *p)
{
	return p->waiting.n_ready || !sw_spsc_is_empty(&p->colls);
}

/* sw_host_item - return the client's item @id; NULL: unknown, freed, or its
 * index was reused. Either thread. */
static inline struct sw_host_item *sw_host_item(
	struct sw_host_client *p, uint32_t id)
{
	uint32_t n = atomic_load_explicit(&p->n_tensors, memory_order_acquire);
	struct sw_host_item *m = &p->items[sw_id_index(id)];

	/* The control thread may be writing a freed item. */
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
/* Write an item at its index (control thread); a new item counts once the next
 * function adds @n. */
void sw_host_client_enter(
	struct sw_host_client *p, const struct sw_host_item *item);
void sw_host_client_admit(struct sw_host_client *p, uint32_t n);

#endif
