/* pcapng.h - write frames to a file that Wireshark opens.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_PCAPNG_H
#define SW_APPS_LAB_SIM_PCAPNG_H

#include <stdio.h>

#include "apps/lab/sim/net.h"

/* sw_sim_pcapng_begin - write the head of the file: one interface, times in
 * nanoseconds.
 * sw_sim_pcapng_frame - write a frame with its Ethernet, IPv4 and UDP headers.
 * A frame that carries no payload is cut behind our header, a longer one than
 * @snap behind @snap bytes. */
void sw_sim_pcapng_begin(FILE *f);
void sw_sim_pcapng_frame(FILE *f, uint64_t at_ns,
	const struct sw_sim_frame *frame, uint32_t snap);

#endif
