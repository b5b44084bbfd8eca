/* load.c - read recorded traces.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/trace/load.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/text.h"

/* State of reading a file. */
struct reading {
	struct sw_trace_data *t;
	/* Our number of each daemon of the file, plus 1; 0: not read yet. */
	uint16_t daemons[SW_TRACE_DAEMONS];
	char *bytes; /* of a block */
};

static const char no_memory[] = "no memory";

/* Make room for one more entry in a list. */
static bool grow(void *list, uint32_t n, uint32_t *room, size_t bytes)
{
	void **at = list, *more;
	uint32_t wanted = *room ? 2 * *room : 64;

	if (n < *room)
		return true;
	more = realloc(*at, wanted * bytes);
	if (!more)
		return false;
	*at = more;
	*room = wanted;
	return true;
}

/* Terminate text from a file, and replace its unprintable characters. */
static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	sw_text_clean(text, size);
}

static const char *on_hello(
	struct reading *r, const struct sw_trace_block *b, const void *bytes)
{
	struct sw_trace_daemon *all, *d;

	if (b->bytes != sizeof(d->hello))
		return "a daemon of another size";
	if (r->daemons[b->daemon])
		return "a daemon twice";
	if (r->t->n_daemons == SW_TRACE_DAEMONS)
		return "more than 256 daemons";
	all = realloc(r->t->daemons, (r->t->n_daemons + 1) * sizeof(*all));
	if (!all)
		return no_memory;
	r->t->daemons = all;
	d = &all[r->t->n_daemons++];
	r->daemons[b->daemon] = (uint16_t)r->t->n_daemons;
	*d = (struct sw_trace_daemon){0};
	memcpy(&d->hello, bytes, sizeof(d->hello));
	clean(d->hello.node, sizeof(d->hello.node));
	clean(d->hello.role, sizeof(d->hello.role));
	clean(d->hello.boot, sizeof(d->hello.boot));
	return NULL;
}

static const char *on_peer(struct sw_trace_lcore *l,
	const struct sw_trace_block *b, const void *bytes)
{
	struct sw_trace_peer *p;

	if (b->bytes != sizeof(*p))
		return "a session of another size";
	if (l->n_peers == SW_TRACE_PEERS)
		return "more than 256 sessions of a polling core";
	if (!l->peers)
		l->peers = calloc(SW_TRACE_PEERS, sizeof(*p));
	if (!l->peers)
		return no_memory;
	p = &l->peers[l->n_peers++];
	memcpy(p, bytes, sizeof(*p));
	clean(p->job, sizeof(p->job));
	clean(p->address, sizeof(p->address));
	return NULL;
}

static const char *on_name(struct sw_trace_data *t,
	const struct sw_trace_block *b, const void *bytes)
{
	struct sw_trace_name *n;

	if (b->bytes != sizeof(*n))
		return "a name of another size";
	if (!grow(&t->names, t->n_names, &t->names_room, sizeof(*n)))
		return no_memory;
	n = &t->names[t->n_names++];
	memcpy(n, bytes, sizeof(*n));
	clean(n->name, sizeof(n->name));
	return NULL;
}

static const char *on_events(struct sw_trace_lcore *l,
	const struct sw_trace_block *b, const void *bytes)
{
	uint32_t n = b->bytes / sizeof(*l->events);

	if (b->bytes % sizeof(*l->events))
		return "a part of an event";
	l->n_lost = b->n_dropped;
	for (uint32_t i = 0; i < n; i++) {
		struct sw_trace_event e;

		memcpy(&e, (const char *)bytes + i * sizeof(e), sizeof(e));
		if (e.kind >= SW_TRACE_KINDS)
			return "an event of an unknown kind";
		if (e.t_ns < e.ns || e.t_ns > (uint64_t)SW_TRACE_TIME_MAX)
			return "an event at an impossible time";
		if (!grow(&l->events, l->n_events, &l->room, sizeof(e)))
			return no_memory;
		l->events[l->n_events++] = e;
	}
	return NULL;
}

/* Take a block.  Returns NULL, or the reason why the block is wrong. */
static const char *on_block(
	struct reading *r, const struct sw_trace_block *b, const void *bytes)
{
	struct sw_trace_daemon *d;

	if (b->daemon >= SW_TRACE_DAEMONS || b->lcore >= SW_MAX_LCORES)
		return "a daemon or polling core beyond the last one";
	if (b->kind == SW_TRACE_HELLO)
		return on_hello(r, b, bytes);
	if (!r->daemons[b->daemon])
		return "a daemon that has not begun";
	d = &r->t->daemons[r->daemons[b->daemon] - 1];
	switch (b->kind) {
	case SW_TRACE_PEER:
		return on_peer(&d->lcores[b->lcore], b, bytes);
	case SW_TRACE_NAME:
		return on_name(r->t, b, bytes);
	case SW_TRACE_EVENTS:
		return on_events(&d->lcores[b->lcore], b, bytes);
	case SW_TRACE_END:
		d->has_ended = true;
		return NULL;
	default:
		return "a block of an unknown kind";
	}
}

/* Read the block at @at_bytes.  Returns its length, 0 at the end of the file,
 * or -1 after printing that the file is damaged. */
static int64_t read_block(
	struct reading *r, FILE *f, const char *path, uint64_t at_bytes)
{
	struct sw_trace_block b;
	size_t n = fread(&b, 1, sizeof(b), f);
	const char *why = NULL;

	if (!n)
		return 0;
	if (n == sizeof(b) && b.bytes > SW_TRACE_BLOCK_MAX)
		why = "a block that is too long";
	else if (n < sizeof(b) || fread(r->bytes, 1, b.bytes, f) != b.bytes)
		fprintf(stderr,
			"sumwire trace: %s: ends within the block at byte "
			"%" PRIu64 ", read up to there\n",
			path, at_bytes);
	else
		why = on_block(r, &b, r->bytes);
	if (why)
		fprintf(stderr,
			"sumwire trace: %s: damaged at byte %" PRIu64 ": %s\n",
			path, at_bytes, why);
	return why ? -1 : feof(f) ? 0 : (int64_t)(sizeof(b) + b.bytes);
}

int sw_trace_load(struct sw_trace_data *t, FILE *f, const char *path)
{
	struct reading r = {.t = t, .bytes = malloc(SW_TRACE_BLOCK_MAX)};
	char magic[SW_TRACE_MAGIC_BYTES] = "";
	uint64_t at_bytes = sizeof(magic);
	int64_t n = 1;

	if (!r.bytes) {
		fprintf(stderr, "sumwire trace: %s\n", no_memory);
		return 1;
	}
	if (fread(magic, sizeof(magic), 1, f) != 1 ||
		memcmp(magic, SW_TRACE_MAGIC, sizeof(magic)) != 0) {
		fprintf(stderr,
			"sumwire trace: %s: not a trace of this version: it "
			"does not begin with " SW_TRACE_MAGIC "\n",
			path);
		n = -1;
	}
	for (; n > 0; at_bytes += (uint64_t)n)
		n = read_block(&r, f, path, at_bytes);
	free(r.bytes);
	return n < 0;
}

uint32_t sw_trace_first(const void *key, const void *all, uint32_t n,
	size_t bytes, int (*compare)(const void *, const void *))
{
	uint32_t least = 0;

	while (least < n) {
		uint32_t at = least + (n - least) / 2;

		if (compare((const char *)all + at * bytes, key) < 0)
			least = at + 1;
		else
			n = at;
	}
	return least;
}

static int compare_names(const void *a, const void *b)
{
	const struct sw_trace_name *x = a, *y = b;

	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

const struct sw_trace_name *sw_trace_named(
	const struct sw_trace_data *t, uint64_t epoch, uint32_t key)
{
	struct sw_trace_name wanted = {.epoch = epoch, .key = key};

	return t->n_names ? bsearch(&wanted, t->names, t->n_names,
				    sizeof(wanted), compare_names)
			  : NULL;
}

void sw_trace_sort_names(struct sw_trace_data *t)
{
	if (t->n_names)
		qsort(t->names, t->n_names, sizeof(*t->names), compare_names);
}

void sw_trace_free(struct sw_trace_data *t)
{
	for (uint32_t i = 0; i < t->n_daemons; i++)
		for (uint32_t k = 0; k < SW_MAX_LCORES; k++) {
			free(t->daemons[i].lcores[k].events);
			free(t->daemons[i].lcores[k].peers);
		}
	free(t->daemons);
	free(t->names);
	free(t->clocks);
	free(t->pieces);
	free(t->spans);
	free(t->copies);
	*t = (struct sw_trace_data){0};
}

void sw_trace_print(const struct sw_trace_data *t, FILE *to)
{
	for (uint32_t i = 0; i < t->n_daemons; i++) {
		const struct sw_trace_daemon *d = &t->daemons[i];
		const struct sw_trace_clock *c = &t->clocks[d->clock];
		unsigned long long n = 0, n_dropped = 0;

		for (uint32_t k = 0; k < SW_MAX_LCORES; k++) {
			n += d->lcores[k].n_events;
			n_dropped += d->lcores[k].n_lost;
		}
		fprintf(to, "%s %s (pid %lld): %llu events", d->hello.role,
			d->hello.node, (long long)d->hello.pid, n);
		if (n_dropped)
			fprintf(to, ", %llu more were dropped", n_dropped);
		if (!d->has_ended)
			fprintf(to, ", ended early");
		if (!c->is_known)
			fprintf(to, ", clock not aligned");
		else if (c->error_ns)
			fprintf(to, ", clock aligned within %.1f us",
				(double)c->error_ns / 1e3);
		fprintf(to, "\n");
	}
}
