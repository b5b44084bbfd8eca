/* proc_port_trust.c - other users at the socket of a memif, and its lock.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Argument: the name of a single case to run.
 */
#include "proc_port_node.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { NOBODY = 65534, OURS = 4242, HELLO = 2, MESSAGE_BYTES = 128 };

/* Pretend that the connecting end has another user, so that it differs from the
 * test's user. */
static bool is_renamed;

__attribute__((visibility("default"))) uid_t geteuid(void)
{
	return is_renamed ? OURS : getuid();
}

static uint32_t stranger(void)
{
	return getuid() ? getuid() : NOBODY;
}

/* --- listeners --- */

struct listener {
	struct node *n;
	bool is_file_trusted; /* root owns the socket's file */
	bool is_answered;     /* expected: an answer to the greeting? */
	int fd;
};

static void bind_it(struct listener *l)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	memcpy(a.sun_path, l->n->socket, strlen(l->n->socket) + 1);
	l->fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(l->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	if (!l->is_file_trusted)
		assert_int_equal(chown(l->n->socket, stranger(), -1), 0);
}

static void await(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	need(poll(&p, 1, WAIT_S * 1000) == 1);
}

/* Send a driver's greeting; a listener that does not trust us may only
 * close. */
static void greet(struct listener *l)
{
	struct {
		uint16_t type;
		char name[32];
		uint16_t versions[2], regions, rings[2];
		uint8_t log2_slots;
		uint8_t rest[MESSAGE_BYTES - 45];
	} __attribute__((packed)) m = {.type = HELLO,
		.name = "stranger",
		.versions = {0x200, 0x200},
		.regions = 255,
		.rings = {255, 255},
		.log2_slots = 14};
	ssize_t got;
	int fd;

	_Static_assert(sizeof(m) == MESSAGE_BYTES, "as the driver has it");
	await(l->fd);
	fd = accept(l->fd, NULL, NULL);
	need(fd >= 0);
	(void)!send(fd, &m, sizeof(m), MSG_NOSIGNAL);
	await(fd);
	got = recv(fd, &m, sizeof(m), 0);
	need(l->is_answered ? got > 0 : got <= 0);
}

static struct listener *to_be;

static void listen_run(struct node *n)
{
	need(setuid(stranger()) == 0);
	need(listen(to_be->fd, 1) == 0);
	greet(to_be);
}

/* --- connecting ends --- */

static atomic_bool is_refused;

static void line(void *ctx, enum sw_log_level level, const char *text)
{
	char who[32];

	snprintf(who, sizeof(who), "user %u ", stranger());
	if (level == SW_LOG_ERROR && strstr(text, who) &&
		strstr(text, "neither our user (4242) nor root: not connected"))
		atomic_store(&is_refused, true);
	if (level <= SW_LOG_WARN)
		fprintf(stderr, "# %s\n", text);
}

static void open_port(struct node *n)
{
	is_renamed = true;
	n->log.line = line;
	n->eal.ports_bytes = sw_dpdk_port_bytes(&n->port);
	need(sw_dpdk_open(&n->eal, &n->dpdk) == 0);
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == 0);
}

static void refusing_run(struct node *n)
{
	double start = now_s();

	open_port(n);
	while (!atomic_load(&is_refused)) {
		need(now_s() - start < WAIT_S);
		usleep(1000);
	}
	need(!sw_dpdk_port_is_up(n->p));
	node_down(n);
}

/* The listener ends after an answer. */
static void trusting_run(struct node *n)
{
	n->port.trusted_uid = stranger();
	open_port(n);
	await(to_be->fd); /* at the end of a pipe */
	node_down(n);
}

static struct node *client_new(struct suite *s, struct listener *l)
{
	struct node *n = node_new(s, false);

	*l = (struct listener){.n = n,
		.is_file_trusted = l->is_file_trusted,
		.is_answered = l->is_answered};
	unlink(n->socket);
	bind_it(l);
	to_be = l;
	return n;
}

static void end(struct listener *l)
{
	close(l->fd);
	unlink(l->n->socket);
	free(l->n);
}

/* The port does not even connect. */
static void link__socket_of_another_user(void **state)
{
	struct listener l = {.is_file_trusted = false};
	struct node *n = client_new(*state, &l);
	struct pollfd p = {.fd = l.fd, .events = POLLIN};

	assert_int_equal(listen(l.fd, 1), 0);
	wait_ok(fork_node(n, refusing_run));
	assert_int_equal(poll(&p, 1, 0), 0);
	end(&l);
}

/* The file is root's, but another user listens: the port sends nothing. */
static void link__listener_of_another_user(void **state)
{
	struct listener l = {.is_file_trusted = true};
	struct node *n = client_new(*state, &l);
	pid_t pid;

	if (getuid()) { /* otherwise the file is the user's: above */
		end(&l);
		return;
	}
	pid = fork_node(n, listen_run);
	wait_ok(fork_node(n, refusing_run));
	wait_ok(pid);
	end(&l);
}

/* The port connects to a user whom the configuration names. */
static void link__listener_who_is_trusted(void **state)
{
	struct listener l = {.is_answered = true};
	struct node *n = client_new(*state, &l);
	int ends[2], listener = l.fd;
	pid_t pid, client;

	assert_int_equal(pipe(ends), 0);
	pid = fork_node(n, listen_run);
	l.fd = ends[0];
	client = fork_node(n, trusting_run);
	wait_ok(pid);
	assert_int_equal(write(ends[1], "", 1), 1);
	wait_ok(client);
	close(ends[1]);
	close(listener);
	end(&l);
}

/* --- locks --- */

static const char precious[] = "what was here before\n";

static void lock_path(const struct node *n, char out[100])
{
	snprintf(out, 100, "%s.lock", n->socket);
}

static void write_file(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(precious, f);
	fclose(f);
}

static void need_kept(const char *path)
{
	char text[sizeof(precious) + 1] = "";
	FILE *f = fopen(path, "r");

	need(f && fread(text, 1, sizeof(text) - 1, f) == strlen(precious));
	need(!strcmp(text, precious));
	fclose(f);
}

static void open_refused_run(struct node *n)
{
	need(sw_dpdk_open(&n->eal, &n->dpdk) == 0);
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == SW_ECONF);
}

static void lock__symlink(void **state)
{
	struct node *n = node_new(*state, true);
	char lock[100], file[100];

	lock_path(n, lock);
	snprintf(file, sizeof(file), "%s/precious", n->dir);
	write_file(file);
	assert_int_equal(symlink(file, lock), 0);
	wait_ok(fork_node(n, open_refused_run));
	need_kept(file);
	assert_int_equal(unlink(lock), 0);
	unlink(file);
	free(n);
}

/* A FIFO: opening it must not wait for a writer. */
static void lock__fifo(void **state)
{
	struct node *n = node_new(*state, true);
	char lock[100];

	lock_path(n, lock);
	assert_int_equal(mkfifo(lock, 0600), 0);
	wait_ok(fork_node(n, open_refused_run));
	unlink(lock);
	free(n);
}

static void renamed_run(struct node *n)
{
	is_renamed = true;
	open_refused_run(n);
}

static void lock__of_another_user(void **state)
{
	struct node *n = node_new(*state, true);
	char lock[100];

	lock_path(n, lock);
	write_file(lock);
	wait_ok(fork_node(n, renamed_run));
	need_kept(lock);
	unlink(lock);
	free(n);
}

/* The name may be a link to another file of ours: the port locks that file and
 * leaves it unchanged. */
static void keeping_run(struct node *n)
{
	char lock[100];

	lock_path(n, lock);
	need(sw_dpdk_open(&n->eal, &n->dpdk) == 0);
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == 0);
	need_kept(lock);
	node_down(n);
}

static void lock__is_not_written_to(void **state)
{
	struct node *n = node_new(*state, true);
	char lock[100];

	lock_path(n, lock);
	write_file(lock);
	wait_ok(fork_node(n, keeping_run));
	unlink(lock);
	free(n);
}

int main(int argc, char **argv)
{
	struct suite s = {.dir = "/tmp/sw-port-XXXXXX"};
	int failed;

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (!mkdtemp(s.dir))
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(link__socket_of_another_user, &s),
		cmocka_unit_test_prestate(link__listener_of_another_user, &s),
		cmocka_unit_test_prestate(link__listener_who_is_trusted, &s),
		cmocka_unit_test_prestate(lock__symlink, &s),
		cmocka_unit_test_prestate(lock__fifo, &s),
		cmocka_unit_test_prestate(lock__of_another_user, &s),
		cmocka_unit_test_prestate(lock__is_not_written_to, &s),
	};
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	suite_clean(&s);
	return failed;
}
