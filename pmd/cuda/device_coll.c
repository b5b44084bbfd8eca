/* device_coll.c - collectives of groups whose buffers lie in a device's memory.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The client treats them as any collective (client_call.c): it cuts, counts and
 * submits them in the same order at all members, wherever their buffers lie.
 * Only the copies into and out of stages differ: the pipeline's thread makes
 * them after the call's event. The client's lock guards the state in this
 * file.
 */
#include "pmd/cuda/device_coll.h"

#include <stdio.h>
#include <stdlib.h>

#include "pmd/client/client_coll.h"
#include "pmd/cuda/device_int.h"
#include "pmd/cuda/device_memory.h"
#include "pmd/cuda/run.h"

/* An open call on a device; reused by later calls. */
struct sw_device_coll {
	struct sw_pipeline_start start; /* first member: cast to the call */
	struct sw_call_device of;
	struct sw_device *device;
	struct sw_device_coll *next, *next_free;
	_Atomic uint32_t *word;
	uint32_t n_calls; /* calls so far; *word counts the ended ones */
	uint32_t priority;
	bool is_open, is_waiting; /* for its event */
	uint64_t digest;          /* unsummed bytes' digest, if has_digest */
	bool has_digest;
	/* Digest and size of the part that was copied back; used by the
	 * thread. */
	uint64_t result, result_bytes;
};

static struct sw_device_coll *coll_of(struct sw_call_device *of)
{
	return (struct sw_device_coll *)(void *)((char *)of -
						 offsetof(struct sw_device_coll,
							 of));
}

/* --- called by the client, with its lock --- */

/* Digest the part that was copied back, to compare it when the call ends. */
static void watch_result(struct sw_pipeline *l, struct sw_device_coll *o,
	const struct sw_rows *rows)
{
	uint64_t digest;

	for (uint64_t i = 0; i < rows->n; i++) {
		if (!sw_pipeline_digest(l, rows->to + i * rows->to_stride,
			    rows->bytes, &digest))
			return;
		o->result += digest;
		o->result_bytes += rows->bytes;
	}
}

static void end_copy(
	struct sw_pipeline *l, struct sw_pipeline_copy *copy, int err)
{
	struct sw_device *d = l->p.net.ctx;
	uint32_t piece = (uint32_t)(copy - d->copies);

	if (!err && copy->way == SW_BACK_IN)
		watch_result(l, d->copied[piece], &copy->rows);
	sw_client_copied(d->client, piece, copy->begun_ns, err);
}

static void copy(struct sw_call_device *of, uint32_t piece,
	const struct sw_rows *rows, bool is_into)
{
	struct sw_device_coll *o = coll_of(of);
	struct sw_device *d = o->device;

	d->copied[piece] = o;
	d->copies[piece] = (struct sw_pipeline_copy){.rows = *rows,
		.way = is_into ? SW_BACK_OUT : SW_BACK_IN,
		.priority = o->priority,
		.number = o->start.number,
		.at = d->n_copies++,
		.end = end_copy};
	sw_pipeline_copy(&d->pipeline, &d->copies[piece]);
	sw_client_call_thread(d->client);
}

/* Digest the send buffer if the back end digests; sum() subtracts the digest of
 * each piece when it is summed. Each byte is in one piece, so the difference is
 * 0 in the end unless the program wrote the buffer meanwhile. */
static void watch(struct sw_device_coll *o)
{
	o->has_digest = o->of.sent_bytes &&
			sw_pipeline_digest(&o->device->pipeline, o->of.sent,
				o->of.sent_bytes, &o->digest);
}

static void sum(struct sw_call_device *of, const struct sw_rows *rows)
{
	struct sw_device_coll *o = coll_of(of);
	uint64_t digest;

	for (uint64_t i = 0; i < rows->n && o->has_digest; i++)
		if (sw_pipeline_digest(&o->device->pipeline,
			    rows->from + i * rows->from_stride, rows->bytes,
			    &digest))
			o->digest -= digest;
}

static void put_free(struct sw_device_coll *o)
{
	if (o->is_open || o->is_waiting)
		return;
	o->next_free = o->device->free_colls;
	o->device->free_colls = o;
}

static void release(struct sw_device_coll *o)
{
	atomic_store_explicit(o->word, o->n_calls, memory_order_release);
}

/* Return whether the program wrote the result before the call ended. If a part
 * was not copied back, the call has another error. */
static bool is_result_edited(const struct sw_device_coll *o)
{
	uint64_t now;

	return o->result_bytes && o->result_bytes == o->of.received_bytes &&
	       sw_pipeline_digest(&o->device->pipeline, o->of.received,
		       o->of.received_bytes, &now) &&
	       now != o->result;
}

static int end(struct sw_call_device *of)
{
	struct sw_device_coll *o = coll_of(of);
	bool is_edited = (o->has_digest && o->digest) || is_result_edited(o);
	int err = is_edited ? SW_ECORRUPT : 0;

	release(o);
	o->is_open = false;
	o->device->n_open--;
	put_free(o);
	return err;
}

static const struct sw_call_device_ops ops = {copy, sum, end};

/* --- called by the pipeline's thread --- */

static void start(struct sw_pipeline *l, struct sw_pipeline_start *s, int err)
{
	struct sw_device_coll *o = (struct sw_device_coll *)s;

	(void)l;
	(void)!sw_client_lock(o->device->client);
	o->is_waiting = false;
	if (o->is_open && !err)
		watch(o);
	o->of.is_ready = !err;
	o->of.ready_ns = sw_edge_now_ns();
	put_free(o);
	sw_client_unlock(o->device->client);
}

/* After the attachment has ended, no call ends, so release all words to let
 * streams continue. */
bool sw_device_serve(void *ctx)
{
	struct sw_device *d = ctx;
	int did = d->n_open ? sw_client_serve(d->client) : 0;

	if (did >= 0)
		return did;
	(void)!sw_client_lock(d->client);
	for (struct sw_device_coll *o = d->colls; o; o = o->next)
		release(o);
	sw_client_unlock(d->client);
	return false;
}

/* --- calls --- */

/* Make a call, whose event record() opens later. Called with the lock. */
static int make_coll(struct sw_device *d, struct sw_device_coll **out)
{
	struct sw_device_coll *o;

	if (!d->copies)
		d->copies = calloc(SW_EDGE_COLLS, sizeof(d->copies[0]));
	if (!d->copied)
		d->copied = calloc(SW_EDGE_COLLS, sizeof(d->copied[0]));
	o = d->copies && d->copied ? calloc(1, sizeof(*o)) : NULL;
	if (!o)
		return sw_client_fail(
			d->client, SW_ENOMEM, "%s: out of memory", d->where);
	o->start.fn = start;
	o->of.ops = &ops;
	o->of.owner = o->device = d;
	o->word = sw_pipeline_word(&d->pipeline);
	o->next = d->colls;
	d->colls = o;
	d->n_colls++;
	*out = o;
	return 0;
}

/* Take a free call or make one; there are as many as the client may have
 * open. */
static int take_coll(struct sw_device *d, struct sw_device_coll **out)
{
	int err = sw_client_enter(d->client);

	if (err)
		return err;
	if (d->free_colls) {
		*out = d->free_colls;
		d->free_colls = (*out)->next_free;
	} else if (d->n_colls < SW_PIPELINE_OTHERS) {
		err = make_coll(d, out);
	} else {
		err = sw_client_fail(d->client, SW_EBUSY,
			"%u collectives are open: wait for one first",
			SW_PIPELINE_OTHERS);
	}
	sw_client_unlock(d->client);
	return err;
}

/* Record the call's event, which is done when the stream's work so far is.
 * Called without the lock. */
static int record(
	struct sw_device_coll *o, const struct sw_group *g, void *stream)
{
	struct sw_pipeline *l = &o->device->pipeline;
	char what[SW_GROUP_NAME_MAX + 16], why[SW_PIPELINE_WHY];
	int err = 0;

	snprintf(what, sizeof(what), "group '%s'", sw_group_name(g));
	if (!o->start.event)
		err = sw_pipeline_event(l, &o->start.event, why);
	if (!err)
		err = sw_pipeline_record(l, o->start.event, stream, what, why);
	return err ? sw_client_fail(o->device->client, err, "%s", why) : 0;
}

/* Make stages for the call and pin them, without the lock while pinning. */
static int prepare(struct sw_device *d, struct sw_group *g,
	const struct sw_coll_args *args)
{
	int err = sw_client_enter(d->client);
	uint64_t bytes = 0;
	void *base = NULL;

	if (err)
		return err;
	err = sw_client_ready(d->client, g, args, &base, &bytes);
	sw_client_unlock(d->client);
	if (bytes)
		sw_device_pin_stage(d, base, bytes);
	return err;
}

/* Begin the call. Called with the lock. */
static int call(struct sw_device_coll *o, struct sw_group *g,
	const struct sw_coll_args *args, uint64_t *handle)
{
	int err;

	o->is_open = o->is_waiting = true;
	o->of.is_ready = o->has_digest = false;
	o->result = o->result_bytes = 0;
	o->n_calls++;
	o->device->n_open++;
	err = sw_client_coll(o->device->client, g, args, &o->of, handle);
	if (err) {
		o->device->n_open--;
		o->is_open = o->is_waiting = false;
		return err;
	}
	o->priority = sw_coll_priority(args->kind);
	return 0;
}

/* Calls of a group come from one thread at a time, so the group does not change
 * between the steps. */
int sw_coll_device(struct sw_device *d, struct sw_group *g,
	const struct sw_coll_args *args, void *stream, uint64_t *handle)
{
	struct sw_device_coll *o = NULL;
	int err = take_coll(d, &o);

	if (err)
		return err;
	err = record(o, g, stream);
	if (!err)
		err = prepare(d, g, args);
	(void)!sw_client_lock(d->client);
	if (!err)
		err = sw_client_check(d->client);
	if (!err)
		err = call(o, g, args, handle);
	if (err)
		put_free(o);
	else
		sw_pipeline_post(&d->pipeline, &o->start);
	sw_client_call_thread(
		d->client); /* needed even after the device has failed */
	sw_client_unlock(d->client);
	return err;
}

/* --- streams that wait --- */

/* Find the open call of a handle; NULL if it has ended. */
static int find(struct sw_device *d, uint64_t handle,
	struct sw_device_coll **out, uint32_t *n_calls)
{
	struct sw_call_device *of;
	int err = sw_client_enter(d->client);

	*out = NULL;
	if (err)
		return err;
	err = sw_client_find_device(d->client, handle, d, &of);
	if (!err && of) {
		*out = coll_of(of);
		*n_calls = (*out)->n_calls;
	}
	sw_client_unlock(d->client);
	return err;
}

static int await(struct sw_client *c, uint64_t handle)
{
	int err = sw_client_enter(c);

	if (err)
		return err;
	err = sw_client_await_call(c, handle);
	sw_client_unlock(c);
	return err;
}

/* If a later call has reused the word, the word has passed this call's number,
 * so @stream does not wait. */
int sw_coll_hold(struct sw_device *d, uint64_t handle, void *stream)
{
	char why[SW_PIPELINE_WHY];
	struct sw_device_coll *o;
	uint32_t n_calls = 0;
	int err = find(d, handle, &o, &n_calls);

	if (err || !o)
		return err;
	err = sw_pipeline_hold_word(
		&d->pipeline, o->word, n_calls, stream, "sw_coll_hold", why);
	if (err == SW_ENOENT)
		return await(d->client, handle);
	return err ? sw_client_fail(d->client, err, "%s", why) : 0;
}

void sw_device_free_colls(struct sw_device *d)
{
	while (d->colls) {
		struct sw_device_coll *o = d->colls;

		d->colls = o->next;
		if (o->start.event)
			d->ops->event_close(d->back, o->start.event);
		free(o);
	}
	free(d->copies);
	free(d->copied);
}
