/* agent_error.h - an agent's last error, for processes that outlive the agent.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An agent that is killed tells its processes nothing.  It keeps its last error
 * in a file beside its socket; a process opens the file when it attaches, so it
 * can read the file even after its removal.
 */
#ifndef SW_PMD_CLIENT_AGENT_ERROR_H
#define SW_PMD_CLIENT_AGENT_ERROR_H

#include <stdbool.h>

#include "pmd/client/edge.h"

/* sw_agent_error_make - make the file of the agent that listens at @socket, and
 * replace the file of an earlier agent.  Returns its descriptor, or -1.
 */
int sw_agent_error_make(const char *socket);

/* sw_agent_error_remove - remove the file that this agent made. */
void sw_agent_error_remove(const char *socket);

/* sw_agent_error_write - replace the text; "": there is no error.  Threads:
 * any, while @fd is open; -1 is ignored. */
void sw_agent_error_write(int fd, const char *text);

/* sw_agent_error_open - open the file of the agent at @socket, to which @peer
 * is connected.  Returns a descriptor; -1 if there is no such file or it is
 * another user's. */
int sw_agent_error_open(const char *socket, int peer);

/* sw_agent_error_read - copy the text, printable, into @text. Returns false if
 * it holds no error, or if @fd is -1. */
bool sw_agent_error_read(int fd, char text[SW_EDGE_TEXT_BYTES]);

#endif
