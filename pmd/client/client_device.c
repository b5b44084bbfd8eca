/* client_device.c - libsumwire: what pmd/cuda needs of a client.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <time.h>

#include "pmd/client/client.h"

enum { NAP_NS = 5000000 };

void sw_client_say(const struct sw_client *c, const char *line)
{
	sw_client_log(&c->settings, "%s", line);
}

/* Once the attachment is over, its socket is readable for ever. */
void sw_client_rest(
	struct sw_client *c, const _Atomic bool *has_mail, uint64_t until_ns)
{
	bool is_over = !sw_client_lock(c);

	if (is_over)
		return;
	is_over = c->closed;
	if (!is_over && !atomic_load(has_mail))
		sw_client_turn(c, until_ns);
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

void sw_client_adopt(struct sw_client *c, struct sw_client_part *part,
	void (*close)(struct sw_client_part *))
{
	(void)!sw_client_lock(c);
	*part = (struct sw_client_part){.next = c->parts, .close = close};
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
