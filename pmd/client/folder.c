/* folder.c - the folder of sockets that are configured by name only.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/folder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"

enum { CANDIDATES = 4, OTHERS_WRITE = S_IWGRP | S_IWOTH };

struct candidate {
	char parent[SW_FOLDER_BYTES], path[SW_FOLDER_BYTES];
	bool is_system; /* below /run, where only root creates folders */
};

static bool put(struct candidate *c, const char *parent, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Write the candidate's path.  False: no parent, or the path of a socket in it
 * would be too long. */
static bool put(struct candidate *c, const char *parent, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!parent || parent[0] != '/' || strlen(parent) >= sizeof(c->parent))
		return false;
	strcpy(c->parent, parent);
	n = snprintf(c->path, sizeof(c->path), "%s/", parent);
	va_start(ap, fmt);
	if (n > 0 && n < (int)sizeof(c->path))
		n += vsnprintf(
			c->path + n, sizeof(c->path) - (size_t)n, fmt, ap);
	va_end(ap);
	return n < (int)sizeof(c->path);
}

/* Set *c to the @i-th candidate, best first: the system's folder comes first
 * for root and last for other users. */
static bool candidate(uint32_t i, struct candidate *c)
{
	uint32_t kind = geteuid() == 0 ? i : (i + 1) % CANDIDATES;
	char host[65] = "", run_user[32];

	*c = (struct candidate){.is_system = kind == 0};
	switch (kind) {
	case 0:
		return put(c, "/run", "sumwire");
	case 1:
		return put(c, getenv("XDG_RUNTIME_DIR"), "sumwire");
	case 2:
		snprintf(run_user, sizeof(run_user), "/run/user/%u", geteuid());
		return put(c, run_user, "sumwire");
	default: /* several machines may share HOME */
		(void)!gethostname(host, sizeof(host) - 1);
		return put(c, getenv("HOME"), ".sumwire-%s", host);
	}
}

/* Return whether only this user and root can create files in @path. */
static bool is_ours(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode) &&
	       (st.st_uid == geteuid() || st.st_uid == 0) &&
	       !(st.st_mode & OTHERS_WRITE);
}

/* Create the folder.  Errors: SW_EAGAIN it cannot be created, try the next
 * candidate; SW_EPERM it exists and is not safe. */
static int make(const struct candidate *c)
{
	mode_t closed = c->is_system ? OTHERS_WRITE : S_IRWXG | S_IRWXO;
	struct stat st;

	if (!c->is_system && !is_ours(c->parent))
		return SW_EAGAIN;
	if (mkdir(c->path, c->is_system ? 0755 : 0700) && errno != EEXIST)
		return SW_EAGAIN;
	if (lstat(c->path, &st) || !S_ISDIR(st.st_mode) ||
		(st.st_uid != geteuid() && !c->is_system) ||
		(st.st_mode & closed))
		return SW_EPERM;
	/* perhaps a service's folder: try the next candidate */
	return access(c->path, W_OK) ? SW_EAGAIN : 0;
}

int sw_folder_make(char out[SW_FOLDER_BYTES], char why[SW_FOLDER_WHY_BYTES])
{
	struct candidate c;

	for (uint32_t i = 0; i < CANDIDATES; i++) {
		int err = candidate(i, &c) ? make(&c) : SW_EAGAIN;

		if (err == SW_EAGAIN)
			continue;
		strcpy(out, c.path);
		if (err)
			snprintf(why, SW_FOLDER_WHY_BYTES,
				"%s must be a folder of user %u with mode %s, "
				"or others could create sockets there: remove "
				"it, or change its owner and mode",
				c.path, geteuid(),
				c.is_system ? "0755" : "0700");
		return err;
	}
	snprintf(why, SW_FOLDER_WHY_BYTES,
		"there is no folder for the sockets of user %u: neither "
		"XDG_RUNTIME_DIR (%s) nor HOME (%s) is a folder with a short "
		"path that belongs to that user and nobody else can write to; "
		"set XDG_RUNTIME_DIR to such a folder, or give absolute paths",
		geteuid(),
		getenv("XDG_RUNTIME_DIR") ? getenv("XDG_RUNTIME_DIR") : "unset",
		getenv("HOME") ? getenv("HOME") : "unset");
	return SW_EIO;
}

bool sw_folder_at(uint32_t i, char out[SW_FOLDER_BYTES])
{
	struct candidate c;

	if (i >= CANDIDATES)
		return false;
	strcpy(out, candidate(i, &c) ? c.path : "");
	return true;
}

bool sw_folder_seek(const char *name, char out[SW_FOLDER_BYTES])
{
	char path[2 * SW_FOLDER_BYTES];
	bool has_one = false;
	struct candidate c;

	for (uint32_t i = 0; *name && i < CANDIDATES; i++) {
		bool is_there;

		if (!candidate(i, &c) ||
			strlen(c.path) + 1 + strlen(name) >= SW_FOLDER_BYTES)
			continue;
		sprintf(path, "%s/%s", c.path, name);
		is_there = !access(path, F_OK);
		if (is_there || !has_one)
			strcpy(out, path);
		has_one = true;
		if (is_there)
			break;
	}
	return has_one;
}
