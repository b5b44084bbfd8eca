/* proc_port.c - the DPDK port between real processes: echo, faults, refusals.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Argument: the name of a single case to run.
 */
#include "proc_port_node.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmd/dpdk/raw.h"

/* Fill 8 KB with a pattern that identifies the frame. */
static void fill(uint8_t *at, uint32_t i)
{
	for (uint32_t k = 0; k < SW_PAYLOAD_MAX; k += 4)
		sw_store32(at + k, i * 2654435761u + k);
}

/* Shorten every third frame by half, so that headers of a burst differ. */
static uint32_t len_of(uint32_t i)
{
	return i % 3 ? SW_PAYLOAD_MAX : SW_PAYLOAD_MAX / 2;
}

/* Send @n frames from number @i on in one burst, every other one gathered. */
static void send_frames(struct node *n, uint32_t i, uint32_t n_frames,
	uint8_t data[32][SW_PAYLOAD_MAX])
{
	struct sw_tx_frame out[SW_RX_BURST];

	for (uint32_t k = 0; k < n_frames; k++, i++) {
		fill(data[i % 32], i);
		out[k] = (struct sw_tx_frame){
			.payload = data[i % 32],
			.payload_len = len_of(i),
			.is_stable = i & 1,
			.to = {.ip = sw_ip_v4(SERVER_IP), .udp = UDP},
		};
		sw_store32(out[k].head, i);
	}
	n->p->ops->tx(n->p, out, n_frames);
	for (uint32_t k = 0; k < n_frames; k++)
		if (!out[k].is_stable)
			memset(data[sw_load32(out[k].head) % 32], 0, 64);
}

static void check_frame(struct node *n, const struct sw_rx_frame *f)
{
	static uint8_t want[SW_PAYLOAD_MAX];
	uint32_t i = sw_load32(f->data);

	n->n_seen++;
	if (i < SW_ARRAY_SIZE(n->seen))
		n->seen[i]++;
	fill(want, i);
	if ((uintptr_t)(f->data + SW_HEAD_BYTES) % 64 ||
		f->len != SW_HEAD_BYTES + len_of(i) ||
		(uint32_t)f->from.ip.low != SERVER_IP || f->from.udp != UDP ||
		memcmp(f->data + SW_HEAD_BYTES, want, len_of(i)))
		n->n_wrong++;
}

/* Return how many may be sent now: at most 32 are in flight, unless none has
 * come back for long. */
static uint32_t burst_now(const struct node *n, uint32_t sent, bool is_late)
{
	uint32_t room = n->p->ops->tx_room(n->p);
	uint32_t most = is_late ? n->n_frames : n->n_seen + 32;

	most = most < n->n_frames ? most : n->n_frames;
	most = most > sent ? most - sent : 0;
	return most < room ? most : room;
}

/* Send n_frames; stop when all are back or none has come for long. */
static int ask(void *arg)
{
	struct node *n = arg;
	const struct sw_port_ops *ops = n->p->ops;
	struct sw_rx_frame in[SW_RX_BURST];
	uint8_t(*data)[SW_PAYLOAD_MAX] = malloc(32 * sizeof(*data));
	uint32_t sent = 0;
	double last = now_s();

	while (n->n_seen < n->n_frames && now_s() - last < n->patience_s) {
		uint32_t got = ops->rx(n->p, in, SW_RX_BURST), more;

		for (uint32_t i = 0; i < got; i++)
			check_frame(n, &in[i]);
		ops->rx_release(n->p);
		if (got)
			last = now_s();
		more = burst_now(n, sent, now_s() - last > 0.01);
		send_frames(n, sent, more, data);
		sent += more;
		ops->tx_flush(n->p);
		if (!got)
			sched_yield();
	}
	free(data);
	return 0;
}

static uint64_t bytes_of(uint32_t n_frames)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n_frames; i++)
		sum += 96 + len_of(i);
	return sum;
}

static void client_run(struct node *n)
{
	struct sw_dpdk_port_stats st;

	node_up(n);
	need(sw_dpdk_launch(n->dpdk, 1, ask, n) == SW_EINVAL);
	need(sw_dpdk_launch(n->dpdk, 0, ask, n) == 0);
	need(sw_dpdk_join(n->dpdk, 0) == 0);
	sw_dpdk_port_stats_get(n->p, &st);
	need(n->n_seen == n->n_frames && n->n_wrong == 0);
	need(st.tx_frames == n->n_frames && st.rx_frames == n->n_frames);
	need(st.rx_bytes == bytes_of(n->n_frames));
	need(st.link_ups == 1 && !st.tx_no_buffer && !st.tx_refused);
	need(st.tx_full && st.tx_copied && st.tx_copied < n->n_frames / 2);
	need(sw_dpdk_port_is_drained(n->p));
	node_down(n);
}

static bool is_empty(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int n = 0;

	while ((e = readdir(dir)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(dir);
	return n == 0;
}

/* Count the sockets of this process that accept connections. */
static int n_listening(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		int is_listener = 0;
		socklen_t len = sizeof(is_listener);

		n += !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listener,
			     &len) &&
		     is_listener;
	}
	return n;
}

/* Run either end without the other: no link, no room, no hang, and no listening
 * socket after the close. */
static void alone_run(struct node *n)
{
	struct sw_rx_frame in[SW_RX_BURST];

	need(sw_dpdk_open(&n->eal, &n->dpdk) == 0);
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == 0);
	usleep(100000);
	need(!sw_dpdk_port_is_up(n->p));
	need(n->p->ops->rx(n->p, in, SW_RX_BURST) == 0);
	n->p->ops->rx_release(n->p);
	need(n->p->ops->tx_room(n->p) == 0);
	n->p->ops->tx_flush(n->p);
	need(sw_dpdk_join(n->dpdk, 0) == 0);
	need(n_listening() == (n->port.side == SW_DPDK_LISTEN));
	node_down(n);
	need(n_listening() == 0);
}

static void port__alone(void **state)
{
	struct suite *s = *state;
	struct node *server = node_new(s, true), *client = node_new(s, false);

	wait_ok(fork_node(server, alone_run));
	wait_ok(fork_node(client, alone_run));
	assert_true(is_empty(s->dir));
	free(server);
	free(client);
}

static void port__echo(void **state)
{
	struct suite *s = *state;
	struct node *server = node_new(s, true), *client = node_new(s, false);
	pid_t pid = fork_node(server, server_run);

	client->port.ring_slots = 16; /* the driver takes half a burst */
	client->port.burst = 32;
	wait_ok(fork_node(client, client_run));
	wait_killed(pid);
	free(server);
	free(client);
}

/* Send @n_frames from number @i on in one burst, every second one to another
 * address. */
static void send_to_two(struct node *n, uint32_t i, uint32_t n_frames)
{
	static uint8_t data[SW_PAYLOAD_MAX];
	struct sw_tx_frame out[4];

	for (uint32_t k = 0; k < n_frames; k++, i++) {
		out[k] = (struct sw_tx_frame){.payload = data,
			.payload_len = sizeof(data),
			.to = {.ip = sw_ip_v4(i & 1 ? STRANGER_IP : SERVER_IP),
				.udp = UDP}};
		sw_store32(out[k].head, i);
	}
	n->p->ops->tx(n->p, out, n_frames);
	n->p->ops->tx_flush(n->p);
}

static bool is_back(struct node *n, uint32_t i)
{
	struct sw_rx_frame in[SW_RX_BURST];
	double end = now_s() + WAIT_S;

	while (!n->seen[i] && now_s() < end) {
		uint32_t got = n->p->ops->rx(n->p, in, SW_RX_BURST);

		for (uint32_t k = 0; k < got; k++)
			n->seen[sw_load32(in[k].data) % 16]++;
		n->p->ops->rx_release(n->p);
	}
	return n->seen[i];
}

/* Send a burst of frames that differ only in their destination: only the
 * server's frames come back. */
static int ask_two(void *arg)
{
	struct node *n = arg;

	send_to_two(n, 0, 4);
	need(is_back(n, 2));
	send_to_two(n, 4, 1);
	need(is_back(n, 4)); /* behind all earlier frames */
	need(n->seen[0] == 1 && !n->seen[1] && !n->seen[3]);
	return 0;
}

static void two_run(struct node *n)
{
	node_up(n);
	need(sw_dpdk_launch(n->dpdk, 0, ask_two, n) == 0);
	need(sw_dpdk_join(n->dpdk, 0) == 0);
	node_down(n);
}

static void port__two_addresses_in_a_burst(void **state)
{
	struct suite *s = *state;
	struct node *server = node_new(s, true), *client = node_new(s, false);
	pid_t pid = fork_node(server, server_run);

	wait_ok(fork_node(client, two_run));
	wait_killed(pid);
	free(server);
	free(client);
}

static void faulty_run(struct node *n)
{
	uint32_t lost = 0, twice = 0;

	node_up(n);
	sw_dpdk_launch(n->dpdk, 0, ask, n);
	sw_dpdk_join(n->dpdk, 0);
	for (uint32_t i = 0; i < n->n_frames; i++) {
		lost += n->seen[i] == 0;
		twice += n->seen[i] == 2;
		need(n->seen[i] <= 2);
	}
	fprintf(stderr, "# of %u frames: %u lost, %u twice\n", n->n_frames,
		lost, twice);
	need(n->n_wrong == 0);
	need(lost > 50 && lost < 150 && twice > 50 && twice < 150);
	node_down(n);
}

static void port__faults(void **state)
{
	struct suite *s = *state;
	struct node *server = node_new(s, true), *client = node_new(s, false);
	pid_t pid = fork_node(server, server_run);

	client->port.fault_loss_ppm = 100000;
	client->port.fault_dup_ppm = 100000;
	client->port.fault_reorder_ppm = 200000;
	client->port.fault_seed = 5;
	client->patience_s = 4; /* some are lost */
	wait_ok(fork_node(client, faulty_run));
	wait_killed(pid);
	free(server);
	free(client);
}

static void add_f32(void *acc, const void *src, size_t n)
{
	float *to = acc;

	for (size_t i = 0; i < n; i++)
		to[i] += ((const float *)src)[i];
}

static const struct sw_sum_ops f32 = {
	.elem_bytes = 4, .acc_bytes = 4, .add = add_f32};

static int raw_loop(void *arg)
{
	struct node *n = arg;
	struct sw_raw r = {
		.port = n->p,
		.bytes = (4 << 20) + 4,
		.f32 = &f32,
		.ip = sw_ip_v4(SERVER_IP),
		.udp = UDP,
		.window = 64,
		.burst = 16,
		.n_passes = 20,
	};
	double gbit_s = 0;
	int err;

	if (n->is_server)
		return sw_raw_server(&r);
	err = sw_raw_client(&r, &gbit_s);
	fprintf(stderr, "# raw, 4 MB: %.1f Gb/s\n", gbit_s);
	sw_raw_bye(&r);
	return err;
}

static void raw_run(struct node *n)
{
	node_up(n);
	sw_dpdk_launch(n->dpdk, 0, raw_loop, n);
	need(sw_dpdk_join(n->dpdk, 0) == 0);
	/* The end-of-link message stays in shared memory until the server reads
	 * it. */
	for (double start = now_s(); !n->is_server && sw_dpdk_port_is_up(n->p);
		usleep(1000))
		need(now_s() - start < WAIT_S);
	node_down(n);
}

static void port__raw(void **state)
{
	struct suite *s = *state;
	struct node *server = node_new(s, true), *client = node_new(s, false);
	pid_t pid = fork_node(server, raw_run);

	wait_ok(fork_node(client, raw_run));
	wait_ok(pid);
	assert_true(is_empty(s->dir));
	free(server);
	free(client);
}

/* Each is refused before DPDK starts, with a log line. */
static void refusals_run(struct node *n)
{
	static const char *const bad_cpus[] = {"", "x", "0,0", "1-0", "0-",
		"0,", "-1", "0,1", "4096", " 0", "999"};
	struct sw_dpdk *d;
	struct node good = *n;

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(bad_cpus); i++) {
		n->eal.cpus = bad_cpus[i];
		need(sw_dpdk_open(&n->eal, &d) == SW_ECONF);
	}
	n->eal = good.eal;
	n->eal.n_lcores = 0;
	need(sw_dpdk_open(&n->eal, &d) == SW_ECONF);
	n->eal.n_lcores = 128;
	need(sw_dpdk_open(&n->eal, &d) == SW_ECONF);
	n->eal = good.eal;
	n->eal.name = "../x";
	need(sw_dpdk_open(&n->eal, &d) == SW_ECONF);
	n->eal = good.eal;
	n->eal.runtime_dir = "/nonexistent";
	need(sw_dpdk_open(&n->eal, &d) == SW_ECONF);
	n->eal = good.eal;
	need(sw_dpdk_open(&n->eal, &n->dpdk) == 0);
	need(sw_dpdk_open(&n->eal, &d) == SW_EPERM);
}

static void port_refusals(struct node *n)
{
	const struct sw_dpdk_port_params good = n->port;
	char file[96];

	n->port.burst = 65;
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == SW_ECONF);
	n->port = good;
	n->port.ring_slots = 100;
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == SW_ECONF);
	n->port = good;
	n->port.payload_bytes = 8193;
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == SW_ECONF);
	n->port = good;
	n->port.fault_loss_ppm = 1010000;
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == SW_ECONF);
	n->port = good;
	n->port.socket_path = "/nonexistent/x";
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == SW_ECONF);
	snprintf(file, sizeof(file), "%s/file", n->dir);
	fclose(fopen(file, "w"));
	n->port.socket_path = file;
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == SW_ECONF);
	need(access(file, F_OK) == 0);
	unlink(file);
	n->port = good;
}

/* The parent listens: a second listener gets an error. What it leaves behind
 * must not keep the port from opening afterwards. */
static void port_busy_run(struct node *n)
{
	pid_t pid;
	int status;

	refusals_run(n);
	port_refusals(n);
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == 0);
	pid = fork();
	if (!pid) {
		char *argv[] = {"proc_port", "--busy", n->socket, NULL};

		execv("/proc/self/exe", argv);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	need(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	node_down(n);
}

static int busy_main(char *socket)
{
	struct suite s = {.dir = "/tmp"};
	struct node *n = node_new(&s, true);

	n->port.socket_path = socket;
	need(sw_dpdk_open(&n->eal, &n->dpdk) == 0);
	need(sw_dpdk_port_open(&n->port, 0, &n->log, &n->p) == SW_EBUSY);
	sw_dpdk_close(&n->dpdk);
	free(n);
	return 0;
}

static void port__refusals(void **state)
{
	struct suite *s = *state;
	struct node *n = node_new(s, true);

	wait_ok(fork_node(n, port_busy_run));
	assert_true(is_empty(s->dir));
	free(n);
}

int main(int argc, char **argv)
{
	struct suite s = {.dir = "/tmp/sw-port-XXXXXX"};
	int failed;

	if (argc == 3 && !strcmp(argv[1], "--busy"))
		return busy_main(argv[2]);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (!mkdtemp(s.dir))
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(port__alone, &s),
		cmocka_unit_test_prestate(port__echo, &s),
		cmocka_unit_test_prestate(port__two_addresses_in_a_burst, &s),
		cmocka_unit_test_prestate(port__faults, &s),
		cmocka_unit_test_prestate(port__raw, &s),
		cmocka_unit_test_prestate(port__refusals, &s),
	};
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	suite_clean(&s);
	return failed;
}
