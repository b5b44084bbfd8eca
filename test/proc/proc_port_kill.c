/* proc_port_kill.c - kill the peer of a DPDK port with frames in flight.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Argument: the number of kills per side, default 3.
 */
#include "proc_port_node.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* Send frames endlessly; the server sends them back. */
static int press(void *arg)
{
	struct node *n = arg;
	const struct sw_port_ops *ops = n->p->ops;
	struct sw_tx_frame f = {
		.payload_len = SW_PAYLOAD_MAX,
		.is_stable = true,
		.to = {.ip = sw_ip_v4(n->is_server ? CLIENT_IP : SERVER_IP),
			.udp = UDP},
	};
	struct sw_rx_frame in[SW_RX_BURST];
	uint8_t *data = calloc(1, SW_PAYLOAD_MAX);

	f.payload = data;
	while (n->p) {
		uint32_t room = ops->tx_room(n->p);

		for (uint32_t i = 0; i < room; i++)
			ops->tx(n->p, &f, 1);
		ops->tx_flush(n->p);
		ops->rx(n->p, in, SW_RX_BURST);
		ops->rx_release(n->p);
		if (!room)
			sched_yield();
	}
	free(data);
	return 0;
}

static void press_run(struct node *n)
{
	node_up(n);
	sw_dpdk_launch(n->dpdk, 0, press, n);
	sw_dpdk_join(n->dpdk, 0);
}

/* Leave when enough frames have come back. */
static void last_run(struct node *n)
{
	struct sw_dpdk_port_stats st = {0};
	double start;

	node_up(n);
	start = now_s();
	sw_dpdk_launch(n->dpdk, 0, press, n);
	while (st.rx_frames < 1000) {
		need(now_s() - start < WAIT_S);
		usleep(1000);
		sw_dpdk_port_stats_get(n->p, &st);
	}
}

/* Start @victim @n times and kill each with frames in flight; @survivor must
 * survive. */
static void kill_loop(struct node *victim, int n, pid_t survivor)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork_node(victim, press_run);

		usleep(500000 + (useconds_t)i * 7919 % 50000);
		wait_killed(pid);
		usleep(20000);
		assert_alive(survivor, i + 1);
	}
}

/* One server serves one client after another. */
static void kill__clients(void **state)
{
	struct suite *s = *state;
	struct node *server = node_new(s, true), *client = node_new(s, false);
	pid_t pid = fork_node(server, server_run);

	kill_loop(client, s->n_kills, pid);
	wait_ok(fork_node(client, last_run));
	wait_killed(pid);
	free(server);
	free(client);
}

/* One client dials until the next server runs. */
static void kill__servers(void **state)
{
	struct suite *s = *state;
	struct node *server = node_new(s, true), *client = node_new(s, false);
	pid_t pid = fork_node(client, server_run);

	kill_loop(server, s->n_kills, pid);
	wait_ok(fork_node(server, last_run));
	wait_killed(pid);
	free(server);
	free(client);
}

int main(int argc, char **argv)
{
	struct suite s = {.dir = "/tmp/sw-port-XXXXXX", .n_kills = 3};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(kill__clients, &s),
		cmocka_unit_test_prestate(kill__servers, &s),
	};
	int failed;

	if (argc > 1)
		s.n_kills = atoi(argv[1]);
	if (!mkdtemp(s.dir))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	suite_clean(&s);
	return failed;
}
