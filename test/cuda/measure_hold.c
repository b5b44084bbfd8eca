/* measure_hold.c - a stream of the program that is held by a word.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The pipeline's thread writes the word.  It must not make a call of the
 * runtime that waits for the stream: neither would go on.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"
#include "pmd/client/edge.h"
#include "pmd/cuda/fake.h"
#include "test/cuda/measure.h"

enum {
	HALF = 1 << 20,
	ROUNDS = 200,
	SETTLE_NS = 50000,
	PATIENCE_NS = 300000000, /* for a call while the stream is held */
	CALL_BYTES = 32 << 20,
	LONG_NS = 2000000000, /* after which a released call hangs */
};

struct held {
	struct measure_ground g;
	struct sw_fake_stream *fake; /* NULL: the device's default stream */
	_Atomic uint32_t *word;
	void *event; /* behind the wait for the word */
	uint32_t value;
};

static void nap(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Returns false, and says why, if this device cannot hold a stream. */
static bool hold(struct held *h)
{
	char why[SW_BACK_WHY];
	int err = h->g.ops->hold(h->g.back, h->fake, h->word, ++h->value, why);

	if (err) {
		printf("no stream can be held: %s\n", why);
		return false;
	}
	err = h->g.ops->record(h->g.back, h->event, h->fake, why);
	measure_must(!err, "%s", why);
	return true;
}

static double release(struct held *h)
{
	uint64_t from_ns = sw_edge_now_ns();
	char why[SW_BACK_WHY];
	int err;

	atomic_store(h->word, h->value);
	while ((err = h->g.ops->poll(h->g.back, h->event, why)) == SW_EAGAIN)
		if (sw_edge_now_ns() - from_ns > LONG_NS)
			break;
	measure_must(!err, "a stream stays held after its word was written: %s",
		err == SW_EAGAIN ? "2 s are over" : why);
	return 1e-9 * (double)(sw_edge_now_ns() - from_ns);
}

static bool time_word(struct held *h)
{
	double times[ROUNDS];
	struct sw_quartiles q;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (!hold(h))
			return false;
		nap(SETTLE_NS);
		times[i] = release(h);
	}
	q = sw_quartiles_of(times, ROUNDS);
	printf("{\"word_us\": [%.2f, %.2f, %.2f]}\n", 1e6 * q.low,
		1e6 * q.middle, 1e6 * q.high);
	return true;
}

/* --- calls of another thread meanwhile --- */

enum call { REGISTER, UNREGISTER, MALLOC, FREE, CALLS };

static const char *const names[CALLS] = {
	"cudaHostRegister", "cudaHostUnregister", "cudaMalloc", "cudaFree"};

struct other {
	pthread_t thread;
	struct held *h;
	struct sw_segment memory;
	void *device;
	enum call call;
	_Atomic bool has_ended;
};

static void *make_call(void *arg)
{
	struct other *o = arg;
	const struct sw_back_ops *ops = o->h->g.ops;
	struct sw_back *back = o->h->g.back;
	char why[SW_BACK_WHY];
	int err = ops->enter(back, why);

	if (!err && o->call == REGISTER)
		err = ops->pin(back, o->memory.base, CALL_BYTES, false, why);
	else if (!err && o->call == UNREGISTER)
		ops->unpin(back, o->memory.base);
	else if (!err && o->call == MALLOC)
		err = ops->alloc(back, CALL_BYTES, &o->device, why);
	else if (!err)
		ops->release(back, o->device);
	measure_must(!err, "%s: %s", names[o->call], why);
	atomic_store(&o->has_ended, true);
	return NULL;
}

static double await_end(const struct other *o, uint64_t limit_ns)
{
	uint64_t from_ns = sw_edge_now_ns(), now_ns = from_ns;

	while (!atomic_load(&o->has_ended) && now_ns - from_ns < limit_ns) {
		nap(20000);
		now_ns = sw_edge_now_ns();
	}
	return 1e-6 * (double)(now_ns - from_ns);
}

static void try_call(struct held *h, struct other *o, enum call call)
{
	bool is_free;
	double ms;

	o->call = call;
	atomic_store(&o->has_ended, false);
	measure_must(hold(h), "the second time");
	measure_must(
		!pthread_create(&o->thread, NULL, make_call, o), "no thread");
	ms = await_end(o, PATIENCE_NS);
	is_free = atomic_load(&o->has_ended);
	(void)release(h);
	(void)await_end(o, LONG_NS);
	measure_must(atomic_load(&o->has_ended),
		"%s hangs, although the stream was released", names[call]);
	pthread_join(o->thread, NULL);
	printf("{\"while_held\": \"%s\", \"waits_for_stream\": %s, "
	       "\"ms\": %.2f}\n",
		names[call], is_free ? "false" : "true", ms);
	fflush(stdout);
}

void measure_hold(const char *backend)
{
	struct held h = {.value = 0};
	struct other o = {.h = &h};
	char why[SW_BACK_WHY];

	measure_open(&h.g, backend, HALF);
	h.word = h.g.pinned.base;
	atomic_store(h.word, 0);
	if (!strncmp(backend, "fake", 4))
		h.fake = sw_fake_stream_open(h.g.back);
	measure_must(!h.g.ops->event_open(h.g.back, &h.event, why), "%s", why);
	measure_must(!sw_segment_create(&o.memory, "call", CALL_BYTES) &&
			     !sw_segment_reserve(&o.memory, 0, CALL_BYTES),
		"no memory");
	if (time_word(&h))
		for (uint32_t i = 0; i < CALLS; i++)
			try_call(&h, &o, (enum call)i);
	h.g.ops->event_close(h.g.back, h.event);
	if (h.fake)
		sw_fake_stream_close(h.fake);
	sw_segment_fini(&o.memory);
	measure_close(&h.g);
}
