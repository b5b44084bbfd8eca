/* client_rx.c - libsumwire: what the agent has completed, what it says.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include "pmd/client/client.h"

enum { TAKE_BURST = 32 };

struct sw_tensor *sw_client_find_tensor(struct sw_client *c, uint64_t handle)
{
	uint32_t i = handle & (SW_EDGE_TENSORS - 1);

	if (i >= c->n_tensors || c->tensors[i]->handle != handle ||
		c->tensors[i]->state == SW_TENSOR_IDLE)
		return NULL;
	return c->tensors[i];
}

/* Note one end; false: nothing of the kind is open. */
static bool end_one(struct sw_client *c, const struct sw_completion *done)
{
	struct sw_tensor *t;

	if (done->handle & SW_EDGE_COLL_HANDLE)
		return sw_client_end_piece(c, done);
	t = sw_client_find_tensor(c, done->handle);
	if (!t || t->state != SW_TENSOR_OPEN || done->status > 0)
		return false;
	t->status = done->status;
	t->state = SW_TENSOR_ENDED;
	sw_client_call_thread(c); /* another one may wait for it */
	return true;
}

/* Take what the agent has completed. */
void sw_client_rx_completions(struct sw_client *c)
{
	struct sw_completion done[TAKE_BURST];
	int n;

	do {
		n = sw_spsc_take(&c->completions, done, TAKE_BURST);
		for (int i = 0; i < n; i++) {
			if (!end_one(c, &done[i])) {
				n = SW_EPROTO;
				break;
			}
		}
	} while (n == TAKE_BURST);
	if (n < 0)
		sw_client_close(c, SW_EPROTO,
			"the agent at %s corrupted the completion ring",
			c->settings.agent);
}

/* Messages between declarations: progress and hang-ups, nothing else. */
void sw_client_rx_messages(struct sw_client *c)
{
	union sw_edge_msg m;
	int fds[2], kind = sw_client_rx(c, &m, fds);

	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (kind > 0)
		sw_client_close(c, SW_EPROTO,
			"the agent at %s sent unexpected message kind %d",
			c->settings.agent, kind);
}
