/* netif.h - read the kernel's network interfaces.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Uses rtnetlink, not DPDK. Thread: any, one per struct mnl_socket.
 */
#ifndef SW_PMD_DPDK_NETIF_H
#define SW_PMD_DPDK_NETIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/ip.h"

struct sw_netif {
	uint32_t index; /* changes if the interface is re-created */
	uint32_t mtu;
	bool is_up; /* interface and carrier are up */
};

/* sw_netif_get - read the interface @name. Errors: SW_ENOENT not there;
 * SW_EIO. */
int sw_netif_get(const char *name, struct sw_netif *out);

/* sw_netif_queues - return how many receive queues @name has; 1 if the driver
 * does not report it. */
uint32_t sw_netif_queues(const char *name);

/* sw_netif_strips_tags - return whether @name strips VLAN tags from received
 * frames. */
bool sw_netif_strips_tags(const char *name);

/* sw_netif_names - list the interfaces, as "lo, eth0". */
void sw_netif_names(char *out, size_t size);

/* sw_netif_of_ip - write the name of the interface that has @ip to @name:
 * @wanted if it has @ip, otherwise the first that does. @wanted may be NULL.
 * Returns false if no interface has @ip. The loopback interface has all
 * addresses of its IPv4 network. */
bool sw_netif_of_ip(
	struct sw_ip ip, const char *wanted, char *name, size_t size);

/* Notifications of changes of any interface or address. */
struct mnl_socket;

/* sw_netif_changes_open - subscribe to changes; NULL: the kernel refuses. */
struct mnl_socket *sw_netif_changes_open(void);

/* sw_netif_has_changed - return whether anything changed since the last call.
 */
bool sw_netif_has_changed(struct mnl_socket *s);

/* sw_netif_changes_close - unsubscribe and set *@s to NULL; *@s may be NULL. */
void sw_netif_changes_close(struct mnl_socket **s);

#endif
