/* poller.c - the polling lcore: turn, and step back when there is nothing.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "apps/node/daemon.h"
#include "pmd/host/attach.h"

enum {
	REST_NS = 10000000,   /* longest sleep with nothing outstanding */
	WAIT_NS = 1000000,    /* with something, where frames end it */
	YIELD_SPINS = 20,     /* yield for so many times the spin */
	CROWD_NS = 100000000, /* so long a yield's lesson holds */
};

void sw_poller_init(struct sw_poller *p, struct sw_daemon *d, uint32_t lcore)
{
	const struct sw_handoff *h = &d->handoff;
	uint32_t n = sw_conf_n_udp(&d->conf);

	*p = (struct sw_poller){.daemon = d};
	sw_loop_init(&p->loop, sw_handoff_ports(h, lcore), d->n_ports,
		d->params.stop_gap, sw_now_ns());
	for (uint32_t e = 0; e < n; e++) {
		uint32_t owner = sw_daemon_owner(d, e);

		if (owner != lcore)
			sw_loop_set(
				&p->loop, e, sw_handoff_node(h, lcore, owner));
	}
}

void sw_poller_add(struct sw_poller *p,
	uint32_t (*turn)(void *ctx, uint64_t now_ns), void *ctx)
{
	p->works[p->n_works++] = (struct sw_work){.turn = turn, .ctx = ctx};
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(ns / SW_S), .tv_nsec = (long)(ns % SW_S)};

	nanosleep(&t, NULL);
}

/* What is readable while frames wait, of all ports; 0: some port has no such,
 * or other lcores may have frames for this one, so that it has to look. */
static uint32_t wake_fds(const struct sw_daemon *d, int fds[SW_HOST_WAKE_FDS])
{
	uint32_t n = 0;

	if (d->n_lcores > 1)
		return 0;
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++) {
		uint32_t has = sw_dpdk_port_wake_fds(
			d->queues[0][i], fds + n, SW_HOST_WAKE_FDS - n);

		n += has;
		if (!has || n > SW_HOST_WAKE_FDS)
			return 0;
	}
	return n;
}

/* How long to sleep: @most, or until the next timer. */
static uint64_t choose_ns(struct sw_poller *p, uint64_t most, uint64_t now_ns)
{
	uint64_t ns = sw_loop_wait(&p->loop, now_ns, most);

	sw_loop_rest(&p->loop, ns);
	return ns;
}

static void rest(struct sw_poller *p, const int *fds, uint32_t n_fds,
	uint64_t most, uint64_t now_ns)
{
	uint64_t ns = choose_ns(p, most, now_ns);

	if (p->rest)
		p->rest(p->ctx, fds, n_fds, ns);
	else
		sw_host_idle_wait(
			NULL, 0, fds, n_fds, (uint32_t)(ns / SW_US + 1));
}

/* Does a training process compute where we poll?  Each look at the ports is at
 * its cost then, and nobody waits: frames may. */
static bool is_crowded(const struct sw_poller *p, uint64_t now_ns)
{
	return now_ns < p->crowded_until_ns && p->is_awaited &&
	       !p->is_awaited(p->ctx);
}

/* Who runs at our yield for longer than a moment has use for the core.  An
 * interrupt, or the machine's own stop, takes time too, but nobody ran. */
static void yield(struct sw_poller *p, uint64_t now_ns)
{
	struct rusage use;
	uint64_t then_ns;

	sched_yield();
	then_ns = sw_now_ns();
	if (then_ns - now_ns <= p->daemon->conf.lcore.spin_ns)
		return;
	getrusage(RUSAGE_THREAD, &use);
	if (use.ru_nivcsw != p->n_switches)
		p->crowded_until_ns = then_ns + CROWD_NS;
	p->n_switches = use.ru_nivcsw;
}

/* Idle since @idle_ns: spin, then yield, then sleep: until a frame comes, where
 * the ports tell; else longer and longer.  With nothing outstanding, rest.  In
 * a crowd frames and submits gather until a process waits, or some time. */
static void back_off(struct sw_poller *p, uint64_t idle_ns, uint64_t now_ns)
{
	const struct sw_conf *conf = &p->daemon->conf;
	uint64_t spin = conf->lcore.spin_ns, most = conf->lcore.sleep_ns;
	bool is_busy = sw_loop_is_busy(&p->loop);
	int fds[SW_HOST_WAKE_FDS];
	uint32_t n_fds;

	if (idle_ns < spin / 4) {
		__builtin_ia32_pause();
		return;
	}
	n_fds = most ? wake_fds(p->daemon, fds) : 0;
	if (n_fds && is_crowded(p, now_ns)) {
		if (is_busy)
			p->nap(p->ctx, choose_ns(p, WAIT_NS, now_ns));
		else
			rest(p, fds, n_fds, REST_NS, now_ns);
		return;
	}
	if (idle_ns < (is_busy ? YIELD_SPINS : 1) * spin) {
		yield(p, now_ns);
		return;
	}
	if (n_fds) {
		rest(p, fds, n_fds, is_busy ? WAIT_NS : REST_NS, now_ns);
		return;
	}
	if (idle_ns / 8 < most)
		most = idle_ns / 8;
	if (!is_busy && p->rest)
		rest(p, NULL, 0, p->is_serving ? most : REST_NS, now_ns);
	else
		sleep_ns(choose_ns(p, most, now_ns));
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SW_S + (uint64_t)t.tv_nsec;
}

/* A turn in which @n frames and commands came or went: 0 = none. */
static void note_turn(
	struct sw_turns *t, uint32_t n, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns = to_ns - from_ns;

	if (sw_turns_is_due(t, to_ns))
		ns = sw_turns_look(t, from_ns, to_ns, cpu_ns());
	if (n || ns > SW_TURN_LONG_NS)
		sw_turns_note(t, ns);
}

static uint32_t turn(struct sw_poller *p, uint64_t now_ns)
{
	uint64_t then_ns = sw_loop_then(&p->loop);
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_works; i++)
		n += p->works[i].turn(p->works[i].ctx, then_ns);
	return n + sw_loop_turn(&p->loop, now_ns);
}

int sw_poller_run(void *poller)
{
	struct sw_poller *p = poller;
	uint64_t now = sw_now_ns(), worked = now, end;

	sw_turns_look(&p->turns, now, now, cpu_ns());
	while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
		uint32_t n = turn(p, now);

		end = sw_now_ns();
		note_turn(&p->turns, n, now, end);
		now = end;
		if (n) {
			worked = now;
			continue;
		}
		back_off(p, now - worked, now);
		now = sw_now_ns();
	}
	return 0;
}
