/* perfetto.h - write agents' stages and tensors as JSON for Perfetto.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each agent is a process, with a track of its computation stages and a track
 * for each tensor.  Counters belong to the process "network".
 */
#ifndef SW_APPS_LAB_SIM_PERFETTO_H
#define SW_APPS_LAB_SIM_PERFETTO_H

#include <stdint.h>
#include <stdio.h>

#include "apps/cli/chrome.h"

struct sw_sim;
struct sw_sim_agent;

/* sw_sim_perfetto_begin - write the head and the names of all tracks.
 * sw_chrome_end ends the file. */
void sw_sim_perfetto_begin(
	struct sw_chrome *c, FILE *to, const struct sw_sim *s);

/* sw_sim_perfetto_stage - write that an agent has computed its stage, named
 * @what and @number.
 * sw_sim_perfetto_tensor - write that the sum of @tensor, pushed at @from_ns,
 * has completed. */
void sw_sim_perfetto_stage(struct sw_chrome *c, const struct sw_sim_agent *a,
	const char *what, uint64_t number);
void sw_sim_perfetto_tensor(struct sw_chrome *c, const struct sw_sim_agent *a,
	uint32_t tensor, uint64_t round, uint64_t from_ns);

/* sw_sim_perfetto_count - write the new value of a figure; @to may be "". */
void sw_sim_perfetto_count(struct sw_chrome *c, uint64_t now_ns,
	const char *what, const char *from, const char *to, uint64_t value);

#endif
