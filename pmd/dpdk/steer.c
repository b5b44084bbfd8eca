/* steer.c - steer frames to queues, by rules on the UDP port or by a hash.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * pmd/lcores/handoff.c hands over frames that arrive in the queue of another
 * lcore, so steering only saves time. */
#include <string.h>

#include <rte_errno.h>
#include <rte_flow.h>

#include "engine/base/error.h"
#include "pmd/dpdk/steer.h"

/* Our frames are UDP and never fragments. */
#define HASH (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)

static const char *const texts[SW_STEER_KINDS] = {
	[SW_STEER_RULES] = "by rules on the UDP port",
	[SW_STEER_RSS] = "by a hash (RSS); workers probe source ports at JOIN",
	[SW_STEER_HANDOFF] = "to lcore 0, which hands them to the others",
};
static const char link_text[] =
	"to the lcore with the sender's number, which hands over frames for "
	"other lcores";

uint32_t sw_dpdk_queue_of(const struct port *p, uint32_t endpoint)
{
	uint32_t i = p->params.owners[endpoint];

	return i < p->n_queues ? i : 0;
}

static int too_few(const struct port *p, uint32_t has)
{
	uint32_t n = p->params.n_queues;

	if (p->queues[0] && has < p->n_queues) {
		sw_log(p->log, SW_LOG_ERROR,
			"port %s: its device had %u queue pairs and has %u now",
			p->params.name, p->n_queues, has);
		return SW_EIO;
	}
	if (!p->queues[0] && has < n)
		sw_log(p->log, SW_LOG_WARN,
			"port %s: %u lcores, and a device with %u queue "
			"pair%s: lcores %u and above reach it through lcore 0",
			p->params.name, n, has, has == 1 ? "" : "s", has);
	return 0;
}

static int refuse(const struct port *p)
{
	const char *what = p->params.steering == SW_STEER_RSS ? "rss" : "rules";

	sw_log(p->log, SW_LOG_ERROR,
		"port %s: [port] steering = %s: its device cannot do that; use "
		"auto",
		p->params.name, what);
	return SW_ECONF;
}

int sw_dpdk_steer_plan(struct port *p)
{
	uint32_t most =
		p->type->max_queues ? p->type->max_queues : SW_DPDK_QUEUES;
	struct rte_eth_dev_info info;
	int err;

	if (rte_eth_dev_info_get(p->eth_i, &info))
		return SW_EIO;
	most = RTE_MIN(most, info.max_rx_queues);
	most = RTE_MIN(most, info.max_tx_queues);
	err = too_few(p, most);
	if (err)
		return err;
	if (!p->queues[0])
		p->n_queues = (uint16_t)RTE_MIN(most, p->params.n_queues);
	p->steering = p->n_queues > 1   ? p->params.steering
		      : p->n_lcores > 1 ? SW_STEER_HANDOFF
					: SW_STEER_ONE;
	if (p->n_queues < 2 && p->n_lcores > 1 &&
		p->params.steering != SW_STEER_ONE &&
		p->params.steering != SW_STEER_HANDOFF)
		return refuse(p);
	return p->type->steer ? p->type->steer(p) : 0;
}

void sw_dpdk_steer_conf(struct port *p, const struct rte_eth_dev_info *info,
	struct rte_eth_conf *conf)
{
	/* Hash even with rules, for frames that no rule matches. */
	if (p->n_queues == 1 || !(info->flow_type_rss_offloads & HASH))
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = HASH & info->flow_type_rss_offloads;
	p->has_rss = true;
}

/* Steer frames to our address and port @udp into @queue. Returns 0 or the
 * driver's error. */
static int rule(const struct port *p, uint16_t udp, uint16_t queue,
	struct rte_flow_error *error)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	bool is_v4 = sw_ip_is_v4(p->params.ip);
	struct rte_flow_item_ipv4 v4 = {
		.hdr.dst_addr = rte_cpu_to_be_32((uint32_t)p->params.ip.low)};
	struct rte_flow_item_ipv4 v4_mask = {
		.hdr.dst_addr = RTE_BE32(UINT32_MAX)};
	struct rte_flow_item_ipv6 v6 = {0}, v6_mask = {0};
	struct rte_flow_item_udp to = {.hdr.dst_port = rte_cpu_to_be_16(udp)};
	struct rte_flow_item_udp to_mask = {
		.hdr.dst_port = RTE_BE16(UINT16_MAX)};
	struct rte_flow_action_queue to_queue = {.index = queue};
	const struct rte_flow_item items[] = {{.type = RTE_FLOW_ITEM_TYPE_ETH},
		{.type = p->params.vlan ? RTE_FLOW_ITEM_TYPE_VLAN
					: RTE_FLOW_ITEM_TYPE_VOID},
		{.type = is_v4 ? RTE_FLOW_ITEM_TYPE_IPV4
			       : RTE_FLOW_ITEM_TYPE_IPV6,
			.spec = is_v4 ? (void *)&v4 : (void *)&v6,
			.mask = is_v4 ? (void *)&v4_mask : (void *)&v6_mask},
		{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &to, .mask = &to_mask},
		{.type = RTE_FLOW_ITEM_TYPE_END}};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to_queue},
		{.type = RTE_FLOW_ACTION_TYPE_END}};
	int err;

	sw_ip_store(v6.hdr.dst_addr, p->params.ip);
	memset(v6_mask.hdr.dst_addr, 0xff, sizeof(v6_mask.hdr.dst_addr));
	err = rte_flow_validate(p->eth_i, &attr, items, actions, error);
	if (!err && !rte_flow_create(p->eth_i, &attr, items, actions, error))
		err = -rte_errno;
	return err;
}

/* Install a rule for each of our UDP ports or, on an error, none, because a
 * partial set would be hard to diagnose. */
static int rules(const struct port *p)
{
	struct rte_flow_error error = {0};
	const struct sw_dpdk_port_params *c = &p->params;
	int err = 0;

	for (uint32_t i = 0; i < (uint32_t)c->n_udp * c->n_ways && !err; i++)
		err = rule(p, (uint16_t)(c->udp + i),
			(uint16_t)sw_dpdk_queue_of(p, i % c->n_udp), &error);
	if (!err)
		return 0;
	rte_flow_flush(p->eth_i, NULL);
	sw_log(p->log, SW_LOG_INFO, "port %s: no rules (rte_flow): %s", c->name,
		error.message ? error.message : rte_strerror(-err));
	return SW_EIO;
}

/* Steer by ethdev: by rules if the device accepts them, otherwise by its hash.
 * A link hands frames off unless [port] steering demands one of the two. */
static int by_ethdev(struct port *p)
{
	enum sw_steering asked = p->params.steering;

	if (p->type->is_link && asked != SW_STEER_RSS &&
		asked != SW_STEER_RULES) {
		p->steering = SW_STEER_HANDOFF;
		return 0;
	}
	if (asked != SW_STEER_RSS && !rules(p)) {
		p->steering = SW_STEER_RULES;
		return 0;
	}
	if (asked == SW_STEER_RULES)
		return refuse(p);
	if (asked == SW_STEER_RSS && !p->has_rss)
		return refuse(p);
	p->steering = p->has_rss ? SW_STEER_RSS : SW_STEER_HANDOFF;
	return 0;
}

int sw_dpdk_steer_start(struct port *p)
{
	int err = 0;

	if (p->n_queues > 1 && !p->type->steer && !p->type->is_kernel)
		err = by_ethdev(p);
	if (!err && p->steering != SW_STEER_ONE)
		sw_log(p->log, SW_LOG_INFO,
			"port %s: %u lcores, %u queue pair%s; frames come %s",
			p->params.name, p->n_lcores, p->n_queues,
			p->n_queues == 1 ? "" : "s",
			p->type->is_link && p->n_queues > 1
				? link_text
				: texts[p->steering]);
	return err;
}
