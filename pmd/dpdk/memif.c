/* memif.c - what is special about memif: its arguments, its socket's name.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/error.h"
#include "pmd/dpdk/gate.h"
#include "pmd/dpdk/port_int.h"

enum { PATH_MAX_BYTES = 107 }; /* of a Unix socket */

/* Size of a ring's buffers.  Always that of the largest frame, whatever the
 * payload class: a frame that spans two buffers leaves a "continued" mark that
 * this driver never clears.  An odd number of cache lines, so that buffers do
 * not fall on the same cache sets. */
static uint32_t buffer_bytes(void)
{
	uint32_t lines =
		(FRAME_HEAD_BYTES + SW_PAYLOAD_MAX + TRAILER_BYTES + 63) / 64;

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
	/* The driver does not look at the other end's number, but refuses who
	 * has another secret.  One queue pair has none, as ever. */
	if (p->n_link_queues > 1)
		snprintf(secret, sizeof(secret), ",secret=sumwire-%u-queues",
			p->n_link_queues);
	sw_mac_store(mac, sw_mac_of_ip(p->ip));
	snprintf(args, size,
		"role=%s,id=%u,socket=%s,socket-abstract=no,rsize=%d,bsize=%u,"
		"mac=%02x:%02x:%02x:%02x:%02x:%02x,zero-copy=no%s",
		p->is_listener ? "server" : "client", p->memif_id,
		p->socket_path, __builtin_ctz(p->ring_slots), buffer_bytes(),
		mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], secret);
	return 0;
}

/* A lock file beside the socket tells a socket in use from one that a killed
 * process left.  Its content is the owner's pid, since one process may listen
 * for several links on one socket. */
static int lock_is_ours(const char *path)
{
	char text[16] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return atoi(text) == getpid();
}

static int lock_take(
	const char *port, const char *path, const struct sw_log *log)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0) {
		sw_log(log, SW_LOG_ERROR,
			"port %s: cannot make %s: %s; the folder of its socket "
			"has to be there, and writable",
			port, path, strerror(errno));
		return SW_ECONF;
	}
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		if (lock_is_ours(path))
			return SW_EAGAIN;
		sw_log(log, SW_LOG_ERROR,
			"port %s: %s: another process listens on this socket; "
			"give each process its own",
			port, path);
		return SW_EBUSY;
	}
	if (ftruncate(fd, 0) || dprintf(fd, "%d\n", getpid()) < 0) {
		sw_log(log, SW_LOG_ERROR, "port %s: %s: %s", port, path,
			strerror(errno));
		close(fd);
		return SW_EIO;
	}
	return fd;
}

/* Make the name free for us to listen on; *@fd_out stays -1 where there is
 * nothing to give back. */
static int claim(const struct sw_dpdk_port_params *p, const struct sw_log *log,
	int *fd_out)
{
	char path[PATH_MAX_BYTES + 8];
	struct stat st;
	int fd;

	if (!p->is_listener)
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

const struct port_type sw_dpdk_memif = {
	.name = "memif",
	.devargs = devargs,
	.claim = claim,
	.unclaim = unclaim,
	.removed = sw_gate_silence,
	.ring_slots = 32,
	.burst = 8,
	.is_sync = true,
	.is_link = true,
};
