/* raw.c - a baseline: the least that push, sum and pull cost over a port.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/raw.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"

enum {
	AT_PIECE = 0,     /* offsets in our 54-byte header */
	AT_BURST = 4,     /* set in data; 0 in a greeting and its answer */
	BYE = UINT32_MAX, /* in place of a piece: ends the run */
	N_BYES = 16,
	PATIENCE_S = 2,
	GREET_US = 5000,       /* between two greetings */
	CLOCK_EVERY = 1 << 14, /* idle polls between clock reads */
};

/* A run in progress. */
struct run {
	const struct sw_raw *r;
	uint8_t *from, *to;       /* server: both are the accumulator */
	uint32_t piece, n_pieces; /* bytes per piece, number */
	uint32_t burst;
	uint64_t n_sent, n_back, n_total; /* client, in pieces */
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint8_t *memory_take(uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes, MADV_HUGEPAGE);
	return at;
}

static int run_init(struct run *u, const struct sw_raw *r)
{
	*u = (struct run){.r = r, .piece = r->port->max_payload, .burst = 1};
	if (!r->bytes || r->bytes % 4 || r->bytes / u->piece >= BYE)
		return SW_EINVAL;
	u->n_pieces = (uint32_t)((r->bytes + u->piece - 1) / u->piece);
	return 0;
}

static uint32_t piece_bytes(const struct run *u, uint32_t i)
{
	uint64_t left = u->r->bytes - (uint64_t)i * u->piece;

	return left < u->piece ? (uint32_t)left : u->piece;
}

static bool is_stopped(const struct sw_raw *r)
{
	return r->stop && atomic_load_explicit(r->stop, memory_order_relaxed);
}

/* Fill @out with piece @i for @to. */
static void fill_piece(const struct run *u, uint32_t i, struct sw_path to,
	struct sw_tx_frame *out)
{
	*out = (struct sw_tx_frame){
		.payload = u->from + (uint64_t)i * u->piece,
		.payload_len = piece_bytes(u, i),
		.is_stable = true,
		.to = to,
	};
	sw_store32(out->head + AT_PIECE, i);
	sw_store32(out->head + AT_BURST, u->burst);
}

static void send_all(
	const struct run *u, const struct sw_tx_frame *out, uint32_t n)
{
	if (n)
		u->r->port->ops->tx(u->r->port, out, n);
}

/* Return the piece that @f carries; n_pieces if it is not ours. */
static uint32_t piece_of(const struct run *u, const struct sw_rx_frame *f)
{
	uint32_t i = sw_load32(f->data + AT_PIECE);

	if (i >= u->n_pieces || f->len != SW_HEAD_BYTES + piece_bytes(u, i))
		return u->n_pieces;
	return i;
}

/* Add and answer the pieces of one burst. Returns true if the client said
 * good-bye. */
static bool serve(struct run *u, const struct sw_rx_frame *in, uint32_t n)
{
	struct sw_tx_frame out[SW_RX_BURST];
	uint32_t n_out = 0;
	bool is_bye = false;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t piece = piece_of(u, &in[i]);
		uint32_t burst = sw_load32(in[i].data + AT_BURST);

		if (sw_load32(in[i].data + AT_PIECE) == BYE)
			is_bye = true;
		if (piece == u->n_pieces)
			continue;
		if (burst && burst <= SW_RX_BURST)
			u->burst = burst;
		u->r->f32->add(u->to + (uint64_t)piece * u->piece,
			in[i].data + SW_HEAD_BYTES, piece_bytes(u, piece) / 4);
		fill_piece(u, piece, in[i].from, &out[n_out]);
		sw_store32(out[n_out++].head + AT_BURST, burst);
	}
	send_all(u, out, n_out);
	return is_bye;
}

int sw_raw_server(const struct sw_raw *r)
{
	struct sw_rx_frame in[SW_RX_BURST];
	struct sw_port *port = r->port;
	bool is_bye = false;
	struct run u;
	int err = run_init(&u, r);

	if (err)
		return err;
	u.to = u.from = memory_take(r->bytes);
	if (!u.to)
		return SW_ENOMEM;
	while (!is_bye && !is_stopped(r)) {
		/* Each frame needs an answer, so read only as many frames as
		 * there is room to send. */
		uint32_t room = port->ops->tx_room(port);
		uint32_t n = port->ops->rx(
			port, in, room < u.burst ? room : u.burst);

		is_bye = serve(&u, in, n);
		port->ops->rx_release(port);
		port->ops->tx_flush(port);
		if (!n)
			sched_yield();
	}
	munmap(u.to, r->bytes);
	return is_bye ? 0 : SW_ECLOSED;
}

static uint32_t collect(struct run *u)
{
	struct sw_port *port = u->r->port;
	struct sw_rx_frame in[SW_RX_BURST];
	uint32_t n = port->ops->rx(port, in, u->burst);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t piece = piece_of(u, &in[i]);

		if (piece == u->n_pieces || !sw_load32(in[i].data + AT_BURST))
			continue;
		memcpy(u->to + (uint64_t)piece * u->piece,
			in[i].data + SW_HEAD_BYTES, piece_bytes(u, piece));
		u->n_back++;
	}
	port->ops->rx_release(port);
	return n;
}

/* Send as many pieces as window, burst and room allow; returns their number. */
static uint32_t push_run(struct run *u)
{
	struct sw_port *port = u->r->port;
	struct sw_path to = {.ip = u->r->ip, .udp = u->r->udp};
	struct sw_tx_frame out[SW_RX_BURST];
	uint64_t n = sw_min64(
		u->n_total - u->n_sent, u->r->window - (u->n_sent - u->n_back));

	n = sw_min64(n, sw_min64(u->burst, port->ops->tx_room(port)));
	for (uint64_t i = 0; i < n; i++)
		fill_piece(
			u, (uint32_t)(u->n_sent++ % u->n_pieces), to, &out[i]);
	send_all(u, out, (uint32_t)n);
	port->ops->tx_flush(port);
	return (uint32_t)n;
}

static int echo(struct run *u)
{
	double since = now_s();
	uint32_t idle = 0;

	while (u->n_back < u->n_total) {
		uint32_t n = collect(u);

		n += push_run(u);
		if (n) {
			idle = 0;
			continue;
		}
		sched_yield();
		if (++idle == 1)
			since = now_s();
		if (idle % CLOCK_EVERY)
			continue;
		if (now_s() - since > PATIENCE_S)
			return SW_ETIMEDOUT;
		if (is_stopped(u->r))
			return SW_ECLOSED;
	}
	return 0;
}

/* Greet until the server answers. Frames are lost until the port knows the
 * server's Ethernet address. collect() does not count answers to greetings. */
static int greet(struct run *u)
{
	struct sw_path to = {.ip = u->r->ip, .udp = u->r->udp};
	struct sw_port *port = u->r->port;
	struct sw_tx_frame out;
	double start = now_s();

	fill_piece(u, 0, to, &out);
	sw_store32(out.head + AT_BURST, 0);
	do {
		if (is_stopped(u->r))
			return SW_ECLOSED;
		if (now_s() - start > PATIENCE_S)
			return SW_ETIMEDOUT;
		send_all(u, &out, port->ops->tx_room(port) != 0);
		port->ops->tx_flush(port);
		usleep(GREET_US);
	} while (!collect(u));
	return 0;
}

static void fill_ones(uint8_t *at, uint64_t bytes)
{
	const float one = 1;

	for (uint64_t i = 0; i < bytes; i += sizeof(one))
		memcpy(at + i, &one, sizeof(one));
}

/* Check that each element is a number of passes: this run's, or more if the
 * server has summed earlier runs. */
static int sum_check(const struct run *u)
{
	for (uint64_t i = 0; i < u->r->bytes; i += sizeof(float)) {
		float v;

		memcpy(&v, u->to + i, sizeof(v));
		if (!(v >= (float)u->r->n_passes) || v != (float)(int)v)
			return SW_ECORRUPT;
	}
	return 0;
}

static int client_check(const struct sw_raw *r)
{
	if (!r->window || !r->burst || r->burst > SW_RX_BURST || !r->n_passes)
		return SW_EINVAL;
	return 0;
}

int sw_raw_client(const struct sw_raw *r, double *gbit_s)
{
	struct run u;
	double start, took;
	int err = client_check(r);

	if (!err)
		err = run_init(&u, r);
	if (err)
		return err;
	u.burst = r->burst;
	u.n_total = (uint64_t)u.n_pieces * r->n_passes;
	u.from = memory_take(r->bytes);
	u.to = memory_take(r->bytes);
	err = u.from && u.to ? 0 : SW_ENOMEM;
	if (!err) {
		fill_ones(u.from, r->bytes);
		memset(u.to, 0, r->bytes);
		err = greet(&u);
		start = now_s();
		if (!err)
			err = echo(&u);
		took = now_s() - start;
	}
	if (!err)
		err = sum_check(&u);
	if (!err)
		*gbit_s = (double)r->bytes * r->n_passes * 8e-9 / took;
	if (u.from)
		munmap(u.from, r->bytes);
	if (u.to)
		munmap(u.to, r->bytes);
	return err;
}

void sw_raw_bye(const struct sw_raw *r)
{
	struct sw_port *port = r->port;
	struct sw_tx_frame f = {.to = {.ip = r->ip, .udp = r->udp}};

	sw_store32(f.head + AT_PIECE, BYE);
	for (uint32_t i = 0; i < N_BYES && port->ops->tx_room(port); i++)
		port->ops->tx(port, &f, 1);
	port->ops->tx_flush(port);
}
