/* netif.h - what the kernel knows of its network interfaces.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * By rtnetlink; no DPDK runs in here.  Thread: any, one per struct mnl_socket.
 */
#ifndef SW_PMD_DPDK_NETIF_H
#define SW_PMD_DPDK_NETIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_netif {
	uint32_t index; /* another one after it was made anew */
	uint32_t mtu;
	bool is_up; /* it, and what is at its other end */
};

/* sw_netif_get - look at the interface @name.
 * Errors: SW_ENOENT there is none; SW_EIO. */
int sw_netif_get(const char *name, struct sw_netif *out);

/* sw_netif_queues - how many queues share what @name receives; 1 where the
 * kernel does not say. */
uint32_t sw_netif_queues(const char *name);

/* sw_netif_strips_tags - is it set to take VLAN tags off what it receives? */
bool sw_netif_strips_tags(const char *name);

/* sw_netif_names - the interfaces there are, as "lo, eth0". */
void sw_netif_names(char *out, size_t size);

/* sw_netif_of_ip - the interface that has @ip (host order) in the kernel, into
 * @name: @wanted if that has it, or else, or if @wanted is NULL, the first;
 * false: none.  A loopback interface has its whole network. */
bool sw_netif_of_ip(uint32_t ip, const char *wanted, char *name, size_t size);

/* What the kernel says of changes of any interface or IPv4 address. */
struct mnl_socket;

/* sw_netif_changes_open - be told from now on; NULL: the kernel refuses. */
struct mnl_socket *sw_netif_changes_open(void);

/* sw_netif_has_changed - has any since the last call? */
bool sw_netif_has_changed(struct mnl_socket *s);

/* sw_netif_changes_close - sets *@s to NULL; *@s may be NULL. */
void sw_netif_changes_close(struct mnl_socket **s);

#endif
