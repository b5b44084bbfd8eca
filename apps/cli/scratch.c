/* scratch.c - a folder that lives as long as its process.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"

enum {
	FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	RANDOM = 6, /* characters that mkdtemp appends */
	TRIES = 10,
	PATH = 512,
};

static int entry_remove(
	const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	if (walk->level)
		(void)remove(path); /* another process may have removed it */
	return 0;
}

/* Empty the folder through its descriptor: its name may refer to another folder
 * by now. */
static void empty(int fd)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/.", fd);
	nftw(path, entry_remove, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static bool is_ours(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_uid == geteuid() && st.st_nlink;
}

/* Remove a folder whose lock is free, because its owner has ended. */
static void sweep_one(const char *path)
{
	int fd = open(path, FLAGS);

	if (fd < 0)
		return;
	if (is_ours(fd) && !flock(fd, LOCK_EX | LOCK_NB) && is_ours(fd)) {
		empty(fd);
		rmdir(path);
	}
	close(fd);
}

static void sweep(const char *parent, const char *prefix)
{
	size_t n = strlen(prefix);
	DIR *dir = opendir(parent);
	const struct dirent *e;
	char path[PATH];

	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, prefix, n) || e->d_name[n] != '-' ||
			strlen(e->d_name) != n + 1 + RANDOM)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", parent, e->d_name) <
			PATH)
			sweep_one(path);
	}
	if (dir)
		closedir(dir);
}

/* Lock the new folder.  Returns false if another process, in its sweep, removed
 * the folder before this one had locked it. */
static bool lock(struct sw_scratch *s)
{
	s->fd = open(s->path, FLAGS);
	if (s->fd >= 0 && !flock(s->fd, LOCK_EX | LOCK_NB) && is_ours(s->fd))
		return true;
	if (s->fd >= 0)
		close(s->fd);
	return false;
}

int sw_scratch_open(
	struct sw_scratch *s, const char *parent, const char *prefix)
{
	char name[PATH];

	*s = (struct sw_scratch){.fd = -1};
	if (snprintf(name, sizeof(name), "%s/%s-XXXXXX", parent, prefix) >=
		(int)sizeof(s->path))
		return SW_EINVAL;
	sweep(parent, prefix);
	for (int i = 0; i < TRIES; i++) {
		strcpy(s->path, name);
		if (!mkdtemp(s->path))
			break;
		if (lock(s))
			return 0;
	}
	s->path[0] = 0;
	return SW_EIO;
}

void sw_scratch_close(struct sw_scratch *s)
{
	if (!s->path[0])
		return;
	empty(s->fd);
	rmdir(s->path);
	close(s->fd);
	s->path[0] = 0;
}
