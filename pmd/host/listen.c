/* listen.c - the agent's socket file: never replace that of a live agent.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "pmd/host/host.h"
#include "pmd/host/stale.h"

enum { BACKLOG = 16 };

static int socket_new(void)
{
	return socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Set the mode before listen(), while no process can connect. If other users
 * may attach, the file lets every user connect, and sw_host_admits checks the
 * user of each connection. */
static int bind_and_listen(struct sw_host *h, const struct sockaddr_un *a)
{
	mode_t mode = h->p.n_uids ? 0666 : 0600;
	struct stat st;

	h->listener = socket_new();
	if (h->listener < 0 || bind(h->listener, (const void *)a, sizeof(*a)) ||
		lstat(h->p.path, &st))
		goto fail;
	h->sock_dev = st.st_dev;
	h->sock_ino = st.st_ino;
	if (!chmod(h->p.path, mode) && !listen(h->listener, BACKLOG))
		return 0;
fail:
	sw_log(h->p.log, SW_LOG_ERROR, "cannot listen at %s: %s", h->p.path,
		strerror(errno));
	return SW_EIO;
}

/* Lock the directory briefly, so that two agents that start at once cannot
 * remove each other's socket as stale. The lock leaves nothing behind. Another
 * user's lock must not prevent the start, so wait for it at most a second. */
static int lock_folder(const struct sw_host *h)
{
	char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int fd;

	memcpy(copy, h->p.path, strlen(h->p.path) + 1);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		sw_log(h->p.log, SW_LOG_ERROR,
			"cannot open the folder of %s: %s", h->p.path,
			strerror(errno));
		return SW_EIO;
	}
	for (int i = 0; i < 100 && flock(fd, LOCK_EX | LOCK_NB); i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	return fd;
}

/* Lock the directory and remove a stale socket file. Returns the lock's
 * descriptor or an error. */
static int clear_path(const struct sw_host *h)
{
	int folder = lock_folder(h), err;

	if (folder < 0)
		return folder;
	err = sw_stale_remove(
		h->p.path, SOCK_SEQPACKET, "agent's socket", h->p.log);
	if (!err)
		return folder;
	close(folder);
	return err;
}

int sw_host_check_path(const struct sw_host *h)
{
	const size_t max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	int folder;

	if (!h->p.path[0] || strlen(h->p.path) > max) {
		sw_log(h->p.log, SW_LOG_ERROR,
			"socket path '%s' must have 1 to %zu bytes", h->p.path,
			max);
		return SW_EINVAL;
	}
	folder = clear_path(h);
	if (folder < 0)
		return folder;
	close(folder);
	return 0;
}

int sw_host_listen(struct sw_host *h)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int folder = clear_path(h), err;

	if (folder < 0)
		return folder;
	memcpy(a.sun_path, h->p.path, strlen(h->p.path));
	err = bind_and_listen(h, &a);
	close(folder);
	return err;
}

void sw_host_unlisten(struct sw_host *h)
{
	struct stat st;

	if (h->listener >= 0)
		close(h->listener);
	h->listener = -1;
	if (h->sock_ino && !lstat(h->p.path, &st) && st.st_dev == h->sock_dev &&
		st.st_ino == h->sock_ino)
		unlink(h->p.path);
}

bool sw_host_admits(const struct sw_host *h, uint32_t uid)
{
	if (uid == geteuid())
		return true;
	for (uint32_t i = 0; i < h->p.n_uids; i++)
		if (h->uids[i] == uid)
			return true;
	return false;
}
