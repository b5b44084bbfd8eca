/* user.h - users of this machine, by name and number, and trust in them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_USER_H
#define SW_PMD_CLIENT_USER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SW_USER_BYTES = 64, /* "alice (1000)" */
	SW_USER_WHY_BYTES = 400,
};

/* sw_user_find - look up a user by name or number; a number needs no name.
 * Returns false if unknown. */
bool sw_user_find(const char *name, uint32_t *uid);

/* sw_user_group - return the group of user @uid, or @uid itself if it has no
 * name. */
uint32_t sw_user_group(uint32_t uid);

/* sw_user_text - write "alice (1000)", or "1000" for a user without a name;
 * return @out. */
const char *sw_user_text(uint32_t uid, char out[SW_USER_BYTES]);

/* sw_user_is_trusted - return whether user @own may give its tensors to the
 * agent of user @agent: @own itself, root, or @named (by name or number; NULL
 * or "": no other).
 * @why  on false, a sentence that names both users and says what to do */
bool sw_user_is_trusted(uint32_t agent, uint32_t own, const char *named,
	char why[SW_USER_WHY_BYTES]);

#endif
