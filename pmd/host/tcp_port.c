/* tcp_port.c - find a free TCP port of this machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/tcp_port.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/error.h"

int sw_tcp_port_free(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is_bound = fd >= 0 &&
			!bind(fd, (const struct sockaddr *)&a, sizeof(a)) &&
			!getsockname(fd, (struct sockaddr *)&a, &len);

	if (fd >= 0)
		close(fd);
	return is_bound ? ntohs(a.sin_port) : SW_EIO;
}
