/* unit_ip.c - addresses of both families: text, networks, bytes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "engine/base/ip.h"

static struct sw_ip of(const char *text)
{
	uint8_t bytes[16];
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		return sw_ip_v4(ntohl(v4.s_addr));
	assert_int_equal(inet_pton(AF_INET6, text, bytes), 1);
	return sw_ip_load(bytes);
}

/* The examples of RFC 5952, section 4, and the limits of each rule. */
static void text__canonical(void **state)
{
	static const char *const rows[][2] = {{"10.0.0.1", "10.0.0.1"},
		{"255.255.255.255", "255.255.255.255"},
		{"2001:0db8::0001", "2001:db8::1"},
		{"2001:db8:0:0:0:0:2:1", "2001:db8::2:1"},
		{"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
		{"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
		{"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"}, {"::1", "::1"},
		{"fd00::", "fd00::"}, {"1::8", "1::8"},
		{"0:2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
		{"1:2:3:4:5:6:7:0", "1:2:3:4:5:6:7:0"},
		{"1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
			"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}};
	char text[SW_IP_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(
			sw_ip_text(of(rows[i][0]), text), rows[i][1]);
}

static void text__with_a_port(void **state)
{
	char text[SW_IP_PORT_TEXT];

	(void)state;
	assert_string_equal(
		sw_ip_port_text(of("10.0.0.1"), 65535, text), "10.0.0.1:65535");
	assert_string_equal(
		sw_ip_port_text(of("fd00::1"), 1, text), "[fd00::1]:1");
	assert_string_equal(
		sw_ip_port_text(of("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
			65535, text),
		"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
}

static void near__by_prefix(void **state)
{
	static const struct {
		const char *a, *b;
		uint32_t bits;
		bool is_near;
	} rows[] = {{"10.0.0.1", "10.0.0.255", 24, true},
		{"10.0.0.1", "10.0.1.1", 24, false},
		{"10.0.0.1", "10.0.0.2", 31, false},
		{"10.0.0.2", "10.0.0.3", 31, true},
		{"10.0.0.1", "200.0.0.1", 0, true},
		{"fd00::1", "fd00::ffff:0:0:1", 64, true},
		{"fd00::1", "fd00:0:0:1::1", 64, false},
		{"fd00::1", "fd00:0:0:1::1", 63, true},
		{"fd00::2", "fd00::3", 127, true},
		{"fd00::1", "fd00::3", 127, false},
		{"10.0.0.1", "fd00::1", 0, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(sw_ip_is_near(of(rows[i].a), of(rows[i].b),
					 rows[i].bits),
			rows[i].is_near);
}

static void store__is_loaded(void **state)
{
	uint8_t bytes[16], want[16];
	struct sw_ip ip = of("102:304:506:708:90a:b0c:d0e:f10");

	(void)state;
	for (int i = 0; i < 16; i++)
		want[i] = (uint8_t)(i + 1);
	sw_ip_store(bytes, ip);
	assert_memory_equal(bytes, want, 16);
	assert_true(sw_ip_is_same(sw_ip_load(bytes), ip));
	assert_true(sw_ip_is_v4(of("::ffff:10.0.0.1")));
	assert_true(sw_ip_is_same(of("::ffff:10.0.0.1"), of("10.0.0.1")));
	assert_true(sw_ip_is_none(sw_ip_v4(0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__canonical),
		cmocka_unit_test(text__with_a_port),
		cmocka_unit_test(near__by_prefix),
		cmocka_unit_test(store__is_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
