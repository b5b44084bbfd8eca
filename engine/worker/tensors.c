/* tensors.c - the worker's tensors: build, declare, give keys, free.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/tensors.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/zeros.h"
#include "engine/worker/faults.h"
#include "engine/worker/group.h"
#include "engine/worker/lanes.h"
#include "engine/worker/stream.h"
#include "engine/worker/todo.h"
#include "engine/worker/tuning.h"

/* --- the records of new tensors, which the control thread builds ---
 *
 * The control thread builds them in unused places of w->tensors; sw_worker_add
 * then only adds their numbers. */

/* --- memory --- */

/* One block of zeros holds all memory of a batch's tensors except their
 * records.  Its pages are present (env.h): the lcore takes no page faults, and
 * small tensors neither fill a TLB nor crowd a few cache sets.  The first
 * tensor owns it; a stream, which may be freed earlier, has its own. */
struct block {
	char *base; /* NULL: only measure */
	uint64_t at;
};

enum { LINE = 64 };

static void *cut(struct block *b, uint64_t n, uint64_t bytes)
{
	void *p = b->base ? b->base + b->at : NULL;

	b->at += (n * bytes + 7) / 8 * 8;
	return p;
}

static uint32_t n_chunks_of(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	uint32_t per_chunk;

	if (in->window_log2)
		return w->n_links << in->window_log2;
	per_chunk = sw_worker_payload(w) / sw_dtype_bytes(in->dtype);
	return (uint32_t)((in->n_elems - 1) / per_chunk + 1);
}

static void lay_stream(
	const struct sw_worker *w, struct sw_wtensor *t, struct block *b)
{
	struct sw_stream measured, *s;
	struct sw_wgroup *g;

	s = t->stream = cut(
		b, 1, sizeof(*s) + w->n_links * sizeof(struct sw_stream_link));
	if (!s)
		s = &measured;
	s->pieces = cut(b, t->n_chunks, sizeof(*s->pieces));
	for (s->n_entered = 1; s->n_entered < t->n_chunks;)
		s->n_entered *= 2;
	s->entered = cut(b, s->n_entered, sizeof(*s->entered));
	s->locals = cut(b, SW_COLLS * w->n_local, sizeof(*s->locals));
	s->n_asked = cut(b, w->n_local, sizeof(*s->n_asked));
	s->lanes = cut(b, w->n_others, sizeof(*s->lanes));
	g = &s->group;
	g->n = t->decl.n_ranks;
	g->ranks = cut(b, g->n, sizeof(*g->ranks));
	g->by_member = cut(b, g->n, sizeof(*g->by_member));
	g->here = cut(b, w->n_local, sizeof(*g->here));
	g->bits = cut(b, w->size / 64 + 1, sizeof(*g->bits));
}

/* Lay out a tensor in whole cache lines. */
static void lay(
	const struct sw_worker *w, struct sw_wtensor *t, struct block *b)
{
	uint64_t bytes = t->decl.n_elems * sw_dtype_bytes(t->decl.dtype);
	uint64_t n_granules = (bytes + SW_GRANULE - 1) / SW_GRANULE;
	/* Words of one set for each link: the placement of chunks is known only
	 * with the key. */
	uint64_t most_words = (t->n_chunks + w->n_links) / 63 + 1 +
			      SW_BITMAP_LEVELS * w->n_links;

	t->chunks = cut(b, t->n_chunks, sizeof(*t->chunks));
	if (!w->lane_i) {
		t->locals = cut(b, w->n_local, sizeof(*t->locals));
		t->asked = cut(b, w->n_local / 64 + 1, sizeof(*t->asked));
	}
	if (t->decl.granules)
		t->left = cut(b, n_granules, sizeof(*t->left));
	if (t->decl.granules && !w->lane_i)
		t->held = cut(b, n_granules, sizeof(*t->held));
	t->parts = cut(b, w->n_links, sizeof(*t->parts));
	t->n_words =
		SW_N_TODO_SETS *
		sw_min64(most_words, w->n_links * sw_bitmap_words(t->n_chunks));
	t->words = cut(b, t->n_words, sizeof(*t->words));
	if (t->decl.window_log2)
		lay_stream(w, t, b);
	b->at = (b->at + LINE - 1) / LINE * LINE;
}

/* Return how many of the first tensors share a block. */
static uint32_t run_of(const struct sw_worker_tensor *tensors, uint32_t n)
{
	uint32_t i = 1;

	while (!tensors->window_log2 && i < n && !tensors[i].window_log2)
		i++;
	return i;
}

static uint64_t need_of(const struct sw_worker *w,
	const struct sw_worker_tensor *tensors, uint32_t n)
{
	struct block b = {0};

	for (uint32_t i = 0; i < n; i++) {
		struct sw_wtensor t = {.decl = tensors[i],
			.n_chunks = n_chunks_of(w, &tensors[i])};

		lay(w, &t, &b);
	}
	return b.at;
}

/* Free @t, and the memory of its batch if @t is the first of the batch. */
static void give_memory(const struct sw_worker *w, struct sw_wtensor *t)
{
	if (t->mem)
		w->env->mem_put(w->env->ctx, t->mem, t->mem_bytes);
	*t = (struct sw_wtensor){.id = t->id};
}

/* --- declarations --- */

static bool is_valid(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	uint32_t elem = sw_dtype_bytes(in->dtype), i = sw_id_index(in->again);
	const struct sw_wtensor *last = &w->tensors[i];

	if (!in->name[0] || strlen(in->name) >= SW_NAME_MAX)
		return false;
	/* A new id follows the last id at its index, which must be free. */
	if (in->again && (i >= w->n_places || last->worker ||
				 !sw_id_follows(in->again, last->id)))
		return false;
	if (in->window_log2)
		return in->window_log2 >= SW_WINDOW_MIN_LOG2 &&
		       in->window_log2 <= SW_WINDOW_MAX_LOG2 &&
		       sw_wgroup_check(w, in->ranks, in->n_ranks);
	return elem && in->n_elems > 0 && in->n_elems <= (64ULL << 30) / elem &&
	       (in->n_elems - 1) / (sw_worker_payload(w) / elem) <
		       SW_BITMAP_MAX;
}

static void build(
	struct sw_worker *w, const struct sw_worker_tensor *in, struct block *b)
{
	uint32_t id = in->again ? in->again : w->n_places++;
	uint32_t i = sw_id_index(id);
	struct sw_wtensor *t = &w->tensors[i];

	w->by_number[w->n_built % SW_TENSORS] = (uint16_t)i;
	*t = (struct sw_wtensor){.worker = w,
		.kind = in->window_log2 ? &sw_stream_kind : &sw_tensor_kind,
		.decl = *in,
		.id = id,
		.index = i,
		.number = w->n_built++,
		.key = SW_KEY_NONE,
		.life = &t->own_life,
		.own_life.key = SW_KEY_NONE,
		.last = SW_PLACE_NONE,
		.class = sw_class_of(in->priority),
		.mode = in->window_log2 ? SW_MODE_STREAM
			: in->is_async  ? SW_MODE_ASYNC
					: SW_MODE_SYNC,
		.n_chunks = n_chunks_of(w, in)};
	snprintf(t->name, sizeof(t->name), "%s", in->name);
	t->decl.name = t->name;
	lay(w, t, b);
	if (w->n_local == 1 && !w->lane_i)
		t->locals[0].from = in->base;
	if (in->window_log2) {
		sw_stream_build(w, t);
		return;
	}
	t->elem_bytes = sw_dtype_bytes(in->dtype);
	t->chunk_bytes = sw_worker_payload(w) / t->elem_bytes * t->elem_bytes;
	t->last_bytes =
		(uint32_t)(in->n_elems * t->elem_bytes -
			   (t->n_chunks - 1) * (uint64_t)t->chunk_bytes);
}

void sw_worker_free(struct sw_worker *w, uint32_t tensor)
{
	struct sw_wtensor *t = &w->tensors[sw_id_index(tensor)];

	if (t->id == tensor)
		give_memory(w, t);
}

/* Drop the last tensor first.  The ids were never published, so later tensors
 * can reuse them. */
void sw_worker_unbuild(struct sw_worker *w, uint32_t n)
{
	while (w->n_built > n) {
		struct sw_wtensor *t = sw_wtensor_numbered(w, --w->n_built);

		uint32_t again = t->decl.again;

		w->n_places -= !again;
		sw_bitmap_remove(&w->new_streams, t->index);
		sw_worker_free(w, t->id);
		t->id -= again ? SW_IDS : 0;
	}
}

static int build_run(
	struct sw_worker *w, const struct sw_worker_tensor *tensors, uint32_t n)
{
	uint64_t bytes = need_of(w, tensors, n);
	struct block b = {.base = w->env->mem_get(w->env->ctx, bytes)};
	struct sw_wtensor *first;

	if (!b.base)
		return SW_ENOMEM;
	build(w, &tensors[0], &b);
	first = sw_wtensor_numbered(w, w->n_built - 1);
	first->mem = b.base;
	first->mem_bytes = bytes;
	for (uint32_t i = 1; i < n; i++)
		build(w, &tensors[i], &b);
	return 0;
}

/* May the batch be built, and how much memory does it need? */
static int check(const struct sw_worker *w,
	const struct sw_worker_tensor *tensors, uint32_t n, uint64_t *bytes)
{
	const uint64_t page = 4096; /* each block begins on a page */
	uint32_t n_new = 0;

	*bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!is_valid(w, &tensors[i]))
			return SW_EINVAL;
		n_new += !tensors[i].again;
	}
	if (!n)
		return SW_EINVAL;
	if (n_new > SW_TENSORS - w->n_places)
		return SW_EBUSY;
	for (uint32_t i = 0, some; i < n; i += some) {
		some = run_of(&tensors[i], n - i);
		*bytes += need_of(w, &tensors[i], some) + (i ? page : 0);
	}
	return 0;
}

int sw_worker_build(
	struct sw_worker *w, const struct sw_worker_tensor *tensors, uint32_t n)
{
	uint32_t first = w->n_built;
	uint64_t bytes;
	int err = check(w, tensors, n, &bytes);

	if (err)
		return err;
	if (w->env->mem_ready && !w->env->mem_ready(w->env->ctx, 0, bytes))
		return SW_EAGAIN;
	for (uint32_t i = 0, some; i < n && !err; i += some) {
		some = run_of(&tensors[i], n - i);
		err = build_run(w, &tensors[i], some);
	}
	if (err)
		sw_worker_unbuild(w, first);
	return err;
}

/* --- open, close --- */

int sw_tensors_open(struct sw_worker *w)
{
	struct sw_bitmap *sets[] = {&w->open, &w->ended, &w->dying, &w->lacking,
		&w->closing, &w->here, &w->added, &w->new_streams};
	uint64_t *words = w->set_words;

	w->tensors =
		sw_zeros_new(SW_TENSORS * sizeof(*w->tensors), w->env->is_lazy);
	if (!w->tensors)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(sets); i++)
		words = sw_bitmap_init(sets[i], SW_TENSORS, words);
	for (uint32_t i = 0; i < SW_KEY_INDICES; i++)
		w->by_key[i] = w->newest[i] = w->by_group[i] = SW_KEY_NONE;
	sw_orders_open(&w->orders, SW_TENSORS, w->order_words);
	if (sw_sched_open(&w->sched, w->params.policy, SW_TENSORS))
		return SW_ENOMEM;
	sw_sched_watch(&w->sched, &w->now_ns, &w->stats);
	return sw_sched_set(&w->sched, w->params.policy, w->params.part_bytes,
		sw_tuning_credit(w, w->params.policy, w->params.credit_bytes));
}

void sw_tensors_close(struct sw_worker *w)
{
	for (uint32_t i = 0; w->tensors && i < w->n_places; i++)
		give_memory(w, &w->tensors[i]);
	if (w->env && w->env->mem_drop)
		w->env->mem_drop(w->env->ctx, 0);
	free(w->tensors);
	sw_sched_close(&w->sched);
}

/* --- DECLARE and its answer --- */

void sw_link_declare(struct sw_worker *w, struct sw_link *l)
{
	if (w->state == SW_WORKER_RUNNING && l->state == SW_LINK_OPEN &&
		!l->n_asked && l->n_declared < w->n_tensors &&
		(!l->server_i || sw_wtensor_numbered(w, l->n_declared)->key !=
					 SW_KEY_NONE))
		sw_link_owe(l, SW_OWE_DECLARE);
}

/* Return how many tensors may get their keys in one turn.  The work grows with
 * the links, since each tensor has a part at each link. */
static uint32_t keys_some(const struct sw_worker *w)
{
	return 1 + 256 / w->n_links;
}

/* Fill a stream's part of a declaration. */
static void declare_stream(const struct sw_worker *w,
	const struct sw_wtensor *t, struct sw_declare_item *item)
{
	const struct sw_stream *s = t->stream;

	item->stream.members = s->group.members;
	if (t->key == SW_KEY_NONE)
		item->stream.ranks_crc = s->group.crc;
	else
		item->stream.group = t->first;
	item->stream.window_log2 = sw_stream_is_here(w, s)
					   ? SW_WINDOW_MIN_LOG2
					   : t->decl.window_log2;
}

/* Declare as many tensors as fit into one message and get their keys in one
 * turn. */
uint32_t sw_link_build_declare(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	struct sw_declare_head head = {.payload = (uint16_t)w->params.payload};
	uint32_t at = sizeof(head), i = l->n_declared;
	uint32_t most = SW_DECLARE_MAX;

	if (!l->server_i)
		most = (uint32_t)sw_min64(most, keys_some(w));
	for (; i < w->n_tensors && head.n < most; i++) {
		const struct sw_wtensor *t = sw_wtensor_numbered(w, i);
		struct sw_declare_item item = {.key = t->key,
			.priority = t->decl.priority,
			.mode = t->mode,
			.name_len = (uint16_t)strlen(t->name)};

		if (t->kind->is_group) {
			declare_stream(w, t, &item);
		} else {
			item.n_elems = t->decl.n_elems;
			item.first = t->first;
			item.dtype = (uint8_t)t->decl.dtype;
		}
		if (at + sizeof(item) + item.name_len > SW_ORDERED_MAX ||
			(l->server_i && t->key == SW_KEY_NONE))
			break;
		memcpy(w->payload + at, &item, sizeof(item));
		memcpy(w->payload + at + sizeof(item), t->name, item.name_len);
		at += (uint32_t)sizeof(item) + item.name_len;
		head.n++;
	}
	if (!head.n) /* the coordinator has refused them meanwhile */
		return 0;
	l->n_asked = head.n;
	memcpy(w->payload, &head, sizeof(head));
	return at;
}

/* --- lane 0 declares, the other lanes follow --- */

bool sw_tensors_are_admitted(const struct sw_worker *w)
{
	for (uint32_t l = 0; l < w->n_links; l++)
		if (w->links[l].n_declared != w->n_tensors)
			return false;
	return !w->n_declaring;
}

/* Return the error that forbids declarations now; 0: none does. */
static int why_not(const struct sw_worker *w)
{
	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	return sw_tensors_are_admitted(w) ? 0 : SW_EBUSY;
}

int sw_worker_add(struct sw_worker *w)
{
	int err = why_not(w);
	uint32_t i;

	if (err)
		return err;
	for (; w->n_tensors != w->n_built; w->n_tensors++)
		sw_bitmap_add(
			&w->added, w->by_number[w->n_tensors % SW_TENSORS]);
	while ((i = sw_bitmap_first(&w->new_streams)) != SW_BITMAP_NONE)
		sw_stream_add(w, &w->tensors[i]);
	sw_link_declare(w, &w->links[0]);
	return 0;
}

int sw_worker_declare(
	struct sw_worker *w, const struct sw_worker_tensor *tensors, uint32_t n)
{
	int err = why_not(w);

	if (!err)
		err = sw_worker_build(w, tensors, n);
	return err ? err : sw_worker_add(w);
}

/* Divide a tensor's chunks among the lanes, for place @first on the line.  Skip
 * a stream: each of its collectives is divided separately (coll.c).  Errors:
 * SW_EPROTO the line has no such place. */
static int divide(
	const struct sw_worker *w, struct sw_wtensor *t, uint32_t first)
{
	if (t->kind->is_group)
		return 0;
	if (first >= sw_place_line(&w->map))
		return SW_EPROTO;
	t->own = sw_place_init(&w->lane_map, first, t->n_chunks, w->lane_i);
	for (uint32_t i = 0; i < w->n_others; i++)
		if (sw_place_init(&w->lane_map, first, t->n_chunks, i + 1)
				.n_local)
			t->lanes |= (uint16_t)(1u << i);
	return 0;
}

int sw_tensors_keyed(
	struct sw_worker *w, struct sw_wtensor *t, uint32_t key, uint32_t first)
{
	uint32_t at = sw_key_index(key), log2 = t->decl.window_log2;
	uint64_t *words = t->words;
	uint32_t from = 0, n;

	if (key == SW_KEY_NONE || w->by_key[at] != SW_KEY_NONE ||
		sw_key_is_past(w, key) || divide(w, t, first))
		return SW_EPROTO;
	t->first = first;
	for (uint32_t l = 0; l < w->n_links; l++) {
		struct sw_part *p = &t->parts[l];

		p->near = (struct sw_place_near){0};
		p->place = log2 ? (struct sw_place){.n_local = 1u << log2}
				: sw_place_init(&w->map, first, t->n_chunks,
					  w->links[l].server_i);
		p->from = from;
		from += p->place.n_local;
		/* Sets of no chunks get room for one, which never enters. */
		n = p->place.n_local ? p->place.n_local : 1;
		p->turn_step = UINT32_MAX / n;
		if (!log2 && t->last == SW_PLACE_NONE)
			t->last = sw_part_record(p, t->n_chunks - 1);
		for (uint32_t s = 0; s < SW_N_TODO_SETS; s++)
			words = sw_bitmap_init(&p->sets[s], n, words);
	}
	assert(words <= t->words + t->n_words);
	t->key = key;
	if (!sw_life_identify(w, t, t->kind->is_group ? first : key))
		return SW_EPROTO;
	t->decl.priority = sw_priority_of(t->decl.priority, key);
	t->class = sw_class_of(t->decl.priority);
	w->by_key[at] = t->index;
	w->newest[at] = key;
	sw_todo_admit(w, t);
	return 0;
}

void sw_tensor_follow(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_wtensor *slot = sw_wtensor_slot(t);
	const struct sw_wtensor *zero = w->lanes->zero->tensors;
	const struct sw_life *said = &zero[slot->index].own_life;
	bool is_closed = atomic_load(&said->is_closed); /* it is set last */
	uint32_t from = atomic_load(&said->from);

	if (from && from != t->life->from)
		sw_tensor_kill(w, t, from, sw_wtensor_why(&zero[slot->index]));
	if (!sw_worker_end_of(w))
		t->kind->follow(w, t, &zero[t->index]);
	if (is_closed && !t->life->is_closed)
		sw_life_closed(w, slot);
}

static int copy_one(struct sw_worker *w, const struct sw_wtensor *zero)
{
	struct sw_wtensor *t = sw_wtensor_numbered(w, w->n_tensors++);
	const struct sw_wtensor *from = &zero[t->index];
	int err = 0;

	sw_bitmap_add(&w->added, t->index);
	if (t->kind->is_group)
		sw_stream_add(w, t);
	t->locals = from->locals;
	t->held = from->held;
	if (from->key != SW_KEY_NONE) /* else the coordinator refused it */
		err = sw_tensors_keyed(w, t, from->key, from->first);
	if (!err)
		sw_tensor_follow(w, t);
	return err;
}

/* Has the coordinator refused the tensor?  A tensor that died here before the
 * answer does not count; another lane learns only of answered tensors. */
static bool is_refused(const struct sw_worker *w, const struct sw_wtensor *t)
{
	return t->life->from && t->key == SW_KEY_NONE &&
	       (w->lane_i || t->number < w->links[0].n_declared);
}

/* Declare the next tensors at all servers, except tensors that the coordinator
 * has refused. */
static void declare_more(struct sw_worker *w)
{
	for (uint32_t i = 0; i < w->n_links; i++) {
		struct sw_link *l = &w->links[i];

		while (!l->n_asked && l->n_declared < w->n_tensors &&
			is_refused(w, sw_wtensor_numbered(w, l->n_declared)))
			sw_link_declared(l, l->n_declared + 1);
		sw_link_declare(w, l);
	}
	w->is_unsettled = true; /* all may be refused */
}

/* Kill a tensor that a server refuses.  The batch continues behind it. */
static void on_refused_tensor(
	struct sw_worker *w, struct sw_wtensor *t, struct sw_fault *why)
{
	sw_fault_received(w, t, why);
	if (t->kind->is_group && w->lane_i) {
		sw_stream_propose(w, t, why);
		return;
	}
	sw_tensor_kill(w, t, 1, why);
	/* The coordinator keeps the group until all members close it. */
	if (t->kind->is_group && why->key != SW_KEY_NONE)
		(void)sw_life_identify(w, t, why->key);
}

void sw_link_on_declared(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_declared d;
	struct sw_fault why;
	uint32_t n_keys = 0, len;

	memcpy(&d, payload, sizeof(d));
	len = (uint32_t)sizeof(d) + 8u * d.n;
	if (l->state != SW_LINK_OPEN || !d.n || d.n > l->n_asked ||
		h->payload_len != len + (d.is_refused ? sizeof(why) : 0) ||
		(d.is_refused && !sw_fault_read(&why, payload + len))) {
		sw_count(&w->stats.rx_state, 1);
		return;
	}
	if (l->server_i == 0)
		n_keys = d.is_refused ? d.n - 1u : d.n;
	for (uint32_t i = 0; i < n_keys; i++) {
		const uint8_t *p = payload + sizeof(d) + 4 * i;
		uint32_t key = sw_load32(p);
		struct sw_wtensor *t =
			sw_wtensor_numbered(w, l->n_declared + i);
		int err = sw_tensors_keyed(w, t, key, sw_load32(p + 4 * d.n));

		if (err) {
			sw_worker_fail(w, err, key,
				"server %.64s: key %u for tensor %.64s",
				l->name, key, t->name);
			return;
		}
	}
	sw_todo_renumber(w);
	sw_link_declared(l, l->n_declared + d.n);
	l->n_asked = 0;
	if (d.is_refused)
		on_refused_tensor(
			w, sw_wtensor_numbered(w, l->n_declared - 1), &why);
	declare_more(w);
	if (l->server_i || l->n_declared != w->n_tensors)
		return;
	/* All have keys, so the other lanes declare them. */
	w->n_declaring = w->n_others;
	for (uint32_t i = 0; i < w->n_others; i++)
		atomic_store(&w->lanes[i].n_wanted, w->n_tensors);
	sw_lanes_command(w, SW_LANE_DECLARE);
}

uint32_t sw_tensors_copy(struct sw_worker *w, const struct sw_wtensor *zero)
{
	uint32_t n = 0;
	int err = 0;

	if (sw_worker_end_of(w))
		w->n_wanted = w->n_tensors;
	for (; n < keys_some(w) && w->n_tensors < w->n_wanted && !err; n++)
		err = copy_one(w, zero);
	if (err)
		sw_worker_fail(w, err, SW_KEY_NONE,
			"node %.64s: lcore %u cannot declare: %s", w->node_name,
			w->lane_i, sw_error_text(err));
	if (!n || err)
		return n;
	sw_todo_renumber(w);
	if (w->n_tensors == w->n_wanted)
		declare_more(w);
	return n;
}
