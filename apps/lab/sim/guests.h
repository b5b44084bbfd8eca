/* guests.h - the shares and secrets of jobs that servers know in advance.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_GUESTS_H
#define SW_APPS_LAB_SIM_GUESTS_H

#include "apps/lab/sim/desc.h"
#include "engine/keys/keyring.h"
#include "engine/server/server.h"

struct sw_sim_guests {
	struct sw_share shares[SW_SIM_JOBS];
	uint32_t n;
	/* secrets of keyed jobs */
	struct sw_keyring_entry entries[SW_SIM_JOBS];
	struct sw_keyring keyring;
	const struct sw_secret *secrets[SW_SIM_JOBS]; /* by job; NULL: none */
};

/* sw_sim_guests_init - take the jobs of @d, which is borrowed.  The seed
 * determines their secrets.  Errors: SW_ENOMEM, libcrypto failed. */
int sw_sim_guests_init(struct sw_sim_guests *g, const struct sw_sim_desc *d);

/* sw_sim_guests_tell - give the shares and secrets to a server that was just
 * opened.  @g is borrowed until the server closes.  Errors: as
 * sw_server_share. */
int sw_sim_guests_tell(const struct sw_sim_guests *g, struct sw_server *server);

/* sw_sim_guests_secret - return the secret of a job; NULL: none. */
const struct sw_secret *sw_sim_guests_secret(
	const struct sw_sim_guests *g, uint32_t job);

#endif
