/* fuzz_frame.c - parse frames: outer headers, neighbours, our header.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: a byte for the kind of port, a byte for the checks that its driver has
 * done, then frames, each after its length (two bytes). Bits of the length
 * above 1023 mend the IPv4 checksum or advance the neighbours' clock.
 */
#include <assert.h>
#include <stdlib.h>

#include "pmd/dpdk/neigh.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/fuzz_frame.h"

#define MAC UINT64_C(0x020000005302)
#define IP  UINT32_C(0x0a000001)

enum { BYTES = 1023, MEND = 1024, LATER = 2048, VLAN = 7, FRAMES = 64 };

struct wire {
	struct sw_outer outer;
	struct sw_outer_done done;
	struct sw_neigh neigh;
	uint64_t now_ns;
	uint32_t n_lines;
};

static void count_line(void *ctx, enum sw_log_level level, const char *text)
{
	struct wire *w = ctx;

	assert(strlen(text) > 0);
	w->n_lines++;
}

static void wire_init(struct wire *w, uint8_t kind, uint8_t done)
{
	struct sw_ip ip = done & 16 ? (struct sw_ip){UINT64_C(0xfd) << 56, 1}
				    : sw_ip_v4(IP);
	struct sw_ip gateway = {ip.high, ip.low + 1}, none = {0, 0};

	*w = (struct wire){.now_ns = 1};
	sw_outer_init(&w->outer, MAC, ip, 5700, kind & 1 ? VLAN : SW_VLAN_NONE);
	w->outer.n_udp = 1 + (kind >> 1) % 4;
	w->outer.n_ways = 1 + (kind >> 3) % 4;
	w->outer.is_sum_later = kind & 32;
	w->outer.has_udp_sum = kind & 64;
	w->done = (struct sw_outer_done){.is_tag_off = done & 1,
		.vlan = done & 2 ? VLAN : 0,
		.is_sum_good = done & 4,
		.is_udp_bad = done & 8};
	sw_neigh_init(
		&w->neigh, MAC, ip, 8 + kind % 23, kind & 128 ? gateway : none);
}

/* Mend the IPv4 checksum at the place where the header would be. */
static void mend(uint8_t *frame, uint32_t n)
{
	uint32_t at = n > 13 && frame[12] == 0x81 ? 18 : 14, sum = 0;

	if (n < at + 20)
		return;
	memset(frame + at + 10, 0, 2);
	for (uint32_t i = at; i < at + 20; i += 2)
		sum += (uint32_t)frame[i] << 8 | frame[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	frame[at + 10] = (uint8_t)(sum >> 8);
	frame[at + 11] = (uint8_t)sum;
}

/* Check that our own answer parses, and that it is for us if its address is
 * ours. */
static void check_answer(struct wire *w, struct sw_ip ip, uint64_t mac)
{
	uint8_t at[SW_NEIGH_FRAME + SW_TAG_BYTES];
	struct sw_outer_done done = {0};
	struct sw_rx_frame rx;
	uint32_t n = sw_neigh_write(&w->outer, at, ip, mac);

	assert(n <= sizeof(at));
	assert(sw_outer_check(&w->outer, at, n, done, &rx) ==
		SW_OUTER_NEIGHBOUR);
}

static void take_neighbour(struct wire *w, const struct sw_rx_frame *rx)
{
	struct sw_ip ip = {0, 0};
	uint64_t mac = 0;

	if (sw_neigh_take(&w->neigh, rx->data, rx->len, &ip, &mac))
		check_answer(w, ip, mac);
	sw_neigh_find(&w->neigh, ip);
}

static void take_ours(struct wire *w, const struct sw_rx_frame *rx)
{
	uint8_t at[SW_OUTER_MAX];
	uint64_t mac;

	assert(rx->len >= SW_HEAD_BYTES && rx->endpoint < w->outer.n_udp);
	fuzz_frame_open(rx);
	mac = sw_neigh_find(&w->neigh, rx->from.ip);
	sw_outer_write(&w->outer, at, mac, rx->endpoint, &rx->from, rx->data[5],
		rx->len);
}

static void take_frame(struct wire *w, const uint8_t *data, uint32_t n)
{
	struct sw_rx_frame rx = {0};
	enum sw_outer_verdict v =
		sw_outer_check(&w->outer, data, n, w->done, &rx);

	if (v != SW_OUTER_OURS && v != SW_OUTER_NEIGHBOUR)
		return;
	assert(rx.data >= data && rx.data + rx.len <= data + n);
	if (v == SW_OUTER_NEIGHBOUR)
		take_neighbour(w, &rx);
	else
		take_ours(w, &rx);
}

static void tick(struct wire *w, uint32_t how)
{
	struct sw_log log = {count_line, w, SW_LOG_DEBUG};
	uint32_t from = 0;
	struct sw_ip ip;

	w->now_ns += UINT64_C(50000000) << how % 16;
	sw_neigh_tick(&w->neigh, w->now_ns, "a", &log);
	while (ip = sw_neigh_due(&w->neigh, &from), !sw_ip_is_none(ip))
		check_answer(w, ip, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct wire w;
	struct fuzz_input in = {data, n};
	uint8_t kind = fuzz_u8(&in);

	wire_init(&w, kind, fuzz_u8(&in));
	for (uint32_t i = 0; i < FRAMES && in.left; i++) {
		uint16_t how = fuzz_u16(&in);
		size_t bytes = how & BYTES;
		const uint8_t *at = fuzz_take(&in, &bytes);
		/* its end is the end of the block */
		uint8_t *frame = malloc(bytes + !bytes);

		memcpy(frame, at, bytes);
		if (how & MEND)
			mend(frame, (uint32_t)bytes);
		take_frame(&w, frame, (uint32_t)bytes);
		free(frame);
		if (how & LATER)
			tick(&w, how >> 12);
	}
	return 0;
}
