/* proc_port_node.c - one process of a test of the DPDK port.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "proc_port_node.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void need_at(bool is_true, int line)
{
	if (is_true)
		return;
	fprintf(stderr, "line %d failed in process %d\n", line, getpid());
	_exit(line % 255 + 1);
}
double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void log_line(void *ctx, enum sw_log_level level, const char *text)
{
	const struct node *n = ctx;

	if (level <= SW_LOG_WARN)
		fprintf(stderr, "# %s %d: %s\n",
			n->is_server ? "server" : "client", getpid(), text);
}

struct node *node_new(const struct suite *s, bool is_server)
{
	struct node *n = calloc(1, sizeof(*n));

	need(n != NULL);
	n->is_server = is_server;
	snprintf(n->dir, sizeof(n->dir), "%s", s->dir);
	snprintf(n->socket, sizeof(n->socket), "%s/link", s->dir);
	n->log = (struct sw_log){log_line, n, SW_LOG_INFO};
	sw_dpdk_params_init(&n->eal);
	n->eal.name = is_server ? "server" : "client";
	n->eal.runtime_dir = n->dir;
	n->eal.log = &n->log;
	sw_dpdk_port_params_init(&n->port);
	n->port.name = "p0";
	n->port.ip = sw_ip_v4(is_server ? SERVER_IP : CLIENT_IP);
	n->port.udp = UDP;
	n->port.socket_path = n->socket;
	n->port.side = is_server ? SW_DPDK_LISTEN : SW_DPDK_CONNECT;
	n->n_frames = 1000;
	n->patience_s = WAIT_S;
	return n;
}

void node_up(struct node *n)
{
	double start = now_s();

	n->eal.ports_bytes = sw_dpdk_port_bytes(&n->port);
	need(sw_dpdk_open(&n->eal, &n->dpdk) == 0);
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == 0);
	while (!sw_dpdk_port_is_up(n->p)) {
		need(now_s() - start < WAIT_S);
		usleep(1000);
	}
}

void node_down(struct node *n)
{
	sw_dpdk_port_close(&n->p);
	sw_dpdk_close(&n->dpdk);
}

/* Send back all frames while clients come and go. */
int serve(void *arg)
{
	struct node *n = arg;
	const struct sw_port_ops *ops = n->p->ops;
	struct sw_rx_frame in[SW_RX_BURST];

	while (n->p) {
		uint32_t room = ops->tx_room(n->p);
		uint32_t got = ops->rx(n->p, in, room);

		for (uint32_t i = 0; i < got; i++) {
			struct sw_tx_frame f = {
				.payload = in[i].data + SW_HEAD_BYTES,
				.payload_len = in[i].len - SW_HEAD_BYTES,
				.to = in[i].from,
			};

			memcpy(f.head, in[i].data, SW_HEAD_BYTES);
			ops->tx(n->p, &f, 1);
		}
		ops->rx_release(n->p);
		ops->tx_flush(n->p);
		if (!got)
			sched_yield();
	}
	return 0;
}

void server_run(struct node *n)
{
	node_up(n);
	sw_dpdk_launch(n->dpdk, 0, serve, n);
	sw_dpdk_join(n->dpdk, 0);
}

pid_t fork_node(struct node *n, void (*run)(struct node *))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* cmocka handles these signals, and would continue in the child. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	run(n);
	_exit(0);
}

void wait_ok(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void assert_alive(pid_t pid, int n_kills)
{
	int status = 0;

	if (waitpid(pid, &status, WNOHANG) == 0)
		return;
	fail_msg("the survivor died at kill %d: signal %d, exit status %d",
		n_kills, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

void wait_killed(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

void suite_clean(const struct suite *s)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/link", s->dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/link.lock", s->dir);
	unlink(path);
	rmdir(s->dir);
}
