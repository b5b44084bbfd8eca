/* trace.c - record what the lcores do, for sumwire trace.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/trace_format.h"
#include "apps/node/daemon.h"
#include "engine/base/spsc.h"
#include "engine/wire/wire.h"

enum {
	RING = 1 << 16, /* events */
	TAPS = 2,       /* a server's engine and a worker's */
	PLACES = 2 * SW_TRACE_NAMES,
	SOME = SW_TRACE_BLOCK_MAX / sizeof(struct sw_trace_event),
	FAST_MS = 2,       /* between looks at the rings */
	ROUNDS = 16,       /* over all lcores in one look */
	PATIENCE_MS = 5000 /* for a reader that has said that it has enough */
};

/* Between the loop and an engine. */
struct tap {
	struct sw_engine engine; /* the loop's view */
	struct sw_engine *inner; /* NULL: not in use */
	struct sw_tracer *tracer;
};

struct peer {
	const struct sw_engine *engine; /* NULL: it has ended */
	struct sw_engine_peer is;
	uint32_t slot; /* index of the session in its engine */
};

struct sw_tracer {
	struct tap taps[TAPS];
	struct sw_spsc to; /* the lcore's side of the ring */
	uint16_t last_peer;
	struct peer peers[SW_TRACE_PEERS];
	uint16_t places[PLACES]; /* by hash of job and key: name + 1 */
	/* Entries below the counts are stable and the control thread's to
	 * read. */
	_Atomic uint32_t n_peers, n_names;
	uint64_t n_untaken;
	struct sw_trace_peer told_peers[SW_TRACE_PEERS];
	struct sw_trace_name names[SW_TRACE_NAMES];
	/* The control thread's. */
	struct sw_spsc from;
	uint32_t sent_peers, sent_names;
	_Alignas(64) unsigned char ring[SW_SPSC_BYTES(
		RING, sizeof(struct sw_trace_event))];
};

/* --- on the lcore --- */

static void put(struct sw_tracer *t, const struct sw_trace_event *e)
{
	if (!sw_spsc_put(&t->to, e, 1))
		sw_count(&t->n_untaken, 1);
}

static uint16_t add_peer(struct sw_tracer *t, const struct sw_engine *engine,
	uint32_t slot, const struct sw_engine_peer *is)
{
	uint32_t n = atomic_load_explicit(&t->n_peers, memory_order_relaxed);
	struct sw_trace_peer *told = &t->told_peers[n];
	char address[SW_IP_PORT_TEXT];

	if (n == SW_TRACE_PEERS)
		return SW_TRACE_NO_PEER;
	t->peers[n] = (struct peer){engine, *is, slot};
	*told = (struct sw_trace_peer){.epoch = is->epoch,
		.seed = is->seed,
		.member = is->member,
		.is_worker = engine == t->taps[1].inner};
	memcpy(told->job, is->job, sizeof(told->job));
	strcpy(told->address,
		sw_ip_port_text(is->path.ip, is->path.udp, address));
	atomic_store_explicit(&t->n_peers, n + 1, memory_order_release);
	return (uint16_t)n;
}

/* Does a frame under @session, from @from_peer or to it, belong to the peer? */
static bool is_of(const struct peer *p, const struct sw_engine *engine,
	uint32_t session, const struct sw_path *to)
{
	if (p->engine != engine)
		return false;
	return to ? p->is.far_id == session && sw_path_is_same(&p->is.path, to)
		  : p->is.id == session;
}

/* Ask the engine for the session of a frame. */
static uint16_t ask_peer(struct sw_tracer *t, const struct sw_engine *engine,
	uint32_t session, const struct sw_path *to)
{
	uint32_t i = to ? 0 : session >> 16;
	uint32_t end = to ? SW_MAX_SESSIONS : i + 1;
	struct peer p = {.engine = engine};

	for (; i < end; i++)
		if (engine->peer(engine, i, &p.is) &&
			is_of(&p, engine, session, to))
			return add_peer(t, engine, i, &p.is);
	return SW_TRACE_NO_PEER;
}

/* Return the peer of a frame under @session; @to: where it goes, NULL if it was
 * received. */
static uint16_t find_peer(struct sw_tracer *t, const struct sw_engine *engine,
	uint32_t session, const struct sw_path *to)
{
	uint32_t n = atomic_load_explicit(&t->n_peers, memory_order_relaxed);

	if (t->last_peer < n &&
		is_of(&t->peers[t->last_peer], engine, session, to))
		return t->last_peer;
	for (uint32_t i = 0; i < n; i++)
		if (is_of(&t->peers[i], engine, session, to))
			return t->last_peer = (uint16_t)i;
	return t->last_peer = ask_peer(t, engine, session, to);
}

/* Note the name of a tensor of peer @p, when its key is first seen. */
static void note_name(struct sw_tracer *t, const struct peer *p, uint32_t key)
{
	uint32_t n = atomic_load_explicit(&t->n_names, memory_order_relaxed);
	uint32_t at = (key ^ (uint32_t)p->is.epoch) * 2654435761u % PLACES;
	struct sw_engine_tensor is;
	struct sw_trace_name *name;

	for (; t->places[at]; at = (at + 1) % PLACES) {
		name = &t->names[t->places[at] - 1];
		if (name->key == key && name->epoch == p->is.epoch)
			return;
	}
	if (n == SW_TRACE_NAMES ||
		!p->engine->tensor(p->engine, p->slot, key, &is))
		return;
	name = &t->names[n];
	*name = (struct sw_trace_name){
		.epoch = p->is.epoch, .key = key, .is_stream = is.is_stream};
	memcpy(name->name, is.name, strnlen(is.name, SW_NAME_MAX - 1));
	t->places[at] = (uint16_t)(n + 1);
	atomic_store_explicit(&t->n_names, n + 1, memory_order_release);
}

static void note_frame(struct sw_tracer *t, const struct sw_engine *engine,
	const struct sw_header *h, const struct sw_path *to,
	struct sw_trace_event *e)
{
	e->peer = find_peer(t, engine, h->session, to);
	e->key = h->key;
	e->round = h->round;
	e->chunk = h->chunk;
	e->step = h->step;
	if (h->flags & SW_FLAG_RETX)
		e->flags |= SW_TRACE_RETX;
	if (e->peer != SW_TRACE_NO_PEER)
		note_name(t, &t->peers[e->peer], h->key);
	put(t, e);
}

/* Counters that tell what a frame did. */
struct counts {
	uint64_t folded, bytes, done, again, held, held_bytes, old;
};

static struct counts count(const struct sw_stats *s)
{
	return (struct counts){s->push_folded, s->push_bytes, s->chunks_done,
		s->push_again, s->results, s->result_bytes, s->result_again};
}

/* Note a received data frame by what it has changed. */
static void note_received(struct tap *tap, const struct sw_header *h,
	const struct counts *was, uint64_t from_ns, uint64_t to_ns)
{
	struct counts is = count(tap->inner->stats);
	struct sw_trace_event e = {.t_ns = to_ns,
		.ns = (uint32_t)(to_ns - from_ns),
		.kind = SW_TRACE_AGAIN};

	if (is.folded != was->folded) {
		e.kind = SW_TRACE_FOLD;
		e.bytes = (uint16_t)(is.bytes - was->bytes);
		e.flags = is.done != was->done ? SW_TRACE_COMPLETE : 0;
	} else if (is.held != was->held) {
		e.kind = SW_TRACE_HOLD;
		e.bytes = (uint16_t)(is.held_bytes - was->held_bytes);
	} else if (is.again == was->again && is.old == was->old) {
		return; /* dropped: a counter says why */
	}
	note_frame(tap->tracer, tap->inner, h, NULL, &e);
}

static void note_burst(struct sw_tracer *t, enum sw_trace_kind kind, uint32_t n,
	uint64_t from_ns, uint64_t to_ns)
{
	put(t, &(struct sw_trace_event){.t_ns = to_ns,
		       .ns = (uint32_t)(to_ns - from_ns),
		       .chunk = n,
		       .peer = SW_TRACE_NO_PEER,
		       .kind = (uint8_t)kind});
}

static void tap_rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct tap *tap = (struct tap *)engine;
	uint64_t begin_ns = sw_now_ns(), from_ns = begin_ns;
	struct sw_header h;

	for (uint32_t i = 0; i < n; i++) {
		struct counts was = count(tap->inner->stats);
		uint64_t to_ns;

		memcpy(&h, frames[i].data, SW_HEAD_BYTES);
		tap->inner->rx(tap->inner, now_ns, port_i, &frames[i], 1);
		to_ns = sw_now_ns();
		if (h.type == SW_PUSH || h.type == SW_WANT ||
			h.type == SW_RESULT)
			note_received(tap, &h, &was, from_ns, to_ns);
		from_ns = to_ns;
	}
	note_burst(tap->tracer, SW_TRACE_RX, n, begin_ns, from_ns);
}

/* Note the data frames of a burst.  It was built as a whole, so each has a part
 * of its time. */
static void note_sent(struct tap *tap, const struct sw_tx_frame *out,
	uint32_t n, uint64_t from_ns, uint64_t ns)
{
	struct sw_header h;

	for (uint32_t i = 0; i < n; i++) {
		struct sw_trace_event e = {.t_ns = from_ns + ns * (i + 1) / n,
			.bytes = (uint16_t)out[i].payload_len};

		memcpy(&h, out[i].head, SW_HEAD_BYTES);
		e.ns = (uint32_t)(e.t_ns - (from_ns + ns * i / n));
		e.kind = h.type == SW_RESULT ? SW_TRACE_RESULT : SW_TRACE_PUSH;
		if (h.type == SW_RESULT || h.type == SW_PUSH ||
			h.type == SW_WANT)
			note_frame(tap->tracer, tap->inner, &h, &out[i].to, &e);
	}
}

static uint32_t tap_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max)
{
	struct tap *tap = (struct tap *)engine;
	uint64_t from_ns = sw_now_ns(), to_ns;
	uint32_t n;

	tap->inner->holds_data = engine->holds_data;
	n = tap->inner->tx(tap->inner, now_ns, port_i, out, max);
	if (!n)
		return 0;
	to_ns = sw_now_ns();
	note_sent(tap, out, n, from_ns, to_ns - from_ns);
	note_burst(tap->tracer, SW_TRACE_TX, n, from_ns, to_ns);
	return n;
}

static uint64_t tap_tick(
	struct sw_engine *engine, uint64_t now_ns, uint64_t gap_ns)
{
	struct sw_engine *inner = ((struct tap *)engine)->inner;

	return inner->tick(inner, now_ns, gap_ns);
}

static bool tap_is_busy(const struct sw_engine *engine)
{
	const struct sw_engine *inner = ((const struct tap *)engine)->inner;

	return inner->is_busy(inner);
}

/* Forget what the tap knows of an engine whose memory another one may have. */
static void forget(struct sw_tracer *t, const struct sw_engine *engine)
{
	for (uint32_t i = 0; i < SW_TRACE_PEERS; i++)
		if (t->peers[i].engine == engine)
			t->peers[i].engine = NULL;
}

static struct sw_engine *tap_in(
	struct sw_tracer *t, bool is_worker, struct sw_engine *engine)
{
	struct tap *tap = &t->taps[is_worker];

	forget(t, engine);
	*tap = (struct tap){.engine = {.stats = engine->stats,
				    .holds_data = engine->holds_data,
				    .rx = tap_rx,
				    .tick = tap_tick,
				    .tx = tap_tx,
				    .is_busy = tap_is_busy},
		.inner = engine,
		.tracer = t};
	return &tap->engine;
}

struct sw_engine *sw_trace_tap(struct sw_tracer *t, struct sw_engine *engine)
{
	return tap_in(t, true, engine);
}

/* The endpoints of this lcore: a server's, a worker's. */
static void endpoints_of(const struct sw_poller *p, uint32_t out[TAPS])
{
	out[0] = p->is_serving ? p->lcore : UINT32_MAX;
	out[1] = sw_daemon_endpoint(p->daemon, p->lcore);
}

void sw_trace_follow(struct sw_poller *p)
{
	struct sw_trace *trace = &p->daemon->trace;
	struct sw_tracer *t = atomic_load(&trace->is_recording)
				      ? trace->tracers[p->lcore]
				      : NULL;
	uint32_t endpoints[TAPS];

	if (t == p->tracer)
		return;
	endpoints_of(p, endpoints);
	for (uint32_t i = 0; i < TAPS; i++) {
		struct sw_engine *now = sw_loop_engine(&p->loop, endpoints[i]);

		if (!now)
			continue;
		sw_loop_set(&p->loop, endpoints[i],
			t ? tap_in(t, i, now) : p->tracer->taps[i].inner);
	}
	p->tracer = t;
}

void sw_trace_call(struct sw_tracer *t, const struct sw_trace_call *call)
{
	put(t, &(struct sw_trace_event){.t_ns = sw_now_ns(),
		       .key = call->key,
		       .round = call->number,
		       .chunk = call->cookie,
		       .peer = (uint16_t)call->local,
		       .kind = call->is_done ? SW_TRACE_DONE : SW_TRACE_CALL,
		       .flags = call->has_failed ? SW_TRACE_ERROR : 0});
}

/* --- on the control thread --- */

void sw_trace_open(struct sw_daemon *d, const char *folder)
{
	char path[SW_CONF_PATH_BYTES];
	int n = snprintf(path, sizeof(path), "%s/trace-%ld.sock", folder,
		(long)getpid());

	if (n >= (int)sizeof(path) ||
		sw_feed_open(&d->trace.feed, path, "socket", &d->log))
		sw_log(&d->log, SW_LOG_INFO,
			"sumwire trace cannot reach this daemon: no socket in "
			"%s",
			folder);
}

/* Have all lcores look whether they are traced. */
static void order(struct sw_daemon *d, bool is_recording)
{
	atomic_store(&d->trace.is_recording, is_recording);
	atomic_fetch_add(&d->n_orders, 1);
}

/* Have all lcores followed?  Wakes lcores that sleep. */
static bool have_followed(struct sw_daemon *d)
{
	uint32_t n = atomic_load(&d->n_orders);
	bool all = true;

	for (uint32_t i = 0; i < d->n_lcores; i++) {
		struct sw_poller *p = &d->pollers[i];

		if (atomic_load_explicit(&p->n_orders, memory_order_acquire) ==
			n)
			continue;
		all = false;
		if (sw_bell_is_awaited(&p->bell))
			sw_bell_ring(&p->bell);
	}
	return all;
}

static void put_block(struct sw_feed *f, enum sw_trace_block_kind kind,
	uint16_t lcore, uint64_t n_untaken, const void *bytes, size_t n)
{
	struct sw_trace_block b = {.kind = kind,
		.lcore = lcore,
		.bytes = (uint32_t)n,
		.n_dropped = (uint32_t)n_untaken};

	sw_feed_put(f, &b, sizeof(b));
	if (n)
		sw_feed_put(f, bytes, n);
}

static void put_hello(struct sw_daemon *d)
{
	static const char *const roles[] = {[SW_ROLE_SERVER] = "server",
		[SW_ROLE_AGENT] = "agent",
		[SW_ROLE_BOTH] = "both"};
	struct sw_trace_hello h = {.pid = getpid(), .began_ns = sw_now_ns()};
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

	if (f && !fgets(h.boot, sizeof(h.boot), f))
		h.boot[0] = '\0';
	if (f)
		fclose(f);
	h.boot[strcspn(h.boot, "\n")] = '\0';
	snprintf(h.node, sizeof(h.node), "%s", d->conf.node.name);
	snprintf(h.role, sizeof(h.role), "%s", roles[d->conf.node.role]);
	put_block(&d->trace.feed, SW_TRACE_HELLO, 0, 0, &h, sizeof(h));
}

static void drop_tracers(struct sw_trace *t)
{
	for (uint32_t i = 0; i < SW_MAX_LCORES; i++) {
		free(t->tracers[i]);
		t->tracers[i] = NULL;
	}
}

static struct sw_tracer *new_tracer(void)
{
	struct sw_tracer *t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64);

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t)); /* all pages are present */
	sw_spsc_init(&t->to, t->ring, RING, sizeof(struct sw_trace_event));
	sw_spsc_init(&t->from, t->ring, RING, sizeof(struct sw_trace_event));
	return t;
}

static void begin(struct sw_daemon *d)
{
	struct sw_trace *t = &d->trace;

	for (uint32_t i = 0; i < d->n_lcores; i++) {
		t->tracers[i] = new_tracer();
		if (!t->tracers[i]) {
			sw_log(&d->log, SW_LOG_WARN, "trace: no memory");
			drop_tracers(t);
			sw_feed_end(&t->feed);
			return;
		}
	}
	put_hello(d);
	t->is_on = true;
	t->end_by_ns = 0;
	order(d, true);
	sw_log(&d->log, SW_LOG_INFO, "trace: recording");
}

/* Put an lcore's new peers and names, which its events name. */
static void put_new(struct sw_feed *f, struct sw_tracer *t, uint16_t lcore)
{
	uint32_t n_peers =
		atomic_load_explicit(&t->n_peers, memory_order_acquire);
	uint32_t n_names =
		atomic_load_explicit(&t->n_names, memory_order_acquire);

	for (; t->sent_peers < n_peers; t->sent_peers++)
		put_block(f, SW_TRACE_PEER, lcore, 0,
			&t->told_peers[t->sent_peers],
			sizeof(struct sw_trace_peer));
	for (; t->sent_names < n_names; t->sent_names++)
		put_block(f, SW_TRACE_NAME, lcore, 0, &t->names[t->sent_names],
			sizeof(struct sw_trace_name));
}

/* All peers, all names and a block of events. */
_Static_assert(SW_TRACE_PEERS *(sizeof(struct sw_trace_peer) +
				sizeof(struct sw_trace_block)) +
			       SW_TRACE_NAMES *
				       (sizeof(struct sw_trace_name) +
					       sizeof(struct sw_trace_block)) +
			       2 * SW_TRACE_BLOCK_MAX <
		       SW_FEED_BYTES,
	"they fit an empty feed");

static size_t bytes_of_new(const struct sw_tracer *t)
{
	return (atomic_load(&t->n_peers) - t->sent_peers) *
		       (sizeof(struct sw_trace_peer) +
			       sizeof(struct sw_trace_block)) +
	       (atomic_load(&t->n_names) - t->sent_names) *
		       (sizeof(struct sw_trace_name) +
			       sizeof(struct sw_trace_block));
}

/* Returns whether there were events. */
static bool pump(struct sw_feed *f, struct sw_tracer *t, uint16_t lcore)
{
	struct sw_trace_event some[SOME];
	int n;

	if (sw_feed_room(f) < bytes_of_new(t) + 2 * SW_TRACE_BLOCK_MAX)
		return false;
	n = sw_spsc_take(&t->from, some, SOME);
	put_new(f, t, lcore);
	if (n > 0)
		put_block(f, SW_TRACE_EVENTS, lcore, sw_word(&t->n_untaken),
			some, (size_t)n * sizeof(*some));
	return n > 0;
}

static bool are_drained(const struct sw_daemon *d)
{
	for (uint32_t i = 0; i < d->n_lcores; i++)
		if (!sw_spsc_is_empty(&d->trace.tracers[i]->from))
			return false;
	return true;
}

/* Give up the reader, when the lcores have let go of the taps. */
static void end(struct sw_daemon *d)
{
	sw_feed_end(&d->trace.feed);
	drop_tracers(&d->trace);
	d->trace.is_on = d->trace.has_said_end = false;
	sw_log(&d->log, SW_LOG_INFO, "trace: ended");
}

/* Send the rest, once no lcore records. */
static void finish(struct sw_daemon *d)
{
	struct sw_trace *t = &d->trace;
	bool is_late = sw_now_ns() > t->end_by_ns;

	if (!have_followed(d))
		return;
	if (!t->has_said_end && are_drained(d) &&
		sw_feed_room(&t->feed) >= sizeof(struct sw_trace_block)) {
		for (uint16_t i = 0; i < d->n_lcores; i++)
			put_block(&t->feed, SW_TRACE_EVENTS, i,
				sw_word(&t->tracers[i]->n_untaken), NULL, 0);
		put_block(&t->feed, SW_TRACE_END, 0, 0, NULL, 0);
		t->has_said_end = true;
	}
	if ((sw_feed_send(&t->feed) && t->has_said_end) || is_late)
		end(d);
}

void sw_trace_poll(struct sw_daemon *d)
{
	static const struct sw_trace_block busy = {.kind = SW_TRACE_BUSY};
	struct sw_trace *t = &d->trace;
	bool has_more = true;

	if (sw_feed_begin(&t->feed, &busy, sizeof(busy)))
		begin(d);
	if (!t->is_on)
		return;
	for (uint32_t r = 0; r < ROUNDS && has_more; r++) {
		has_more = false;
		for (uint16_t i = 0; i < d->n_lcores; i++)
			has_more |= pump(&t->feed, t->tracers[i], i);
		(void)sw_feed_send(&t->feed);
	}
	if (!t->end_by_ns && sw_feed_is_over(&t->feed)) {
		t->end_by_ns = sw_now_ns() + PATIENCE_MS * SW_MS;
		order(d, false);
	}
	if (t->end_by_ns)
		finish(d);
	else
		(void)!have_followed(d);
}

uint32_t sw_trace_wait_ms(const struct sw_daemon *d, uint32_t ms)
{
	return d->trace.is_on && ms > FAST_MS ? FAST_MS : ms;
}

void sw_trace_close(struct sw_daemon *d)
{
	sw_feed_close(&d->trace.feed);
	drop_tracers(&d->trace);
}
