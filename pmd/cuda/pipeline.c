/* pipeline.c - the callers' side of the pipeline: begin, end, submit, wait.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/pipeline.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"
#include "pmd/cuda/run.h"

enum {
	WORDS_BYTES = (SW_PIPELINE_TENSORS + SW_PIPELINE_OTHERS) *
		      sizeof(uint32_t), /* whole pages */
	FAR = 1 << 30, /* more calls than any stream waits for */
};

static int fail(char *why, size_t room, int err, const char *text)
{
	snprintf(why, room, "%s", text);
	return err;
}

/* Make the words and pin them; without pinned words no stream can wait
 * (sw_pipeline_hold). They lie in shared memory, so they stay where the device
 * reads them when the program forks, as DataLoaders do. Our next write would
 * copy private pages to another place. */
static int open_words(struct sw_pipeline *l)
{
	char why[SW_BACK_WHY];

	if (sw_segment_create(&l->shared, "sumwire-words", WORDS_BYTES) ||
		sw_segment_reserve(&l->shared, 0, WORDS_BYTES))
		return SW_ENOMEM;
	sw_segment_unhand(&l->shared);
	l->words = l->shared.base;
	l->has_pinned = !l->p.ops->pin(
		l->p.back, (void *)l->words, WORDS_BYTES, false, why);
	return 0;
}

/* Start the thread with all signals blocked, because they belong to the
 * program's threads. */
static int start_thread(struct sw_pipeline *l)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&l->thread, NULL, sw_pipeline_run, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	l->has_thread = !err;
	return err ? SW_ENOMEM : 0;
}

static void init_lock(struct sw_pipeline *l)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &attr);
	pthread_condattr_destroy(&attr);
}

int sw_pipeline_open(
	struct sw_pipeline *l, const struct sw_pipeline_params *p, char *why)
{
	int err;

	*l = (struct sw_pipeline){.p = *p};
	init_lock(l);
	snprintf(why, SW_BACK_WHY, "out of memory");
	l->open = calloc(SW_PIPELINE_TENSORS, sizeof(l->open[0]));
	l->tensors = calloc(SW_PIPELINE_TENSORS, sizeof(l->tensors[0]));
	err = l->open && l->tensors ? open_words(l) : SW_ENOMEM;
	for (uint32_t i = 0; i < SW_BACK_WAYS && !err; i++)
		err = sw_pipeline_lane_open(l, i, why);
	return err ? err : start_thread(l);
}

static void end_thread(struct sw_pipeline *l)
{
	if (!l->has_thread)
		return;
	pthread_mutex_lock(&l->lock);
	l->is_ending = true;
	atomic_store(&l->has_mail, true);
	pthread_mutex_unlock(&l->lock);
	l->p.net.wake(l->p.net.ctx);
	pthread_join(l->thread, NULL);
}

/* Advance all words past any value that a stream waits for. All copies have
 * ended, but some calls may still be open. */
static void let_streams_go(struct sw_pipeline *l)
{
	uint32_t n = atomic_load(&l->n_words);

	for (uint32_t i = 0; i < n; i++)
		atomic_fetch_add(&l->words[i], FAR);
}

void sw_pipeline_close(struct sw_pipeline *l)
{
	end_thread(l);
	let_streams_go(l);
	for (uint32_t i = 0; i < SW_BACK_WAYS; i++)
		sw_pipeline_lane_close(l, i);
	for (uint32_t i = 0; i < l->n_tensors; i++) {
		l->p.ops->event_close(l->p.back, l->tensors[i]->start.event);
		free(l->tensors[i]->digests);
	}
	if (l->has_pinned)
		l->p.ops->unpin(l->p.back, (void *)l->words);
	sw_segment_fini(&l->shared);
	free(l->open);
	free(l->tensors);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
}

_Atomic uint32_t *sw_pipeline_word(struct sw_pipeline *l)
{
	return &l->words[atomic_fetch_add(&l->n_words, 1)];
}

/* Give a tensor its digests and its event. */
static int equip(struct sw_pipeline *l, struct sw_pipeline_tensor *t, char *why)
{
	uint64_t granule = l->p.net.granule;

	t->n_granules = (uint32_t)((t->bytes + granule - 1) / granule);
	t->digests = calloc(t->n_granules, sizeof(t->digests[0]));
	if (!t->digests)
		return fail(why, SW_BACK_WHY, SW_ENOMEM, "out of memory");
	return l->p.ops->event_open(l->p.back, &t->start.event, why);
}

/* Enter a tensor. Called with the lock. */
static int add(struct sw_pipeline *l, struct sw_pipeline_tensor *t, char *why)
{
	if (l->n_tensors == SW_PIPELINE_TENSORS)
		return fail(why, SW_BACK_WHY, SW_EINVAL,
			"a device may have 4,096 tensors");
	t->start.fn = sw_pipeline_start;
	t->word = sw_pipeline_word(l);
	l->tensors[l->n_tensors++] = t;
	return 0;
}

int sw_pipeline_add(
	struct sw_pipeline *l, struct sw_pipeline_tensor *t, char *why)
{
	int err = equip(l, t, why);

	if (!err) {
		pthread_mutex_lock(&l->lock);
		err = add(l, t, why);
		pthread_mutex_unlock(&l->lock);
		if (err)
			l->p.ops->event_close(l->p.back, t->start.event);
	}
	if (err)
		free(t->digests);
	return err;
}

/* Return the error that has ended the pipeline, or 0. Called with the lock, as
 * is check(). */
static int has_failed(const struct sw_pipeline *l, char *why)
{
	return l->failed ? fail(why, SW_PIPELINE_WHY, l->failed, l->why) : 0;
}

/* Return why @t cannot be submitted, or 0. */
static int check(
	const struct sw_pipeline *l, struct sw_pipeline_tensor *t, char *why)
{
	if (l->failed)
		return has_failed(l, why);
	if (t->is_open) {
		snprintf(why, SW_PIPELINE_WHY,
			"tensor '%s': wait for its last call first", t->name);
		return SW_EBUSY;
	}
	if (t->status && !t->is_known) {
		t->is_known = true;
		return fail(why, SW_PIPELINE_WHY, t->status, t->why);
	}
	return 0;
}

/* Pass a failure of the device to the thread, which ends all calls. Returns
 * @err. */
static int note_lost(struct sw_pipeline *l, int err, const char *why)
{
	if (err != SW_EDEVICE)
		return err;
	pthread_mutex_lock(&l->lock);
	l->is_lost = true;
	memcpy(l->lost_why, why, SW_BACK_WHY);
	atomic_store(&l->has_mail, true);
	pthread_mutex_unlock(&l->lock);
	return err;
}

static int record(struct sw_pipeline *l, void *event, void *stream,
	const char *what, char *why)
{
	char text[SW_BACK_WHY];
	int err = l->p.ops->record(l->p.back, event, stream, text);

	if (err)
		snprintf(why, SW_PIPELINE_WHY, "%s: %s: %s", l->p.where, what,
			text);
	return note_lost(l, err, text);
}

static void post(struct sw_pipeline *l, struct sw_pipeline_start *s)
{
	struct sw_pipeline_start **end = &l->mail;

	while (*end)
		end = &(*end)->next;
	*end = s;
	s->next = NULL;
	s->number = ++l->n_calls;
	atomic_store(&l->has_mail, true);
}

int sw_pipeline_event(struct sw_pipeline *l, void **event, char *why)
{
	char text[SW_BACK_WHY];
	int err = l->p.ops->event_open(l->p.back, event, text);

	if (err)
		snprintf(why, SW_PIPELINE_WHY, "%s: %s", l->p.where, text);
	return note_lost(l, err, text);
}

int sw_pipeline_record(struct sw_pipeline *l, void *event, void *stream,
	const char *what, char *why)
{
	int err;

	pthread_mutex_lock(&l->lock);
	err = has_failed(l, why);
	pthread_mutex_unlock(&l->lock);
	return err ? err : record(l, event, stream, what, why);
}

void sw_pipeline_post(struct sw_pipeline *l, struct sw_pipeline_start *s)
{
	pthread_mutex_lock(&l->lock);
	post(l, s);
	pthread_mutex_unlock(&l->lock);
}

void sw_pipeline_copy(struct sw_pipeline *l, struct sw_pipeline_copy *c)
{
	pthread_mutex_lock(&l->lock);
	c->next = l->copies; /* queues order them */
	l->copies = c;
	atomic_store(&l->has_mail, true);
	pthread_mutex_unlock(&l->lock);
}

int sw_pipeline_submit(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	const struct sw_pipeline_call *call, void *stream, char *why)
{
	char what[SW_PIPELINE_NAME + 16];
	int err;

	pthread_mutex_lock(&l->lock);
	err = check(l, t, why);
	pthread_mutex_unlock(&l->lock);
	snprintf(what, sizeof(what), "tensor '%s'", t->name);
	if (!err)
		err = record(l, t->start.event, stream, what, why);
	pthread_mutex_lock(&l->lock);
	if (!err) /* it may have failed meanwhile */
		err = has_failed(l, why);
	if (!err) {
		t->call = *call;
		t->n_calls++;
		t->status = 0;
		t->is_open = true;
		post(l, &t->start);
	}
	pthread_mutex_unlock(&l->lock);
	l->p.net.wake(l->p.net.ctx);
	return err;
}

/* Wait until the call of @t has ended, or @until_ns. Called with the lock. */
static int await(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	uint64_t until_ns, char *why)
{
	struct timespec at = {.tv_sec = (time_t)(until_ns / 1000000000),
		.tv_nsec = (long)(until_ns % 1000000000)};

	while (t->is_open)
		if (!until_ns ||
			pthread_cond_timedwait(&l->changed, &l->lock, &at))
			break;
	if (t->is_open) {
		snprintf(why, SW_PIPELINE_WHY,
			"tensor '%s' has not ended yet; it stays open",
			t->name);
		return SW_EAGAIN;
	}
	t->is_known = true;
	return t->status ? fail(why, SW_PIPELINE_WHY, t->status, t->why) : 0;
}

int sw_pipeline_wait(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	uint64_t until_ns, char *why)
{
	int err;

	pthread_mutex_lock(&l->lock);
	err = await(l, t, until_ns, why);
	pthread_mutex_unlock(&l->lock);
	return err;
}

static void warn(struct sw_pipeline *l, const char *why)
{
	char line[SW_PIPELINE_WHY];

	if (atomic_exchange(&l->has_warned, true))
		return;
	snprintf(line, sizeof(line),
		"%s: streams cannot wait for a sum (%s), so calling threads "
		"wait",
		l->p.where, why);
	l->p.log(l->p.log_ctx, line);
}

int sw_pipeline_hold_word(struct sw_pipeline *l, _Atomic uint32_t *word,
	uint32_t value, void *stream, const char *what, char *why)
{
	char text[SW_BACK_WHY] = "the memory of its words is not pinned";
	int err = l->has_pinned
			  ? l->p.ops->hold(l->p.back, stream, word, value, text)
			  : SW_ENOENT;

	if (err == SW_ENOENT)
		warn(l, text);
	if (err)
		snprintf(why, SW_PIPELINE_WHY, "%s: %s: %s", l->p.where, what,
			text);
	return err;
}

int sw_pipeline_can_hold(struct sw_pipeline *l, void *stream, char *why)
{
	return sw_pipeline_hold_word(l, l->words, atomic_load(l->words), stream,
		"sw_device_can_hold", why);
}

int sw_pipeline_hold(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	void *stream, uint64_t until_ns, char *why)
{
	char what[SW_PIPELINE_NAME + 16];
	uint32_t n_calls;
	bool is_open;
	int err = SW_ENOENT;

	pthread_mutex_lock(&l->lock);
	is_open = t->is_open;
	n_calls = t->n_calls;
	pthread_mutex_unlock(&l->lock);
	snprintf(what, sizeof(what), "tensor '%s'", t->name);
	if (is_open)
		err = sw_pipeline_hold_word(
			l, t->word, n_calls, stream, what, why);
	return err == SW_ENOENT ? sw_pipeline_wait(l, t, until_ns, why) : err;
}
