/* params.h - the engine's parameters, from a configuration.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_PARAMS_H
#define SW_APPS_CLI_PARAMS_H

#include "conf/conf.h"
#include "engine/base/params.h"

/* sw_params_of_conf - fill @p from the options of a daemon.  The caller sets
 * the payload, and divides the queue between two roles. */
void sw_params_of_conf(struct sw_params *p, const struct sw_conf_job *job,
	const struct sw_conf_agent *agent, const struct sw_conf_node *node);

#endif
