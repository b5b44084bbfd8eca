/* rank_env.h - inside launch: the environment of the ranks.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAUNCH_RANK_ENV_H
#define SW_APPS_LAUNCH_RANK_ENV_H

#include "apps/launch/run.h"

/* sw_rank_env_set - set the environment of @rank, in that rank's process.
 * @port  for MASTER_PORT */
void sw_rank_env_set(const struct sw_run *r, uint32_t rank, int port);

#endif
