/* admit_keys.h - admit workers that have a secret.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_ADMIT_KEYS_H
#define SW_ENGINE_SERVER_ADMIT_KEYS_H

#include "engine/server/server_int.h"

/* sw_pending_accept - return the contents of the ACCEPT. */
struct sw_accept sw_pending_accept(
	const struct sw_server *srv, const struct sw_pending *p);

/* sw_admit_secret - return the secret that a HELLO or JOIN names; NULL:
 * unknown.
 * sw_admit_know - return whether the HELLO's MAC proves that its sender has
 * @secret; if not, count it.
 * sw_admit_prove - append the MAC to the @n bytes of @payload, which must have
 * room for it.  Returns the new size; @n if there is no MAC. */
const struct sw_secret *sw_admit_secret(
	const struct sw_server *srv, uint64_t key_id);
bool sw_admit_know(struct sw_server *srv, const struct sw_secret *secret,
	const struct sw_rx_frame *f);
uint32_t sw_admit_prove(const struct sw_server *srv,
	const struct sw_secret *secret, const struct sw_path *path,
	enum sw_label label, void *payload, uint32_t n);
/* sw_admit_unknown - if @hello, whose MAC is right, asks for a session that is
 * unknown at this endpoint, return the session's id; else 0. */
uint32_t sw_admit_unknown(const struct sw_server *srv,
	const struct sw_rx_frame *f, const struct sw_hello *hello);
/* sw_admit_again - return the place of the JOIN that the keyed JOIN @p
 * duplicates, to send its ACCEPT again; SW_MAX_SESSIONS: @p is new. */
uint32_t sw_admit_again(
	const struct sw_server *srv, const struct sw_pending *p);
/* sw_admit_unseal - decrypt a keyed JOIN into p->join; false: invalid, drop it.
 * sw_admit_answer - make the ACCEPT and the session's keys; false: the exchange
 * failed. */
bool sw_admit_unseal(struct sw_server *srv, const struct sw_rx_frame *f,
	const struct sw_secret *secret, struct sw_pending *p,
	struct sw_noise *noise);
bool sw_admit_answer(
	struct sw_server *srv, struct sw_pending *p, struct sw_noise *noise);
/* sw_admit_is_inner - return whether the session of @p needs no key, because of
 * its port.
 * sw_admit_key - check whether the worker behind @p may join with its key, or
 * without a key.  Returns the reason if not, else NULL.
 * sw_job_keyed - set up the keys of @job for @p, which has confirmed its
 * session.  False: @p was told the keys of another run. */
bool sw_admit_is_inner(const struct sw_server *srv, const struct sw_pending *p);
const char *sw_admit_key(struct sw_server *srv, const struct sw_pending *p);
bool sw_job_keyed(struct sw_job *job, const struct sw_pending *p);
/* sw_jobs_renew - begin the next era of results in each keyed job that needs
 * it, once all members have confirmed the current era; end sessions that do not
 * confirm in time. */
void sw_jobs_renew(struct sw_server *srv);

#endif
