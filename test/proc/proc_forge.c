/* proc_forge.c - a peer on a memif link that sends malformed frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   proc_forge LINK FOLDER OUR-IP PEER-IP server|agent|joins
 *
 * Against a server it connects, offers unknown protocol versions, then joins a
 * job of its own, declares a tensor, and sends every kind of malformed frame in
 * turn, at some 30,000 a second, until it reads a line from stdin. Then it
 * prints "sent KIND COUNTER NUMBER" per kind; COUNTER names the victim's
 * counter that must have grown. After a second line it sends good headers over
 * random fields. Against an agent it listens and has no session. With "joins"
 * it sends a server JOINs of two jobs with one name, in turn, and confirms
 * none; after the first line it prints "joins NUMBER".
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/proc/proc_forge.h"

#include "engine/base/error.h"
#include "pmd/dpdk/eal.h"
#include "pmd/dpdk/port.h"
#include "sum/dtype.h"

enum {
	WAIT_S = 60,
	AGAIN_MS = 200, /* resend a request after this time */
	UDP = 5700,
	BURST = 32,
	PAUSE_US = 1000,   /* after a burst */
	FIELDS = 20000,    /* frames of the final part */
	GUESSES = 0x10000, /* generations to try */
	MANY_JOINS = 3000, /* enough JOINs for the test to continue */
};

struct program {
	struct forge forge;
	const char *link, *folder, *victim;
	uint32_t ip;
	struct sw_log log;
	struct sw_dpdk *dpdk;
	atomic_int n_lines;  /* lines read from stdin */
	uint64_t n_sent[64]; /* per kind */
};

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "proc_forge: %s\n", why);
	exit(1);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void log_line(void *ctx, enum sw_log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

/* --- the port --- */

/* Poll both directions; ignore received frames. */
static void poll_port(struct forge *f)
{
	const struct sw_port_ops *ops = f->port->ops;
	struct sw_rx_frame in[SW_RX_BURST];

	ops->tx_flush(f->port);
	if (ops->rx(f->port, in, SW_RX_BURST))
		ops->rx_release(f->port);
}

static void road_send(struct test_peer *peer, const struct test_frame *frame)
{
	struct forge *f = peer->ctx;
	const struct sw_port_ops *ops = f->port->ops;
	struct sw_tx_frame t = {.payload = frame->bytes + SW_HEAD_BYTES,
		.payload_len = frame->len - SW_HEAD_BYTES,
		.to = peer->path};
	uint64_t end = now_ms() + WAIT_S * 1000;

	memcpy(t.head, frame->bytes, sizeof(t.head));
	while (!ops->tx_room(f->port)) {
		poll_port(f);
		if (now_ms() > end)
			die("the victim takes no frames");
		usleep(100);
	}
	ops->tx(f->port, &t, 1);
}

/* Return whether a frame of @type has arrived. Read each STATUS of a burst,
 * because the last one counts. */
static bool receive(struct forge *f, uint8_t type, struct test_frame *out)
{
	const struct sw_port_ops *ops = f->port->ops;
	struct sw_rx_frame in[SW_RX_BURST];
	uint32_t n = ops->rx(f->port, in, SW_RX_BURST);
	bool is_found = false;

	for (uint32_t i = 0; i < n; i++) {
		struct test_frame frame = {.len = in[i].len};

		memcpy(frame.bytes, in[i].data, SW_HEAD_BYTES);
		memcpy(frame.bytes + SW_HEAD_BYTES, in[i].payload,
			in[i].len - SW_HEAD_BYTES);
		frame_read(&frame);
		if (!frame_is_intact(&frame, sw_epoch_seed(f->peer.epoch)))
			die("the victim sends a malformed frame");
		if (frame.h.type == SW_STATUS) /* contains the epoch */
			peer_learn(&f->peer, &frame);
		if (is_found || frame.h.type != type)
			continue;
		*out = frame;
		is_found = true;
	}
	ops->rx_release(f->port);
	return is_found;
}

static bool road_receive(
	struct test_peer *peer, uint8_t type, struct test_frame *out)
{
	struct forge *f = peer->ctx;
	uint64_t end = now_ms() + AGAIN_MS;

	while (!receive(f, type, out)) {
		if (now_ms() > end)
			return false;
		f->port->ops->tx_flush(f->port);
		usleep(100);
	}
	return true;
}

static const struct peer_road road = {
	road_send, road_receive, WAIT_S * 1000 / AGAIN_MS};

static void send_frame(struct forge *f)
{
	road_send(&f->peer, &f->frame);
}

/* --- a session of its own --- */

static void must(bool is_answered)
{
	if (!is_answered)
		die("no answer from the server");
}

static struct sw_join join_payload(
	const struct forge *f, uint8_t version, uint16_t n_members)
{
	struct sw_join j =
		peer_join_payload(&f->peer, "forged", "forger", 0, n_members);

	j.version_min = j.version_max = version;
	j.payload = SW_PAYLOAD_MAX;
	return j;
}

/* Join; first offer an unknown version. */
static void join(struct forge *f)
{
	struct test_frame answer;
	struct sw_fault fault;
	struct sw_join j;

	must(peer_hello(&f->peer));
	j = join_payload(f, SW_VERSION_MAX + 6, 1);
	forge_control(f, SW_JOIN, &j, sizeof(j));
	must(peer_ask(&f->peer, &f->frame, SW_ERROR, &answer));
	frame_get(&answer, &fault, sizeof(fault));
	printf("refused %s: %s\n", sw_error_name(fault.err), fault.text);
	j = join_payload(f, SW_VERSION_MAX, 1);
	f->peer.payload = SW_PAYLOAD_MAX;
	must(peer_join(&f->peer, &j));
}

/* The first frame of the session confirms it. As the only member it reports
 * what its paths carry (peer_learn), and then the job runs. */
static void await_running(struct forge *f)
{
	uint64_t end = now_ms() + WAIT_S * 1000;
	struct test_frame in;

	while (f->peer.status.state != SW_JOB_RUNNING) {
		peer_keepalive(&f->peer);
		road_receive(&f->peer, SW_STATUS, &in);
		if (now_ms() > end)
			die("the job does not run");
	}
}

static void declare(struct forge *f)
{
	struct sw_declare_item item = {.n_elems = 4096, .dtype = SW_F32};

	must(peer_declare(&f->peer, item, "forged"));
}

/* Leave with a text that tries to add lines to the log. */
static void leave(struct forge *f)
{
	f->peer.psn[SW_CLASS_CTL] = UINT64_C(0xffffffffffff) - 1;
	peer_leave(&f->peer, SW_EPEER,
		"forged\n0.0 error this line is forged\x1b[31m");
	f->port->ops->tx_flush(f->port);
}

/* --- the flood --- */

static void pause_after(struct forge *f, uint32_t n)
{
	if (n % BURST)
		return;
	poll_port(f);
	usleep(PAUSE_US);
}

static void show_counts(const struct program *p)
{
	for (uint32_t i = 0; i < forge_n_kinds; i++)
		printf("sent %s %s %llu\n", forge_kinds[i].name,
			*forge_kinds[i].counter ? forge_kinds[i].counter : "-",
			(unsigned long long)p->n_sent[i]);
	puts("flooded");
	fflush(stdout);
}

static void flood(struct program *p, bool has_session)
{
	struct forge *f = &p->forge;

	for (uint32_t n = 0; !p->n_lines; n++) {
		uint32_t i = n % forge_n_kinds;

		pause_after(f, n);
		if (forge_kinds[i].needs_session && !has_session)
			continue;
		forge_kinds[i].make(f);
		send_frame(f);
		p->n_sent[i]++;
	}
	show_counts(p);
	while (p->n_lines < 2)
		pause_after(f, 0); /* send pending frames */
}

/* Send frames for every generation of the first sessions, some of them other
 * members'. Skip 0, which would be replaced. */
static void guess_sessions(struct forge *f)
{
	struct sw_header h = {
		.type = SW_KEEPALIVE, .psn = UINT64_C(0xfffffffffff)};

	for (uint32_t n = 1; n < 3 * GUESSES; n++) {
		h.session = n / GUESSES << 16 | n % GUESSES;
		if (h.session == f->peer.session)
			continue;
		peer_send(&f->peer, h, NULL);
		if (n % (8 * BURST) == 0)
			pause_after(f, 0);
	}
}

static void flood_fields(struct forge *f)
{
	for (uint32_t n = 0; n < FIELDS; n++) {
		forge_fields(f);
		send_frame(f);
		pause_after(f, n);
	}
}

static void attack_server(struct program *p)
{
	struct forge *f = &p->forge;

	join(f);
	await_running(f);
	declare(f);
	forge_push(f); /* so that "again" is a duplicate */
	send_frame(f);
	puts("flooding");
	fflush(stdout);
	guess_sessions(f);
	puts("guessed");
	fflush(stdout);
	flood(p, true);
	flood_fields(f);
	leave(f);
}

/* JOIN with a cookie that is always valid. */
static void attack_with_joins(struct program *p)
{
	struct forge *f = &p->forge;
	struct sw_join j;
	uint64_t renew_ms = 0;
	uint32_t n = 0;

	puts("flooding");
	fflush(stdout);
	for (; !p->n_lines; n++) {
		if (now_ms() >= renew_ms) {
			must(peer_hello(&f->peer));
			renew_ms = now_ms() + 1000;
		}
		j = join_payload(f, SW_VERSION_MAX, (uint16_t)(2 + n % 2));
		peer_say(&f->peer, SW_JOIN, &j, sizeof(j));
		pause_after(f, n);
		if (n != MANY_JOINS)
			continue;
		puts("many joins");
		fflush(stdout);
	}
	printf("joins %u\n", n);
	fflush(stdout);
}

static int run(void *program)
{
	struct program *p = program;

	if (!strcmp(p->victim, "server")) {
		attack_server(p);
		return 0;
	}
	if (!strcmp(p->victim, "joins")) {
		attack_with_joins(p);
		return 0;
	}
	puts("flooding");
	fflush(stdout);
	flood(p, false);
	return 0;
}

/* --- start and end --- */

static uint32_t parse_ip(const char *text)
{
	struct in_addr a;

	if (inet_pton(AF_INET, text, &a) != 1)
		die("an IPv4 address expected");
	return ntohl(a.s_addr);
}

static void open_port(struct program *p)
{
	struct sw_dpdk_port_params port;
	struct sw_dpdk_params eal;
	uint64_t end = now_ms() + WAIT_S * 1000;

	sw_dpdk_port_params_init(&port);
	port.name = "forge";
	port.ip = sw_ip_v4(p->ip);
	port.udp = UDP;
	port.socket_path = p->link;
	port.side =
		strcmp(p->victim, "agent") ? SW_DPDK_CONNECT : SW_DPDK_LISTEN;
	sw_dpdk_params_init(&eal);
	eal.name = "forge";
	eal.runtime_dir = p->folder;
	eal.ports_bytes = sw_dpdk_port_bytes(&port);
	eal.log = &p->log;
	if (sw_dpdk_open(&eal, &p->dpdk) ||
		sw_dpdk_port_open(&port, 0, &p->log, &p->forge.port))
		die("the port does not open");
	while (!sw_dpdk_port_is_up(p->forge.port)) {
		if (now_ms() > end)
			die("the link does not come up");
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	static struct program p;
	char line[8];

	if (argc != 6)
		die("usage: LINK FOLDER OUR-IP PEER-IP server|agent|joins");
	p.link = argv[1];
	p.folder = argv[2];
	p.ip = parse_ip(argv[3]);
	p.victim = argv[5];
	p.log = (struct sw_log){log_line, NULL, SW_LOG_WARN};
	p.forge.peer = (struct test_peer){.road = &road,
		.ctx = &p.forge,
		.path = {.ip = sw_ip_v4(parse_ip(argv[4])),
			.udp = UDP}, /* destination port */
		.nonce = 0x5eed,
		.id = 0x1234};
	open_port(&p);
	if (sw_dpdk_launch(p.dpdk, 0, run, &p))
		die("no lcore");
	for (; p.n_lines < 2; p.n_lines++)
		if (!fgets(line, sizeof(line), stdin))
			fprintf(stderr, "proc_forge: end of input\n");
	sw_dpdk_join(p.dpdk, 0);
	sw_dpdk_port_close(&p.forge.port);
	sw_dpdk_close(&p.dpdk);
	return 0;
}
