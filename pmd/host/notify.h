/* notify.h - report a service's state to its service manager (sd_notify(3)).
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_NOTIFY_H
#define SW_PMD_HOST_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* sw_notify_is_wanted - return whether a service manager listens
 * (NOTIFY_SOCKET). */
bool sw_notify_is_wanted(void);

/* sw_notify - send lines such as "READY=1\nSTATUS=serving". Never blocks; the
 * kernel drops the lines if the socket is full. Does nothing without a service
 * manager. */
void sw_notify(const char *text);

/* sw_notify_watchdog_ns - return the time within which the service manager
 * wants a "WATCHDOG=1" from this process; 0: it wants none. */
uint64_t sw_notify_watchdog_ns(void);

#endif
