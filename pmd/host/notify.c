/* notify.c - report a service's state to its service manager.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Read NOTIFY_SOCKET into @a: a path, or '@' and an abstract name. Returns NULL
 * if there is no valid name. */
static const char *socket_name(struct sockaddr_un *a)
{
	const char *path = getenv("NOTIFY_SOCKET");

	if (!path || (path[0] != '/' && path[0] != '@') || !path[1] ||
		strlen(path) >= sizeof(a->sun_path))
		return NULL;
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	strcpy(a->sun_path, path);
	if (path[0] == '@')
		a->sun_path[0] = '\0';
	return path;
}

bool sw_notify_is_wanted(void)
{
	struct sockaddr_un a;

	return socket_name(&a);
}

void sw_notify(const char *text)
{
	struct sockaddr_un a;
	const char *path = socket_name(&a);
	int fd;

	if (!path)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
		(const struct sockaddr *)&a,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			    strlen(path)));
	close(fd);
}

uint64_t sw_notify_watchdog_ns(void)
{
	const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!us || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoull(us, NULL, 10) * 1000;
}
