/* stale.c - remove stale socket files, at which no process listens.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/stale.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/error.h"

/* Return 0 if a process listens at @path, otherwise the errno. */
static int connect_errno(const char *path, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (s < 0)
		return errno;
	memcpy(a.sun_path, path, strlen(path));
	err = connect(s, (const void *)&a, sizeof(a)) ? errno : 0;
	close(s);
	return err;
}

int sw_stale_remove(
	const char *path, int type, const char *what, const struct sw_log *log)
{
	struct stat st;

	if (lstat(path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		sw_log(log, SW_LOG_ERROR,
			"%s %s: exists and is not a socket; give another path",
			what, path);
		return SW_EINVAL;
	}
	if (connect_errno(path, type) != ECONNREFUSED) {
		sw_log(log, SW_LOG_ERROR,
			"%s %s: another process listens there; give this one "
			"another path, or stop that one",
			what, path);
		return SW_EBUSY;
	}
	if (!unlink(path) || errno == ENOENT)
		return 0;
	sw_log(log, SW_LOG_ERROR,
		"%s %s: left by another process, cannot be removed: %s", what,
		path, strerror(errno));
	return SW_EIO;
}

/* Return the PID in a name PREFIXPID.sock; 0 for any other name. */
static pid_t pid_of(const char *name, const char *prefix)
{
	size_t n = strlen(prefix), digits;

	if (strncmp(name, prefix, n))
		return 0;
	digits = strspn(name + n, "0123456789");
	return digits <= 9 && !strcmp(name + n + digits, ".sock")
		       ? (pid_t)atoi(name + n)
		       : 0;
}

/* Return whether this process may remove the socket. Root's daemons become
 * other users, so their sockets are in root's folder or in that user's. */
static bool may_remove(const struct stat *folder, const struct stat *socket)
{
	return socket->st_uid == geteuid() ||
	       (!geteuid() &&
		       (!folder->st_uid || folder->st_uid == socket->st_uid));
}

static bool is_left(const struct stat *folder, const char *path, pid_t pid)
{
	struct stat st;

	return !lstat(path, &st) && S_ISSOCK(st.st_mode) &&
	       may_remove(folder, &st) && kill(pid, 0) && errno == ESRCH &&
	       connect_errno(path, SOCK_STREAM) == ECONNREFUSED;
}

void sw_stale_sweep(const char *folder, const char *prefix)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	DIR *dir = opendir(folder);
	struct stat st;
	const struct dirent *e;

	while (dir && !fstat(dirfd(dir), &st) && (e = readdir(dir))) {
		pid_t pid = pid_of(e->d_name, prefix);
		int n = snprintf(
			path, sizeof(path), "%s/%s", folder, e->d_name);

		if (pid && n < (int)sizeof(path) && is_left(&st, path, pid))
			unlink(path);
	}
	if (dir)
		closedir(dir);
}
