/* caps.c - ask ethdev what a device can do; no code here knows a driver.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_errno.h>

#include "engine/base/error.h"
#include "pmd/dpdk/device.h"
#include "pmd/dpdk/steer.h"

#define TX_SUMS (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM)
#define RX_DONE                                                         \
	(RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM | \
		RTE_ETH_RX_OFFLOAD_VLAN_STRIP)

static bool can_gather(const struct port *p, const struct rte_eth_dev_info *i)
{
	const struct rte_eth_desc_lim *lim = &i->tx_desc_lim;

	/* Tensors lie outside DPDK's memory, so a device cannot read them by
	 * DMA. */
	return !p->type->is_dma &&
	       i->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS &&
	       (!lim->nb_mtu_seg_max || lim->nb_mtu_seg_max > 1);
}

static void offloads_take(struct port *p, const struct rte_eth_dev_info *info)
{
	struct rte_eth_conf *conf = &p->conf;
	bool is_v4 = sw_ip_is_v4(p->params.ip);
	uint64_t tx = info->tx_offload_capa &
		      (is_v4 ? TX_SUMS : RTE_ETH_TX_OFFLOAD_UDP_CKSUM);

	p->can_gather = can_gather(p, info);
	p->me.is_sum_later = tx & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	p->me.has_udp_sum = tx & RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	p->tx_flags = 0;
	if (tx)
		p->tx_flags |= is_v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6;
	if (p->me.is_sum_later)
		p->tx_flags |= RTE_MBUF_F_TX_IP_CKSUM;
	if (p->me.has_udp_sum)
		p->tx_flags |= RTE_MBUF_F_TX_UDP_CKSUM;
	if (p->can_gather)
		tx |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	conf->rxmode.offloads = info->rx_offload_capa & RX_DONE;
	conf->txmode.offloads = tx;
	conf->intr_conf.lsc =
		p->type->is_nic && *info->dev_flags & RTE_ETH_DEV_INTR_LSC;
}

/* Return the largest MTU within both limits of the driver: max_mtu and
 * max_rx_pktlen. */
static uint32_t mtu_most(const struct rte_eth_dev_info *info)
{
	uint32_t frame = info->max_rx_pktlen,
		 head = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

	if (info->max_mtu != UINT16_MAX && frame > info->max_mtu)
		head = frame - info->max_mtu;
	return frame > head ? RTE_MIN(frame - head, (uint32_t)info->max_mtu)
			    : 0;
}

/* Choose the MTU of a device that the kernel does not manage: enough for the
 * largest payload that network, driver and parameters allow, because buffers
 * have that size. Raise the device's MTU if needed; never lower it. */
static int mtu_take(struct port *p, const struct rte_eth_dev_info *info)
{
	uint32_t payload, carried = p->params.mtu;
	uint16_t has = 0;

	rte_eth_dev_get_mtu(p->eth_i, &has);
	if (!carried)
		carried = has;
	carried = RTE_MIN(carried, mtu_most(info));
	payload = RTE_MIN(p->params.payload_bytes,
		sw_dpdk_port_payload(carried, p->params.ip));
	if (!payload) {
		sw_log(p->log, SW_LOG_ERROR,
			"port %s: %s carries an MTU of %u (its driver at most "
			"%u); the smallest frames need %u",
			p->params.name, p->params.device, carried,
			mtu_most(info),
			SW_PAYLOAD_MIN + packet_rest(p->params.ip));
		return SW_ECONF;
	}
	p->mtu = (uint16_t)RTE_MIN(
		carried, RTE_MAX(payload + packet_rest(p->params.ip),
				 (uint32_t)RTE_ETHER_MTU));
	p->is_mtu_new = p->mtu > has;
	p->params.payload_bytes = payload;
	p->frame_max = FRAME_REST_BYTES + payload;
	return 0;
}

static int queues_take(struct port *p, const struct rte_eth_dev_info *info)
{
	p->n_rx_slots = p->n_tx_slots = (uint16_t)p->params.ring_slots;
	if (!p->type->is_nic)
		return 0;
	if (rte_eth_dev_adjust_nb_rx_tx_desc(
		    p->eth_i, &p->n_rx_slots, &p->n_tx_slots))
		return SW_EIO;
	p->params.ring_slots = RTE_MAX(p->n_rx_slots, p->n_tx_slots);
	return 0;
}

static void say(const struct port *p, const struct rte_eth_dev_info *info)
{
	sw_log(p->log, SW_LOG_INFO,
		"port %s: driver %s, MTU %u; checksums by the device: %s%s%s; "
		"gathers: %s; link by %s",
		p->params.name, info->driver_name, p->mtu,
		p->me.is_sum_later ? "IPv4 " : "",
		p->me.has_udp_sum ? "UDP " : "",
		p->conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM
			? "received"
		: p->tx_flags ? "sent"
			      : "none",
		p->can_gather ? "yes" : "no",
		p->conf.intr_conf.lsc ? "interrupt" : "polling");
}

int sw_dpdk_caps_take(struct port *p)
{
	struct rte_eth_dev_info info;
	int err;

	if (rte_eth_dev_info_get(p->eth_i, &info))
		return SW_EIO;
	memset(&p->conf, 0, sizeof(p->conf));
	offloads_take(p, &info);
	sw_dpdk_steer_conf(p, &info, &p->conf);
	err = queues_take(p, &info);
	if (err || !p->type->is_nic)
		return err;
	err = mtu_take(p, &info);
	p->conf.rxmode.mtu = p->mtu;
	if (!err)
		say(p, &info);
	return err;
}
