/* tcp_port.h - find a free TCP port of this machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_TCP_PORT_H
#define SW_PMD_HOST_TCP_PORT_H

/* sw_tcp_port_free - return a port of 127.0.0.1 that the kernel chose and no
 * process uses; another process may take it before the caller does. Errors:
 * SW_EIO. */
int sw_tcp_port_free(void);

#endif
