/* marks.h - which results wait for whom, and in which order they go.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A mark is a bit per chunk and member: the newest result is not sent yet.
 * Above the marks of a tensor stands a bit per member in the order of tensors:
 * by priority, or, if it was pushed so, by readiness, behind all others.
 */
#ifndef SW_MARKS_H
#define SW_MARKS_H

#include "engine/sums/shard.h"

/* sw_marks_of - the marks of @member, by local index. */
struct sw_bitmap sw_marks_of(const struct sw_stensor *t, uint32_t member);

/* sw_marks_admit - @t takes its place among the tensors. */
void sw_marks_admit(struct sw_shard *sh, struct sw_stensor *t);

void sw_marks_add(struct sw_shard *sh, struct sw_stensor *t, uint32_t member,
	uint32_t local);
void sw_marks_remove(struct sw_shard *sh, struct sw_stensor *t, uint32_t member,
	uint32_t local);

#endif
