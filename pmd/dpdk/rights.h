/* rights.h - what the kernel refuses to this process, and why.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_RIGHTS_H
#define SW_PMD_DPDK_RIGHTS_H

#include <stddef.h>
#include <stdint.h>

/* sw_rights_packet - say in @out, as "it needs …", what a packet socket with
 * @bytes of rings lacks, as found by trying; "" where nothing is found.
 * Thread: control, interrupt. */
void sw_rights_packet(uint64_t bytes, char *out, size_t size);

/* sw_rights_xdp - the same of an AF_XDP socket with @bytes of buffers. */
void sw_rights_xdp(uint64_t bytes, char *out, size_t size);

#endif
