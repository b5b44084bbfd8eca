/* fake.c - the back end "fake": threads and memcpy.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "engine/base/error.h"
#include "pmd/client/edge.h"

enum { ALIGN = 256, FREED = 0xdd, SLACK_NS = 1000 };

struct event {
	_Atomic uint64_t recorded, done;
};

enum job_kind { COPY, RECORD, RUN, HOLD };

struct job {
	struct job *next;
	enum job_kind kind;
	struct sw_rows rows;
	struct event *event;
	uint64_t number; /* the event's number after the job */
	uint64_t put_ns;
	void (*fn)(void *arg);
	void *arg;
	_Atomic uint32_t *word;
	uint32_t value;
};

/* A thread that does jobs in order. */
struct sw_fake_stream {
	struct sw_back *back;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job *first, **end;
	bool is_busy, is_ending;
	uint64_t free_ns; /* when the last copy is done */
};

/* Header of "device" memory; its bytes follow. */
struct block {
	_Alignas(ALIGN) struct block *next; /* next freed block */
	uint64_t bytes;
};

struct sw_back {
	uint64_t gbit, mbit, latency_us, lost_after, node;
	uint64_t no_pin, no_hold, check;
	bool has_fault, has_node; /* lost_after, node were given */
	struct block *_Atomic freed;
	_Atomic bool is_lost;
	_Atomic uint64_t n_copies[SW_BACK_WAYS];
	_Atomic uint32_t n_holds; /* holds that have not ended */
	struct sw_fake_stream *ways[SW_BACK_WAYS];
};

static int fail(char *why, int err, const char *text)
{
	snprintf(why, SW_BACK_WHY, "%s", text);
	return err;
}

static int lost(char *why)
{
	return fail(why, SW_EDEVICE, "device lost by option lost_after");
}

/* --- streams --- */

static void sleep_until(uint64_t at_ns)
{
	struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000),
		.tv_nsec = (long)(at_ns % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* Copy as a device that becomes free at free_ns, so that waking up late after
 * one copy does not delay the next. */
static void copy(struct sw_fake_stream *s, const struct job *j)
{
	const struct sw_back *b = s->back;
	uint64_t at = s->free_ns > j->put_ns ? s->free_ns : j->put_ns;

	sw_rows_copy(&j->rows);
	at += b->latency_us * 1000;
	if (b->gbit || b->mbit)
		at += j->rows.n * j->rows.bytes * 8000 /
		      (1000 * b->gbit + b->mbit);
	s->free_ns = at;
	if (at > sw_edge_now_ns())
		sleep_until(at);
}

static void hold(const struct sw_fake_stream *s, const struct job *j)
{
	while ((int32_t)(atomic_load(j->word) - j->value) < 0 &&
		!s->back->is_lost)
		sleep_until(sw_edge_now_ns() + 20000);
	atomic_fetch_sub(&s->back->n_holds, 1);
}

static void do_job(struct sw_fake_stream *s, const struct job *j)
{
	if (j->kind == COPY)
		copy(s, j);
	else if (j->kind == RUN)
		j->fn(j->arg);
	else if (j->kind == HOLD)
		hold(s, j);
	if (j->event)
		atomic_store(&j->event->done, j->number);
}

static void *stream_thread(void *arg)
{
	struct sw_fake_stream *s = arg;

	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	pthread_mutex_lock(&s->lock);
	while (s->first || !s->is_ending) {
		struct job *j = s->first;

		if (!j) {
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		s->first = j->next;
		if (!s->first)
			s->end = &s->first;
		s->is_busy = true;
		pthread_mutex_unlock(&s->lock);
		do_job(s, j);
		free(j);
		pthread_mutex_lock(&s->lock);
		s->is_busy = false;
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

struct sw_fake_stream *sw_fake_stream_open(struct sw_back *b)
{
	struct sw_fake_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->back = b;
	s->end = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	if (!pthread_create(&s->thread, NULL, stream_thread, s))
		return s;
	free(s);
	return NULL;
}

void sw_fake_stream_close(struct sw_fake_stream *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->is_ending = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void sw_fake_stream_wait(struct sw_fake_stream *s)
{
	pthread_mutex_lock(&s->lock);
	while (s->first || s->is_busy)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static int put(struct sw_fake_stream *s, const struct job *job, char *why)
{
	struct job *j = malloc(sizeof(*j));

	if (!j)
		return fail(why, SW_EDEVICE, "out of memory");
	*j = *job;
	j->put_ns = sw_edge_now_ns();
	pthread_mutex_lock(&s->lock);
	*s->end = j;
	s->end = &j->next;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

void sw_fake_stream_run(
	struct sw_fake_stream *s, void (*fn)(void *arg), void *arg)
{
	char why[SW_BACK_WHY];

	put(s, &(struct job){.kind = RUN, .fn = fn, .arg = arg}, why);
}

/* --- the back end --- */

/* Take an option "name" or "name=N". Returns false if it is invalid. */
static bool take_option(struct sw_back *b, const char *at, size_t n)
{
	const struct {
		const char *name;
		uint64_t *value;
	} all[] = {
		{"check", &b->check},
		{"gbit=", &b->gbit},
		{"mbit=", &b->mbit},
		{"latency_us=", &b->latency_us},
		{"lost_after=", &b->lost_after},
		{"node=", &b->node},
		{"no_pin", &b->no_pin},
		{"no_hold", &b->no_hold},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		size_t len = strlen(all[i].name);
		bool is_number = all[i].name[len - 1] == '=';
		char *end = (char *)at + n;

		if (n < len || strncmp(at, all[i].name, len) ||
			(n > len) != is_number)
			continue;
		*all[i].value = is_number ? strtoull(at + len, &end, 10) : 1;
		b->has_fault |= all[i].value == &b->lost_after;
		b->has_node |= all[i].value == &b->node;
		return end == at + n;
	}
	return false;
}

static int take_options(struct sw_back *b, const char *options, char *why)
{
	while (options && *options) {
		size_t n = strcspn(options, ",");

		if (!take_option(b, options, n)) {
			snprintf(why, SW_BACK_WHY,
				"the back end 'fake' has no option '%.*s'",
				(int)n, options);
			return SW_EINVAL;
		}
		options += n + (options[n] == ',');
	}
	return 0;
}

static void fake_close(struct sw_back *b)
{
	for (uint32_t i = 0; i < SW_BACK_WAYS; i++)
		sw_fake_stream_close(b->ways[i]);
	for (struct block *f = b->freed, *next; f; f = next) {
		next = f->next;
		free(f);
	}
	free(b);
}

static int fake_open(
	const char *options, int32_t device, struct sw_back **out, char *why)
{
	struct sw_back *b = calloc(1, sizeof(*b));
	int err;

	(void)device;
	if (!b)
		return fail(why, SW_EDEVICE, "out of memory");
	err = take_options(b, options, why);
	for (uint32_t i = 0; i < SW_BACK_WAYS && !err; i++) {
		b->ways[i] = sw_fake_stream_open(b);
		if (!b->ways[i])
			err = fail(why, SW_EDEVICE, "out of memory");
	}
	if (err)
		fake_close(b);
	else
		*out = b;
	return err;
}

static int fake_enter(struct sw_back *b, char *why)
{
	(void)b;
	(void)why;
	return 0;
}

static int fake_pin(
	struct sw_back *b, void *p, size_t bytes, bool is_read_only, char *why)
{
	(void)p;
	(void)bytes;
	(void)is_read_only;
	return b->no_pin ? fail(why, SW_ENOMEM, "pinning is switched off") : 0;
}

/* Wait for all holds, because the memory may hold words that streams wait for,
 * and the caller is about to unmap it. */
static void fake_unpin(struct sw_back *b, void *p)
{
	(void)p;
	while (atomic_load(&b->n_holds))
		sleep_until(sw_edge_now_ns() + 20000);
}

static int event_open(struct sw_back *b, void **event, char *why)
{
	(void)b;
	*event = calloc(1, sizeof(struct event));
	return *event ? 0 : fail(why, SW_EDEVICE, "out of memory");
}

/* Wait for the event, because even a lost device still does its queued jobs. */
static void event_close(struct sw_back *b, void *event)
{
	const struct event *e = event;

	(void)b;
	while (atomic_load(&e->done) != atomic_load(&e->recorded))
		sleep_until(sw_edge_now_ns() + 20000);
	free(event);
}

static int fake_record(struct sw_back *b, void *event, void *stream, char *why)
{
	struct event *e = event;
	uint64_t number;

	if (b->is_lost)
		return lost(why);
	number = atomic_fetch_add(&e->recorded, 1) + 1;
	if (stream)
		return put(stream,
			&(struct job){
				.kind = RECORD, .event = e, .number = number},
			why);
	atomic_store(&e->done, number);
	return 0;
}

static bool is_over(struct sw_back *b)
{
	uint64_t n = b->n_copies[SW_BACK_OUT] + b->n_copies[SW_BACK_IN];

	if (b->has_fault && n > b->lost_after)
		b->is_lost = true;
	return b->is_lost;
}

static int fake_copy(struct sw_back *b, enum sw_back_way way,
	const struct sw_rows *rows, void *event, char *why)
{
	struct event *e = event;

	b->n_copies[way]++;
	if (is_over(b))
		return lost(why);
	return put(b->ways[way],
		&(struct job){.kind = COPY,
			.rows = *rows,
			.event = e,
			.number = atomic_fetch_add(&e->recorded, 1) + 1},
		why);
}

static int fake_poll(struct sw_back *b, void *event, char *why)
{
	struct event *e = event;

	if (b->is_lost)
		return lost(why);
	return atomic_load(&e->done) == atomic_load(&e->recorded) ? 0
								  : SW_EAGAIN;
}

static int fake_hold(struct sw_back *b, void *stream, _Atomic uint32_t *word,
	uint32_t value, char *why)
{
	struct job j = {.kind = HOLD, .word = word, .value = value};
	int err = b->no_hold || !stream ? fail(why, SW_ENOENT, "switched off")
					: put(stream, &j, why);

	atomic_fetch_add(&b->n_holds, !err); /* the hold may be over */
	return err;
}

/* --- its memory --- */

static int fake_node(const struct sw_back *b)
{
	return b->has_node ? (int)b->node : -1;
}

static int fake_alloc(struct sw_back *b, uint64_t bytes, void **out, char *why)
{
	struct block *block = NULL;

	(void)b;
	if (bytes <= SIZE_MAX - 2 * ALIGN)
		block = aligned_alloc(ALIGN,
			sizeof(*block) + (bytes + ALIGN - 1) / ALIGN * ALIGN);
	if (!block)
		return fail(why, SW_ENOMEM, "out of memory");
	block->bytes = bytes;
	*out = block + 1;
	return 0;
}

/* Free a block. With option check, overwrite it and do not reuse it, so that a
 * call that still uses it fails. */
static void fake_release(struct sw_back *b, void *p)
{
	struct block *block = (struct block *)p - 1;

	if (!b->check) {
		free(block);
		return;
	}
	memset(p, FREED, block->bytes);
	block->next = b->freed;
	while (!atomic_compare_exchange_weak(&b->freed, &block->next, block))
		;
}

static int fake_move(struct sw_back *b, void *to, const void *from,
	uint64_t bytes, char *why)
{
	if (b->is_lost)
		return lost(why);
	memcpy(to, from, bytes);
	return 0;
}

/* Digest the bytes from @from to @to among the 8 bytes at @at, a multiple of 8.
 * The digest is a sum of products with odd keys made from the address, so that
 * even a changed sign bit changes it. */
static uint64_t digest_word(uintptr_t at, uintptr_t from, uintptr_t to)
{
	uint64_t first = from > at ? from - at : 0;
	uint64_t end = to < at + 8 ? to - at : 8, word = 0, key;

	if (end - first == 8)
		memcpy(&word, (const char *)at, 8);
	else
		memcpy((char *)&word + first, (const char *)at + first,
			end - first);
	key = at * UINT64_C(0x9e3779b97f4a7c15);
	key = (key ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9) | 1;
	return (uint32_t)word * key + (word >> 32) * (key << 31 | key >> 33);
}

static bool fake_digest(
	const struct sw_back *b, const void *p, uint64_t bytes, uint64_t *out)
{
	uintptr_t from = (uintptr_t)p, to = from + bytes;

	*out = 0;
	for (uintptr_t at = from / 8 * 8; b->check && at < to; at += 8)
		*out += digest_word(at, from, to);
	return b->check;
}

uint64_t sw_fake_copies(const struct sw_back *b, enum sw_back_way way)
{
	return b->n_copies[way];
}

const struct sw_back_ops sw_back_fake = {
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.enter = fake_enter,
	.pin = fake_pin,
	.unpin = fake_unpin,
	.event_open = event_open,
	.event_close = event_close,
	.record = fake_record,
	.copy = fake_copy,
	.poll = fake_poll,
	.hold = fake_hold,
	.node = fake_node,
	.alloc = fake_alloc,
	.release = fake_release,
	.move = fake_move,
	.digest = fake_digest,
};
