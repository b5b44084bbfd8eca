/* serve_view.h - the jobs of a service, from the views of its lcores.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_SERVE_VIEW_H
#define SW_APPS_NODE_SERVE_VIEW_H

#include "engine/server/server.h"

/* sw_serve_view_add - add another lcore's part of the jobs to @to.  Counts and
 * bytes add up; the longest round trip counts.  A member is here if it is here
 * at all lcores. */
void sw_serve_view_add(
	struct sw_server_view *to, const struct sw_server_view *part);

#endif
