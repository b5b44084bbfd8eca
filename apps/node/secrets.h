/* secrets.h - the secrets of a daemon: read key files, replace secrets later.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A set of secrets never changes, so lcores read it without locks.  To replace
 * secrets, the control thread reads a new set, gives it to the engines, and
 * closes the old one when no engine uses it.
 */
#ifndef SW_APPS_NODE_SECRETS_H
#define SW_APPS_NODE_SECRETS_H

#include "conf/conf.h"
#include "engine/base/log.h"
#include "engine/keys/keyring.h"

struct sw_secrets {
	/* An agent uses one secret or none; a server accepts several. */
	struct sw_keyring job, serve;
	struct sw_keyring_entry *entries; /* locked memory */
	uint32_t n, room;                 /* entries: used, allocated */
	struct sw_secrets *older;         /* the set that this set replaced */
};

/* sw_secrets_open - read all secrets that the configuration names, into @out.
 * A secret of @old that another secret of the same job has replaced stays valid
 * for [serve] key_grace from @now_ns on.  If its job has no key file, a secret
 * of @old becomes invalid at once.
 * @old  the current set, not changed; NULL at the start
 * @log  gets each error
 * Errors: SW_ECONF a file or folder is bad; SW_ENOMEM.  Thread: control. */
int sw_secrets_open(struct sw_secrets **out, const struct sw_conf *conf,
	const struct sw_secrets *old, uint64_t now_ns,
	const struct sw_log *log);

/* sw_secrets_close - wipe and free the set, but not older sets.  NULL is
 * accepted. */
void sw_secrets_close(struct sw_secrets *s);

/* sw_secrets_log - log the ids of the valid secrets. */
void sw_secrets_log(const struct sw_secrets *s, const struct sw_conf *conf,
	const struct sw_log *log);

#endif
