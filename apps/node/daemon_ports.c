/* daemon_ports.c - open a daemon's ports, and divide them between its lcores.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/daemon.h"
#include "engine/base/error.h"

/* port.def and port.h list their choices in the same order. */
#define IS_SAME(a, b) _Static_assert((int)(a) == (int)(b), "one order")
IS_SAME(SW_PORT_MEMIF, SW_DPDK_MEMIF);
IS_SAME(SW_PORT_AF_PACKET, SW_DPDK_AF_PACKET);
IS_SAME(SW_PORT_AF_XDP, SW_DPDK_AF_XDP);
IS_SAME(SW_PORT_PCI, SW_DPDK_PCI);
IS_SAME(SW_PORT_VDEV, SW_DPDK_VDEV);
IS_SAME(SW_PORT_UDP, SW_DPDK_UDP);
IS_SAME(SW_SIDE_LISTEN, SW_DPDK_LISTEN);
IS_SAME(SW_SIDE_CONNECT, SW_DPDK_CONNECT);
IS_SAME(SW_STEERING_RULES, SW_STEER_RULES);
IS_SAME(SW_STEERING_RSS, SW_STEER_RSS);
IS_SAME(SW_STEERING_HANDOFF, SW_STEER_HANDOFF);

/* Copy each option of [port] into its parameter. */
static void take_options(
	struct sw_dpdk_port_params *p, const struct sw_conf_port *c)
{
#define TAKE_VALUE(field)   p->field = c->field;
#define TAKE_U32(field)     TAKE_VALUE(field)
#define TAKE_U64(field)     TAKE_VALUE(field)
#define TAKE_BOOL(field)    TAKE_VALUE(field)
#define TAKE_RATE(field)    TAKE_VALUE(field)
#define TAKE_PERCENT(field) TAKE_VALUE(field)
#define TAKE_CHOICE(field)  TAKE_VALUE(field)
#define TAKE_IP(field)      TAKE_VALUE(field)
#define TAKE_DEVICE(field)  TAKE_VALUE(field)
#define TAKE_SOCKET(field)  TAKE_VALUE(field)
#define TAKE_ARGS(field)    TAKE_VALUE(field)
#define TAKE_SUBNET(field)  p->ip = c->field.ip, p->prefix_bits = c->field.bits;
#define OPTION(section, key, field, type, def, min, max, unit, text) \
	TAKE_##type(field)
#include "conf/port.def"
#undef OPTION
}

struct sw_dpdk_port_params sw_daemon_port_params(
	const struct sw_daemon *d, const struct sw_conf_port *c)
{
	struct sw_dpdk_port_params p;

	sw_dpdk_port_params_init(&p);
	take_options(&p, c);
	p.name = c->label;
	p.udp = (uint16_t)d->conf.serve.udp_port;
	p.n_udp = (uint16_t)sw_conf_n_udp(&d->conf);
	p.n_ways = (uint16_t)sw_conf_n_ways(&d->conf);
	p.n_queues = (uint16_t)d->n_lcores;
	for (uint32_t e = 0; e < p.n_udp; e++)
		p.owners[e] = (uint8_t)sw_daemon_owner(d, e);
	if (d->conf.job.payload_bytes)
		p.payload_bytes = d->conf.job.payload_bytes;
	p.trusted_uid = d->trusted_uid;
	p.queue_bytes = d->params.queue_bytes / d->n_lcores;
	return p;
}

static int open_port(struct sw_daemon *d, uint32_t i)
{
	struct sw_dpdk_port_params p =
		sw_daemon_port_params(d, &d->conf.ports[i]);
	struct sw_port *q;
	uint32_t n = 0;
	int err;

	sw_start_watch_say(&d->start_watch, "port", d->conf.ports[i].label);
	err = sw_dpdk_port_open(&p, (uint16_t)i, &d->log, &d->queues[0][i]);
	if (err)
		return err;
	d->n_ports = ++d->n_dpdk_ports;
	while (n < d->n_lcores && (q = sw_dpdk_port_queue(d->queues[0][i], n)))
		d->queues[n++][i] = q;
	return 0;
}

/* Open a loopback per lcore, so that an lcore's frames to its own server stay
 * on that lcore. */
static int open_loopbacks(struct sw_daemon *d)
{
	for (uint32_t i = 0; i < d->n_lcores; i++) {
		d->loopbacks[i] = sw_loopback_open();
		if (!d->loopbacks[i])
			return SW_ENOMEM;
		d->queues[i][d->n_ports] = sw_loopback_port(d->loopbacks[i]);
	}
	d->n_ports++;
	return 0;
}

/* Choose the payload: the configured one, or else the largest that all ports
 * carry. */
static int choose_payload(struct sw_daemon *d)
{
	uint32_t asked = d->conf.job.payload_bytes;

	d->params.payload = SW_PAYLOAD_MAX;
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++) {
		uint32_t most = d->queues[0][i]->max_payload;

		if (most < d->params.payload)
			d->params.payload = most;
		if (asked <= most)
			continue;
		sw_log(&d->log, SW_LOG_ERROR,
			"port %s: [job] payload = %u does not fit the MTU of "
			"%s: at most %u; raise the MTU or use a smaller "
			"payload",
			d->conf.ports[i].label, asked, d->conf.ports[i].device,
			most);
		return SW_ECONF;
	}
	if (asked)
		d->params.payload = asked;
	sw_log(&d->log, SW_LOG_INFO, "payload: up to %u B", d->params.payload);
	return 0;
}

/* Return the sum of the [port] rates; 0: some port has none. */
static uint64_t sum_rates(const struct sw_conf *conf)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < conf->n_ports; i++) {
		if (!conf->ports[i].rate_bit_s)
			return 0;
		sum += conf->ports[i].rate_bit_s;
	}
	return sum;
}

void sw_daemon_set_rate(struct sw_daemon *d, uint64_t bit_s)
{
	uint64_t sum = sum_rates(&d->conf);

	for (uint32_t i = 0; i < d->n_dpdk_ports; i++) {
		double part =
			sum ? (double)d->conf.ports[i].rate_bit_s / (double)sum
			    : 1.0 / d->n_dpdk_ports;
		uint64_t rate = (uint64_t)((double)bit_s * part + 0.5);

		sw_dpdk_port_set_rate(
			d->queues[0][i], bit_s && !rate ? 1 : rate);
	}
	atomic_store(&d->rate_bit_s, bit_s);
	atomic_fetch_add(&d->n_orders, 1);
}

/* Limit the window to the size of the smallest receive buffer. */
static void fit_buffers(struct sw_daemon *d)
{
	struct sw_params *p = &d->params;

	for (uint32_t i = 0; i < d->n_dpdk_ports; i++) {
		uint32_t holds = sw_dpdk_port_holds(d->queues[0][i]);

		if (holds && (!p->buffer_bytes || holds < p->buffer_bytes))
			p->buffer_bytes = holds;
	}
	if (p->buffer_bytes && p->buffer_bytes < p->window_bytes)
		p->window_bytes = p->buffer_bytes;
}

int sw_daemon_open_ports(struct sw_daemon *d)
{
	int err = 0;

	for (uint32_t i = 0; i < d->conf.n_ports && !err; i++)
		err = open_port(d, i);
	atomic_store(&d->rate_bit_s, sum_rates(&d->conf));
	if (!err)
		err = choose_payload(d);
	fit_buffers(d);
	if (!err && d->conf.node.role == SW_ROLE_BOTH)
		err = open_loopbacks(d);
	return err ? err
		   : sw_handoff_open(&d->handoff, d->n_lcores, d->n_ports,
			     (struct sw_port *const(*)[SW_MAX_PORTS])d->queues);
}

uint32_t sw_daemon_owner(const struct sw_daemon *d, uint32_t endpoint)
{
	uint32_t first = sw_daemon_endpoint(d, 0);

	return endpoint < first ? endpoint : endpoint - first;
}

uint32_t sw_daemon_endpoint(const struct sw_daemon *d, uint32_t lcore)
{
	return (d->conf.node.role == SW_ROLE_AGENT ? 0 : d->conf.serve.lcores) +
	       lcore;
}

static void begin_release(
	struct sw_daemon *d, uint32_t lcore, struct sw_release *r)
{
	r->is_begun = true;
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++)
		if (d->queues[lcore][i])
			r->marks[i] = sw_dpdk_port_mark(d->queues[lcore][i]);
	if (d->loopbacks[lcore])
		sw_loopback_copy_lent(d->loopbacks[lcore]);
}

bool sw_daemon_release(
	struct sw_daemon *d, uint32_t lcore, struct sw_release *r)
{
	if (!r->is_begun)
		begin_release(d, lcore, r);
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++)
		if (d->queues[lcore][i] &&
			!sw_dpdk_port_release(d->queues[lcore][i], r->marks[i]))
			return false;
	r->is_begun = false;
	return true;
}
