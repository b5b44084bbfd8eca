/* train_crew.c - start the processes of the training and watch them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/examples/train.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "apps/launch/crew.h"
#include "engine/base/error.h"

/* Time for the other processes to report, after one has failed. */
#define GRACE_NS UINT64_C(3000000000)

/* The library must time out first: it knows which rank it waited for. */
#define SILENCE_EXTRA_NS UINT64_C(2000000000)

enum { POLL_MS = 1000 };

_Static_assert((int)SW_ARG_LIST_MAX <= SW_CREW_MAX, "room for all ranks");

struct watch {
	struct sw_train_crew *crew;
	uint32_t size;
	struct sw_crew processes;
	struct sw_proc *procs;
	int err;            /* the first error */
	uint32_t n_epochs;  /* epochs that all have reported */
	uint64_t silent_ns; /* deadline for the next message */
};

int sw_train_crew_init(
	struct sw_train_crew *crew, const struct sw_train *t, uint32_t n)
{
	*crew = (struct sw_train_crew){.train = t, .n = n};
	crew->children = calloc(n, sizeof(*crew->children));
	if (!crew->children)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct sw_train_child *c = &crew->children[i];

		c->epochs = calloc(t->n_epochs, sizeof(*c->epochs));
		if (!c->epochs) {
			sw_train_crew_fini(crew);
			return SW_ENOMEM;
		}
	}
	return 0;
}

void sw_train_crew_fini(struct sw_train_crew *crew)
{
	for (uint32_t i = 0; i < crew->n; i++)
		free(crew->children[i].epochs);
	free(crew->children);
	*crew = (struct sw_train_crew){0};
}

/* Print the process, such as "rank 1 (agent /run/a1.sock)", and @text to
 * stderr. */
static void say(const struct sw_train_child *c, const char *text)
{
	if (!c->agent)
		fprintf(stderr, "example_train: the reference process");
	else if (c->is_joined)
		fprintf(stderr, "example_train: rank %u (agent %s)", c->rank,
			c->agent);
	else
		fprintf(stderr, "example_train: rank of agent %s", c->agent);
	fprintf(stderr, "%s\n", text);
}

/* End the crew after an error: the other processes have @grace_ns. */
static void begin_end(struct watch *w, int err, uint64_t grace_ns)
{
	if (sw_crew_end(&w->processes, grace_ns))
		w->err = err;
}

static void name_failure(
	struct watch *w, struct sw_train_child *c, const char *text)
{
	if (c->is_named)
		return;
	c->is_named = true;
	say(c, text);
	begin_end(w, SW_EPEER, GRACE_NS);
}

static void tell_all(struct watch *w)
{
	struct sw_train_crew *crew = w->crew;

	for (;;) {
		for (uint32_t i = 0; i < crew->n; i++)
			if (crew->children[i].n_epochs <= w->n_epochs)
				return;
		int err = crew->on_epoch(crew->ctx, w->n_epochs++);

		if (err)
			begin_end(w, err, 0);
	}
}

static uint64_t next_silence(const struct watch *w)
{
	return sw_now_ns() + w->crew->train->timeout_ns + SILENCE_EXTRA_NS;
}

static void on_message(
	struct watch *w, struct sw_train_child *c, const struct sw_train_msg *m)
{
	char text[SW_TRAIN_TEXT_BYTES + 2];

	w->silent_ns = next_silence(w);
	switch (m->kind) {
	case SW_TRAIN_JOINED:
		c->is_joined = true;
		c->rank = m->joined.rank;
		c->size = m->joined.size;
		break;
	case SW_TRAIN_EPOCH:
		if (c->n_epochs < w->crew->train->n_epochs)
			c->epochs[c->n_epochs++] = m->epoch;
		tell_all(w);
		break;
	case SW_TRAIN_DONE:
		c->is_done = true;
		c->traffic = m->traffic;
		break;
	case SW_TRAIN_FAILED:
		snprintf(text, sizeof(text), ": %.*s", SW_TRAIN_TEXT_BYTES - 1,
			m->text);
		name_failure(w, c, text);
		break;
	}
}

/* Read every message in the child's pipe. */
static void listen_to(struct watch *w, uint32_t i)
{
	struct sw_proc *p = &w->procs[i];
	struct sw_train_msg m;
	ssize_t n;

	while (p->pipe >= 0) {
		n = read(p->pipe, &m, sizeof(m));
		if (n == (ssize_t)sizeof(m)) {
			on_message(w, &w->crew->children[i], &m);
		} else if (n < 0 && errno == EINTR) {
			continue;
		} else if (n < 0 && errno == EAGAIN) {
			return;
		} else {
			close(p->pipe);
			p->pipe = -1;
		}
	}
}

static void on_end(void *ctx, uint32_t i)
{
	struct watch *w = ctx;
	struct sw_train_child *c = &w->crew->children[i];
	struct sw_proc *p = &w->procs[i];
	char text[sizeof(p->how) + 1];

	listen_to(w, i);
	if (p->pipe >= 0)
		close(p->pipe);
	p->pipe = -1;
	if (p->is_stopping || (!p->code && c->is_done))
		return;
	snprintf(text, sizeof(text), " %s", p->how);
	name_failure(w, c, text);
}

static void on_signal(void *ctx, int number)
{
	struct watch *w = ctx;

	if (w->err != SW_EAGAIN)
		fprintf(stderr, "example_train: %s: ending all\n",
			strsignal(number));
	sw_crew_tell(&w->processes, false);
	begin_end(w, SW_EAGAIN, 0);
}

static void name_silent(const struct watch *w)
{
	char text[80];

	for (uint32_t i = 0; i < w->crew->n; i++) {
		const struct sw_train_child *c = &w->crew->children[i];

		if (!w->procs[i].pid || c->n_epochs > w->n_epochs)
			continue;
		snprintf(text, sizeof(text),
			": no message for more than %.0f s, %u epochs done",
			(double)w->crew->train->timeout_ns / 1e9, c->n_epochs);
		say(c, text);
	}
}

static void end_silence(struct watch *w)
{
	if (w->err || sw_now_ns() < w->silent_ns)
		return;
	name_silent(w);
	begin_end(w, SW_ETIMEDOUT, 0);
}

static void wait_for_all(struct watch *w)
{
	while (sw_crew_running(&w->processes, false)) {
		if (sw_crew_turn(&w->processes, POLL_MS))
			begin_end(w, SW_EIO, 0);
		for (uint32_t i = 0; i < w->processes.n; i++)
			listen_to(w, i);
		end_silence(w);
		sw_crew_press(&w->processes);
	}
}

/* Become a rank.  Called in the child. */
static int be(void *ctx, uint32_t i, int pipe)
{
	const struct watch *w = ctx;

	sw_train_rank(
		w->crew->train, w->crew->children[i].agent, w->size, pipe);
}

static int start_all(struct watch *w)
{
	int err = 0;

	for (uint32_t i = 0; i < w->crew->n && !err; i++) {
		struct sw_proc *p = &w->procs[i];

		*p = (struct sw_proc){.is_fork = true, .has_pipe = true};
		snprintf(p->name, sizeof(p->name), "process %u", i);
		err = sw_crew_start(&w->processes);
	}
	return err;
}

int sw_train_crew_run(struct sw_train_crew *crew, uint32_t size)
{
	struct sw_proc procs[SW_CREW_MAX];
	struct watch w = {.crew = crew, .size = size, .procs = procs};
	int err;

	w.processes = (struct sw_crew){.who = "train",
		.procs = procs,
		.be = be,
		.ended = on_end,
		.signalled = on_signal,
		.ctx = &w};
	w.silent_ns = next_silence(&w);
	err = sw_crew_open(&w.processes);
	if (!err)
		err = start_all(&w);
	if (err)
		begin_end(&w, err, 0);
	wait_for_all(&w);
	sw_crew_close(&w.processes);
	return w.err;
}
