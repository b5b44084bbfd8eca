/* chakra.c - read Chakra's execution traces from protobuf.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/chakra.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "engine/base/coll_kind.h"
#include "engine/base/error.h"

enum {
	FILE_MAX = 256 << 20,
	MICROS_MAX = 1u << 31,
	/* Fields of Node. */
	ID = 1,
	TYPE = 3,
	CTRL_DEPS = 4,
	DATA_DEPS = 5,
	DURATION = 7,
	ATTR = 10,
	/* Values of NodeType. */
	SEND = 5,
	RECV = 6,
	COLL = 7,
};

/* By CollectiveCommType.  SW_COLL_NONE: sumwire does not have it. */
static const uint8_t kinds[] = {SW_ALL_REDUCE, SW_COLL_NONE, SW_ALL_GATHER,
	SW_COLL_NONE, SW_COLL_NONE, SW_BCAST, SW_COLL_NONE, SW_REDUCE_SCATTER,
	SW_REDUCE_SCATTER, SW_BARRIER};
static const char *const names[] = {"ALL_REDUCE", "REDUCE", "ALL_GATHER",
	"GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER",
	"REDUCE_SCATTER_BLOCK", "BARRIER"};

/* Remaining bytes, and whether they were malformed. */
struct bytes {
	const uint8_t *at, *end;
	bool is_bad;
};

struct reader {
	const char *path;
	char *why;
	size_t size;
	struct sw_chakra *t;
	uint32_t nodes_room, deps_room;
	uint64_t *dep_ids; /* ids of the nodes in deps */
};

static int refuse(struct reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static int refuse(struct reader *r, const char *fmt, ...)
{
	va_list args;
	int n = snprintf(r->why, r->size, "%.200s: ", r->path);

	va_start(args, fmt);
	if (n > 0 && (size_t)n < r->size)
		vsnprintf(r->why + n, r->size - (size_t)n, fmt, args);
	va_end(args);
	return SW_ECONF;
}

/* --- protobuf --- */

static uint64_t varint(struct bytes *b)
{
	uint64_t n = 0;

	for (uint32_t shift = 0; shift < 64 && b->at < b->end; shift += 7) {
		uint8_t byte = *b->at++;

		n |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return n;
	}
	b->is_bad = true;
	b->at = b->end;
	return 0;
}

static struct bytes part(struct bytes *b, uint64_t n)
{
	struct bytes one = {b->at, b->at, false};

	if (n > (uint64_t)(b->end - b->at)) {
		b->is_bad = true;
		b->at = b->end;
		return one;
	}
	one.end = b->at += n;
	return one;
}

/* Take the next field: its number, and its value as a number or as bytes.
 * Returns 0 at the end. */
static uint32_t field(struct bytes *b, uint64_t *number, struct bytes *inner)
{
	uint64_t tag;

	*number = 0;
	*inner = (struct bytes){0};
	if (b->at == b->end)
		return 0;
	tag = varint(b);
	if ((tag & 7) == 0)
		*number = varint(b);
	else if ((tag & 7) == 1)
		part(b, 8);
	else if ((tag & 7) == 2)
		*inner = part(b, varint(b));
	else if ((tag & 7) == 5)
		part(b, 4);
	else
		b->is_bad = true;
	if (b->is_bad || tag >> 3 > UINT32_MAX)
		return 0;
	return (uint32_t)(tag >> 3);
}

/* --- nodes --- */

static void *grow(void *all, uint32_t n, uint32_t *room, size_t bytes)
{
	if (n < *room)
		return all;
	*room = 2 * *room + 64;
	all = realloc(all, *room * bytes);
	if (!all)
		abort();
	return all;
}

static void add_dep(struct reader *r, struct sw_chakra_node *n, uint64_t id)
{
	r->dep_ids = grow(
		r->dep_ids, r->t->n_deps, &r->deps_room, sizeof(*r->dep_ids));
	r->dep_ids[r->t->n_deps++] = id;
	n->n_deps++;
}

struct attr {
	char name[16];
	uint64_t value;
};

/* Read an attribute.  Whole numbers are varints; sizes and types are never
 * zigzag (sint) numbers. */
static struct attr attr_of(struct bytes *b)
{
	struct attr a = {0};
	struct bytes inner;
	uint64_t number;
	uint32_t f;

	while ((f = field(b, &number, &inner)))
		if (f == 1)
			snprintf(a.name, sizeof(a.name), "%.*s",
				(int)(inner.end - inner.at), inner.at);
		else if (!inner.at)
			a.value = number;
	return a;
}

static int check_coll(struct reader *r, struct sw_chakra_node *n, uint64_t type,
	bool has_type)
{
	unsigned long long id = n->id;

	if (!has_type)
		return refuse(
			r, "node %llu is a collective without comm_type", id);
	if (type >= sizeof(kinds))
		return refuse(r, "node %llu has the unknown collective %llu",
			id, (unsigned long long)type);
	if (kinds[type] == SW_COLL_NONE)
		return refuse(r,
			"node %llu is a %s, which sumwire does not have", id,
			names[type]);
	n->kind = kinds[type];
	if (n->kind == SW_BARRIER) { /* an all_reduce of one element */
		n->kind = SW_ALL_REDUCE;
		n->bytes = 4;
	}
	if (n->bytes < 4 || n->bytes > 1ULL << 32)
		return refuse(r,
			"node %llu has a comm_size of %llu; allowed are 4 to "
			"4294967296",
			id, (unsigned long long)n->bytes);
	r->t->n_colls++;
	return 0;
}

static int read_node(struct reader *r, struct bytes *b)
{
	struct sw_chakra *t = r->t;
	struct sw_chakra_node *n;
	uint64_t number, node_type = 0, coll = 0, micros = 0;
	struct bytes inner;
	bool has_coll = false;
	uint32_t f;

	if (t->n_nodes == SW_CHAKRA_NODES)
		return refuse(r, "more than %d nodes", SW_CHAKRA_NODES);
	t->nodes =
		grow(t->nodes, t->n_nodes, &r->nodes_room, sizeof(*t->nodes));
	n = &t->nodes[t->n_nodes++];
	*n = (struct sw_chakra_node){.first_dep = t->n_deps};
	while ((f = field(b, &number, &inner))) {
		if (f == ID)
			n->id = number;
		else if (f == TYPE)
			node_type = number;
		else if (f == DURATION)
			micros = number;
		else if ((f == CTRL_DEPS || f == DATA_DEPS) && !inner.at)
			add_dep(r, n, number);
		else if (f == CTRL_DEPS || f == DATA_DEPS)
			while (inner.at < inner.end)
				add_dep(r, n, varint(&inner));
		else if (f == ATTR) {
			struct attr a = attr_of(&inner);

			has_coll |= !strcmp(a.name, "comm_type");
			if (!strcmp(a.name, "comm_type"))
				coll = a.value;
			else if (!strcmp(a.name, "comm_size"))
				n->bytes = a.value;
		}
		b->is_bad |= inner.is_bad;
	}
	if (b->is_bad)
		return refuse(r, "node %u of the file is damaged", t->n_nodes);
	if (node_type == SEND || node_type == RECV)
		return refuse(r,
			"node %llu sends or receives between two ranks, which "
			"sumwire does not",
			(unsigned long long)n->id);
	if (micros > MICROS_MAX)
		return refuse(r, "node %llu takes more than 2147483648 us",
			(unsigned long long)n->id);
	n->duration_ns = node_type == COLL ? 0 : micros * 1000;
	return node_type == COLL ? check_coll(r, n, coll, has_coll) : 0;
}

/* --- the order of nodes --- */

static int by_id(const void *a, const void *b)
{
	const struct sw_chakra_node *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int find_deps(struct reader *r)
{
	struct sw_chakra *t = r->t;

	qsort(t->nodes, t->n_nodes, sizeof(*t->nodes), by_id);
	t->deps = sw_lab_array(t->n_deps, sizeof(*t->deps));
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		struct sw_chakra_node *n = &t->nodes[i];

		if (i && n->id == t->nodes[i - 1].id)
			return refuse(r, "node %llu is there twice",
				(unsigned long long)n->id);
		for (uint32_t d = n->first_dep; d < n->first_dep + n->n_deps;
			d++) {
			const struct sw_chakra_node key = {.id = r->dep_ids[d]};
			const struct sw_chakra_node *dep = bsearch(
				&key, t->nodes, t->n_nodes, sizeof(key), by_id);

			if (!dep)
				return refuse(r,
					"node %llu depends on node %llu, which "
					"is not there",
					(unsigned long long)n->id,
					(unsigned long long)key.id);
			t->deps[d] = (uint32_t)(dep - t->nodes);
		}
	}
	return 0;
}

enum { UNSEEN, OPEN, PLACED };

/* The current path along dependencies, and the state of each node. */
struct way {
	uint32_t *nodes, n;
	uint32_t *next; /* by node: its next dependency */
	uint8_t *state; /* by node */
};

static void go_to(struct way *w, uint32_t node)
{
	w->state[node] = OPEN;
	w->nodes[w->n++] = node;
}

/* Place @from after its dependencies.  Returns false if the path reaches a node
 * that is already on it. */
static bool place_from(struct sw_chakra *t, struct way *w, uint32_t from,
	uint32_t *place, uint32_t *n_placed)
{
	go_to(w, from);
	while (w->n) {
		uint32_t i = w->nodes[w->n - 1];
		const struct sw_chakra_node *n = &t->nodes[i];

		if (w->next[i] == n->n_deps) {
			w->state[i] = PLACED;
			place[i] = (*n_placed)++;
			w->n--;
			continue;
		}
		i = t->deps[n->first_dep + w->next[i]++];
		if (w->state[i] == OPEN)
			return false;
		if (w->state[i] == UNSEEN)
			go_to(w, i);
	}
	return true;
}

/* Order the nodes: dependencies first, then by id. */
static int sort(struct reader *r)
{
	struct sw_chakra *t = r->t;
	uint32_t *place = sw_lab_array(t->n_nodes, sizeof(*place));
	struct sw_chakra_node *sorted =
		sw_lab_array(t->n_nodes, sizeof(*sorted));
	struct way w = {.nodes = sw_lab_array(t->n_nodes, sizeof(*w.nodes)),
		.next = sw_lab_array(t->n_nodes, sizeof(*w.next)),
		.state = sw_lab_array(t->n_nodes, 1)};
	uint32_t n = 0;
	int err = 0;

	for (uint32_t i = 0; i < t->n_nodes && !err; i++)
		if (w.state[i] == UNSEEN && !place_from(t, &w, i, place, &n))
			err = refuse(r,
				"node %llu is in a circle of dependencies",
				(unsigned long long)t->nodes[w.nodes[w.n - 1]]
					.id);
	for (uint32_t i = 0; i < t->n_nodes && !err; i++)
		sorted[place[i]] = t->nodes[i];
	for (uint32_t d = 0; d < t->n_deps && !err; d++)
		t->deps[d] = place[t->deps[d]];
	free(w.nodes);
	free(w.next);
	free(w.state);
	free(place);
	free(t->nodes);
	t->nodes = sorted;
	return err;
}

/* --- the file --- */

static int parse(struct reader *r, const uint8_t *text, size_t len)
{
	struct bytes b = {text, text + len, false};
	bool is_head = true;
	int err = 0;

	while (b.at < b.end && !err) {
		struct bytes message = part(&b, varint(&b));

		if (b.is_bad)
			return refuse(r, "it ends within a message, or is no "
					 "trace of Chakra");
		err = is_head ? 0 : read_node(r, &message);
		is_head = false;
	}
	if (!err && !r->t->n_colls)
		return refuse(r, "it has no collective");
	if (!err)
		err = find_deps(r);
	return err ? err : sort(r);
}

static int load(struct reader *r, uint8_t **text, size_t *len)
{
	FILE *f = fopen(r->path, "rb");
	long size = -1;

	if (f && !fseek(f, 0, SEEK_END))
		size = ftell(f);
	if (size < 0 || size > FILE_MAX) {
		refuse(r, "%s",
			f ? "cannot be read, or has over 256 MiB"
			  : strerror(errno));
		if (f)
			fclose(f);
		return f ? SW_EIO : SW_ENOENT;
	}
	rewind(f);
	*text = sw_lab_array((size_t)size, 1);
	*len = fread(*text, 1, (size_t)size, f);
	fclose(f);
	return 0;
}

int sw_chakra_open(
	struct sw_chakra *t, const char *path, char *why, size_t size)
{
	struct reader r = {.path = path, .why = why, .size = size, .t = t};
	uint8_t *text = NULL;
	size_t len = 0;
	int err;

	*t = (struct sw_chakra){0};
	err = load(&r, &text, &len);
	if (!err)
		err = parse(&r, text, len);
	free(text);
	free(r.dep_ids);
	if (err)
		sw_chakra_close(t);
	return err;
}

void sw_chakra_close(struct sw_chakra *t)
{
	free(t->nodes);
	free(t->deps);
	*t = (struct sw_chakra){0};
}

/* Return the next collective from node *@i on, or NULL. */
static const struct sw_chakra_node *next_coll(
	const struct sw_chakra *t, uint32_t *i)
{
	while (*i < t->n_nodes)
		if (t->nodes[(*i)++].kind)
			return &t->nodes[*i - 1];
	return NULL;
}

int sw_chakra_check(const struct sw_chakra *t, const struct sw_chakra *first,
	const char *path, char *why, size_t size)
{
	struct reader r = {.path = path, .why = why, .size = size};
	const struct sw_chakra_node *n, *other;
	uint32_t i = 0, k = 0;

	if (t->n_colls != first->n_colls)
		return refuse(&r,
			"it has %u collectives, and the first rank's has %u",
			t->n_colls, first->n_colls);
	while ((n = next_coll(t, &i)) && (other = next_coll(first, &k)))
		if (n->kind != other->kind || n->bytes != other->bytes)
			return refuse(&r,
				"node %llu calls %s of %llu bytes where the "
				"first rank calls %s of %llu",
				(unsigned long long)n->id,
				sw_coll_name(n->kind),
				(unsigned long long)n->bytes,
				sw_coll_name(other->kind),
				(unsigned long long)other->bytes);
	return 0;
}
