/* device.c - sw_device_open: a pipeline over one client of libsumwire.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/device_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmd/client/client_device.h"
#include "pmd/client/client_push.h"
#include "pmd/client/sized.h"
#include "pmd/cuda/device_coll.h"
#include "pmd/cuda/device_memory.h"
#include "pmd/cuda/device_tensor.h"

enum { PIECE_FLOOR = 4096, PIECE_CEILING = 64 << 20 };

/* --- the client as the pipeline's net --- */

static int net_push(void *ctx, void *tensor, uint32_t root, uint32_t step,
	uint64_t lacks, uint64_t *handle)
{
	const struct sw_device *d = ctx;

	return sw_client_push(d->client, tensor, root, step, lacks, handle);
}

/* Ignore an error: net_poll reports the end of the attachment. */
static void net_grow(void *ctx, void *tensor, uint64_t lacks)
{
	const struct sw_device *d = ctx;

	(void)!sw_client_grow(d->client, tensor, lacks);
}

static bool net_is_summed(void *ctx, void *tensor, uint32_t granule)
{
	(void)ctx;
	return sw_client_is_summed(tensor, granule);
}

static int net_poll(void *ctx, uint64_t handle)
{
	const struct sw_device *d = ctx;

	return sw_poll(d->client, handle);
}

static void net_note(void *ctx, uint64_t handle, enum sw_edge_note_kind kind,
	uint64_t from_ns, uint64_t bytes)
{
	const struct sw_device *d = ctx;

	sw_client_note_now(d->client, kind, handle, from_ns, bytes);
}

static const char *net_why(void *ctx)
{
	const struct sw_device *d = ctx;

	return sw_last_error(d->client);
}

static void net_conflict(void *ctx, uint32_t out[3])
{
	const struct sw_device *d = ctx;

	out[0] = sw_last_conflict(d->client, &out[1], &out[2]);
}

static void net_rest(void *ctx, const _Atomic bool *has_mail, uint64_t until_ns)
{
	struct sw_device *d = ctx;

	sw_client_rest(d->client, has_mail, &d->n_summed, until_ns);
}

static void net_wake(void *ctx)
{
	const struct sw_device *d = ctx;

	sw_client_wake(d->client);
}

/* Strip the rank from @why, because the agent adds it. */
static void net_give_up(void *ctx, const char *why)
{
	const struct sw_device *d = ctx;

	sw_client_give_up(d->client, SW_EDEVICE, why + strlen(d->rank));
}

static void say(void *ctx, const char *line)
{
	const struct sw_device *d = ctx;

	sw_client_say(d->client, line);
}

/* --- open --- */

static int take_settings(struct sw_client *c,
	const struct sw_device_settings *s, struct sw_device_settings *out)
{
	char why[SW_SIZED_WHY_BYTES];

	*out = (struct sw_device_settings)SW_DEVICE_SETTINGS_INIT;
	if (s && sw_sized_take(out, sizeof(*out), s,
			 SW_UP_TO(struct sw_device_settings, pad),
			 "sw_device_settings", why))
		return sw_client_fail(c, SW_EINVAL, "%s", why);
	if (!out->backend)
		out->backend = getenv("SUMWIRE_DEVICE");
	if (!out->backend)
		out->backend = "cuda";
	if (out->piece_bytes && (out->piece_bytes < PIECE_FLOOR ||
					out->piece_bytes > PIECE_CEILING ||
					out->piece_bytes % PIECE_FLOOR))
		return sw_client_fail(c, SW_EINVAL,
			"piece_bytes is %llu: expected a multiple of 4,096 "
			"from 4 KiB to 64 MiB",
			(unsigned long long)out->piece_bytes);
	return 0;
}

const struct sw_back_ops *sw_back_find(const char *name, const char **options)
{
	static const struct sw_back_ops *const all[] = {
		&sw_back_cuda, &sw_back_fake};
	size_t n = strcspn(name, ":");

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strncmp(all[i]->name, name, n) || all[i]->name[n])
			continue;
		*options = name[n] ? name + n + 1 : NULL;
		return all[i];
	}
	return NULL;
}

static int open_back(struct sw_device *d, const struct sw_device_settings *s)
{
	const char *options = NULL;
	char why[SW_BACK_WHY];
	int err;

	d->ops = sw_back_find(s->backend, &options);
	if (!d->ops)
		return sw_client_fail(d->client, SW_EINVAL,
			"unknown back end '%.40s' for devices: use 'cuda' "
			"or 'fake'",
			s->backend);
	err = d->ops->open(options, s->number, &d->back, why);
	if (err)
		return sw_client_fail(
			d->client, err, "%s device: %s", d->ops->name, why);
	return 0;
}

static int open_pipeline(struct sw_device *d, int32_t number)
{
	struct sw_pipeline_params p = {.ops = d->ops,
		.back = d->back,
		.net = {.ctx = d,
			.push = net_push,
			.grow = net_grow,
			.is_summed = net_is_summed,
			.granule = SW_GRANULE,
			.poll = net_poll,
			.why = net_why,
			.note = net_note,
			.conflict = net_conflict,
			.rest = net_rest,
			.wake = net_wake,
			.serve = sw_device_serve,
			.give_up = net_give_up},
		.where = d->where,
		.piece_bytes = d->piece_bytes,
		.log = say,
		.log_ctx = d};
	char why[SW_BACK_WHY], which[16] = "";
	int err;

	if (number >= 0)
		snprintf(which, sizeof(which), " %d", number);
	snprintf(d->rank, sizeof(d->rank), "rank %u: ", sw_rank(d->client));
	snprintf(d->where, sizeof(d->where), "%s%s device%s", d->rank,
		d->ops->name, which);
	err = sw_pipeline_open(&d->pipeline, &p, why);
	if (!err)
		return 0;
	sw_pipeline_close(&d->pipeline);
	return sw_client_fail(d->client, err, "%s: %s", d->where, why);
}

/* --- close --- */

/* Close the device. Does nothing in a forked child, which has no thread and
 * whose parent owns the device. */
void sw_device_close(struct sw_device **device)
{
	struct sw_device *d = *device;

	*device = NULL;
	if (!d || !sw_client_lock(d->client))
		return;
	sw_client_unlock(d->client);
	sw_client_disown(d->client, &d->part);
	sw_client_drop_device(d->client, d);
	sw_pipeline_close(&d->pipeline);
	sw_device_unpin_stages(d);
	sw_device_free_colls(d);
	sw_device_free_tensors(d);
	d->ops->close(d->back);
	free(d);
}

static void close_part(struct sw_client_part *part)
{
	struct sw_device *d = (struct sw_device *)part;

	sw_device_close(&d);
}

static void unpin_part(struct sw_client_part *part, const void *base)
{
	sw_device_unpin_stage((struct sw_device *)part, base);
}

int sw_device_open(struct sw_client *c, const struct sw_device_settings *s,
	struct sw_device **out)
{
	struct sw_device_settings own;
	struct sw_device *d;
	int err = take_settings(c, s, &own);

	if (err)
		return err;
	d = calloc(1, sizeof(*d));
	if (!d)
		return sw_client_fail(c, SW_ENOMEM, "out of memory");
	d->client = c;
	d->piece_bytes = own.piece_bytes;
	err = open_back(d, &own);
	if (!err) {
		err = open_pipeline(d, own.number);
		if (err)
			d->ops->close(d->back);
	}
	if (err) {
		free(d);
		return err;
	}
	sw_client_near(c, d->ops->node(d->back));
	d->part.close = close_part;
	d->part.unpin = unpin_part;
	sw_client_adopt(c, &d->part);
	*out = d;
	return 0;
}
