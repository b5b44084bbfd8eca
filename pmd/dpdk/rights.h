/* rights.h - find out why the kernel refuses sockets to this process.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_RIGHTS_H
#define SW_PMD_DPDK_RIGHTS_H

#include <stddef.h>
#include <stdint.h>

/* sw_rights_packet - write to @out, as "it needs …", the rights that this
 * process lacks for a packet socket with @bytes of rings; "" if it lacks none.
 * Finds out by trying.
 * Thread: control, interrupt. */
void sw_rights_packet(uint64_t bytes, char *out, size_t size);

/* sw_rights_xdp - do the same for an AF_XDP socket with @bytes of buffers; if
 * no right is missing, @out says which interface XDP needs. */
void sw_rights_xdp(uint64_t bytes, char *out, size_t size);

#endif
