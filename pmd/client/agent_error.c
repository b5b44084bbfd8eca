/* agent_error.c - an agent's last error, for processes that outlive the agent.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/agent_error.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/text.h"
#include "pmd/client/folder.h"

enum { PATH_BYTES = SW_FOLDER_BYTES + 8 };

static const char *path_of(const char *socket, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%s.error", socket);
	return out;
}

int sw_agent_error_make(const char *socket)
{
	char path[PATH_BYTES];

	sw_agent_error_remove(socket);
	return open(path_of(socket, path),
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

void sw_agent_error_remove(const char *socket)
{
	char path[PATH_BYTES];

	unlink(path_of(socket, path));
}

/* Always write the full size in one call, so that no tail of a longer text
 * remains. */
void sw_agent_error_write(int fd, const char *text)
{
	char all[SW_EDGE_TEXT_BYTES] = "";

	if (fd < 0)
		return;
	snprintf(all, sizeof(all), "%s", text);
	(void)!pwrite(fd, all, sizeof(all), 0);
}

int sw_agent_error_open(const char *socket, int peer)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);
	char path[PATH_BYTES];
	struct stat st;
	int fd = open(path_of(socket, path),
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (!getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
		!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == cred.uid)
		return fd;
	close(fd);
	return -1;
}

bool sw_agent_error_read(int fd, char text[SW_EDGE_TEXT_BYTES])
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, SW_EDGE_TEXT_BYTES, 0);

	if (n < SW_EDGE_TEXT_BYTES)
		return false;
	sw_text_clean(text, SW_EDGE_TEXT_BYTES);
	return text[0];
}
