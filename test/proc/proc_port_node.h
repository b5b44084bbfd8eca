/* proc_port_node.h - one process of a test of the DPDK port.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * DPDK starts once per process, so every case forks its nodes.
 */
#ifndef SW_TEST_PROC_PROC_PORT_NODE_H
#define SW_TEST_PROC_PROC_PORT_NODE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <sys/types.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "pmd/dpdk/eal.h"
#include "pmd/dpdk/port.h"

enum {
	SERVER_IP = 0x0a000001,
	CLIENT_IP = 0x0a000002,
	STRANGER_IP = 0x0a000003, /* uses the same port, another address */
	UDP = 7000,
	WAIT_S = 20, /* for every step; the machine may be busy */
};

/* One process of a case. Its exit status is 0, or the line that failed. */
struct node {
	bool is_server;
	char dir[64], socket[80];
	struct sw_log log;
	struct sw_dpdk_params eal;
	struct sw_dpdk_port_params port;
	struct sw_dpdk *dpdk;
	struct sw_port *p;
	uint32_t n_frames;   /* frames that the client sends */
	uint32_t patience_s; /* longest wait for the next frame */
	uint32_t n_seen, n_wrong;
	uint32_t seen[4096];
};

struct suite {
	char dir[64];
	int n_kills;
};

/* need - exit with the line number unless @x is true. */
#define need(x) need_at(x, __LINE__)
void need_at(bool is_true, int line);

double now_s(void);

/* Return a node with good parameters, not started; free it with free(). */
struct node *node_new(const struct suite *s, bool is_server);

/* Start DPDK, open the port and wait for the other end; undo that. */
void node_up(struct node *n);
void node_down(struct node *n);

/* Run on an lcore: send back all frames while clients come and go. */
int serve(void *node);

/* Start the node and serve without end. */
void server_run(struct node *n);

/* Run the node in a process of its own, which exits with 0. */
pid_t fork_node(struct node *n, void (*run)(struct node *));

/* Assert that the process ends with 0; kill it and assert that SIGKILL ended
 * it; assert that it still runs. */
void wait_ok(pid_t pid);
void wait_killed(pid_t pid);
void assert_alive(pid_t pid, int n_kills);

/* Remove the suite's directory and the sockets of killed servers in it. */
void suite_clean(const struct suite *s);

#endif
