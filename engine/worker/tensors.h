/* tensors.h - admit tensors and streams, give them keys, free them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_TENSORS_H
#define SW_ENGINE_WORKER_TENSORS_H

#include "engine/worker/link.h"

int sw_tensors_open(struct sw_worker *w);
void sw_tensors_close(struct sw_worker *w);
/* sw_tensors_keyed - give @t the key and the place on the line that the
 * coordinator has chosen. */
int sw_tensors_keyed(struct sw_worker *w, struct sw_wtensor *t, uint32_t key,
	uint32_t first);
/* sw_tensors_are_admitted - have all servers, in all lanes, admitted all
 * tensors? */
bool sw_tensors_are_admitted(const struct sw_worker *w);
/* sw_tensors_copy - declare, in another lane, tensors that lane 0 has declared
 * (@zero), up to w->n_wanted, some in each turn.  Returns how many. */
uint32_t sw_tensors_copy(struct sw_worker *w, const struct sw_wtensor *zero);
/* sw_tensor_follow - catch up, in another lane, with lane 0's words of @t. */
void sw_tensor_follow(struct sw_worker *w, struct sw_wtensor *t);
/* sw_link_declare - owe the server a DECLARE if tensors are left to declare
 * there and it has answered the last DECLARE.
 * sw_link_build_declare - build that DECLARE; returns 0 if no tensor is left.
 * sw_link_on_declared - take the answer. */
void sw_link_declare(struct sw_worker *w, struct sw_link *l);
uint32_t sw_link_build_declare(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);
void sw_link_on_declared(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);

#endif
