/* fault.c - drop, duplicate and delay received frames, for tests.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <rte_malloc.h>

#include "engine/base/error.h"
#include "pmd/dpdk/fault.h"

enum {
	LATE_MAX = 2 * SW_RX_BURST,
	LATER_FRAMES = 32,
	IDLE_POLLS = 1000,
	PPM = 1000000
};

/* A delayed frame. It is delivered after @frames more frames, or after
 * IDLE_POLLS polls without a frame. */
struct late {
	struct rte_mbuf *m;
	uint32_t frames;
};

struct faults {
	uint64_t state;                    /* state of the random numbers;
					      never 0 */
	uint32_t drop, duplicate, reorder; /* probabilities in units of 2^-32 */
	struct late late[LATE_MAX];
	uint32_t n_late, n_idle_polls;
};

bool sw_dpdk_faults_is_set(const struct sw_dpdk_port_params *p)
{
	return p->fault_loss_ppm || p->fault_dup_ppm || p->fault_reorder_ppm;
}

static uint32_t random32(struct faults *f)
{
	f->state ^= f->state >> 12;
	f->state ^= f->state << 25;
	f->state ^= f->state >> 27;
	return (uint32_t)((f->state * 0x2545f4914f6cdd1dull) >> 32);
}

static bool delay(struct faults *f, struct rte_mbuf *m)
{
	if (f->n_late == LATE_MAX)
		return false;
	f->late[f->n_late++] = (struct late){m, 1 + random32(f) % LATER_FRAMES};
	return true;
}

/* Advance the delays by @frames passed frames and append due frames to @out,
 * which holds @n of at most @max. Returns the new @n. */
static uint32_t due(struct faults *f, struct rte_mbuf **out, uint32_t n,
	uint32_t max, uint32_t frames)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->n_late; i++) {
		struct late l = f->late[i];

		l.frames -= l.frames < frames ? l.frames : frames;
		if (!l.frames && n < max)
			out[n++] = l.m;
		else
			f->late[kept++] = l;
	}
	f->n_late = kept;
	return n;
}

/* Delay a copy of @m, because the driver may hand @m itself to another queue or
 * process. */
static void duplicate(struct faults *f, struct rte_mbuf *m)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);

	if (copy && !delay(f, copy))
		rte_pktmbuf_free(copy);
}

static uint16_t faults_rx(uint16_t eth_i, uint16_t queue, struct rte_mbuf *in[],
	uint16_t n_in, uint16_t max, void *arg)
{
	struct faults *f = arg;
	uint32_t n = 0;

	(void)eth_i;
	(void)queue;
	for (uint32_t i = 0; i < n_in; i++) {
		struct rte_mbuf *m = in[i];

		if (random32(f) < f->drop) {
			rte_pktmbuf_free(m);
			continue;
		}
		if (random32(f) < f->duplicate)
			duplicate(f, m);
		if (random32(f) < f->reorder && delay(f, m))
			continue;
		in[n++] = m;
	}
	f->n_idle_polls = n_in ? 0 : f->n_idle_polls + 1;
	if (f->n_idle_polls == IDLE_POLLS) {
		f->n_idle_polls = 0;
		return (uint16_t)due(f, in, n, max, LATER_FRAMES);
	}
	return (uint16_t)due(f, in, n, max, n);
}

static uint32_t of_2_32(uint32_t ppm)
{
	return ppm >= PPM ? UINT32_MAX
			  : (uint32_t)(((uint64_t)ppm << 32) / PPM);
}

static int faults_check(const struct port *p)
{
	const struct sw_dpdk_port_params *s = &p->params;
	const uint32_t v[] = {
		s->fault_loss_ppm, s->fault_dup_ppm, s->fault_reorder_ppm};

	for (uint32_t i = 0; i < 3; i++)
		if (v[i] > PPM) {
			sw_log(p->log, SW_LOG_ERROR,
				"port %s: fault percentage %g: 0 to 100 "
				"expected",
				s->name, v[i] / 1e4);
			return SW_ECONF;
		}
	return 0;
}

int sw_dpdk_faults_open(struct queue *q)
{
	const struct port *p = q->port;
	const struct sw_dpdk_port_params *s = &p->params;
	struct faults *f;
	int err = faults_check(p);

	if (err || !sw_dpdk_faults_is_set(s))
		return err;
	f = rte_zmalloc("faults", sizeof(*f), 64);
	if (!f)
		return SW_ENOMEM;
	f->state = (s->fault_seed + q->index) * 0x9e3779b97f4a7c15ull | 1;
	f->drop = of_2_32(s->fault_loss_ppm);
	f->duplicate = of_2_32(s->fault_dup_ppm);
	f->reorder = of_2_32(s->fault_reorder_ppm);
	q->rx_callback =
		rte_eth_add_rx_callback(p->eth_i, q->index, faults_rx, f);
	if (!q->rx_callback) {
		rte_free(f);
		sw_log(p->log, SW_LOG_ERROR,
			"port %s: dpdk takes no receive callback",
			p->params.name);
		return SW_EIO;
	}
	q->faults = f;
	if (q->index)
		return 0;
	sw_log(p->log, SW_LOG_WARN,
		"port %s: faults are on: %g %% dropped, %g %% duplicated, %g "
		"%% reordered",
		s->name, s->fault_loss_ppm / 1e4, s->fault_dup_ppm / 1e4,
		s->fault_reorder_ppm / 1e4);
	return 0;
}

void sw_dpdk_faults_close(struct queue *q)
{
	if (!q->faults)
		return;
	rte_eth_remove_rx_callback(q->port->eth_i, q->index, q->rx_callback);
	for (uint32_t i = 0; i < q->faults->n_late; i++)
		rte_pktmbuf_free(q->faults->late[i].m);
	rte_free(q->faults);
	q->faults = NULL;
}
