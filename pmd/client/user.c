/* user.c - users of this machine, by name and number, and trust in them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/user.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_BYTES = 4096, NAME_BYTES = 33 };

static bool is_number(const char *text, uint32_t *out)
{
	unsigned long long n;

	if (!*text || text[strspn(text, "0123456789")] || strlen(text) > 10)
		return false;
	n = strtoull(text, NULL, 10);
	*out = (uint32_t)n;
	return n < UINT32_MAX; /* (uid_t)-1 names no user */
}

bool sw_user_find(const char *name, uint32_t *uid)
{
	struct passwd pw, *found = NULL;
	char entry[ENTRY_BYTES];

	if (is_number(name, uid))
		return true;
	if (getpwnam_r(name, &pw, entry, sizeof(entry), &found) || !found)
		return false;
	*uid = pw.pw_uid;
	return true;
}

uint32_t sw_user_group(uint32_t uid)
{
	struct passwd pw, *found = NULL;
	char entry[ENTRY_BYTES];

	if (getpwuid_r(uid, &pw, entry, sizeof(entry), &found) || !found)
		return uid;
	return pw.pw_gid;
}

const char *sw_user_text(uint32_t uid, char out[SW_USER_BYTES])
{
	struct passwd pw, *found = NULL;
	char entry[ENTRY_BYTES];

	if (getpwuid_r(uid, &pw, entry, sizeof(entry), &found) || !found)
		snprintf(out, SW_USER_BYTES, "%u", uid);
	else
		snprintf(out, SW_USER_BYTES, "%.*s (%u)", NAME_BYTES - 1,
			pw.pw_name, uid);
	return out;
}

bool sw_user_is_trusted(uint32_t agent, uint32_t own, const char *named,
	char why[SW_USER_WHY_BYTES])
{
	char who[SW_USER_BYTES], us[SW_USER_BYTES];
	uint32_t uid;

	if (agent == own || agent == 0)
		return true;
	if (named && *named && !sw_user_find(named, &uid)) {
		snprintf(why, SW_USER_WHY_BYTES,
			"unknown user \"%.32s\", which SUMWIRE_AGENT_USER "
			"or the settings name",
			named);
		return false;
	}
	if (named && *named && uid == agent)
		return true;
	snprintf(why, SW_USER_WHY_BYTES,
		"it runs as user %s, and this process (user %s) would give it "
		"all tensors: if you trust that user, set "
		"SUMWIRE_AGENT_USER=%u",
		sw_user_text(agent, who), sw_user_text(own, us), agent);
	return false;
}
