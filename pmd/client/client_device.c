/* client_device.c - libsumwire: the functions of a client for pmd/cuda.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client_device.h"

#include <time.h>

#include "pmd/client/client_declare.h"
#include "pmd/client/client_group_end.h"
#include "pmd/client/client_note.h"
#include "pmd/client/client_turn.h"

enum {
	NAP_NS = 5000000,
	SERVE_BYTES = 64, /* copied at a time: one piece in host memory */
};

/* --- the thread of a device --- */

void sw_client_say(const struct sw_client *c, const char *line)
{
	sw_client_log(&c->settings, "%s", line);
}

void sw_client_near(struct sw_client *c, int node)
{
	if (!sw_client_lock(c))
		return;
	c->near = (uint32_t)(node + 1);
	sw_client_unlock(c);
}

/* Check for the end of the attachment first: its socket then stays readable. */
void sw_client_rest(struct sw_client *c, const _Atomic bool *has_mail,
	uint32_t *n_summed, uint64_t until_ns)
{
	bool is_over = !sw_client_lock(c);
	uint32_t now;

	if (is_over)
		return;
	is_over = c->closed;
	now = atomic_load(&c->control->n_summed);
	if (!is_over && !atomic_load(has_mail) && now == *n_summed)
		sw_client_turn(c, until_ns);
	*n_summed = atomic_load(&c->control->n_summed);
	sw_client_unlock(c);
	if (is_over && !atomic_load(has_mail))
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

void sw_client_wake(struct sw_client *c)
{
	if (!sw_client_lock(c))
		return;
	sw_client_call_thread(c);
	sw_client_unlock(c);
}

int sw_client_serve(struct sw_client *c)
{
	int err;

	if (!sw_client_lock(c))
		return SW_ECLOSED;
	sw_client_rx_completions(c);
	err = c->closed ? c->closed : sw_client_move(c, SERVE_BYTES);
	sw_client_unlock(c);
	return err;
}

void sw_client_give_up(struct sw_client *c, int err, const char *why)
{
	struct sw_edge_text m;

	if (sw_client_enter(c))
		return;
	sw_edge_text(&m, SW_EDGE_CLOSE, err, 0, why);
	sw_edge_send(c->sock, &m, sizeof(m), NULL, 0);
	sw_client_close(c, err, "rank %u: %s", c->rank, why);
	sw_client_call_thread(c);
	sw_client_unlock(c);
}

int sw_client_declare_growing(struct sw_client *c,
	const struct sw_tensor_desc *descs, uint32_t n, struct sw_tensor **out)
{
	return sw_client_declare(c, descs, n, true, out);
}

/* --- collectives of a device --- */

int sw_client_find_device(struct sw_client *c, uint64_t handle,
	const void *owner, struct sw_call_device **out)
{
	const struct sw_call *k = sw_client_find_call(c, handle);

	*out = NULL;
	if (k && k->state != SW_TENSOR_OPEN)
		return 0;
	if (!k || !k->device || k->device->owner != owner)
		return sw_client_fail(c, SW_EINVAL,
			"no collective of this device with handle %llu is open",
			(unsigned long long)handle);
	*out = k->device;
	return 0;
}

int sw_client_await_call(struct sw_client *c, uint64_t handle)
{
	uint64_t until_ns = sw_client_wait_until_ns(c);
	const struct sw_call *k = sw_client_find_call(c, handle);

	while (k && k->state == SW_TENSOR_OPEN && !c->closed) {
		if (sw_edge_now_ns() >= until_ns)
			return sw_client_fail(c, SW_ETIMEDOUT,
				"%s of group '%s' has not ended after %u s; it "
				"stays open",
				sw_coll_name(k->args.kind), k->group->name,
				c->settings.wait_timeout_s);
		sw_client_turn(c, until_ns);
		k = sw_client_find_call(c, handle);
	}
	return sw_client_check(c);
}

/* Return an open collective of @owner that has begun; until then sw_coll may
 * still fail. */
static struct sw_call *find_call(struct sw_client *c, const void *owner)
{
	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++) {
		struct sw_call *k = &c->calls.calls[i];

		if (k->state == SW_TENSOR_OPEN && k->is_begun && k->device &&
			k->device->owner == owner)
			return k;
	}
	return NULL;
}

/* Abort the groups first.  If a call is then still open, the agent has it, or
 * the attachment is over. */
void sw_client_drop_device(struct sw_client *c, const void *owner)
{
	struct sw_call *k;

	if (!sw_client_lock(c))
		return;
	while ((k = find_call(c, owner)) &&
		!sw_client_abort(
			k->group, SW_EABORTED, "its device was closed"))
		;
	/* Without its device, no piece of a call is copied.  Ignore an error
	 * that the device finds now: the call already has one.  If the
	 * attachment has ended, the caller must still get the reason. */
	while ((k = find_call(c, owner))) {
		sw_call_end_device(k);
		if (!c->closed)
			sw_client_drop_call(c, k, SW_ECLOSED);
	}
	sw_client_unlock(c);
}

/* --- parts --- */

void sw_client_note_now(struct sw_client *c, enum sw_edge_note_kind kind,
	uint64_t handle, uint64_t from_ns, uint64_t bytes)
{
	if (!sw_client_is_traced(c) || !sw_client_lock(c))
		return;
	sw_client_note(c, kind, handle, from_ns,
		kind == SW_EDGE_READY ? from_ns : sw_edge_now_ns(), bytes);
	sw_client_unlock(c);
}

void sw_client_adopt(struct sw_client *c, struct sw_client_part *part)
{
	(void)!sw_client_lock(c);
	part->next = c->parts;
	c->parts = part;
	sw_client_unlock(c);
}

void sw_client_disown(struct sw_client *c, struct sw_client_part *part)
{
	struct sw_client_part **at = &c->parts;

	(void)!sw_client_lock(c);
	while (*at && *at != part)
		at = &(*at)->next;
	if (*at)
		*at = part->next;
	while (c->n_unpinning)
		sw_client_wait_changed(
			c, sw_edge_now_ns() + UINT64_C(1000000000));
	sw_client_unlock(c);
}

void sw_client_close_parts(struct sw_client *c)
{
	while (c->parts) {
		struct sw_client_part *part = c->parts;

		c->parts = part->next;
		part->close(part);
	}
}
