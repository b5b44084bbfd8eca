/* agent_error.h - an agent's last error, for processes that outlive the agent.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A killed agent cannot tell its processes why.  So every agent keeps its last
 * error in a file beside its socket.  A process opens the file when it
 * attaches, so it can read the file even after its removal. */
#ifndef SW_PMD_CLIENT_AGENT_ERROR_H
#define SW_PMD_CLIENT_AGENT_ERROR_H

#include <stdbool.h>

#include "pmd/client/edge.h"

/* sw_agent_error_make - create the file of the agent that listens at @socket,
 * replacing an earlier agent's file.  Returns the descriptor, or -1. */
int sw_agent_error_make(const char *socket);

/* sw_agent_error_remove - remove the file that this agent made. */
void sw_agent_error_remove(const char *socket);

/* sw_agent_error_write - replace the text; "": no error.  Threads: any, while
 * @fd is open; -1 is ignored. */
void sw_agent_error_write(int fd, const char *text);

/* sw_agent_error_open - open the file of the agent at @socket, to which @peer
 * is connected.  Returns a descriptor; -1 if the file does not exist or belongs
 * to another user. */
int sw_agent_error_open(const char *socket, int peer);

/* sw_agent_error_read - copy the text, cleaned to print, into @text.  Returns
 * false if the file holds no error, or @fd is -1. */
bool sw_agent_error_read(int fd, char text[SW_EDGE_TEXT_BYTES]);

#endif
