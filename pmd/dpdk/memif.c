/* memif.c - memif: device arguments, the socket's name, the peer's user.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/dpdk/gate.h"
#include "pmd/dpdk/port_int.h"

enum { PATH_MAX_BYTES = 107 }; /* longest path of a Unix socket */

/* Return the size of a ring's buffers: always that of the largest frame,
 * because this driver never clears the "continued" mark of a frame that spans
 * two buffers. An odd number of cache lines spreads buffers over the cache
 * sets. */
static uint32_t buffer_bytes(void)
{
	uint32_t lines = (FRAME_REST_BYTES + SW_PAYLOAD_MAX + 63) / 64;

	return (lines | 1) * 64;
}

static int devargs(const struct sw_dpdk_port_params *p, uint32_t payload,
	const struct sw_log *log, char *args, size_t size)
{
	uint8_t mac[6];
	char secret[32] = "";

	(void)payload;
	if (!p->socket_path || !p->socket_path[0] ||
		strlen(p->socket_path) > PATH_MAX_BYTES ||
		strchr(p->socket_path, ',') || p->socket_path[0] != '/') {
		sw_log(log, SW_LOG_ERROR,
			"port %s: socket \"%s\": an absolute path of at most "
			"%d bytes without comma expected",
			p->name, p->socket_path ? p->socket_path : "",
			PATH_MAX_BYTES);
		return SW_ECONF;
	}
	/* The driver ignores the other end's number of queues but refuses a
	 * peer with another secret, so the secret contains the number. A single
	 * queue pair has no secret. */
	if (p->n_link_queues > 1)
		snprintf(secret, sizeof(secret), ",secret=sumwire-%u-queues",
			p->n_link_queues);
	sw_mac_store(mac, sw_mac_of_ip(p->ip));
	snprintf(args, size,
		"role=%s,id=%u,socket=%s,socket-abstract=no,rsize=%d,bsize=%u,"
		"mac=%02x:%02x:%02x:%02x:%02x:%02x,zero-copy=no%s",
		p->side == SW_DPDK_LISTEN ? "server" : "client", p->memif_id,
		p->socket_path, __builtin_ctz(p->ring_slots), buffer_bytes(),
		mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], secret);
	return 0;
}

/* Return the first descriptor of this process for which @is is true, or -1. */
static int fd_find(bool (*is)(int fd, const void *what), const void *what)
{
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *e;
	int found = -1;

	while (fds && found < 0 && (e = readdir(fds)))
		if (e->d_name[0] != '.' && is(atoi(e->d_name), what))
			found = atoi(e->d_name);
	if (fds)
		closedir(fds);
	return found;
}

/* --- listening: claim the socket's name --- */

struct lock {
	int fd;
	struct stat st;
};

static bool is_same_file(int fd, const void *what)
{
	const struct lock *l = what;
	struct stat st;

	return fd != l->fd && !fstat(fd, &st) && st.st_dev == l->st.st_dev &&
	       st.st_ino == l->st.st_ino;
}

/* Open the lock file. In a folder that other users can write to, it may belong
 * to another user: follow no link, do not write, and accept it only if it is
 * ours. */
static int lock_open(const char *port, const char *path,
	const struct sw_log *log, struct lock *l)
{
	l->fd = open(path,
		O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (l->fd < 0 && errno != ELOOP) {
		sw_log(log, SW_LOG_ERROR,
			"port %s: cannot make %s: %s; the folder of its socket "
			"has to be there, and writable",
			port, path, strerror(errno));
		return SW_ECONF;
	}
	if (l->fd >= 0 && !fstat(l->fd, &l->st) && S_ISREG(l->st.st_mode) &&
		l->st.st_uid == geteuid())
		return 0;
	sw_log(log, SW_LOG_ERROR,
		"port %s: %s does not belong to user %u: remove it, or choose "
		"a "
		"folder in which no other user can write",
		port, path, geteuid());
	if (l->fd >= 0)
		close(l->fd);
	return SW_ECONF;
}

/* Lock the file next to the socket: a locked file means that the socket is in
 * use, not left by a killed process. Returns its descriptor; SW_EAGAIN if this
 * process already holds the lock for another link on this socket; or an
 * error. */
static int lock_take(
	const char *port, const char *path, const struct sw_log *log)
{
	struct lock l;

	for (;;) {
		int err = lock_open(port, path, log, &l);

		if (err)
			return err;
		if (flock(l.fd, LOCK_EX | LOCK_NB))
			break;
		if (!fstat(l.fd, &l.st) && l.st.st_nlink)
			return l.fd;
		close(l.fd); /* its last owner has just removed it */
	}
	close(l.fd);
	l.fd = -1;
	if (fd_find(is_same_file, &l) >= 0)
		return SW_EAGAIN;
	sw_log(log, SW_LOG_ERROR,
		"port %s: %s: another process listens on this socket; give "
		"each process its own",
		port, path);
	return SW_EBUSY;
}

/* Claim the socket's name and remove a stale socket, so that we can listen.
 * *@fd_out stays -1 if the caller has no claim to release. */
static int claim(const struct sw_dpdk_port_params *p, const struct sw_log *log,
	int *fd_out)
{
	char path[PATH_MAX_BYTES + 8];
	struct stat st;
	int fd;

	if (p->side != SW_DPDK_LISTEN)
		return 0;
	snprintf(path, sizeof(path), "%s.lock", p->socket_path);
	fd = lock_take(p->name, path, log);
	if (fd == SW_EAGAIN)
		return 0;
	if (fd < 0)
		return fd;
	if (!lstat(p->socket_path, &st) && !S_ISSOCK(st.st_mode)) {
		sw_log(log, SW_LOG_ERROR,
			"port %s: %s: exists and is no socket; choose another "
			"path",
			p->name, p->socket_path);
		unlink(path);
		close(fd);
		return SW_ECONF;
	}
	unlink(p->socket_path);
	*fd_out = fd;
	return 0;
}

static void unclaim(const char *socket_path, int fd)
{
	char path[PATH_MAX_BYTES + 8];

	unlink(socket_path);
	snprintf(path, sizeof(path), "%s.lock", socket_path);
	unlink(path);
	close(fd);
}

/* --- connecting: check the peer's user --- */

static bool is_trusted(const struct port *p, uid_t uid)
{
	return uid == 0 || uid == geteuid() || uid == p->params.trusted_uid;
}

/* Return the user that may have created the socket: its owner, or its folder's
 * owner if that user is not trusted; 0 if there is no socket or folder. */
static uid_t owner_of(const struct port *p)
{
	char folder[PATH_MAX_BYTES + 1];
	const char *path = p->params.socket_path;
	size_t n = (size_t)(strrchr(path, '/') - path) + 1;
	struct stat st, sock;
	int fd;

	snprintf(folder, sizeof(folder), "%.*s", (int)n, path);
	fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || fstatat(fd, path + n, &sock, AT_SYMLINK_NOFOLLOW))
		sock.st_uid = st.st_uid = 0; /* nothing there */
	close(fd);
	return is_trusted(p, st.st_uid) ? sock.st_uid : st.st_uid;
}

struct answer {
	const struct port *p;
	struct ucred who;
};

/* Return whether @fd is a connection that we made to an untrusted user. Checks
 * every connection of the process, because a listener may have bound another
 * name of the path. */
static bool is_to_stranger(int fd, const void *what)
{
	struct answer *a = (struct answer *)(uintptr_t)what;
	struct sockaddr_un our = {.sun_family = AF_UNSPEC}, their = our;
	socklen_t n = sizeof(our), len = sizeof(their), cred = sizeof(a->who);
	const socklen_t unnamed = offsetof(struct sockaddr_un, sun_path);
	int type = 0;
	socklen_t n_type = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n_type) &&
	       type == SOCK_SEQPACKET &&
	       !getsockname(fd, (struct sockaddr *)&our, &n) &&
	       our.sun_family == AF_UNIX && n <= unnamed &&
	       !getpeername(fd, (struct sockaddr *)&their, &len) &&
	       len > unnamed &&
	       !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &a->who, &cred) &&
	       !is_trusted(a->p, a->who.uid);
}

static uint32_t stranger(const struct port *p, bool is_connected)
{
	struct answer a = {.p = p};
	uid_t uid;

	if (is_connected)
		return fd_find(is_to_stranger, &a) < 0 ? 0 : a.who.uid;
	uid = owner_of(p);
	return is_trusted(p, uid) ? 0 : uid;
}

/* The driver checks the folder's rights by a call that glibc maps to
 * faccessat2, without a fallback if a seccomp filter denies it. */
static void missing(const struct sw_dpdk_port_params *p, uint64_t bytes,
	char *out, size_t size)
{
	(void)bytes;
	if (faccessat(AT_FDCWD, "/", F_OK, AT_EACCESS))
		snprintf(out, size,
			"faccessat2: %s; does a seccomp filter deny it? Allow "
			"it, or use a port of type udp",
			strerror(errno));
}

const struct port_type sw_dpdk_memif = {
	.name = "memif",
	.devargs = devargs,
	.claim = claim,
	.unclaim = unclaim,
	.removed = sw_gate_silence,
	.stranger = stranger,
	.missing = missing,
	.ring_slots = 32,
	.burst = 8,
	.is_sync = true,
	.is_link = true,
};
