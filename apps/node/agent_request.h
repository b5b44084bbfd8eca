/* agent_request.h - lcore 0 does what a process asks for: tune, end, free.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_REQUEST_H
#define SW_APPS_NODE_AGENT_REQUEST_H

#include "apps/node/agent_core.h"

/* sw_agent_tune - change the tuning, and answer. */
void sw_agent_tune(struct agent_core *core, const struct agent_command *o);

/* sw_agent_show_tuning - show the processes the tuning in use, if it changed.
 */
void sw_agent_show_tuning(struct agent_core *core);

/* sw_agent_end_group - close or abort a group, and answer. */
void sw_agent_end_group(struct agent_core *core, const struct agent_command *o);

/* sw_agent_free - begin to free memory, or free a closed stream and answer. */
void sw_agent_free(struct agent_core *core, const struct agent_command *o);

/* sw_agent_find_use - look whether collectives use core->freed.  Each call
 * looks at some of them; the last one clears core->freed.client. */
void sw_agent_find_use(struct agent_core *core);

/* sw_agent_work_free - answer the local ranks in core->is_freeing, once no port
 * refers to their memory. */
void sw_agent_work_free(struct agent_core *core);

#endif
