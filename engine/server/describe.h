/* describe.h - a server's sessions and tensors, as a trace names them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_DESCRIBE_H
#define SW_ENGINE_SERVER_DESCRIBE_H

#include "engine/server/server_int.h"

/* sw_server_peer, sw_server_tensor - as in struct sw_engine. */
bool sw_server_peer(
	const struct sw_engine *engine, uint32_t i, struct sw_engine_peer *out);
bool sw_server_tensor(const struct sw_engine *engine, uint32_t i, uint32_t key,
	struct sw_engine_tensor *out);

#endif
