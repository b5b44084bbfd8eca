/* admit_declare.h - admit tensors and streams to a server.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_ADMIT_DECLARE_H
#define SW_ENGINE_SERVER_ADMIT_DECLARE_H

#include "engine/server/server_int.h"

/* sw_admit_declare - handle a DECLARE.  The caller has checked the frame by
 * itself. */
void sw_admit_declare(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);
/* sw_admit_aside - retry the DECLAREs that were put aside, if the time has
 * come.  Returns when to call again; UINT64_MAX: none is aside. */
uint64_t sw_admit_aside(struct sw_server *srv);

#endif
