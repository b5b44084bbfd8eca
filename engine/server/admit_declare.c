/* admit_declare.c - admit tensors and streams to a server.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A DECLARE is a batch.  The server checks the form of the whole batch before
 * it takes anything.  If another member declared a tensor differently, the
 * batch ends there: the server refuses this tensor and admits the tensors
 * before it; the worker declares the tensors after it again.
 *
 * A session has one batch at a time.  The server puts the batch aside while its
 * memory is being prepared, while an older stream still has an index that it
 * needs, or when the burst has looked at enough tensors.  Meanwhile the control
 * stream continues: it may bring the CLOSE that the batch waits for. */
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/server/admit.h"
#include "engine/server/groups.h"
#include "engine/server/job.h"
#include "engine/server/session.h"
#include "engine/server/share.h"

/* One item of a DECLARE, copied and checked by itself. */
struct declaration {
	/* In a stream's item for the coordinator, a worker sends ranks_crc in
	 * place of item.first.  The server saves it here, and item.first then
	 * becomes the key of the group. */
	struct sw_declare_item item;
	uint32_t ranks_crc;
	char name[SW_NAME_MAX];
};

static bool is_tensor(
	const struct sw_declare_item *item, const struct sw_sum *sum)
{
	uint32_t elem = sw_dtype_bytes(item->dtype);

	return elem && sum->ops[item->dtype].put && item->n_elems > 0 &&
	       item->n_elems <= (64ULL << 30) / elem;
}

static bool is_stream(const struct sw_declare_item *item)
{
	return item->mode == SW_MODE_STREAM &&
	       item->stream.window_log2 >= SW_WINDOW_MIN_LOG2 &&
	       item->stream.window_log2 <= SW_WINDOW_MAX_LOG2 &&
	       item->stream.members;
}

/* Cut the next item out of the @n bytes at *p; false: malformed. */
static bool next_item(const uint8_t **p, size_t *n, const struct sw_sum *sum,
	struct declaration *d)
{
	if (*n < sizeof(d->item))
		return false;
	memcpy(&d->item, *p, sizeof(d->item));
	d->ranks_crc = d->item.stream.ranks_crc;
	*p += sizeof(d->item);
	*n -= sizeof(d->item);
	if (d->item.name_len == 0 || d->item.name_len >= SW_NAME_MAX ||
		d->item.name_len > *n)
		return false;
	memset(d->name, 0, sizeof(d->name));
	memcpy(d->name, *p, d->item.name_len);
	*p += d->item.name_len;
	*n -= d->item.name_len;
	return sw_text_is_good(d->name, sizeof(d->name)) &&
	       strlen(d->name) == d->item.name_len &&
	       (d->item.mode <= SW_MODE_ASYNC ? is_tensor(&d->item, sum)
					      : is_stream(&d->item));
}

/* Do @n items fill the @len bytes at @p, and is each well formed? */
static bool is_formed(
	const uint8_t *p, size_t len, uint32_t n, const struct sw_sum *sum)
{
	struct declaration d;

	while (n && next_item(&p, &len, sum, &d))
		n--;
	return !n && !len;
}

static uint8_t manner_of(uint8_t mode)
{
	return mode == SW_MODE_ASYNC ? SW_DECLARED_ASYNC : SW_DECLARED_SYNC;
}

/* Return whether the stream has the group's members, in the same order of
 * ranks.  Only the coordinator knows the ranks. */
static bool fits_group(const struct sw_job *job, const struct declaration *d,
	const struct sw_sgroup *g)
{
	return g->members == d->item.stream.members &&
	       (!job->is_coordinated || g->ranks_crc == d->ranks_crc);
}

/* Check that the member declares tensor @t as another member did; if not, end
 * the tensor's group.  Returns false if the group has ended. */
static bool check_known(struct sw_session *s, const struct declaration *d,
	const struct sw_stensor *t)
{
	uint32_t priority = sw_priority_of(d->item.priority, t->key);
	const struct sw_shard *sh = &s->job->shard;
	/* The coordinator has chosen the key, and the place or the group. */
	bool has_place = s->job->is_coordinated ||
			 (t->key == d->item.key && t->first == d->item.first);
	bool is_group =
		t->mode == SW_MODE_STREAM || d->item.mode == SW_MODE_STREAM;
	struct sw_fault why = {.err = SW_EMISMATCH,
		.kind = is_group ? SW_FAULT_OPENED : SW_FAULT_DECLARED,
		.one = {.n_elems = d->item.n_elems,
			.number = priority,
			.rank = sw_shard_rank_of(sh, s->member),
			.op = manner_of(d->item.mode),
			.dtype = d->item.dtype},
		.other = {.n_elems = t->n_elems,
			.number = t->priority,
			.rank = sw_shard_rank_of(sh, t->declared_by),
			.op = manner_of(t->mode),
			.dtype = t->dtype}};

	if (t->n_elems == d->item.n_elems && t->dtype == d->item.dtype &&
		t->priority == priority && t->mode == d->item.mode &&
		has_place && (!is_group || fits_group(s->job, d, t->group)))
		return !t->group->from;
	sw_group_end(s->job, t->group, 1, &why);
	return false;
}

/* Note the CRC of a new stream's ranks in its group. */
static void note_ranks(const struct sw_shard *sh, const struct declaration *d)
{
	if (d->item.mode == SW_MODE_STREAM)
		sw_shard_group(sh, d->item.first)->ranks_crc = d->ranks_crc;
}

/* Return whether the key, and the place or the group, of a new item are free.
 */
static bool is_place_free(
	const struct sw_shard *sh, const struct sw_declare_item *item)
{
	const struct sw_sgroup *g = sw_shard_group(sh, item->first);

	if (item->key == SW_KEY_NONE || !sw_shard_is_free(sh, item->key))
		return false;
	if (item->mode != SW_MODE_STREAM)
		return item->first < sw_place_line(sh->map) &&
		       !sw_shard_group(sh, item->key);
	return g ? g->n_streams : sw_shard_is_free(sh, item->first);
}

/* Check key, size and mode of a new tensor or stream; if one is wrong, fail the
 * session.  Asynchronous tensors and streams exclude each other. */
static bool check_new(struct sw_session *s, const struct declaration *d)
{
	const struct sw_shard *sh = &s->job->shard;
	uint32_t payload = s->job->params.payload;
	bool is_stream = d->item.mode == SW_MODE_STREAM;
	bool is_async = s->job->terms.mode == SW_MODE_ASYNC;

	if (s->job->is_coordinated && d->item.key == SW_KEY_NONE)
		return sw_session_fail(s, SW_EREFUSED, SW_KEY_NONE,
			"tensor %.64s: the job has %u tensors and open streams "
			"already",
			d->name, SW_MAX_TENSORS);
	if (!is_place_free(sh, &d->item))
		return sw_session_fail(s, SW_EREFUSED, SW_KEY_NONE,
			"tensor %.64s: key %u is taken, or place %u is beyond "
			"%u",
			d->name, d->item.key, d->item.first,
			sw_place_line(sh->map));
	if (is_stream ? is_async : d->item.mode == SW_MODE_ASYNC && !is_async)
		return sw_session_fail(s, SW_EINVAL, SW_KEY_NONE,
			"%s %.64s: job %.32s is %s ([job] mode)",
			is_stream ? "stream" : "asynchronous tensor", d->name,
			s->job->name, sw_mode_name(s->job->terms.mode));
	if (is_stream && (d->item.stream.members & ~sw_job_all(s->job) ||
				 !(d->item.stream.members >> s->member & 1)))
		return sw_session_fail(s, SW_EINVAL, SW_KEY_NONE,
			"stream %.64s: its group is not one of the %u members "
			"of job %.32s with member %u in it",
			d->name, s->job->n_members, s->job->name, s->member);
	if (!is_stream &&
		(d->item.n_elems - 1) /
				(payload / sw_dtype_bytes(d->item.dtype)) >=
			SW_BITMAP_MAX)
		return sw_session_fail(s, SW_EREFUSED, SW_KEY_NONE,
			"tensor %.64s: %llu x %s are more than %u chunks of "
			"%u bytes",
			d->name, (unsigned long long)d->item.n_elems,
			sw_dtype_name(d->item.dtype), SW_BITMAP_MAX, payload);
	return true;
}

/* A pass over a batch.  The first pass checks each item, and sums up the memory
 * of the new tensors; the second pass admits the items. */
struct walk {
	bool is_admitting;
	const uint8_t *p; /* the items left */
	size_t len;
	/* First pass: the new tensors so far, and their memory. */
	struct sw_given given;
	uint64_t need;
	/* The pass ended before an item whose index still has a stream here,
	 * although all members have closed that stream at the coordinator. */
	bool is_early;
};

/* Refuse item @i for @why, which ends the batch. */
static bool refuse(struct sw_session *s, uint32_t i, const struct sw_fault *why)
{
	s->declared[i] = SW_KEY_NONE;
	s->firsts[i] = 0;
	s->refused = *why;
	return false;
}

/* Take item @i, which is the known tensor @t.  Returns false if the tensor is
 * dead, which ends the batch. */
static bool take_known(struct sw_session *s, const struct declaration *d,
	uint32_t i, const struct sw_stensor *t)
{
	bool is_good = check_known(s, d, t);
	struct sw_fault why;

	s->declared[i] = t->key;
	s->firsts[i] = t->first;
	if (is_good)
		return true;
	why = *sw_sgroup_why(&s->job->shard, t->group);
	/* the refused member completes no round */
	sw_group_end(s->job, t->group, 1, &why);
	return refuse(s, i, &why);
}

/* Return the group of new stream @d; NULL: this server has no such group yet.
 */
static struct sw_sgroup *group_of(
	const struct sw_session *s, const struct declaration *d)
{
	const struct sw_shard *sh = &s->job->shard;

	return s->job->is_coordinated ? sw_shard_group_named(sh, d->name)
				      : sw_shard_group(sh, d->item.first);
}

/* Check that new item @i, a stream, may be in group @g; if not, refuse it. */
static bool check_kin(struct sw_session *s, const struct declaration *d,
	uint32_t i, struct sw_sgroup *g)
{
	const struct sw_shard *sh = &s->job->shard;
	struct sw_fault why = {.err = SW_EMISMATCH,
		.kind = SW_FAULT_OPENED,
		.key = SW_KEY_NONE,
		.one.rank = sw_shard_rank_of(sh, s->member),
		.other.rank = sw_shard_rank_of(
			sh, (uint32_t)__builtin_ctzll(g->members))};

	if (g->closed >> s->member & 1) {
		why.err = SW_EABORTED;
		why.kind = SW_FAULT_UNDONE;
		return refuse(s, i, &why);
	}
	if (g->n_streams == SW_GROUP_STREAMS) {
		why = sw_fault_said(SW_EREFUSED, "");
		snprintf(why.text, sizeof(why.text),
			"stream %.64s: its group has %u already", d->name,
			SW_GROUP_STREAMS);
		sw_group_end(s->job, g, 1, &why);
	} else if (g->n_streams && !fits_group(s->job, d, g)) {
		sw_group_end(s->job, g, 1, &why);
	}
	return !g->from || refuse(s, i, sw_sgroup_why(sh, g));
}

/* Note key and place of new item @i; the coordinator assigns both in the order
 * of first declaration.  @g: its group, or NULL.  Returns false if the key or
 * the group is retired: all members have closed it, so there is nothing to
 * admit. */
static bool has_key(struct sw_session *s, struct walk *w, struct declaration *d,
	uint32_t i, const struct sw_sgroup *g)
{
	const struct sw_shard *sh = &s->job->shard;
	bool is_stream = d->item.mode == SW_MODE_STREAM;

	if (s->job->is_coordinated) {
		sw_shard_give_key(sh, &d->item, &w->given);
		if (is_stream)
			d->item.first = g ? g->key : d->item.key;
	}
	s->declared[i] = d->item.key;
	s->firsts[i] = d->item.first;
	return s->job->is_coordinated ||
	       !(sw_shard_is_past(sh, d->item.key) ||
		       (is_stream && sw_shard_is_past(sh, d->item.first)));
}

/* Return whether an older stream or group still has an index that a new item
 * needs. */
static bool is_early(const struct sw_job *job, const struct declaration *d)
{
	const struct sw_shard *sh = &job->shard;

	return !job->is_coordinated &&
	       (sw_shard_is_busy(sh, d->item.key) ||
		       (d->item.mode == SW_MODE_STREAM &&
			       sw_shard_is_busy(sh, d->item.first)));
}

/* Take item @i; a batch may contain an item twice.  Returns false if the batch
 * ends: at a dead tensor, before an early item, or because the session failed.
 */
static bool take_item(
	struct sw_session *s, struct walk *w, struct declaration *d, uint32_t i)
{
	struct sw_shard *sh = &s->job->shard;
	const struct sw_stensor *t = sw_shard_named(sh, d->name);
	struct sw_sgroup *g = NULL;

	if (t)
		return take_known(s, d, i, t);
	if (d->item.mode == SW_MODE_STREAM)
		g = group_of(s, d);
	if (g && !check_kin(s, d, i, g))
		return false;
	if (!has_key(s, w, d, i, g))
		return true;
	w->is_early = is_early(s->job, d);
	if (w->is_early || !check_new(s, d))
		return false;
	if (!w->is_admitting) {
		sw_given_note(&w->given, &d->item);
		w->need += sw_shard_need(sh, &d->item);
		return true;
	}
	if (sw_shard_admit(sh, &d->item, d->name, s->member, true))
		return sw_session_fail(s, SW_ENOMEM, SW_KEY_NONE,
			"tensor %.64s: the server has no memory for it",
			d->name);
	note_ranks(sh, d);
	return true;
}

/* Take up to @n items in turn; return how many were taken. */
static uint32_t take_items(struct sw_session *s, struct walk *w, uint32_t n)
{
	struct declaration d;
	uint32_t i = 0;

	while (i < n && next_item(&w->p, &w->len, s->srv->env->sum, &d) &&
		take_item(s, w, &d, i))
		i++;
	return i;
}

/* End the group of the last new stream of a batch that is too large, at all
 * members.  Streams of other groups continue.  The next pass over the batch
 * ends at this stream.  Returns false if the batch has no new stream. */
static bool refuse_stream(struct sw_session *s, const uint8_t *p, size_t len,
	uint32_t n, const char *why)
{
	struct sw_shard *sh = &s->job->shard;
	struct declaration d, last = {.item.mode = SW_MODE_SYNC};
	struct walk walk = {0};
	char text[SW_TEXT_MAX];
	struct sw_fault f;

	while (n-- && next_item(&p, &len, s->srv->env->sum, &d))
		if (d.item.mode == SW_MODE_STREAM &&
			!sw_shard_is_past(sh, d.item.key) &&
			!sw_shard_named(sh, d.name))
			last = d;
	if (last.item.mode != SW_MODE_STREAM)
		return false;
	snprintf(text, sizeof(text), "stream %.40s: %.100s", last.name, why);
	has_key(s, &walk, &last, 0, group_of(s, &last));
	(void)!sw_shard_admit(sh, &last.item, last.name, s->member, false);
	note_ranks(sh, &last);
	f = sw_fault_said(SW_EREFUSED, text);
	sw_group_end(s->job, sw_shard_group(sh, last.item.first), 1, &f);
	return true;
}

/* Take quota and memory for a batch of @n tensors at @p, plus a page for each
 * tensor.  Returns false if the worker was refused, or must wait: a job
 * prepares memory, which its quota covers, for one batch at a time. */
static bool take_memory(struct sw_session *s, uint64_t need, const uint8_t *p,
	size_t len, uint32_t n)
{
	const struct sw_env *env = s->srv->env;
	struct sw_job *job = s->job;
	char text[SW_TEXT_MAX];

	if (job->asker == s->peer.id && job->asked_bytes != need)
		sw_share_drop(job); /* the batch needs another amount now */
	if (!need)
		return true;
	if (!job->asked_bytes) {
		if (!sw_share_take(job, need, text))
			return !refuse_stream(s, p, len, n, text) &&
			       sw_session_fail(
				       s, SW_EREFUSED, SW_KEY_NONE, "%s", text);
		job->asked_bytes = need;
		job->asker = s->peer.id;
	}
	if (job->asked_bytes != need ||
		(env->mem_ready && !env->mem_ready(env->ctx, sw_job_index(job),
					   need + n * UINT64_C(4096))))
		return false;
	job->asked_bytes = 0;
	return true;
}

/* Admit a batch.  Returns false if the session failed, or the batch must wait.
 */
static bool admit_batch(
	struct sw_session *s, const uint8_t *p, size_t len, uint32_t n)
{
	const struct sw_shard *sh = &s->job->shard;
	struct walk look = {.p = p, .len = len};
	struct walk admit = {.p = p, .len = len, .is_admitting = true};
	uint64_t before = sh->mem_bytes;
	uint32_t n_good, n_got;

	s->refused.err = 0;
	n_good = take_items(s, &look, n);
	if (look.is_early && !n_good)
		return false;
	if (s->fault.err || !take_memory(s, look.need, p, len, n_good))
		return false;
	n_got = take_items(s, &admit, n_good);
	/* The need was higher if a tensor failed or a name was in the batch
	 * twice. */
	sw_share_give(s->job, look.need - (sh->mem_bytes - before));
	s->n_declared = (uint16_t)(n_got + (s->refused.err != 0));
	return !s->fault.err;
}

/* Put the DECLARE of @s aside until @at_ns. */
static void put_aside(struct sw_session *s, uint64_t at_ns)
{
	sw_due_set_put(&s->srv->aside, s->peer.index, true);
	s->srv->aside_at_ns = sw_min64(s->srv->aside_at_ns, at_ns);
}

/* Admit the DECLARE of @s or put it aside; drop it if the session or the job
 * has failed. */
static void admit(struct sw_session *s)
{
	const uint8_t *items = s->declare + sizeof(struct sw_declare_head);
	bool is_over = s->job->status.state != SW_JOB_RUNNING;
	struct sw_server *srv = s->srv;
	struct sw_declare_head head;

	memcpy(&head, s->declare, sizeof(head));
	srv->n_looked += head.n;
	if (!is_over &&
		admit_batch(s, items, s->declare_len - sizeof(head), head.n))
		sw_session_owe(s, SW_OWE_DECLARED);
	else if (!is_over && !s->fault.err) {
		put_aside(s, srv->now_ns + srv->params.retry_min);
		return;
	}
	sw_due_set_put(&srv->aside, s->peer.index, false);
	s->declare_len = 0;
}

uint64_t sw_admit_aside(struct sw_server *srv)
{
	uint32_t n;

	if (srv->now_ns < srv->aside_at_ns)
		return srv->aside_at_ns;
	srv->n_looked = 0;
	srv->aside_at_ns = UINT64_MAX;
	for (n = sw_due_set_size(&srv->aside);
		n && srv->n_looked < SW_DECLARE_BURST; n--)
		admit(srv->sessions[sw_due_set_take(&srv->aside)]);
	if (n) /* the next tick continues */
		srv->aside_at_ns = srv->now_ns;
	return srv->aside_at_ns;
}

void sw_admit_declare(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	size_t len = h->payload_len - sizeof(struct sw_declare_head);
	struct sw_declare_head head;

	memcpy(&head, f->payload, sizeof(head));
	/* The worker must have the answer to its last DECLARE. */
	if (s->declare_len || s->peer.owed >> SW_OWE_DECLARED & 1 ||
		s->fault.err || !head.n || head.n > SW_DECLARE_MAX ||
		!sw_job_settle(s->job, head.payload)) {
		sw_count(&s->srv->stats.rx_state, 1);
		return;
	}
	memcpy(s->declare, f->payload, h->payload_len);
	if (!is_formed(
		    s->declare + sizeof(head), len, head.n, s->srv->env->sum)) {
		sw_count(&s->srv->stats.rx_length, 1);
		return;
	}
	s->declare_len = h->payload_len;
	if (s->srv->n_looked < SW_DECLARE_BURST)
		admit(s);
	else
		put_aside(s, s->srv->now_ns);
}
