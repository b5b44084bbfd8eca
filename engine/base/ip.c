/* ip.c - IP addresses of both families, and their text.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/ip.h"

#include <stdio.h>

enum { GROUPS = 8 }; /* of 16 bits */

static uint64_t first_bits(uint32_t n)
{
	return n ? ~UINT64_C(0) << (64 - n) : 0;
}

struct sw_ip sw_ip_mask(struct sw_ip ip, uint32_t bits)
{
	uint32_t n = bits + 128 - sw_ip_bits(ip);

	ip.high &= first_bits(n < 64 ? n : 64);
	ip.low &= first_bits(n < 64 ? 0 : n - 64);
	return ip;
}

bool sw_ip_is_near(struct sw_ip a, struct sw_ip b, uint32_t bits)
{
	return sw_ip_is_v4(a) == sw_ip_is_v4(b) &&
	       sw_ip_is_same(sw_ip_mask(a, bits), sw_ip_mask(b, bits));
}

struct sw_ip sw_ip_load(const uint8_t at[16])
{
	struct sw_ip ip = {0, 0};

	for (int i = 0; i < 8; i++) {
		ip.high = ip.high << 8 | at[i];
		ip.low = ip.low << 8 | at[8 + i];
	}
	return ip;
}

void sw_ip_store(uint8_t at[16], struct sw_ip ip)
{
	for (int i = 7; i >= 0; i--, ip.high >>= 8, ip.low >>= 8) {
		at[i] = (uint8_t)ip.high;
		at[8 + i] = (uint8_t)ip.low;
	}
}

static uint32_t group(struct sw_ip ip, uint32_t i)
{
	uint64_t half = i < 4 ? ip.high : ip.low;

	return (uint32_t)(half >> (48 - i % 4 * 16)) & 0xffff;
}

/* Return how many groups from @i on are 0. */
static uint32_t zeros_at(struct sw_ip ip, uint32_t i)
{
	uint32_t n = 0;

	while (i + n < GROUPS && !group(ip, i + n))
		n++;
	return n;
}

static void v6_text(struct sw_ip ip, char out[SW_IP_TEXT])
{
	uint32_t gap = GROUPS, longest = 1; /* "::" replaces two or more */
	size_t at = 0;

	for (uint32_t i = 0; i < GROUPS; i++)
		if (zeros_at(ip, i) > longest) {
			longest = zeros_at(ip, i);
			gap = i;
		}
	for (uint32_t i = 0; i < GROUPS; i++) {
		if (i == gap) {
			at += (size_t)snprintf(out + at, SW_IP_TEXT - at, "::");
			i += longest - 1;
			continue;
		}
		at += (size_t)snprintf(out + at, SW_IP_TEXT - at, "%s%x",
			i && i != gap + longest ? ":" : "", group(ip, i));
	}
}

const char *sw_ip_text(struct sw_ip ip, char out[SW_IP_TEXT])
{
	uint32_t v4 = (uint32_t)ip.low;

	if (!sw_ip_is_v4(ip) && !sw_ip_is_none(ip))
		v6_text(ip, out);
	else
		snprintf(out, SW_IP_TEXT, "%u.%u.%u.%u", v4 >> 24,
			v4 >> 16 & 255, v4 >> 8 & 255, v4 & 255);
	return out;
}

const char *sw_ip_port_text(
	struct sw_ip ip, uint16_t udp, char out[SW_IP_PORT_TEXT])
{
	bool is_v6 = !sw_ip_is_v4(ip) && !sw_ip_is_none(ip);
	char text[SW_IP_TEXT];

	snprintf(out, SW_IP_PORT_TEXT, is_v6 ? "[%s]:%u" : "%s:%u",
		sw_ip_text(ip, text), udp);
	return out;
}
