/* attach.c - attach to this machine's agent and learn the job's ranks.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * NCCL exchanges handles before a process knows its rank in the job. Each
 * process therefore puts a random id of its own into its handles. When all have
 * attached, they gather these ids, which tell the ranks of a communicator's
 * processes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pmd/client/folder.h"
#include "pmd/nccl/coll.h"

enum { GATHER_TIMEOUT_S = 60 };

int sw_nccl_result_of(int err)
{
	switch (err) {
	case 0:
		return NCCL_OK;
	case SW_EINVAL:
		return NCCL_INTERNAL;
	case SW_EMISMATCH:
	case SW_ECONF:
	case SW_EPERM:
		return NCCL_USAGE;
	case SW_EPEER:
	case SW_ESERVER:
	case SW_EABORTED:
	case SW_EEXPIRED:
	case SW_ETIMEDOUT:
		return NCCL_REMOTE;
	default:
		return NCCL_SYSTEM;
	}
}

bool sw_nccl_has_agent(char path[108])
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct sw_settings s;
	bool is_there;
	int fd;

	sw_settings_init(&s);
	snprintf(path, sizeof(a.sun_path), "%s", s.agent);
	if (!strchr(s.agent, '/'))
		(void)sw_folder_seek(s.agent, path);
	memcpy(a.sun_path, path, sizeof(a.sun_path));
	/* A socket of another type than the agent's: connect fails with
	 * EPROTOTYPE, and the agent notices nothing. */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	is_there = fd >= 0 && connect(fd, (void *)&a, sizeof(a)) &&
		   errno == EPROTOTYPE;
	if (fd >= 0)
		close(fd);
	return is_there;
}

static void log_line(void *ctx, const char *line)
{
	sw_nccl_say(false, "%s", line);
}

/* Learn the rank of each process by an all_gather of the ids. */
static int gather(struct sw_nccl_process *p)
{
	struct sw_coll_args a = {.size = sizeof(a),
		.kind = SW_ALL_GATHER,
		.dtype = SW_U8,
		.count = sizeof(*p->ranks),
		.send = &p->own};
	struct sw_group *all;
	uint64_t handle;
	int err;

	p->ranks = calloc(sw_size(p->client), sizeof(*p->ranks));
	a.recv = p->ranks;
	if (!p->ranks)
		return SW_ENOMEM;
	err = sw_group_open(p->client, "nccl", NULL, 0, &all);
	if (!err)
		err = sw_coll(all, &a, &handle);
	if (!err)
		err = sw_wait(p->client, handle);
	return err ? err : sw_group_close(all);
}

/* Return SUMWIRE_OPEN_TIMEOUT, or @otherwise if it is unset or invalid. */
static uint32_t open_timeout_s(uint32_t otherwise)
{
	const char *text = getenv("SUMWIRE_OPEN_TIMEOUT");
	unsigned long s = text ? strtoul(text, NULL, 10) : 0;

	return s && s < INT32_MAX ? (uint32_t)s : otherwise;
}

int sw_nccl_attach(struct sw_nccl_process *p, int *event_fd)
{
	struct sw_settings s;
	int err;

	sw_settings_init(&s);
	s.log = log_line;
	s.open_timeout_s = open_timeout_s(s.open_timeout_s);
	s.wait_timeout_s = GATHER_TIMEOUT_S;
	err = sw_open(&s, &p->client);
	if (!err)
		err = sw_event_fd(p->client, event_fd);
	if (!err)
		err = gather(p);
	if (err) {
		sw_nccl_say(true, "cannot attach to the agent: %s: %s",
			sw_error_name(err), sw_last_error(p->client));
		sw_close(&p->client);
		free(p->ranks);
		p->ranks = NULL;
		return sw_nccl_result_of(err);
	}
	sw_nccl_say(false, "attached as rank %u of %u", sw_rank(p->client),
		sw_size(p->client));
	return NCCL_OK;
}
