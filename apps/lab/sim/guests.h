/* guests.h - what servers know of jobs before they join: shares and secrets.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_GUESTS_H
#define SW_APPS_LAB_SIM_GUESTS_H

#include "apps/lab/sim/desc.h"
#include "engine/keys/keyring.h"
#include "engine/server/server.h"

struct sw_sim_guests {
	struct sw_share shares[SW_SIM_JOBS];
	uint32_t n;
	struct sw_keyring_entry entries[SW_SIM_JOBS]; /* of keyed jobs */
	struct sw_keyring keyring;
	const struct sw_secret *secrets[SW_SIM_JOBS]; /* by job; NULL: none */
};

/* sw_sim_guests_init - take the jobs of @d, which is borrowed.  Secrets follow
 * from the seed.  Errors: SW_ENOMEM, libcrypto failed. */
int sw_sim_guests_init(struct sw_sim_guests *g, const struct sw_sim_desc *d);

/* sw_sim_guests_tell - tell a server that was just opened; @g is borrowed until
 * it closes.  Errors: those of sw_server_share. */
int sw_sim_guests_tell(const struct sw_sim_guests *g, struct sw_server *server);

/* sw_sim_guests_secret - return the secret of a job, or NULL. */
const struct sw_secret *sw_sim_guests_secret(
	const struct sw_sim_guests *g, uint32_t job);

#endif
