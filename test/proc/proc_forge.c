/* proc_forge.c - a peer on a memif link that sends malformed frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   proc_forge LINK FOLDER OUR-IP PEER-IP server|agent|joins
 *
 * Against a server it connects, offers protocol versions that nobody speaks,
 * then joins a job of its own, declares a tensor, and sends every kind of
 * malformed frame in turn, at some 30,000 a second, until a line comes on
 * stdin.  Then it prints per kind "sent KIND COUNTER NUMBER"; COUNTER is the
 * victim's that must have grown.  After a second line it sends good headers
 * over random fields.  Against an agent it listens and knows no session.
 * With "joins" it sends a server JOINs of two jobs that have one name, in turn,
 * and confirms none; after the first line "joins NUMBER".
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/proc/proc_forge.h"

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "pmd/dpdk/eal.h"
#include "pmd/dpdk/port.h"
#include "sum/dtype.h"

enum {
	WAIT_S = 60,
	UDP = 5700,
	BURST = 32,
	PAUSE_US = 1000,   /* after a burst */
	FIELDS = 20000,    /* frames of the last part */
	GUESSES = 0x10000, /* generations of a session */
};

struct program {
	struct forge forge;
	const char *link, *folder, *victim;
	uint32_t ip;
	struct sw_log log;
	struct sw_dpdk *dpdk;
	atomic_int n_lines;  /* that have come on stdin */
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

/* --- frames --- */

static void send_frame(struct forge *f)
{
	const struct sw_port_ops *ops = f->port->ops;
	struct sw_tx_frame t = {.payload = f->frame.payload,
		.payload_len = f->frame.bytes,
		.to = f->to};
	uint64_t end = now_ms() + WAIT_S * 1000;

	memcpy(t.head, f->frame.head, sizeof(t.head));
	while (!ops->tx_room(f->port)) {
		ops->tx_flush(f->port);
		if (now_ms() > end)
			die("the victim takes no frames");
		usleep(100);
	}
	ops->tx(f->port, &t);
}

/* Is there a frame of @type?  Its payload goes to @payload.  An ERROR with
 * another type awaited is printed. */
static bool receive(
	struct forge *f, uint32_t type, struct sw_header *h, uint8_t *payload)
{
	const struct sw_port_ops *ops = f->port->ops;
	struct sw_rx_frame in[SW_RX_BURST];
	uint32_t n = ops->rx(f->port, in, SW_RX_BURST);
	bool is_found = false;

	for (uint32_t i = 0; i < n && !is_found; i++) {
		if (sw_header_decode(in[i].data, in[i].len, h) != SW_FRAME_OK)
			die("the victim sends a malformed frame");
		is_found = h->type == type;
		if (is_found)
			memcpy(payload, in[i].data + SW_HEAD_BYTES,
				h->payload_len);
	}
	ops->rx_release(f->port);
	return is_found;
}

/* Send the frame until the answer of @type is there. */
static void ask(
	struct forge *f, uint32_t type, struct sw_header *h, uint8_t *payload)
{
	uint64_t end = now_ms() + WAIT_S * 1000, again = 0;

	while (!receive(f, type, h, payload)) {
		if (now_ms() > end)
			die("no answer from the server");
		if (now_ms() >= again) {
			send_frame(f);
			again = now_ms() + 200;
		}
		f->port->ops->tx_flush(f->port);
		usleep(100);
	}
}

/* --- a session of our own --- */

static void get_cookie(struct forge *f)
{
	struct sw_hello hello = {.nonce = f->nonce};
	struct sw_cookie cookie;
	uint8_t answer[SW_PAYLOAD_MAX];
	struct sw_header h;

	forge_begin(f, &f->frame, SW_HELLO);
	memcpy(f->frame.payload, &hello, sizeof(hello));
	forge_seal(&f->frame, sizeof(hello));
	ask(f, SW_COOKIE, &h, answer);
	memcpy(&cookie, answer, sizeof(cookie));
	f->cookie = cookie.cookie;
}

static void put_join(struct forge *f, uint8_t version, uint16_t n_members)
{
	struct sw_join j = {.nonce = f->nonce,
		.cookie = f->cookie,
		.session = f->id,
		.version_min = version,
		.version_max = version,
		.n_members = n_members,
		.n_local = 1,
		.n_servers = 1,
		.payload = SW_PAYLOAD_MAX,
		.has_crc = 1,
		.job = "forged",
		.node = "forger"};

	forge_begin(f, &f->frame, SW_JOIN);
	f->frame.h.session = 0;
	memcpy(f->frame.payload, &j, sizeof(j));
	forge_seal(&f->frame, sizeof(j));
}

static void show_refusal(const uint8_t *payload)
{
	struct sw_fault fault;

	memcpy(&fault, payload, sizeof(fault));
	printf("refused %s: %s\n", sw_error_name(fault.err), fault.text);
}

static void join(struct forge *f)
{
	struct sw_accept accept;
	uint8_t answer[SW_PAYLOAD_MAX];
	struct sw_header h;

	f->nonce = forge_random(f);
	f->id = 0x1234;
	get_cookie(f);
	put_join(f, SW_VERSION_MAX + 6, 1);
	ask(f, SW_ERROR, &h, answer);
	show_refusal(answer);
	put_join(f, SW_VERSION_MAX, 1);
	ask(f, SW_ACCEPT, &h, answer);
	memcpy(&accept, answer, sizeof(accept));
	f->peer = accept.session;
}

static void declare(struct forge *f)
{
	static const char name[] = "forged";
	struct sw_declare_head head = {.n = 1};
	struct sw_declare_item item = {.n_elems = 4096,
		.key = SW_KEY_NONE,
		.dtype = SW_F32,
		.name_len = sizeof(name) - 1};
	uint8_t answer[SW_PAYLOAD_MAX], *p = f->frame.payload;
	struct sw_header h;

	forge_begin(f, &f->frame, SW_DECLARE);
	memcpy(p, &head, sizeof(head));
	memcpy(p + sizeof(head), &item, sizeof(item));
	memcpy(p + sizeof(head) + sizeof(item), name, sizeof(name) - 1);
	forge_seal(&f->frame, sizeof(head) + sizeof(item) + sizeof(name) - 1);
	ask(f, SW_DECLARED, &h, answer);
	f->key = sw_load32(answer + sizeof(struct sw_declared));
}

/* Leave with a text that would write lines of its own into the log. */
static void leave(struct forge *f)
{
	struct sw_fault fault = {.err = SW_EPEER, .key = SW_KEY_NONE};

	snprintf(fault.text, sizeof(fault.text),
		"forged\n0.0 error this line is forged\x1b[31m");
	forge_begin(f, &f->frame, SW_LEAVE);
	f->frame.h.psn = UINT64_C(0xffffffffffff);
	memcpy(f->frame.payload, &fault, sizeof(fault));
	forge_seal(&f->frame, sizeof(fault));
	send_frame(f);
	f->port->ops->tx_flush(f->port);
}

/* --- the flood --- */

static void pause_after(struct forge *f, uint32_t n)
{
	struct sw_rx_frame in[SW_RX_BURST];
	const struct sw_port_ops *ops = f->port->ops;

	if (n % BURST)
		return;
	ops->tx_flush(f->port);
	if (ops->rx(f->port, in, SW_RX_BURST))
		ops->rx_release(f->port);
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
		forge_kinds[i].make(f, &f->frame);
		send_frame(f);
		p->n_sent[i]++;
	}
	show_counts(p);
	while (p->n_lines < 2)
		pause_after(f, 0); /* what is left goes out */
}

/* Every generation of the first sessions; some are another member's. */
static void guess_sessions(struct forge *f)
{
	uint32_t own = f->peer;

	for (uint32_t n = 0; n < 3 * GUESSES; n++) {
		uint32_t guess = n / GUESSES << 16 | n % GUESSES;

		if (guess == own)
			continue;
		forge_begin(f, &f->frame, SW_KEEPALIVE);
		f->frame.h.session = guess;
		f->frame.h.psn = UINT64_C(0xfffffffffff);
		forge_seal(&f->frame, 0);
		send_frame(f);
		if (n % (8 * BURST) == 0)
			pause_after(f, 0);
	}
}

static void flood_fields(struct forge *f)
{
	for (uint32_t n = 0; n < FIELDS; n++) {
		forge_fields(f, &f->frame);
		send_frame(f);
		pause_after(f, n);
	}
}

static void attack_server(struct program *p)
{
	struct forge *f = &p->forge;

	join(f);
	declare(f);
	forge_push(f, &f->frame); /* so that "again" is one */
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

/* With a cookie that is always good. */
static void attack_with_joins(struct program *p)
{
	struct forge *f = &p->forge;
	uint64_t renew_ms = 0;
	uint32_t n = 0;

	f->nonce = forge_random(f);
	f->id = 0x1234;
	puts("flooding");
	fflush(stdout);
	for (; !p->n_lines; n++) {
		if (now_ms() >= renew_ms) {
			get_cookie(f);
			renew_ms = now_ms() + 1000;
		}
		put_join(f, SW_VERSION_MAX, (uint16_t)(2 + n % 2));
		send_frame(f);
		pause_after(f, n);
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

/* --- life --- */

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
	port.ip = p->ip;
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
	p.forge.random = UINT64_C(0x9e3779b97f4a7c15);
	p.forge.to = (struct sw_path){.ip = parse_ip(argv[4]), .udp = UDP};
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
