/* poller.c - the polling lcore: take turns, and wait while there is no work.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <time.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "apps/node/daemon.h"
#include "pmd/host/attach.h"

enum {
	/* The shortest nap while all processes compute.  A timer does not end
	 * it, because each wake-up takes the core from a process. */
	NAP_NS = 500000,
	/* Processes that wait more often than this need an agent that spins
	 * and naps briefly. */
	OFTEN_NS = 1000000,
};

int sw_poller_open(struct sw_poller *p, struct sw_daemon *d, uint32_t lcore)
{
	const struct sw_handoff *h = &d->handoff;
	uint32_t n = sw_conf_n_udp(&d->conf);

	*p = (struct sw_poller){.daemon = d,
		.lcore = lcore,
		.idle = {.spin_ns = d->conf.lcore.spin_ns,
			.sleep_ns = d->conf.lcore.sleep_ns}};
	sw_loop_init(&p->loop, sw_handoff_ports(h, lcore), d->n_ports,
		d->params.stop_gap, sw_now_ns());
	for (uint32_t e = 0; e < n; e++) {
		uint32_t owner = sw_daemon_owner(d, e);

		if (owner != lcore)
			sw_loop_set(&p->loop, e,
				sw_handoff_engine(h, lcore, owner));
	}
	return sw_bell_open(&p->bell);
}

void sw_poller_close(struct sw_poller *p)
{
	sw_bell_close(&p->bell);
}

void sw_poller_add(struct sw_poller *p,
	uint32_t (*turn)(void *ctx, uint64_t now_ns), void *ctx)
{
	p->works[p->n_works++] = (struct sw_work){.turn = turn, .ctx = ctx};
}

void sw_poller_set(
	struct sw_poller *p, uint32_t endpoint, struct sw_engine *engine)
{
	if (p->tracer && engine)
		engine = sw_trace_tap(p->tracer, endpoint, engine);
	sw_loop_set(&p->loop, endpoint, engine);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(ns / SW_S), .tv_nsec = (long)(ns % SW_S)};

	nanosleep(&t, NULL);
}

/* Collect the descriptors that become readable when work arrives: the bell, and
 * one per port for frames.  Returns their number, or 0 if a port has no
 * descriptor. */
static uint32_t wake_fds(const struct sw_poller *p, int fds[SW_HOST_WAKE_FDS])
{
	const struct sw_daemon *d = p->daemon;
	uint32_t n = 1;

	fds[0] = sw_bell_fd(&p->bell);
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++) {
		const struct sw_port *q = d->queues[p->lcore][i];
		uint32_t has = q ? sw_dpdk_port_wake_fds(
					   q, fds + n, SW_HOST_WAKE_FDS - n)
				 : 0;

		n += has;
		if ((q && !has) || n > SW_HOST_WAKE_FDS)
			return 0;
	}
	return n;
}

/* --- lcores wake each other --- */

/* Return whether lcore @from has work for lcore @to.  If both are equal, the
 * work is from other threads. */
static bool has_mail(const struct sw_daemon *d, uint32_t from, uint32_t to)
{
	return sw_handoff_has(&d->handoff, from, to) ||
	       (d->has_mail && d->has_mail(d->mail_ctx, from, to));
}

static bool has_any(const struct sw_poller *p)
{
	for (uint32_t i = 0; i < p->daemon->n_lcores; i++)
		if (has_mail(p->daemon, i, p->lcore))
			return true;
	return false;
}

static void wake_others(const struct sw_poller *p)
{
	struct sw_daemon *d = p->daemon;

	for (uint32_t i = 0; i < d->n_lcores; i++)
		if (i != p->lcore && sw_bell_is_awaited(&d->pollers[i].bell) &&
			has_mail(d, p->lcore, i))
			sw_bell_ring(&d->pollers[i].bell);
}

/* Return how long to sleep: until the next timer, within @least and @most. */
static uint64_t choose_ns(
	struct sw_poller *p, uint64_t least, uint64_t most, uint64_t now_ns)
{
	uint64_t ns = sw_loop_wait(&p->loop, now_ns, most);

	ns = sw_max64(ns, least);
	sw_loop_rest(&p->loop, ns);
	return ns;
}

static void rest(
	struct sw_poller *p, const int *fds, uint32_t n_fds, uint64_t ns)
{
	sw_bell_await(&p->bell);
	wake_others(p); /* the last check before this lcore sleeps */
	if (has_any(p))
		;
	else if (p->rest)
		p->rest(p->ctx, fds, n_fds, ns);
	else
		sw_host_idle_wait(
			NULL, 0, fds, n_fds, (uint32_t)(ns / SW_US + 1));
	sw_bell_done(&p->bell);
}

/* Tell the processor that this thread spins. */
static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Return whether a process waited within OFTEN_NS.  A daemon that knows no
 * processes assumes so. */
static bool have_waited(const struct sw_poller *p, uint64_t now_ns)
{
	return !p->are_computing || now_ns - p->waited_ns < OFTEN_NS;
}

static void back_off(struct sw_poller *p, uint64_t idle_ns, uint64_t now_ns)
{
	struct sw_idle_look look = {.now_ns = now_ns,
		.idle_ns = idle_ns,
		.is_serving = p->is_serving};
	int fds[SW_HOST_WAKE_FDS];
	enum sw_idle_way way;
	uint32_t n_fds;
	uint64_t least, most;

	if (sw_idle_spins(&p->idle, idle_ns) &&
		(have_waited(p, now_ns) ||
			!sw_idle_is_shared(&p->idle, now_ns))) {
		relax();
		return;
	}
	if (p->are_computing && !p->are_computing(p->ctx))
		p->waited_ns = now_ns;
	n_fds = wake_fds(p, fds);
	look.is_busy = sw_loop_is_busy(&p->loop);
	look.can_wake = n_fds;
	look.has_computing = sw_idle_is_shared(&p->idle, now_ns) &&
			     p->is_awaited && !p->is_awaited(p->ctx);
	way = sw_idle_choose(&p->idle, &look, &most);
	if (way != SW_IDLE_YIELD && sw_loop_foresee(&p->loop, now_ns))
		return; /* it may have made frames due */
	switch (way) {
	case SW_IDLE_YIELD:
		sw_idle_yield(&p->idle, now_ns);
		break;
	case SW_IDLE_NAP:
		least = have_waited(p, now_ns) ? 0 : NAP_NS;
		p->nap(p->ctx, choose_ns(p, least, most, now_ns));
		break;
	case SW_IDLE_REST:
		rest(p, fds, n_fds, choose_ns(p, 0, most, now_ns));
		break;
	case SW_IDLE_SLEEP:
		sleep_ns(choose_ns(p, 0, most, now_ns));
		break;
	}
}

/* Note a turn that took in or sent @n frames and commands.  Returns whether the
 * turn counts as work. */
static bool note_turn(
	struct sw_turns *t, uint32_t n, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns = to_ns - from_ns;

	if (sw_turns_is_due(t, to_ns))
		ns = sw_turns_look(t, from_ns, to_ns, sw_cpu_ns());
	if (!n && ns <= SW_TURN_LONG_NS)
		return false;
	sw_turns_note(t, ns);
	return true;
}

/* Yield to a process that this lcore has woken.  The process may share the
 * core, and would otherwise get it only with its next slice, in milliseconds.
 * On a core known as shared the lcore sleeps soon anyway. */
static void step_aside(struct sw_poller *p)
{
	uint64_t now_ns;

	if (!p->has_woken)
		return;
	p->has_woken = false;
	now_ns = sw_now_ns();
	if (!sw_idle_is_shared(&p->idle, now_ns))
		sw_idle_yield(&p->idle, now_ns);
}

/* Pace this lcore's queue pairs at the ports' rates.  If it has none at a port,
 * the lcore that sends for it is paced instead. */
static void pace(struct sw_poller *p)
{
	const struct sw_daemon *d = p->daemon;

	for (uint32_t i = 0; i < d->n_dpdk_ports; i++)
		sw_loop_set_rate(
			&p->loop, i, sw_dpdk_port_rate(d->queues[p->lcore][i]));
}

/* Carry out new orders: rates, traces. */
static void follow(struct sw_poller *p)
{
	uint32_t n = atomic_load_explicit(
		&p->daemon->n_orders, memory_order_acquire);

	if (n == atomic_load_explicit(&p->n_orders, memory_order_relaxed))
		return;
	pace(p);
	sw_trace_follow(p);
	atomic_store_explicit(&p->n_orders, n, memory_order_release);
}

static uint32_t turn(struct sw_poller *p, uint64_t now_ns)
{
	uint64_t then_ns = sw_loop_then(&p->loop);
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_works; i++)
		n += p->works[i].turn(p->works[i].ctx, then_ns);
	follow(p);
	step_aside(p);
	return n + sw_loop_turn(&p->loop, now_ns);
}

int sw_poller_run(void *poller)
{
	struct sw_poller *p = poller;
	uint64_t now = sw_now_ns(), worked = now, end;

	atomic_store_explicit(
		&p->tid, (uint32_t)gettid(), memory_order_relaxed);
	sw_turns_look(&p->turns, now, now, sw_cpu_ns());
	while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
		uint64_t idle = now;
		uint32_t n = turn(p, now);

		wake_others(p);
		end = sw_now_ns();
		if (note_turn(&p->turns, n, now, end))
			idle = end;
		now = end;
		if (n) {
			worked = now;
			continue;
		}
		back_off(p, now - worked, now);
		now = sw_now_ns();
		sw_turns_note_idle(&p->turns, now - idle);
	}
	return 0;
}
