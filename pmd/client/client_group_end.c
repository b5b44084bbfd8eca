/* client_group_end.c - libsumwire: end a group; the library's thread.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A group ends when its members differ, when one member aborts it or has waited
 * too long, or, at this member, when this member closes it.  The agent ends the
 * pieces that it has, and uses none of their buffers afterwards.  The client
 * ends calls with pieces that the agent does not have yet.  It then releases
 * the streams and stages of a closed group.  If the agent takes longer than the
 * close waits, the group stays in the client's list until its last handle is
 * reported, and the library's thread releases them.
 */
#include "pmd/client/client_group_end.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmd/client/client_declare.h"
#include "pmd/client/client_turn.h"
#include "pmd/client/release.h"

enum { THREAD_TURN_S = 3600 };

static const struct sw_tensor *any_stream(const struct sw_group *g)
{
	for (uint32_t k = 0; k < SW_N_COLL_KINDS; k++)
		if (g->channels[k].stream)
			return g->channels[k].stream;
	return NULL;
}

/* @err  0: close it */
static int tell_agent(struct sw_group *g, int err, const char *why)
{
	struct sw_edge_end m = {.kind = SW_EDGE_END,
		.what = err ? SW_EDGE_ABORT : SW_EDGE_CLOSE_GROUP,
		.stream = any_stream(g)->id,
		.err = err};

	snprintf(m.why, sizeof(m.why), "%s", why);
	err = sw_client_ask(g->client, &m, sizeof(m), "end of a group");
	sw_client_rx_completions(g->client);
	return err;
}

/* --- time-outs --- */

static void abort_late(struct sw_client *c, const struct sw_call *k)
{
	char why[SW_EDGE_WHY_BYTES], name[SW_GROUP_SHORT];
	struct sw_group *g = k->group;

	g->is_expired = true;
	snprintf(why, sizeof(why),
		"rank %u timed out in %s %llu of group '%s' "
		"(group timeout %u s)",
		c->rank, sw_coll_name(k->args.kind),
		(unsigned long long)k->number, sw_group_short(g, name),
		g->timeout_s);
	(void)!tell_agent(g, SW_EEXPIRED, why);
}

/* Return whether the agent has completed all pieces, so that only this
 * process's copies are late. */
static bool is_back(const struct sw_client *c, const struct sw_call *k)
{
	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++) {
		const struct sw_call_piece *p = &c->calls.pieces[i];

		if (p->handle && p->call == k && !p->is_back)
			return false;
	}
	return k->next == k->args.count;
}

/* Wait until no thread leads, because the leader may be closing the group; then
 * abort the group if the call is still overdue.  No other thread leads until
 * tell_agent has led. */
static void expire_call(struct sw_client *c, uint64_t handle)
{
	const struct sw_call *k;

	sw_client_lead(c);
	sw_client_follow(c);
	sw_client_rx_completions(c);
	k = sw_client_find_call(c, handle);
	if (k && k->state == SW_TENSOR_OPEN && !is_back(c, k) &&
		!k->group->is_closed)
		abort_late(c, k);
}

static uint64_t expire_calls(struct sw_client *c)
{
	uint64_t now_ns = sw_edge_now_ns(), at_ns = UINT64_MAX;

	if (now_ns < c->calls.expire_ns)
		return c->calls.expire_ns;
	sw_client_rx_completions(c); /* perhaps only their callers are late */
	c->calls.expire_ns = UINT64_MAX; /* calls may begin during tell_agent */
	for (uint32_t i = 0; c->calls.n_open && i < SW_EDGE_COLLS; i++) {
		const struct sw_call *k = &c->calls.calls[i];

		if (k->state != SW_TENSOR_OPEN || !k->deadline_ns ||
			k->group->is_expired)
			continue;
		if (k->deadline_ns <= now_ns)
			expire_call(c, k->handle);
		else if (k->deadline_ns < at_ns)
			at_ns = k->deadline_ns;
	}
	if (at_ns < c->calls.expire_ns)
		c->calls.expire_ns = at_ns;
	return c->calls.expire_ns;
}

int sw_group_set_timeout(struct sw_group *g, uint32_t seconds)
{
	struct sw_client *c = g->client;
	int err = sw_client_enter(c);

	if (err)
		return err;
	if (seconds)
		err = sw_client_start_thread(c);
	if (!err)
		g->timeout_s = seconds;
	sw_client_unlock(c);
	return err;
}

/* --- abort and release --- */

static bool is_open(const struct sw_group *g, const struct sw_call *k)
{
	return k->state == SW_TENSOR_OPEN && k->is_begun && k->group == g;
}

static bool has_open(const struct sw_group *g)
{
	const struct sw_calls *s = &g->client->calls;

	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++)
		if (is_open(g, &s->calls[i]))
			return true;
	return false;
}

/* End calls that have pieces not put yet; copy no result back. */
static void drop_calls(struct sw_group *g, int status)
{
	struct sw_client *c = g->client;

	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++)
		if (is_open(g, &c->calls.calls[i]))
			sw_client_drop_call(c, &c->calls.calls[i], status);
}

/* End all calls, and wait until the agent has completed its pieces. */
static int end_calls(struct sw_group *g, int status)
{
	struct sw_client *c = g->client;
	uint64_t until_ns = sw_edge_now_ns() +
			    c->settings.wait_timeout_s * UINT64_C(1000000000);

	drop_calls(g, status);
	while (has_open(g) && !c->closed) {
		if (sw_edge_now_ns() >= until_ns)
			return sw_client_fail(c, SW_ETIMEDOUT,
				"group '%s': the agent still uses its buffers "
				"after %u s",
				g->name, c->settings.wait_timeout_s);
		sw_client_turn(c, until_ns);
		sw_client_rx_completions(c);
	}
	return sw_client_check(c);
}

/* Abort the group.  The other members learn of the abort through a stream, so
 * open a stream if the group has none. */
static int abort_group(struct sw_group *g, int reason, const char *text)
{
	struct sw_client *c = g->client;
	struct sw_edge_why why = {.conflict = SW_CONFLICT_NONE};
	char name[SW_GROUP_SHORT];
	int err = 0;

	snprintf(why.text, sizeof(why.text),
		"rank %u aborted group '%s': %.80s", c->rank,
		sw_group_short(g, name), text);
	if (!g->death && !any_stream(g))
		err = sw_group_open_stream(g, SW_BARRIER);
	if (!g->death && !err)
		err = tell_agent(g, reason, why.text);
	if (err && !g->death)
		return err;
	sw_group_die(g, reason, &why);
	return end_calls(g, g->death);
}

/* Wait until no thread leads, because the leader may be closing the group.  A
 * close also ends the open calls. */
int sw_client_abort(struct sw_group *g, int reason, const char *text)
{
	struct sw_client *c = g->client;
	int err;

	g->n_calls++; /* keeps the group until sw_group_put */
	if (!g->death) {
		sw_client_lead(c);
		sw_client_follow(c);
	}
	err = g->is_closed ? end_calls(g, SW_ECLOSED)
			   : abort_group(g, reason, text);
	sw_group_put(g);
	return err;
}

int sw_group_abort(struct sw_group *g, int reason, const char *text)
{
	struct sw_client *c = g->client;
	int err = sw_client_enter(c);

	if (err)
		return err;
	if (reason == SW_EABORTED || reason == SW_EEXPIRED)
		err = sw_client_abort(g, reason, text ? text : "");
	else
		err = sw_client_fail(c, SW_EINVAL,
			"a group is aborted with SW_EABORTED or SW_EEXPIRED, "
			"not %d",
			reason);
	sw_client_unlock(c);
	return err;
}

void sw_group_release(struct sw_group *g)
{
	struct sw_client *c = g->client;

	if (!sw_client_lock(c))
		return;
	g->is_released = true;
	drop_calls(g, SW_EABORTED);
	c->calls.n_releasing++;
	while (c->calls.copying == g)
		sw_client_wait_changed(
			c, sw_edge_now_ns() + UINT64_C(1000000000));
	c->calls.n_releasing--;
	sw_client_unlock(c);
}

/* --- free and release --- */

static void unlink_channel(struct sw_client *c, const struct sw_channel *ch)
{
	struct sw_channel **at = &c->calls.channels;

	while (*at && *at != ch)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = ch->next;
	c->calls.turn = c->calls.channels;
}

static void free_group(struct sw_group *g)
{
	struct sw_group **at = &g->client->groups;

	for (uint32_t k = 0; k < SW_N_COLL_KINDS; k++)
		unlink_channel(g->client, &g->channels[k]);
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	free(g);
}

/* Release stages and stream.  A stream that the agent does not release stays
 * until sw_close. */
static int give_channel(struct sw_client *c, struct sw_channel *ch)
{
	int err;

	unlink_channel(c, ch);
	sw_stage_close(c, ch);
	if (!ch->stream)
		return 0;
	err = sw_client_give(c, ch->stream);
	if (!err)
		ch->stream = NULL;
	return err;
}

/* Tell the agent of the close, unless it knows, and release all streams and
 * stages of the group.  Continue after a failed release; return the first
 * error. */
static int give_back(struct sw_group *g)
{
	struct sw_client *c = g->client;
	int err = 0, failed;

	g->is_given = true; /* there is no third try */
	if (!g->is_close_sent && any_stream(g))
		err = tell_agent(g, 0, "");
	if (err)
		return err;
	g->is_close_sent = true;
	for (uint32_t k = 0; k < SW_N_COLL_KINDS; k++) {
		failed = give_channel(c, &g->channels[k]);
		err = err ? err : failed;
	}
	failed = sw_stage_trim(g->client);
	return err ? err : failed;
}

/* Once the last handle is reported, the agent uses no memory of a closed group.
 */
void sw_group_put(struct sw_group *g)
{
	struct sw_client *c = g->client;

	if (--g->n_calls || !g->is_closed)
		return;
	if (g->is_given || c->closed || !any_stream(g)) {
		free_group(g);
		return;
	}
	g->is_due = c->has_due = true;
	(void)sw_client_start_thread(c); /* else the next close does it */
	sw_client_call_thread(c);
}

static struct sw_group *find_due(const struct sw_client *c)
{
	struct sw_group *g = c->groups;

	while (g && !g->is_due)
		g = g->next;
	return g;
}

static void give_due(struct sw_client *c)
{
	struct sw_group *g;

	c->has_due = false;
	while (!c->closed && (g = find_due(c))) {
		g->is_due = false;
		g->n_calls++; /* keeps the group until sw_group_put */
		if (give_back(g) && !c->closed)
			sw_client_log(&c->settings, "%s", sw_last_error(c));
		sw_group_put(g);
	}
}

/* --- close --- */

/* Close the group.  The other members learn of the close through a stream, so
 * open a stream if the group has none.  If that fails, they wait. */
static int close_group(struct sw_group *g)
{
	int err = 0;

	if (!any_stream(g) && !g->death && g->n > 1)
		(void)sw_group_open_stream(g, SW_BARRIER);
	g->is_closed = true;
	if (any_stream(g))
		err = tell_agent(g, 0, "");
	g->is_close_sent = !err;
	if (!err)
		err = end_calls(g, SW_ECLOSED);
	return err ? err : give_back(g);
}

/* Close the group even after an error: it is freed after its last handle.  Each
 * rank counts the close once. */
int sw_group_close(struct sw_group *g)
{
	struct sw_client *c = g->client;
	int err;

	if (!sw_client_lock(c))
		return SW_ECLOSED;
	err = sw_client_check(c);
	g->n_calls++; /* other threads may report its calls meanwhile */
	if (g->is_closed) {
		err = sw_client_fail(
			c, SW_EINVAL, "group '%s' was closed before", g->name);
	} else {
		g->past->n_closed++;
		if (!err)
			err = close_group(g);
		g->is_closed = true;
	}
	sw_group_put(g);
	if (c->has_due)
		give_due(c);
	sw_client_unlock(c);
	return err;
}

void sw_client_free_groups(struct sw_client *c)
{
	while (c->groups)
		free_group(c->groups);
	while (c->pasts) {
		struct sw_group_past *p = c->pasts;

		c->pasts = p->next;
		free(p);
	}
	while (c->spares) {
		struct sw_stage_spare *s = c->spares;

		c->spares = s->next;
		free(s);
	}
}

/* --- the library's own thread --- */

static void *client_thread(void *arg)
{
	struct sw_client *c = arg;

	pthread_mutex_lock(&c->turn.lock);
	while (!c->turn.is_ending) {
		uint64_t until_ns =
			sw_edge_now_ns() + THREAD_TURN_S * UINT64_C(1000000000);
		uint64_t expire_ns;

		if (c->has_due)
			give_due(c);
		expire_ns = expire_calls(c);
		if (expire_ns < until_ns)
			until_ns = expire_ns;
		c->turn.until_ns = until_ns;
		if (sw_client_has_work(c))
			sw_client_turn(c, until_ns);
		else if (!c->turn.is_ending && !c->has_due)
			/* neither was due after asking the agent */
			sw_client_wait_work(c, until_ns);
	}
	pthread_mutex_unlock(&c->turn.lock);
	return NULL;
}

/* Block all signals: the program's own threads handle them. */
int sw_client_start_thread(struct sw_client *c)
{
	sigset_t all, old;
	int err;

	if (c->turn.has_thread)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&c->turn.thread, NULL, client_thread, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return sw_client_fail(c, SW_ENOMEM,
			"cannot start the library's thread: %s", strerror(err));
	c->turn.has_thread = true;
	return 0;
}

void sw_client_end_thread(struct sw_client *c)
{
	pthread_mutex_lock(&c->turn.lock);
	c->turn.is_ending = true;
	sw_client_call_thread(c);
	pthread_mutex_unlock(&c->turn.lock);
	if (c->turn.has_thread)
		pthread_join(c->turn.thread, NULL);
	c->turn.has_thread = false;
}
