/* tcp.c - a model of a TCP sender: window, loss, marks, timeouts.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/tcp.h"

#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/params.h"

static const uint64_t RTO_MIN_NS = 200 * SW_MS, RTO_MAX_NS = 60 * SW_S;

enum {
	UNIT = SW_SIM_TCP_UNIT,
	FIRST = 10 * UNIT,
	LEAST = 2 * UNIT,
	DUPLICATES = 3,
};

void sw_sim_tcp_init(struct sw_sim_tcp *t, bool is_cubic)
{
	memset(t, 0, sizeof(*t));
	t->is_cubic = is_cubic;
	t->window = FIRST;
	t->threshold = UINT64_MAX;
}

static uint8_t *state_of(struct sw_sim_tcp *t, uint64_t number)
{
	return &t->state[number % SW_SIM_TCP_RING];
}

/* Return the largest x with x^3 <= n. */
static uint64_t cube_root(uint64_t n)
{
	uint64_t x = 0;

	for (uint64_t bit = 1 << 20; bit; bit /= 2)
		if ((x + bit) * (x + bit) * (x + bit) <= n)
			x += bit;
	return x;
}

/* --- the window --- */

static void decrease(struct sw_sim_tcp *t, uint64_t now_ns)
{
	uint64_t kept = t->is_cubic ? 7 : 5;

	t->recover = t->next;
	/* Fast convergence makes room for new flows. */
	t->top = t->is_cubic && t->window < t->top ? t->window * 17 / 20
						   : t->window;
	t->window = t->threshold = sw_max64(t->window * kept / 10, LEAST);
	t->reno = t->window;
	t->epoch_ns = now_ns;
	/* K of RFC 9438 in milliseconds: K^3 = (top - window) / 0.4. */
	t->origin_ms =
		cube_root((t->top - sw_min64(t->top, t->window)) * 2500000);
}

static void increase_cubic(struct sw_sim_tcp *t, uint64_t now_ns)
{
	uint64_t at_ms = (now_ns + t->srtt_ns - t->epoch_ns) / SW_MS;
	uint64_t far = sw_min64(at_ms > t->origin_ms ? at_ms - t->origin_ms
						     : t->origin_ms - at_ms,
		100000);
	uint64_t change = far * far * far / 2500000; /* 0.4 t^3 */
	uint64_t goal = at_ms > t->origin_ms
				? t->top + change
				: t->top - sw_min64(t->top, change);

	t->reno += (uint64_t)UNIT * UNIT * 9 / 17 / t->reno + 1;
	goal = sw_max64(sw_min64(goal, t->window * 3 / 2), t->reno);
	if (goal > t->window)
		t->window += (goal - t->window) * UNIT / t->window + 1;
}

static void increase(struct sw_sim_tcp *t, uint64_t now_ns)
{
	if (t->n_open * (uint64_t)UNIT * 2 < t->window)
		return; /* the window does not limit this flow */
	if (t->window < t->threshold)
		t->window += UNIT;
	else if (t->is_cubic && t->epoch_ns)
		increase_cubic(t, now_ns);
	else
		t->window += (uint64_t)UNIT * UNIT / t->window + 1;
	t->window = sw_min64(t->window, SW_SIM_TCP_RING / 2 * UNIT);
}

/* --- the sender --- */

bool sw_sim_tcp_send(struct sw_sim_tcp *t, uint64_t now_ns, uint64_t *number)
{
	uint64_t n = t->oldest;

	if ((t->n_open + 1) * (uint64_t)UNIT > t->window ||
		(!t->n_lost && t->next - t->oldest == SW_SIM_TCP_RING))
		return false;
	if (t->n_lost) {
		while (*state_of(t, n) != SW_SIM_LOST)
			n++;
		t->n_lost--;
		t->n_again++;
		t->n_repeats++;
		t->sent_ns[n % SW_SIM_TCP_RING] = now_ns;
		*state_of(t, n) = SW_SIM_AGAIN;
	} else {
		n = t->next++;
		*state_of(t, n) = SW_SIM_SENT;
	}
	if (!t->n_open++)
		t->timer_ns = now_ns;
	*number = n;
	return true;
}

static void lose(struct sw_sim_tcp *t, uint64_t number)
{
	t->n_repeats -= *state_of(t, number) == SW_SIM_AGAIN;
	*state_of(t, number) = SW_SIM_LOST;
	t->n_open--;
	t->n_lost++;
}

static void sample(struct sw_sim_tcp *t, uint64_t rtt_ns)
{
	uint64_t diff =
		rtt_ns > t->srtt_ns ? rtt_ns - t->srtt_ns : t->srtt_ns - rtt_ns;

	if (!t->srtt_ns) {
		t->srtt_ns = rtt_ns;
		t->var_ns = rtt_ns / 2;
		return;
	}
	t->var_ns = (3 * t->var_ns + diff) / 4;
	t->srtt_ns = (7 * t->srtt_ns + rtt_ns) / 8;
}

static void settle(struct sw_sim_tcp *t, uint64_t number)
{
	uint8_t *state = state_of(t, number);

	t->n_open -= *state == SW_SIM_SENT || *state == SW_SIM_AGAIN;
	t->n_repeats -= *state == SW_SIM_AGAIN;
	t->n_lost -= *state == SW_SIM_LOST;
	*state = SW_SIM_SACKED;
}

/* Find lost retransmissions: a segment that left more than a quarter of a round
 * trip later, at @sent_ns, has arrived before them. */
static bool find_lost_again(struct sw_sim_tcp *t, uint64_t sent_ns)
{
	bool has_lost = false;

	for (uint64_t n = t->oldest; t->n_repeats && n < t->next; n++)
		if (*state_of(t, n) == SW_SIM_AGAIN &&
			t->sent_ns[n % SW_SIM_TCP_RING] + t->srtt_ns / 4 <
				sent_ns) {
			lose(t, n);
			has_lost = true;
		}
	return has_lost;
}

/* A segment is lost when three behind it have arrived. */
static bool find_lost(struct sw_sim_tcp *t, uint64_t from)
{
	bool has_lost = false;

	for (uint64_t n = from; n + DUPLICATES <= t->highest; n++)
		if (*state_of(t, n) == SW_SIM_SENT && n >= t->oldest) {
			lose(t, n);
			has_lost = true;
		}
	return has_lost;
}

void sw_sim_tcp_ack(struct sw_sim_tcp *t, uint64_t number, uint64_t next,
	bool has_echo, uint64_t sent_ns, uint64_t now_ns)
{
	uint64_t before = t->highest;
	bool has_lost = false;

	if (number < t->oldest)
		return;
	sample(t, now_ns - sent_ns);
	settle(t, number);
	for (; t->oldest < next; t->oldest++) {
		settle(t, t->oldest);
		*state_of(t, t->oldest) = SW_SIM_FREE;
	}
	t->timer_ns = now_ns;
	t->backoff = 0;
	if (number > t->highest) {
		t->highest = number;
		has_lost = find_lost(t,
			sw_max64(t->oldest,
				before > DUPLICATES ? before - DUPLICATES : 0));
	}
	has_lost |= find_lost_again(t, sent_ns);
	if ((has_lost || has_echo) && number >= t->recover)
		decrease(t, now_ns);
	else if (!has_lost && number >= t->recover)
		increase(t, now_ns);
}

void sw_sim_tcp_tick(struct sw_sim_tcp *t, uint64_t now_ns)
{
	uint64_t rto = sw_max64(t->srtt_ns + 4 * t->var_ns, RTO_MIN_NS)
		       << t->backoff;

	if (!t->n_open || now_ns < t->timer_ns + sw_min64(rto, RTO_MAX_NS))
		return;
	for (uint64_t n = t->oldest; n < t->next; n++)
		if (*state_of(t, n) == SW_SIM_SENT ||
			*state_of(t, n) == SW_SIM_AGAIN)
			lose(t, n);
	decrease(t, now_ns);
	t->window = UNIT;
	t->backoff += t->backoff < 8;
	t->timer_ns = now_ns;
	t->n_timeouts++;
}

uint64_t sw_sim_tcp_receive(struct sw_sim_tcp *t, uint64_t number)
{
	if (number >= t->received && number < t->received + SW_SIM_TCP_RING)
		t->came[number % SW_SIM_TCP_RING] = 1;
	while (t->came[t->received % SW_SIM_TCP_RING])
		t->came[t->received++ % SW_SIM_TCP_RING] = 0;
	return t->received;
}
