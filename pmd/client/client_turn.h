/* client_turn.h - libsumwire: receive from the agent, and ask it.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_TURN_H
#define SW_PMD_CLIENT_CLIENT_TURN_H

#include "pmd/client/client.h"

/* sw_client_turn - put and copy pieces, else lead for one turn, else sleep
 * until another thread has led.  Returns at @until_ns at the latest. */
void sw_client_turn(struct sw_client *c, uint64_t until_ns);

/* sw_client_rx - receive one message of the agent; never blocks.  Status lines
 * and hang-ups are handled inside.  Returns its kind and fills @m and @fds[2]
 * (owned by the caller), 0 if there is no message for the caller, or the error
 * that ended the attachment. */
int sw_client_rx(struct sw_client *c, union sw_edge_msg *m, int *fds);

/* sw_client_rx_messages - receive a status line or a hang-up, if any; any other
 * message ends the attachment. */
void sw_client_rx_messages(struct sw_client *c);

/* sw_client_rx_completions - end the requests that the agent has completed. */
void sw_client_rx_completions(struct sw_client *c);

/* sw_client_find_tensor - return the tensor whose push_pull has @handle; NULL
 * if not found. */
struct sw_tensor *sw_client_find_tensor(struct sw_client *c, uint64_t handle);

/* sw_client_await - receive the agent's next message, and work for all threads
 * meanwhile.  The caller must lead.  Returns as sw_client_rx does, or
 * SW_ETIMEDOUT at @until_ns. */
int sw_client_await(
	struct sw_client *c, uint64_t until_ns, union sw_edge_msg *m, int *fds);

/* sw_client_send - send @m, and work for all threads while the socket is full.
 * The caller must lead.  Errors: SW_ETIMEDOUT the agent has not read by
 * @until_ns; SW_ECLOSED a hang-up, whose reason is in the next message; the
 * error that ended the attachment. */
int sw_client_send(
	struct sw_client *c, const void *m, size_t bytes, uint64_t until_ns);

/* sw_client_ask - lead, send a message and wait for its answer, SW_EDGE_ANSWER.
 * @what names the request in error texts. */
int sw_client_ask(
	struct sw_client *c, const void *m, size_t bytes, const char *what);

#endif
