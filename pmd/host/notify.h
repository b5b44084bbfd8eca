/* notify.h - tell the service manager how a service is (sd_notify(3)).
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_NOTIFY_H
#define SW_PMD_HOST_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* sw_notify_is_wanted - return whether a service manager listens
 * (NOTIFY_SOCKET). */
bool sw_notify_is_wanted(void);

/* sw_notify - send lines such as "READY=1\nSTATUS=serving".  Never waits; what
 * does not arrive is lost.  Without a service manager it does nothing. */
void sw_notify(const char *text);

/* sw_notify_watchdog_ns - return the time within which the service manager
 * wants a "WATCHDOG=1" from this process; 0: it does not. */
uint64_t sw_notify_watchdog_ns(void);

#endif
