/* daemons.c - find the daemons of this machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/daemons.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/client/folder.h"
#include "pmd/host/stale.h"

enum { LIMIT_MS = 1000, RETRY_MS = 10, TEXT_BYTES = 160 << 10, OPEN = 256 };

/* A daemon that is being asked. */
struct asked {
	struct sw_found_daemon *d;
	int fd;     /* -1: done */
	size_t len; /* bytes of its text so far */
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int left_ms(uint64_t until_ms)
{
	uint64_t now = now_ms();

	return now < until_ms ? (int)(until_ms - now) : 0;
}

/* --- asking --- */

/* Return a connected descriptor, or -1 after setting @d->found, and @d->pid to
 * 0 if the daemon has ended. */
static int dial(struct sw_found_daemon *d, uint64_t until_ms)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	d->found = SW_FOUND_SILENT;
	if (fd < 0)
		return -1;
	strcpy(a.sun_path, d->path);
	while (connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		if ((errno == EAGAIN || errno == EINTR) && left_ms(until_ms)) {
			poll(NULL, 0, RETRY_MS); /* its backlog is full */
			continue;
		}
		if (errno == EACCES || errno == EPERM)
			d->found = SW_FOUND_DENIED;
		else if (errno == ECONNREFUSED || errno == ENOENT)
			d->pid = 0; /* the daemon has ended */
		close(fd);
		return -1;
	}
	return fd;
}

/* Read available bytes; at the end of the answer, close the connection and
 * parse the text. */
static void take_answer(struct asked *a)
{
	struct sw_found_daemon *d = a->d;
	ssize_t n = recv(a->fd, d->text + a->len, TEXT_BYTES - 1 - a->len, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		a->len += (size_t)n;
		if (a->len < TEXT_BYTES - 1)
			return;
	}
	close(a->fd);
	a->fd = -1;
	d->text[a->len] = '\0';
	d->found =
		!n && sw_daemons_parse(d->text, d) ? SW_FOUND : SW_FOUND_OTHER;
}

static void ask_some(struct sw_found_daemon *all, uint32_t n)
{
	uint64_t until_ms = now_ms() + LIMIT_MS;
	struct pollfd polls[OPEN];
	struct asked asked[OPEN];
	uint32_t n_open = 0;

	for (uint32_t i = 0; i < n; i++) {
		asked[i] = (struct asked){.d = &all[i], .fd = -1};
		all[i].text = malloc(TEXT_BYTES);
		if (all[i].text)
			asked[i].fd = dial(&all[i], until_ms);
	}
	do {
		n_open = 0;
		for (uint32_t i = 0; i < n; i++) {
			polls[i] = (struct pollfd){
				.fd = asked[i].fd, .events = POLLIN};
			n_open += asked[i].fd >= 0;
		}
		if (n_open && poll(polls, n, left_ms(until_ms)) > 0)
			for (uint32_t i = 0; i < n; i++)
				if (polls[i].revents)
					take_answer(&asked[i]);
	} while (n_open && left_ms(until_ms));
	for (uint32_t i = 0; i < n; i++)
		if (asked[i].fd >= 0)
			close(asked[i].fd);
}

/* --- finding --- */

/* Return the PID in a name daemon-PID.sock; 0 for any other name. */
static pid_t pid_of(const char *name)
{
	const size_t n = strlen(SW_DAEMON_PREFIX);
	size_t digits;

	if (strncmp(name, SW_DAEMON_PREFIX, n))
		return 0;
	digits = strspn(name + n, "0123456789");
	return digits <= 9 && !strcmp(name + n + digits, ".sock")
		       ? (pid_t)atoi(name + n)
		       : 0;
}

static bool is_known(const struct sw_found_daemons *out, const char *path)
{
	for (uint32_t i = 0; i < out->n; i++)
		if (!strcmp(out->all[i].path, path))
			return true;
	return false;
}

static int add(struct sw_found_daemons *out, const char *path, pid_t pid)
{
	struct sw_found_daemon *all, *d;
	struct stat st;

	if (out->n == SW_DAEMONS_MAX || is_known(out, path) ||
		lstat(path, &st) || !S_ISSOCK(st.st_mode))
		return 0;
	all = realloc(out->all, (out->n + 1) * sizeof(*all));
	if (!all)
		return SW_ENOMEM;
	out->all = all;
	d = &all[out->n++];
	*d = (struct sw_found_daemon){.pid = pid, .uid = st.st_uid};
	snprintf(d->path, sizeof(d->path), "%s", path);
	return 0;
}

static int list(const char *folder, struct sw_found_daemons *out)
{
	char path[sizeof(out->all->path)];
	DIR *dir;
	const struct dirent *e;
	int err = 0;

	sw_stale_sweep(folder, SW_DAEMON_PREFIX);
	sw_stale_sweep(folder, SW_TRACE_PREFIX);
	dir = opendir(folder);
	while (dir && !err && (e = readdir(dir))) {
		pid_t pid = pid_of(e->d_name);
		int n = snprintf(
			path, sizeof(path), "%s/%s", folder, e->d_name);

		if (pid && n > 0 && n < (int)sizeof(path))
			err = add(out, path, pid);
	}
	if (dir)
		closedir(dir);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct sw_found_daemon *x = a, *y = b;
	int order = strcmp(x->name ? x->name : "~", y->name ? y->name : "~");

	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Ask the daemons from index @first on, and drop daemons that have ended. */
static void ask(struct sw_found_daemons *out, uint32_t first)
{
	uint32_t kept = first;

	for (uint32_t i = first; i < out->n; i += OPEN)
		ask_some(&out->all[i], out->n - i < OPEN ? out->n - i : OPEN);
	for (uint32_t i = first; i < out->n; i++) {
		if (out->all[i].pid)
			out->all[kept++] = out->all[i];
		else
			free(out->all[i].text);
	}
	out->n = kept;
	if (out->n)
		qsort(out->all, out->n, sizeof(*out->all), compare);
}

int sw_daemons_find_in(const char *folder, struct sw_found_daemons *out)
{
	uint32_t first = out->n;
	int err = list(folder, out);

	ask(out, first);
	return err;
}

/* List the sockets in the folders of all users, for root. */
static int list_users(struct sw_found_daemons *out)
{
	char pattern[128], host[65] = "";
	glob_t g = {0};
	int err = 0;

	(void)!gethostname(host, sizeof(host) - 1);
	snprintf(pattern, sizeof(pattern), "/home/*/.sumwire-%s", host);
	glob("/run/user/*/sumwire", 0, NULL, &g);
	glob(pattern, GLOB_APPEND, NULL, &g);
	for (size_t i = 0; i < g.gl_pathc && !err; i++)
		err = list(g.gl_pathv[i], out);
	globfree(&g);
	return err;
}

int sw_daemons_find(struct sw_found_daemons *out)
{
	char folder[SW_FOLDER_BYTES];
	int err = 0;

	*out = (struct sw_found_daemons){0};
	for (uint32_t i = 0; sw_folder_at(i, folder) && !err; i++)
		if (folder[0])
			err = list(folder, out);
	if (!err && !geteuid())
		err = list_users(out);
	ask(out, 0);
	return err;
}

void sw_daemons_free(struct sw_found_daemons *found)
{
	for (uint32_t i = 0; i < found->n; i++)
		free(found->all[i].text);
	free(found->all);
	*found = (struct sw_found_daemons){0};
}
