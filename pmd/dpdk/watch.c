/* watch.c - watch a port's link, its interface and its neighbours.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All of it runs on DPDK's interrupt thread, which also handles the drivers'
 * messages, so the two never run at once. Lcores see the link down before this
 * thread touches the driver. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_alarm.h>

#include "engine/base/error.h"
#include "pmd/dpdk/device.h"
#include "pmd/dpdk/gate.h"
#include "pmd/dpdk/netif.h"
#include "pmd/dpdk/pool.h"
#include "pmd/dpdk/watch.h"

enum {
	DIAL_PERIOD_US = 20 * 1000,
	WATCH_PERIOD_US = SW_NEIGH_TICK_MS * 1000,
	REMOVE_POLL_US = 100,
	REOPEN_TICKS = 20,
	CALM_TICKS = 40,          /* 2 s; senders retry a refused send sooner */
	DIAL_PATIENCE_TICKS = 25, /* wait for an answer before dialling again */
	DIAL_SAY = 250,           /* 5 s without a link before a warning */
	SHY_TICKS = 50,           /* 1 s before a stranger is dialled again */
};

/* Return whether the other end belongs to an untrusted user; log each user
 * once. */
static bool is_stranger(struct port *p, bool is_connected)
{
	uint32_t uid =
		p->type->stranger ? p->type->stranger(p, is_connected) : 0;

	if (!uid)
		return false;
	if (uid != p->said_uid)
		sw_log(p->log, SW_LOG_ERROR,
			"port %s: user %u %s %s, and is neither our user (%u) "
			"nor root: not connected; stop the process that "
			"listens there, or name that user in [node] trust",
			p->params.name, uid,
			is_connected ? "listens at" : "owns, or its folder,",
			p->params.socket_path, geteuid());
	p->said_uid = uid;
	p->n_shy_ticks = SHY_TICKS;
	return true;
}

/* Start the device, which connects, and stop it if the peer is a stranger. The
 * driver has sent nothing before that, because it sends on this thread. */
static void start(struct port *p)
{
	if (p->n_shy_ticks && --p->n_shy_ticks)
		return;
	if (is_stranger(p, false) || rte_eth_dev_start(p->eth_i))
		return;
	p->is_started = !is_stranger(p, true);
	if (p->is_started)
		p->said_uid = 0;
	else
		rte_eth_dev_stop(p->eth_i);
}

/* Restart a memif after its link was lost or when no peer answered in time. */
static void redial(struct port *p)
{
	if (port_is_up(p)) {
		p->was_connected = true;
		p->n_dial_ticks = 0;
		p->n_alone = 0;
	} else if (p->is_started &&
		   (p->was_connected ||
			   ++p->n_dial_ticks > DIAL_PATIENCE_TICKS)) {
		sw_gate_drain();
		rte_eth_dev_stop(p->eth_i);
		p->is_started = false;
		p->was_connected = false;
		p->n_dial_ticks = 0;
	}
	if (!p->is_started)
		start(p);
}

static void dial(void *arg)
{
	struct port *p = arg;

	pthread_mutex_lock(&p->device_lock);
	redial(p);
	pthread_mutex_unlock(&p->device_lock);
	if (++p->n_alone == DIAL_SAY)
		sw_log(p->log, SW_LOG_WARN,
			"port %s: no link through %s yet: nothing listens "
			"there, or its number of queue pairs is not %u "
			"(queues)",
			p->params.name, p->params.socket_path, p->n_queues);
	rte_eal_alarm_set(DIAL_PERIOD_US, dial, p);
}

/* Set the link's state and log @why, unless it is the last reason logged. A
 * removed interface first goes down, so two reasons are logged. */
static void link_set(struct port *p, bool is_up, const char *why)
{
	if (p->link_why && !strcmp(p->link_why, why))
		return;
	p->link_why = why;
	atomic_store(&p->is_linked, is_up);
	if (is_up && p->neigh)
		sw_neigh_announce(p->neigh);
	sw_log(p->log, is_up ? SW_LOG_INFO : SW_LOG_WARN, "port %s: %s %s",
		p->params.name, p->params.device, why);
}

/* Return whether an lcore may still hold buffers of the device. Called while
 * the link is down, when each lcore clears its flag. */
static bool is_in_use(const struct port *p)
{
	for (uint32_t i = 0; i < p->n_queues; i++)
		if (atomic_load(&p->queues[i]->is_in_use))
			return true;
	return false;
}

/* Reopen the device of an interface that was re-created, because the driver's
 * sockets belong to the old one. Replace its buffers as well, because the
 * driver may have kept some; wait first until no lcore has any. Retry after a
 * failure. */
static void reopen(struct port *p, uint32_t if_index)
{
	if (is_in_use(p) || p->n_dial_ticks++ % REOPEN_TICKS)
		return;
	pthread_mutex_lock(&p->device_lock);
	sw_dpdk_device_close(p);
	sw_dpdk_pools_close(p);
	p->if_index = if_index;
	if (sw_dpdk_device_make(p) || sw_dpdk_pools_open(p) ||
		sw_dpdk_device_open(p) || sw_dpdk_device_start(p))
		sw_dpdk_device_close(p);
	else
		p->n_dial_ticks = 0;
	pthread_mutex_unlock(&p->device_lock);
}

/* Return whether the interface has our address; otherwise take the link down.
 * The kernel's sockets outlive interface and address, and work again when both
 * return. */
static bool is_ours(struct port *p, const struct sw_netif *now)
{
	char name[64];

	p->if_index = now->index;
	if (sw_netif_of_ip(
		    p->params.ip, p->params.device, name, sizeof(name)) &&
		!strcmp(name, p->params.device))
		return true;
	link_set(p, false, "lost our address");
	return false;
}

/* Warn once per MTU that carries less than the port may send.  The link stays
 * up: smaller frames pass, and a worker whose frames do not fit names the path
 * (engine/worker/probe.c). */
static void say_narrow(struct port *p, uint32_t mtu, uint32_t payload)
{
	if (payload < p->params.payload_bytes && mtu != p->said_mtu)
		sw_log(p->log, SW_LOG_WARN,
			"port %s: %s has an MTU of %u now: frames with a "
			"payload of more than %u B are lost",
			p->params.name, p->params.device, mtu, payload);
	p->said_mtu = mtu;
}

static void look(struct port *p)
{
	struct sw_netif now;
	uint32_t payload;

	if (sw_netif_get(p->params.device, &now)) {
		link_set(p, false, "was removed; waiting for it to return");
		return;
	}
	if (p->type->is_kernel) {
		if (!is_ours(p, &now))
			return;
	} else if (now.index != p->if_index || !p->dev_name) {
		link_set(p, false, "was re-created");
		reopen(p, now.index);
		if (now.index != p->if_index || !p->dev_name)
			return; /* retry when lcores have seen the link down */
	}
	payload = sw_dpdk_port_payload(now.mtu, p->params.ip);
	if (!payload)
		link_set(p, false, "has an MTU that is too small now");
	else if (!now.is_up)
		link_set(p, false, "is down");
	else
		link_set(p, true, "is up");
	if (payload)
		say_narrow(p, now.mtu, payload);
}

/* Read the link state of the device. */
static void look_at_nic(struct port *p)
{
	struct rte_eth_link link = {0};

	if (rte_eth_dev_is_removed(p->eth_i))
		link_set(p, false, "was removed");
	else if (!rte_eth_link_get_nowait(p->eth_i, &link) &&
		 link.link_status == RTE_ETH_LINK_UP)
		link_set(p, true, "is up");
	else
		link_set(p, false, "is down");
}

/* Handle a link interrupt of the device, on this thread. */
static int on_link(
	uint16_t eth_i, enum rte_eth_event_type event, void *arg, void *ret)
{
	(void)eth_i;
	(void)event;
	(void)ret;
	look_at_nic(arg);
	return 0;
}

/* Log why the kernel refuses to send: each reason once, and again after
 * CALM_TICKS without a refusal. */
static void say_denied(struct port *p)
{
	int now = atomic_exchange(&p->denied_errno, 0);

	p->n_calm_ticks = now ? 0 : p->n_calm_ticks + 1;
	if (now && now != p->said_errno)
		sw_log(p->log, SW_LOG_WARN,
			"port %s: the kernel does not send some frames: %s",
			p->params.name, strerror(now));
	if (now || p->n_calm_ticks >= CALM_TICKS)
		p->said_errno = now;
}

/* Warn once about frames that are too short: over virtual interfaces, a
 * datagram may arrive unsegmented, as its sender's kernel built it. */
static void say_uncut(struct port *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_queues; i++)
		n += atomic_load_explicit(
			&p->queues[i]->counters[SW_DPDK_I_rx_short],
			memory_order_relaxed);
	if (n && !p->has_said_short)
		sw_log(p->log, SW_LOG_WARN,
			"port %s: dropping frames that are truncated or too "
			"short (rx_short); if a peer on this machine has type "
			"= udp, its kernel does not segment datagrams for us: "
			"set burst = 1 on its port",
			p->params.name);
	p->has_said_short = n != 0;
}

/* Warn once about overruns. Credit never exceeds a receive buffer, so the cause
 * is frames of strangers, or a buffer that someone else made smaller. */
static void say_overrun(struct port *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_queues; i++)
		n += atomic_load_explicit(
			&p->queues[i]->counters[SW_DPDK_I_rx_overrun],
			memory_order_relaxed);
	if (!n || p->has_said_overrun)
		return;
	p->has_said_overrun = true;
	sw_log(p->log, SW_LOG_WARN,
		"port %s: the kernel dropped %llu frames because a socket's "
		"receive buffer was full (rx_overrun): set net.core.rmem_max "
		"to %u or more (sysctl)",
		p->params.name, (unsigned long long)n, p->rmem_bytes);
}

static void watch(void *arg)
{
	struct port *p = arg;
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	if (p->type->is_nic)
		look_at_nic(p);
	else if (sw_netif_has_changed(p->changes) ||
		 !atomic_load(&p->is_linked))
		look(p);
	if (!p->type->is_kernel)
		say_uncut(p);
	if (p->neigh)
		sw_neigh_tick(p->neigh,
			(uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec,
			p->params.name, p->log);
	else
		say_denied(p);
	if (p->type->is_kernel)
		say_overrun(p);
	rte_eal_alarm_set(WATCH_PERIOD_US, watch, p);
}

/* Subscribe to changes, before the first look. */
static int changes_start(struct port *p)
{
	p->changes = sw_netif_changes_open();
	if (p->changes)
		return 0;
	sw_log(p->log, SW_LOG_ERROR,
		"port %s: cannot watch its interface (rtnetlink): %s",
		p->params.name, strerror(errno));
	return SW_EIO;
}

static void interrupt_stop(struct port *p)
{
	if (p->conf.intr_conf.lsc)
		rte_eth_dev_callback_unregister(
			p->eth_i, RTE_ETH_EVENT_INTR_LSC, on_link, p);
}

int sw_dpdk_watch_start(struct port *p)
{
	int ret = 0;

	if (!p->type->is_link && !p->type->is_nic && changes_start(p))
		return SW_EIO;
	if (p->conf.intr_conf.lsc)
		ret = rte_eth_dev_callback_register(
			p->eth_i, RTE_ETH_EVENT_INTR_LSC, on_link, p);
	if (!ret && !p->type->is_link)
		ret = rte_eal_alarm_set(1, watch, p);
	else if (!ret && p->params.side != SW_DPDK_LISTEN)
		ret = rte_eal_alarm_set(1, dial, p);
	if (!ret)
		return 0;
	interrupt_stop(p);
	sw_netif_changes_close(&p->changes);
	return SW_EIO;
}

static void device_remove(void *arg)
{
	struct port *p = arg;

	interrupt_stop(p);
	sw_netif_changes_close(&p->changes);
	pthread_mutex_lock(&p->device_lock);
	sw_dpdk_device_close(p);
	pthread_mutex_unlock(&p->device_lock);
	atomic_store(&p->is_removed, true);
}

void sw_dpdk_watch_stop(struct port *p)
{
	rte_eal_alarm_cancel(dial, p);
	rte_eal_alarm_cancel(watch, p);
	/* stopping or removing a device on another thread frees memory that the
	 * interrupt thread may be using */
	if (rte_eal_alarm_set(1, device_remove, p))
		device_remove(p);
	while (!atomic_load(&p->is_removed))
		usleep(REMOVE_POLL_US);
}
