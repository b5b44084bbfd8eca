/* ip.h - IP addresses of both families, and their text.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_IP_H
#define SW_ENGINE_BASE_IP_H

#include <stdbool.h>
#include <stdint.h>

/* An address; all zero: none.  @high: its first eight bytes, in host order.
 * IPv4 addresses are mapped into IPv6 (RFC 4291, section 2.5.5.2). */
struct sw_ip {
	uint64_t high, low;
};

#define SW_IP_V4_MAPPED UINT64_C(0xffff00000000)

/* sw_ip_v4 - return the IPv4 address @ip, a number in host order; 0: none. */
static inline struct sw_ip sw_ip_v4(uint32_t ip)
{
	return (struct sw_ip){.low = ip ? SW_IP_V4_MAPPED | ip : 0};
}

static inline bool sw_ip_is_v4(struct sw_ip ip)
{
	return !ip.high && ip.low >> 32 == SW_IP_V4_MAPPED >> 32;
}

static inline bool sw_ip_is_none(struct sw_ip ip)
{
	return !(ip.high | ip.low);
}

static inline bool sw_ip_is_same(struct sw_ip a, struct sw_ip b)
{
	return !((a.high ^ b.high) | (a.low ^ b.low));
}

/* sw_ip_is_link_local - return whether @ip is in fe80::/10, the range of IPv6
 * routers. */
static inline bool sw_ip_is_link_local(struct sw_ip ip)
{
	return ip.high >> 54 == 0xfe80 >> 6;
}

/* sw_ip_bits - return the length of a whole address: 32 or 128 bits. */
static inline uint32_t sw_ip_bits(struct sw_ip ip)
{
	return sw_ip_is_v4(ip) ? 32 : 128;
}

/* sw_ip_mask - return @ip with all bits after the first @bits zero; @bits
 * counts within its family, and must not exceed sw_ip_bits. */
struct sw_ip sw_ip_mask(struct sw_ip ip, uint32_t bits);

/* sw_ip_net - return the source that @ip belongs to, which may have many
 * addresses: an IPv4 address, or an IPv6 /64 network. */
static inline struct sw_ip sw_ip_net(struct sw_ip ip)
{
	return sw_ip_is_v4(ip) ? ip : sw_ip_mask(ip, 64);
}

/* sw_ip_is_near - return whether @a and @b have the same first @bits bits and
 * the same family. */
bool sw_ip_is_near(struct sw_ip a, struct sw_ip b, uint32_t bits);

/* sw_ip_load, sw_ip_store - convert from and to the 16 bytes of an IPv6
 * address in network order. */
struct sw_ip sw_ip_load(const uint8_t at[16]);
void sw_ip_store(uint8_t at[16], struct sw_ip ip);

/* sw_ip_text - write @ip into @out as "10.0.0.1" or, by RFC 5952, "fd00::1".
 * Returns @out.
 * sw_ip_port_text - write "10.0.0.1:21000" or "[fd00::1]:21000". */
enum { SW_IP_TEXT = 40, SW_IP_PORT_TEXT = SW_IP_TEXT + 8 };
const char *sw_ip_text(struct sw_ip ip, char out[SW_IP_TEXT]);
const char *sw_ip_port_text(
	struct sw_ip ip, uint16_t udp, char out[SW_IP_PORT_TEXT]);

#endif
