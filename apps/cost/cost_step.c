/* cost_step.c - server and workers stepped in one thread, stage by stage.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The loop sees a shim in place of each engine.  Only a call shows how much an
 * engine will send, so everything runs twice.  The first run records each
 * call's kind of frames.  The second run calls the function of that stage, and
 * checks that the engine sends the same kind.
 */
#include "apps/cost/cost_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/peer/handshake.h"

enum {
	TURN_NS = 1000, /* added by each turn of both ends */
	FRAME_NS = 250, /* added by each frame that moved */
	NOTHING = COST_KINDS,
};

/* The kinds of frames that the first run sent, one for each call of an engine's
 * tx. */
struct sent {
	uint8_t *kinds;
	size_t n, capacity, at;
	bool is_known, differs;
};

struct shim {
	struct sw_engine base; /* first, for casts */
	struct sw_engine *real;
	struct step *step;
	uint32_t side;
};

struct step {
	struct cost_nodes nodes; /* first, for casts */
	struct sent *sent;
	uint64_t now_ns;
	bool is_counted;   /* a measured round of the second run */
	bool is_looked_at; /* a reader wants to know the state of the server */
	struct sw_server_view view;
	uint64_t units[COST_N_STAGES];
	/* A PUSH that the server received. */
	uint8_t push[SW_HEAD_BYTES + SW_PAYLOAD_MAX];
	struct sw_rx_frame pushed;
	struct shim shims[COST_ENDS][SW_LOOP_ENGINES];
};

/* --- stages: each has its own function, and all differ and are called by
 * pointer, so that no compiler merges two of them --- */

#define RX(number, function)                                                   \
	static void function(struct shim *s, uint64_t now_ns, uint32_t port_i, \
		const struct sw_rx_frame *f, uint32_t n)                       \
	{                                                                      \
		s->real->rx(s->real, now_ns, port_i, f, n);                    \
		s->step->units[number] += n;                                   \
	}
#define TX(number, function)                                                 \
	static uint32_t function(struct shim *s, uint64_t now_ns,            \
		uint32_t port_i, struct sw_tx_frame *out, uint32_t max)      \
	{                                                                    \
		uint32_t n = s->real->tx(s->real, now_ns, port_i, out, max); \
                                                                             \
		s->step->units[number] += n ? n : 1;                         \
		return n;                                                    \
	}
#define TICK(number, function)                                        \
	static uint64_t function(                                     \
		struct shim *s, uint64_t now_ns, uint64_t gap_ns)     \
	{                                                             \
		uint64_t at = s->real->tick(s->real, now_ns, gap_ns); \
                                                                      \
		s->step->units[number]++;                             \
		return at;                                            \
	}
#define TURN(number, function)                                         \
	static uint32_t function(struct step *x, struct sw_loop *loop) \
	{                                                              \
		uint32_t n = sw_loop_turn(loop, x->now_ns);            \
                                                                       \
		x->units[number]++;                                    \
		return n;                                              \
	}

RX(COST_SERVER_PUSH, server_push)
RX(COST_SERVER_ACK_IN, server_ack_in)
RX(COST_SERVER_OTHER_IN, server_other_in)
RX(COST_WRONG_SESSION, wrong_session)
RX(COST_WRONG_PATH, wrong_path)
RX(COST_WRONG_TAG, wrong_tag)
RX(COST_HELLO_TAKEN, hello_taken)
RX(COST_HELLO_LIMITED, hello_limited)
RX(COST_WORKER_RESULT, worker_result)
RX(COST_WORKER_ACK_IN, worker_ack_in)
RX(COST_WORKER_OTHER_IN, worker_other_in)

TX(COST_SERVER_RESULT, server_result)
TX(COST_SERVER_ACK_OUT, server_ack_out)
TX(COST_SERVER_OTHER_OUT, server_other_out)
TX(COST_SERVER_IDLE, server_idle)
TX(COST_WORKER_PUSH, worker_push)
TX(COST_WORKER_ACK_OUT, worker_ack_out)
TX(COST_WORKER_OTHER_OUT, worker_other_out)
TX(COST_WORKER_IDLE, worker_idle)

TICK(COST_SERVER_TICK, server_tick)
TICK(COST_WORKER_TICK, worker_tick)

TURN(COST_SERVER_TURN, server_turn)
TURN(COST_WORKER_TURN, worker_turn)

static void worker_submit(struct step *x, uint32_t round)
{
	sw_cost_nodes_push(&x->nodes, round);
	x->units[COST_WORKER_SUBMIT] += sw_cost_submits(x->nodes.shape);
}

/* Tell a reader a part of the server's state, as the daemon's lcore does. */
__attribute__((noinline)) static void server_look(struct step *x)
{
	if (!sw_server_describe(x->nodes.server, x->now_ns, &x->view))
		return;
	x->is_looked_at = false;
	x->units[COST_SERVER_LOOK]++;
}

static void submit(struct step *x, uint32_t round)
{
	sw_cost_nodes_push(&x->nodes, round);
}

static uint32_t turn(struct step *x, struct sw_loop *loop)
{
	return sw_loop_turn(loop, x->now_ns);
}

static void (*const rx_stages[COST_ENDS][COST_KINDS])(struct shim *, uint64_t,
	uint32_t, const struct sw_rx_frame *,
	uint32_t) = {{server_ack_in, server_other_in, server_push},
	{worker_ack_in, worker_other_in, worker_result}};

static void (*const hello_stages[2])(struct shim *, uint64_t, uint32_t,
	const struct sw_rx_frame *, uint32_t) = {hello_taken, hello_limited};

static uint32_t (*const tx_stages[COST_ENDS][COST_KINDS + 1])(
	struct shim *, uint64_t, uint32_t, struct sw_tx_frame *, uint32_t) = {
	{server_ack_out, server_other_out, server_result, server_idle},
	{worker_ack_out, worker_other_out, worker_push, worker_idle}};

static uint64_t (*const tick_stages[COST_ENDS])(
	struct shim *, uint64_t, uint64_t) = {server_tick, worker_tick};

/* Turns by end, and whether the run counts. */
static uint32_t (*const turn_stages[COST_ENDS][2])(struct step *,
	struct sw_loop *) = {{turn, server_turn}, {turn, worker_turn}};

static void (*const submit_stages[2])(struct step *, uint32_t) = {
	submit, worker_submit};

/* --- the shim that the loop sees --- */

static void keep(struct step *x, const struct sw_rx_frame *f)
{
	memcpy(x->push, f->data, SW_HEAD_BYTES);
	memcpy(x->push + SW_HEAD_BYTES, f->payload, f->len - SW_HEAD_BYTES);
	x->pushed = *f;
	x->pushed.data = x->push;
	x->pushed.payload = x->push + SW_HEAD_BYTES;
}

static void shim_rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct shim *s = (struct shim *)engine;
	struct step *x = s->step;

	if (s->side == COST_SERVER && !x->pushed.len &&
		sw_cost_kind(frames->data) == COST_DATA)
		keep(x, frames);
	if (x->is_counted)
		rx_stages[s->side][sw_cost_kind(frames->data)](
			s, now_ns, port_i, frames, n);
	else
		s->real->rx(s->real, now_ns, port_i, frames, n);
}

static uint64_t shim_tick(
	struct sw_engine *engine, uint64_t now_ns, uint64_t gap)
{
	struct shim *s = (struct shim *)engine;

	return s->step->is_counted ? tick_stages[s->side](s, now_ns, gap)
				   : s->real->tick(s->real, now_ns, gap);
}

static void note(struct sent *sent, uint8_t kind)
{
	if (sent->n == sent->capacity) {
		size_t capacity = sent->capacity ? 2 * sent->capacity : 1 << 16;
		uint8_t *kinds = realloc(sent->kinds, capacity);

		if (!kinds) {
			sent->differs = true;
			return;
		}
		sent->kinds = kinds;
		sent->capacity = capacity;
	}
	sent->kinds[sent->n++] = kind;
}

/* Return the kind that the engine sent at this point of the first run. */
static uint8_t expected(struct sent *sent)
{
	return sent->is_known && sent->at < sent->n ? sent->kinds[sent->at++]
						    : NOTHING;
}

static uint32_t shim_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max)
{
	struct shim *s = (struct shim *)engine;
	struct sent *sent = s->step->sent;
	uint8_t kind = expected(sent), is;
	uint32_t n;

	s->real->holds_data = engine->holds_data;
	n = s->step->is_counted
		    ? tx_stages[s->side][kind](s, now_ns, port_i, out, max)
		    : s->real->tx(s->real, now_ns, port_i, out, max);
	is = n ? sw_cost_kind(out->head) : NOTHING; /* all are of one kind */
	if (sent->is_known)
		sent->differs |= is != kind;
	else
		note(sent, is);
	return n;
}

static bool shim_is_busy(const struct sw_engine *engine)
{
	const struct shim *s = (const struct shim *)engine;

	return s->real->is_busy(s->real);
}

static void put_shim(struct step *x, uint32_t side, uint32_t endpoint,
	struct sw_engine *real)
{
	struct shim *s = &x->shims[side][endpoint];

	*s = (struct shim){.real = real,
		.step = x,
		.side = side,
		.base = {.stats = real->stats,
			.rx = shim_rx,
			.tick = shim_tick,
			.tx = shim_tx,
			.is_busy = shim_is_busy}};
	sw_loop_set(&x->nodes.loops[side], endpoint, &s->base);
}

/* --- running it --- */

/* Let both ends take turns.  The frames that moved determine the time of a
 * turn. */
static void turn_until(
	struct cost_nodes *nodes, const uint32_t *count, uint32_t n)
{
	struct step *x = (struct step *)nodes;

	while (*count < n && !nodes->err) {
		x->now_ns += TURN_NS;
		for (uint32_t end = COST_ENDS; end-- > 0;)
			x->now_ns += FRAME_NS * turn_stages[end][x->is_counted](
							x, &nodes->loops[end]);
		if (x->is_looked_at)
			server_look(x);
	}
}

static int run_rounds(struct step *x, bool is_counted)
{
	uint32_t n = sw_cost_submits(x->nodes.shape);

	for (uint32_t i = 0; i < COST_WARM_ROUNDS + COST_STEP_ROUNDS; i++) {
		x->is_counted = is_counted && i >= COST_WARM_ROUNDS;
		x->is_looked_at = x->is_counted;
		memset(&x->view, 0, sizeof(x->view));
		submit_stages[x->is_counted](x, i);
		turn_until(&x->nodes, &x->nodes.n_done, n);
	}
	return x->nodes.err;
}

/* Give a keyed server PUSHes that are wrong in one respect. */
static void run_strangers(struct step *x)
{
	static const struct {
		void (*give)(struct shim *, uint64_t, uint32_t,
			const struct sw_rx_frame *, uint32_t);
		uint32_t byte;  /* offset of the changed byte of the frame */
		uint8_t change; /* bits to flip in this byte */
		uint16_t udp;   /* bits to flip in the source port */
	} strangers[] = {
		{wrong_session, offsetof(struct sw_header, session), 1, 0},
		{wrong_path, 0, 0, 1}, {wrong_tag, SW_SEAL_HEAD_BYTES, 1, 0}};
	struct sw_rx_frame burst[SW_TX_BURST];

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(strangers); i++) {
		struct sw_rx_frame f = x->pushed;

		x->push[strangers[i].byte] ^= strangers[i].change;
		f.from.udp ^= strangers[i].udp;
		for (uint32_t k = 0; k < SW_TX_BURST; k++)
			burst[k] = f;
		for (uint64_t n = 0; n < x->units[COST_SERVER_PUSH];
			n += SW_TX_BURST)
			strangers[i].give(&x->shims[COST_SERVER][0], x->now_ns,
				0, burst, SW_TX_BURST);
		x->push[strangers[i].byte] ^= strangers[i].change;
	}
}

/* Give a keyed server HELLOs until it limits them, and then as many limited
 * HELLOs as PUSHes. */
static void run_hellos(struct step *x)
{
	const struct sw_secret *secret = &x->nodes.entry.secret;
	struct shim *s = &x->shims[COST_SERVER][0];
	struct sw_hand_path path = {.worker = x->pushed.from.ip,
		.server = x->nodes.ends[COST_SERVER].port.ip};
	struct sw_tx_frame out = {
		.header = {.type = SW_HELLO,
			.class = SW_CLASS_CTL,
			.payload_len = sizeof(struct sw_hello)}};
	struct sw_hello hello = {.nonce = 1};
	struct sw_rx_frame f = x->pushed, burst[SW_TX_BURST];

	memcpy(&hello.key_id, secret->id, sizeof(hello.key_id));
	sw_hand_mac(secret, SW_LABEL_HELLO, &path, (uint8_t *)&hello,
		sizeof(hello), offsetof(struct sw_hello, mac));
	sw_frame_fill(&out, f.from, &hello, false);
	f.data = out.head;
	f.payload = (const uint8_t *)&hello;
	f.len = SW_HEAD_BYTES + sizeof(hello);
	for (uint32_t k = 0; k < SW_TX_BURST; k++)
		burst[k] = f;
	while (x->units[COST_HELLO_LIMITED] < x->units[COST_SERVER_PUSH]) {
		uint32_t is_limited = s->real->stats->hellos_limited > 0;

		hello_stages[is_limited](
			s, x->now_ns, 0, burst, is_limited ? SW_TX_BURST : 1);
	}
}

static int run(struct step *x, const struct cost_shape *shape)
{
	int err = sw_cost_nodes_open(&x->nodes, shape, true, x->now_ns);

	if (err)
		return err;
	put_shim(x, COST_SERVER, 0, sw_server_engine(x->nodes.server));
	for (uint32_t i = 0; i < shape->n_members; i++)
		put_shim(x, COST_WORKERS, i,
			sw_worker_engine(&x->nodes.workers[i]));
	err = sw_cost_nodes_start(&x->nodes);
	if (!err)
		err = run_rounds(x, x->sent->is_known);
	if (!err && shape->is_keyed && x->sent->is_known) {
		run_strangers(x);
		run_hellos(x);
	}
	return err;
}

static int run_one(const struct cost_shape *shape, struct sent *sent,
	struct cost_steps *out)
{
	struct step *x = aligned_alloc(64, sizeof(*x));
	int err;

	if (!x)
		return SW_ENOMEM;
	memset(x, 0, sizeof(*x));
	x->nodes.turns = turn_until;
	x->nodes.level = SW_SUM_AVX2;
	x->sent = sent;
	x->now_ns = SW_S;
	err = run(x, shape);
	memcpy(out->units, x->units, sizeof(out->units));
	sw_cost_nodes_close(&x->nodes);
	free(x);
	return err;
}

int sw_cost_step(const struct cost_shape *shape, struct cost_steps *out)
{
	struct sent sent = {0};
	int err;

	if (sw_sum_best(SW_SUM_AVX2)->level != SW_SUM_AVX2) {
		fprintf(stderr, "sumwire-lab engine: this CPU has no AVX2, "
				"whose kernels are counted\n");
		return SW_EINVAL;
	}
	err = run_one(shape, &sent, out);
	sent.is_known = true;
	if (!err)
		err = run_one(shape, &sent, out);
	if (!err && (sent.differs || sent.at != sent.n)) {
		fprintf(stderr, "sumwire-lab engine: two runs did not send "
				"the same frames\n");
		err = SW_EIO;
	}
	free(sent.kinds);
	return err;
}
