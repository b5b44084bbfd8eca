/* trace.c - record the lcores' work, for sumwire trace and sumwire capture.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/node/daemon.h"
#include "apps/node/tracer.h"
#include "pmd/host/attach.h"
#include "pmd/host/daemons.h"

enum {
	RING = 1 << 17,       /* events */
	FRAME_RING = 1 << 19, /* entries of frames */
	/* between two reads of the rings: by how full they are */
	FAST_MS = 2,
	SLOW_MS = 16,
	ROUNDS = 16, /* rounds over all lcores in one read */
	/* most notes taken from processes in one round: an eighth of a ring */
	NOTES = SW_EDGE_NOTES / 8,
	/* for a reader's request, and for it to read the rest */
	PATIENCE_MS = 5000
};

/* --- on the lcore --- */

static uint64_t tap_tick(
	struct sw_engine *engine, uint64_t now_ns, uint64_t gap_ns)
{
	struct sw_engine *inner = ((struct sw_tap *)engine)->inner;

	return inner->tick(inner, now_ns, gap_ns);
}

static bool tap_is_busy(const struct sw_engine *engine)
{
	const struct sw_engine *inner = ((const struct sw_tap *)engine)->inner;

	return inner->is_busy(inner);
}

/* Forget the peers of an engine: another engine may have its memory. */
static void forget_engine(struct sw_tracer *t, const struct sw_engine *engine)
{
	for (uint32_t i = 0; i < SW_TRACE_PEERS; i++)
		if (t->peers[i].engine == engine)
			t->peers[i].engine = NULL;
}

static struct sw_engine *tap_in(struct sw_tracer *t, bool is_worker,
	uint32_t endpoint, struct sw_engine *engine)
{
	struct sw_tap *tap = &t->taps[is_worker];

	forget_engine(t, engine);
	*tap = (struct sw_tap){.engine = {.stats = engine->stats,
				       .holds_data = engine->holds_data,
				       .tick = tap_tick,
				       .is_busy = tap_is_busy},
		.inner = engine,
		.tracer = t,
		.endpoint = (uint16_t)endpoint};
	if (t->ask.kind == SW_TRACE_ASK_FRAMES)
		sw_capture_tap(&tap->engine);
	else
		sw_trace_events_tap(&tap->engine);
	return &tap->engine;
}

struct sw_engine *sw_trace_tap(
	struct sw_tracer *t, uint32_t endpoint, struct sw_engine *engine)
{
	return tap_in(t, true, endpoint, engine);
}

/* List this lcore's endpoints: of the service, and of the worker. */
static void endpoints_of(const struct sw_poller *p, uint32_t out[SW_TAPS])
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
	uint32_t endpoints[SW_TAPS];

	if (t == p->tracer)
		return;
	endpoints_of(p, endpoints);
	for (uint32_t i = 0; i < SW_TAPS; i++) {
		struct sw_engine *now = sw_loop_engine(&p->loop, endpoints[i]);

		if (!now)
			continue;
		sw_loop_set(&p->loop, endpoints[i],
			t ? tap_in(t, i, endpoints[i], now)
			  : p->tracer->taps[i].inner);
	}
	p->tracer = t;
}

/* --- on the control thread --- */

void sw_trace_open(struct sw_daemon *d, const char *folder)
{
	char path[SW_CONF_PATH_BYTES];
	int n = snprintf(path, sizeof(path), "%s/" SW_TRACE_PREFIX "%ld.sock",
		folder, (long)getpid());

	if (n >= (int)sizeof(path) ||
		sw_feed_open(&d->trace.feed, path, "socket", &d->log))
		sw_log(&d->log, SW_LOG_INFO,
			"sumwire trace and capture cannot reach this daemon: "
			"no socket in %s",
			folder);
}

/* Order all lcores to check whether to record. */
static void order(struct sw_daemon *d, bool is_recording)
{
	atomic_store(&d->trace.is_recording, is_recording);
	atomic_fetch_add(&d->n_orders, 1);
}

/* Return whether all lcores have carried out the order.  Wakes sleeping
 * lcores. */
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
	struct sw_trace_hello h = {
		.pid = getpid(), .began_ns = d->trace.began_ns};
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

static void put_ports(struct sw_daemon *d)
{
	struct sw_port *const *ports = sw_handoff_ports(&d->handoff, 0);

	for (uint32_t i = 0; i < d->n_ports; i++)
		put_block(&d->trace.feed, SW_TRACE_PORT, 0, 0, ports[i]->name,
			strlen(ports[i]->name) + 1);
}

static void drop_tracers(struct sw_trace *t)
{
	for (uint32_t i = 0; i < SW_MAX_LCORES; i++) {
		free(t->tracers[i]);
		t->tracers[i] = NULL;
	}
}

/* Return the entries of an lcore's ring. */
static uint32_t ring_of(const struct sw_trace_ask *ask)
{
	return ask->kind == SW_TRACE_ASK_FRAMES ? FRAME_RING : RING;
}

static struct sw_tracer *new_tracer(
	const struct sw_daemon *d, const struct sw_poller *p)
{
	const struct sw_trace_ask *ask = &d->trace.ask;
	uint32_t ring = ring_of(ask);
	size_t n =
		sizeof(struct sw_tracer) + SW_SPSC_BYTES(ring, SW_TRACE_ENTRY);
	struct sw_tracer *t = aligned_alloc(64, (n + 63) / 64 * 64);

	if (!t)
		return NULL;
	memset(t, 0, n); /* make all pages present */
	t->ask = *ask;
	t->ports = sw_handoff_ports(&d->handoff, p->lcore);
	t->first_udp = (uint16_t)d->conf.serve.udp_port;
	t->n_udp = (uint16_t)sw_conf_n_udp(&d->conf);
	sw_spsc_init(&t->to, t->ring, ring, SW_TRACE_ENTRY);
	sw_spsc_init(&t->from, t->ring, ring, SW_TRACE_ENTRY);
	return t;
}

static const char *name_of(const struct sw_trace *t)
{
	return t->ask.kind == SW_TRACE_ASK_FRAMES ? "capture" : "trace";
}

static void begin(struct sw_daemon *d)
{
	struct sw_trace *t = &d->trace;

	for (uint32_t i = 0; i < d->n_lcores; i++) {
		t->tracers[i] = new_tracer(d, &d->pollers[i]);
		if (!t->tracers[i]) {
			sw_log(&d->log, SW_LOG_WARN, "%s: no memory",
				name_of(t));
			drop_tracers(t);
			sw_feed_end(&t->feed);
			return;
		}
	}
	t->began_ns = sw_now_ns();
	t->read_ms = FAST_MS;
	t->n_unnoted = 0;
	put_hello(d);
	if (t->ask.kind == SW_TRACE_ASK_FRAMES)
		put_ports(d);
	t->is_on = true;
	t->end_by_ns = 0;
	order(d, true);
	if (t->host && t->ask.kind == SW_TRACE_ASK_EVENTS)
		sw_host_trace(t->host, true);
	sw_log(&d->log, SW_LOG_INFO, "%s: recording", name_of(t));
}

static bool is_good(const struct sw_trace_ask *a)
{
	return (a->kind == SW_TRACE_ASK_EVENTS ||
		       a->kind == SW_TRACE_ASK_FRAMES) &&
	       a->most <= SW_TRACE_KEPT_MAX &&
	       memchr(a->job, '\0', sizeof(a->job));
}

/* Begin to record once the reader's request has arrived. */
static void await_ask(struct sw_daemon *d)
{
	struct sw_trace *t = &d->trace;
	int got = sw_feed_ask(&t->feed, &t->ask, sizeof(t->ask));

	if (got > 0 && is_good(&t->ask))
		begin(d);
	else if (got || sw_now_ns() > t->ask_by_ns)
		sw_feed_end(&t->feed);
}

/* Put an lcore's new peers and names before the events that refer to them. */
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

/* All peers, all names and two blocks fit an empty feed. */
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

/* Return how many of @n entries belong to complete frames. */
static uint32_t whole_frames(const uint8_t *some, uint32_t n)
{
	struct sw_trace_frame f;
	uint32_t at = 0, next;

	while (at + sizeof(f) / SW_TRACE_ENTRY <= n) {
		memcpy(&f, some + at * SW_TRACE_ENTRY, sizeof(f));
		next = at + sw_trace_frame_entries(f.kept);
		if (next > n)
			break;
		at = next;
	}
	return at;
}

/* Return how many events were lost because an lcore's ring was full, or for
 * lcore 0 also a process's ring. */
static uint64_t n_lost(const struct sw_trace *t, uint32_t lcore)
{
	return sw_word(&t->tracers[lcore]->n_untaken) +
	       (lcore ? 0 : t->n_unnoted);
}

/* Move an lcore's new events or frames to the feed.  Returns whether there were
 * any. */
static bool pump(struct sw_trace *trace, uint16_t lcore)
{
	struct sw_feed *f = &trace->feed;
	struct sw_tracer *t = trace->tracers[lcore];
	bool is_frames = t->ask.kind == SW_TRACE_ASK_FRAMES;
	uint32_t n, all;
	int got;

	if (sw_feed_room(f) < bytes_of_new(t) + 2 * SW_TRACE_BLOCK_MAX)
		return false;
	got = sw_spsc_take(&t->from, t->some + t->n_some * SW_TRACE_ENTRY,
		SW_TRACE_SOME - t->n_some);
	put_new(f, t, lcore);
	if (got <= 0)
		return false;
	all = t->n_some + (uint32_t)got;
	n = is_frames ? whole_frames(t->some, all) : all;
	put_block(f, is_frames ? SW_TRACE_FRAMES : SW_TRACE_EVENTS, lcore,
		n_lost(trace, lcore), t->some, n * SW_TRACE_ENTRY);
	t->n_some = all - n;
	memmove(t->some, t->some + n * SW_TRACE_ENTRY,
		t->n_some * SW_TRACE_ENTRY);
	return true;
}

/* Make an event of a process's note.  Returns false if its time is impossible.
 */
static bool note_event(const struct sw_trace *t, uint64_t now_ns,
	const struct sw_host_note *n, struct sw_trace_event *e)
{
	static const uint8_t kinds[SW_EDGE_N_NOTES] = {
		[SW_EDGE_READY] = SW_TRACE_READY,
		[SW_EDGE_COPY_IN] = SW_TRACE_COPY_IN,
		[SW_EDGE_COPY_OUT] = SW_TRACE_COPY_OUT};
	uint64_t bytes = n->note.bytes;

	*e = (struct sw_trace_event){.t_ns = n->note.t_ns,
		.ns = n->note.ns,
		.round = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
		.chunk = (uint32_t)n->note.handle,
		.peer = (uint16_t)n->local_rank,
		.kind = kinds[n->note.kind]};
	return e->t_ns <= now_ns && e->t_ns >= t->began_ns &&
	       e->t_ns - t->began_ns >= e->ns;
}

/* Put the processes' notes.  Returns whether there may be more. */
static bool pump_notes(struct sw_trace *t)
{
	struct sw_host_note notes[NOTES];
	struct sw_trace_event events[NOTES];
	uint32_t n, n_good = 0;
	uint64_t now_ns;

	if (!t->host || t->ask.kind != SW_TRACE_ASK_EVENTS ||
		sw_feed_room(&t->feed) < 2 * SW_TRACE_BLOCK_MAX)
		return false;
	n = sw_host_take_notes(t->host, notes, NOTES, &t->n_unnoted);
	t->n_noted += n;
	now_ns = sw_now_ns();
	for (uint32_t i = 0; i < n; i++)
		n_good += note_event(t, now_ns, &notes[i], &events[n_good]);
	if (n_good)
		put_block(&t->feed, SW_TRACE_EVENTS, 0, n_lost(t, 0), events,
			n_good * sizeof(events[0]));
	return n == NOTES;
}

static bool are_drained(const struct sw_daemon *d)
{
	for (uint32_t i = 0; i < d->n_lcores; i++)
		if (!sw_spsc_is_empty(&d->trace.tracers[i]->from))
			return false;
	return true;
}

/* Drop the reader, once the lcores have removed their taps. */
static void end(struct sw_daemon *d)
{
	sw_feed_end(&d->trace.feed);
	drop_tracers(&d->trace);
	d->trace.is_on = d->trace.has_said_end = false;
	sw_log(&d->log, SW_LOG_INFO, "%s: ended", name_of(&d->trace));
}

/* Send the remaining events, once no lcore records. */
static void finish(struct sw_daemon *d)
{
	struct sw_trace *t = &d->trace;
	bool is_late = sw_now_ns() > t->end_by_ns;

	if (!have_followed(d))
		return;
	if (!t->has_said_end && are_drained(d) &&
		sw_feed_room(&t->feed) >= sizeof(struct sw_trace_block)) {
		for (uint16_t i = 0; i < d->n_lcores; i++)
			put_block(&t->feed,
				t->ask.kind == SW_TRACE_ASK_FRAMES
					? SW_TRACE_FRAMES
					: SW_TRACE_EVENTS,
				i, n_lost(t, i), NULL, 0);
		put_block(&t->feed, SW_TRACE_END, 0, 0, NULL, 0);
		t->has_said_end = true;
	}
	if ((sw_feed_send(&t->feed) && t->has_said_end) || is_late)
		end(d);
}

/* Return how full the fullest lcore's ring is, in eighths. */
static uint32_t eighths_full(const struct sw_daemon *d)
{
	const struct sw_trace *t = &d->trace;
	uint32_t most = 0;

	for (uint32_t i = 0; i < d->n_lcores; i++) {
		uint32_t n = sw_spsc_used(&t->tracers[i]->from);

		most = n > most ? n : most;
	}
	return most / (ring_of(&t->ask) / 8);
}

/* Choose when to read next: rarely, because each read wakes this thread and the
 * reader, which may share the lcores' cores, but before a ring is full.
 * @eighths  how full the fullest ring was */
static void choose_ms(struct sw_trace *t, uint32_t eighths)
{
	if (eighths >= 4)
		t->read_ms = FAST_MS;
	else if (eighths >= 2 && t->read_ms > FAST_MS)
		t->read_ms /= 2;
	else if (!eighths && t->read_ms < SLOW_MS)
		t->read_ms *= 2;
}

void sw_trace_poll(struct sw_daemon *d)
{
	static const struct sw_trace_block busy = {.kind = SW_TRACE_BUSY};
	struct sw_trace *t = &d->trace;
	bool has_more = true;
	uint32_t eighths;

	if (sw_feed_begin(&t->feed, &busy, sizeof(busy)))
		t->ask_by_ns = sw_now_ns() + PATIENCE_MS * SW_MS;
	if (sw_feed_has_reader(&t->feed) && !t->is_on)
		await_ask(d);
	if (!t->is_on)
		return;
	eighths = eighths_full(d);
	t->n_noted = 0;
	for (uint32_t r = 0; r < ROUNDS && has_more; r++) {
		has_more = false;
		for (uint16_t i = 0; i < d->n_lcores; i++)
			has_more |= pump(t, i);
		has_more |= pump_notes(t);
		(void)sw_feed_send(&t->feed);
	}
	if (t->n_noted / NOTES > eighths)
		eighths = t->n_noted / NOTES;
	choose_ms(t, eighths);
	if (!t->end_by_ns && sw_feed_is_over(&t->feed)) {
		t->end_by_ns = sw_now_ns() + PATIENCE_MS * SW_MS;
		order(d, false);
		if (t->host)
			sw_host_trace(t->host, false);
	}
	if (t->end_by_ns)
		finish(d);
	else
		(void)!have_followed(d);
}

uint32_t sw_trace_wait_ms(const struct sw_daemon *d, uint32_t ms)
{
	const struct sw_trace *t = &d->trace;
	uint32_t most = t->is_on && !t->end_by_ns ? t->read_ms : FAST_MS;

	return sw_feed_has_reader(&t->feed) && ms > most ? most : ms;
}

void sw_trace_close(struct sw_daemon *d)
{
	sw_feed_close(&d->trace.feed);
	drop_tracers(&d->trace);
}
