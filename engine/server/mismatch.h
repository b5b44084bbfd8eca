/* mismatch.h - tensors that members call differently.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SERVER_MISMATCH_H
#define SW_SERVER_MISMATCH_H

#include "engine/server/server_int.h"

/* sw_session_init_keys - it knows all, and is to be told nothing. */
void sw_session_init_keys(struct sw_session *s);
/* sw_job_kill - rounds of the tensor @key from @round on fail: every member is
 * told
 * @why, once now, and again when it pushes, pulls or declares the tensor. */
void sw_job_kill(struct sw_server *srv, struct sw_job *job, uint32_t key,
	uint32_t round, const char *why);
void sw_session_tell_dead(
	struct sw_server *srv, struct sw_session *s, uint32_t key);
/* A push that differs from what another rank does with the tensor: both are
 * named, and the tensor is dead. */
void sw_session_differs(
	struct sw_server *srv, struct sw_session *s, const struct sw_header *h);
/* Member @but was refused the tensor, which is dead: tell all others until they
 * say that they know; @s does, or was refused it, too; say it again. */
void sw_job_await_aware(
	struct sw_server *srv, struct sw_job *job, uint32_t key, uint16_t but);
void sw_session_is_aware(struct sw_session *s, uint32_t key);
uint64_t sw_session_tick_unaware(struct sw_server *srv, struct sw_session *s);
/* A worker says that a tensor is dead. */
void sw_session_on_mismatch(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const uint8_t *payload);

#endif
