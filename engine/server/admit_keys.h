/* admit_keys.h - admit workers that have a secret.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_ADMIT_KEYS_H
#define SW_ENGINE_SERVER_ADMIT_KEYS_H

#include "engine/server/server_int.h"

/* sw_pending_accept - return the contents of the ACCEPT. */
struct sw_accept sw_pending_accept(
	const struct sw_server *srv, const struct sw_pending *p);

/* sw_admit_secret - return the secret that a HELLO or JOIN names; NULL: it is
 * unknown here.
 * sw_admit_know - does the sender of the HELLO have the secret?
 * sw_admit_prove - append to @cookie, of @n bytes with room for it, the MAC. */
const struct sw_secret *sw_admit_secret(
	const struct sw_server *srv, uint64_t key_id);
bool sw_admit_know(struct sw_server *srv, const struct sw_secret *secret,
	const struct sw_rx_frame *f);
uint32_t sw_admit_prove(const struct sw_server *srv,
	const struct sw_secret *secret, const struct sw_path *path,
	enum sw_label label, void *payload, uint32_t n);
/* sw_admit_unknown - return the session that @hello, whose MAC is right, asks
 * for if it is unknown at this endpoint; else 0. */
uint32_t sw_admit_unknown(const struct sw_server *srv,
	const struct sw_rx_frame *f, const struct sw_hello *hello);
/* sw_admit_again - return the place of a keyed JOIN that is a duplicate, whose
 * ACCEPT is due again; SW_MAX_SESSIONS: it is new. */
uint32_t sw_admit_again(
	const struct sw_server *srv, const struct sw_pending *p);
/* sw_admit_unseal - read a keyed JOIN into p->join; false: it is dropped.
 * sw_admit_answer - make the ACCEPT and the keys of the session. */
bool sw_admit_unseal(struct sw_server *srv, const struct sw_rx_frame *f,
	const struct sw_secret *secret, struct sw_pending *p,
	struct sw_noise *noise);
bool sw_admit_answer(
	struct sw_server *srv, struct sw_pending *p, struct sw_noise *noise);
/* sw_admit_is_inner - need the session of @p no key, because of its port?
 * sw_admit_key - may the worker behind @p join with the key that it has, or
 * without one?  Returns the reason, or NULL.
 * sw_job_keyed - @p, which has confirmed its session, is a member of @job.
 * False: it knows keys of another run. */
bool sw_admit_is_inner(const struct sw_server *srv, const struct sw_pending *p);
const char *sw_admit_key(struct sw_server *srv, const struct sw_pending *p);
bool sw_job_keyed(struct sw_job *job, const struct sw_pending *p);
/* sw_jobs_renew - begin the next era of results of each keyed job that needs it
 * and whose members have all confirmed this one. */
void sw_jobs_renew(struct sw_server *srv);

#endif
