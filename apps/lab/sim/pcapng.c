/* pcapng.c - write frames to a file that Wireshark opens.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/pcapng.h"

#include "apps/cli/pcapng.h"
#include "engine/base/bytes.h"

enum {
	ETHERNET = 14,
	OTHER_UDP = 9, /* other traffic uses the discard port */
};

void sw_sim_pcapng_begin(FILE *f)
{
	sw_pcapng_begin(f);
	sw_pcapng_interface(f, SW_PCAPNG_ETHERNET, NULL);
}

/* Write the locally administered address of a node. */
static void mac(uint8_t *at, uint32_t node)
{
	at[0] = 2;
	at[1] = 0;
	for (uint32_t i = 0; i < 4; i++)
		at[2 + i] = (uint8_t)(node >> (24 - 8 * i));
}

static size_t heads(uint8_t *b, const struct sw_sim_frame *f)
{
	const struct sw_pcapng_udp udp = {.from = sw_ip_v4(sw_sim_ip(f->from)),
		.to = sw_ip_v4(sw_sim_ip(f->to)),
		.from_udp = f->is_other ? OTHER_UDP : f->from_udp,
		.to_udp = f->is_other ? OTHER_UDP : f->to_udp,
		.ecn = f->is_plain    ? 0
		       : f->is_marked ? 3
				      : 2, /* ECN: CE, ECT(0) */
		.len = f->len};

	mac(b, f->to);
	mac(b + 6, f->from);
	b[12] = 0x08; /* IPv4 */
	b[13] = 0x00;
	return ETHERNET + sw_pcapng_heads(b + ETHERNET, &udp);
}

void sw_sim_pcapng_frame(FILE *f, uint64_t at_ns,
	const struct sw_sim_frame *frame, uint32_t snap)
{
	uint8_t b[ETHERNET + SW_PCAPNG_HEADS_MAX];
	size_t n = heads(b, frame);
	uint32_t body = frame->has_body ? frame->len - SW_HEAD_BYTES : 0;
	const struct sw_pcapng_packet p = {.at_ns = at_ns,
		.len = (uint32_t)n + frame->len,
		.n_parts = 3,
		.parts = {{b, n},
			{frame->head, frame->is_other ? 0 : SW_HEAD_BYTES},
			{frame->body,
				sw_min64(body, snap - n - SW_HEAD_BYTES)}}};

	sw_pcapng_packet(f, &p);
}
