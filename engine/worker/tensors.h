/* tensors.h - admit tensors and streams, give them keys, free them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_TENSORS_H
#define SW_ENGINE_WORKER_TENSORS_H

#include "engine/worker/wtensor.h"

int sw_tensors_open(struct sw_worker *w);
void sw_tensors_close(struct sw_worker *w);
/* sw_tensors_keyed - give @t its key and its place on the line, as link 0 said.
 */
int sw_tensors_keyed(struct sw_worker *w, struct sw_wtensor *t, uint32_t key,
	uint32_t first);
/* sw_tensors_are_admitted - have all servers, in all lanes, admitted all
 * tensors? */
bool sw_tensors_are_admitted(const struct sw_worker *w);
/* sw_links_skip_refused - declare no tensor that the coordinator has refused.
 */
void sw_links_skip_refused(struct sw_worker *w);
/* sw_tensors_copy - declare, in another lane, tensors that lane 0 has declared
 * (@zero), up to w->n_wanted, some in each turn.  Returns how many. */
uint32_t sw_tensors_copy(struct sw_worker *w, const struct sw_wtensor *zero);
/* sw_tensor_follow - catch up, in another lane, with lane 0's words of @t. */
void sw_tensor_follow(struct sw_worker *w, struct sw_wtensor *t);

#endif
