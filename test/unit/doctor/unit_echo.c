/* unit_echo.c - the echo between doctors: its answers and its rate limit.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "apps/doctor/echo.h"
#include "apps/doctor/hello.h"

#define SECOND_NS UINT64_C(1000000000)

static union sw_echo_address from_host(uint32_t host)
{
	union sw_echo_address a;

	memset(&a, 0, sizeof(a));
	a.v4 = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons(7),
		.sin_addr.s_addr = htonl(0x7f000000 + host)};
	return a;
}

static void request(uint8_t *p, uint32_t bytes, uint32_t kind)
{
	const struct sw_echo e = {.magic = SW_ECHO_MAGIC,
		.token = 5,
		.number = 6,
		.bytes = bytes,
		.kind = kind};

	memset(p, 0, SW_ECHO_MOST);
	memcpy(p, &e, sizeof(e));
}

static void judge__answers_no_more_than_it_got(void **state)
{
	struct sw_echo_limits *l = calloc(1, sizeof(*l));
	union sw_echo_address from = from_host(1);
	uint8_t p[SW_ECHO_MOST + 1];
	struct sw_echo e;

	request(p, 1000, SW_ECHO_ASK);
	assert_int_equal(sw_echo_judge(l, &from, 1, p, 1000), 1000);
	memcpy(&e, p, sizeof(e));
	assert_true(e.kind == SW_ECHO_ANSWER && e.token == 5 && e.number == 6);
	/* an answer is not answered: no loop */
	assert_int_equal(sw_echo_judge(l, &from, 1, p, 1000), 0);
	request(p, 1000, SW_ECHO_SHORT);
	assert_int_equal(sw_echo_judge(l, &from, 1, p, 1000), sizeof(e));
	request(p, 1000, SW_ECHO_ASK);
	assert_int_equal(sw_echo_judge(l, &from, 1, p, 999), 0);
	assert_int_equal(sw_echo_judge(l, &from, 1, p, sizeof(e) - 1), 0);
	request(p, SW_ECHO_MOST + 1, SW_ECHO_ASK);
	assert_int_equal(sw_echo_judge(l, &from, 1, p, SW_ECHO_MOST + 1), 0);
	request(p, 1000, 9);
	assert_int_equal(sw_echo_judge(l, &from, 1, p, 1000), 0);
	request(p, 1000, SW_ECHO_ASK);
	p[0] ^= 1;
	assert_int_equal(sw_echo_judge(l, &from, 1, p, 1000), 0);
	free(l);
}

static uint32_t flood(struct sw_echo_limits *l, uint32_t host, uint64_t ns)
{
	union sw_echo_address from = from_host(host);
	uint8_t p[SW_ECHO_MOST];
	uint32_t n = 0;

	for (uint32_t i = 0; i < SW_ECHO_PER_SECOND / 5; i++) {
		request(p, 100, SW_ECHO_ASK);
		n += sw_echo_judge(l, &from, ns, p, 100) != 0;
	}
	return n;
}

static void judge__limits_each_source(void **state)
{
	struct sw_echo_limits *l = calloc(1, sizeof(*l));

	assert_int_equal(flood(l, 1, SECOND_NS), SW_ECHO_PER_SECOND / 10);
	assert_int_equal(flood(l, 1, SECOND_NS), 0);
	assert_int_equal(flood(l, 2, SECOND_NS), SW_ECHO_PER_SECOND / 10);
	assert_int_equal(flood(l, 1, SECOND_NS + SECOND_NS / 100),
		SW_ECHO_PER_SECOND / 100);
	/* while all sources are busy, a new one gets no answer */
	for (uint32_t i = 3; i < SW_ECHO_SOURCES + 1; i++)
		assert_true(flood(l, i, SECOND_NS + SECOND_NS / 50));
	assert_int_equal(flood(l, 1000, SECOND_NS + SECOND_NS / 50), 0);
	assert_true(flood(l, 1000, 4 * SECOND_NS));
	free(l);
}

static void address__good_and_bad(void **state)
{
	static const struct {
		const char *text;
		uint16_t port, want;
		const char *why;
	} rows[] = {
		{"127.0.0.1", 5700, 5700, ""},
		{"127.0.0.1:80", 5700, 80, ""},
		{"::1", 5700, 5700, ""},
		{"[::1]:80", 5700, 80, ""},
		{"[::1]", 5700, 5700, ""},
		{"5701", 0, 5701, ""},
		{"127.0.0.1:5701", 0, 5701, ""},
		{"127.0.0.1:0", 5700, 0, "\"0\" is no UDP port"},
		{"127.0.0.1:65536", 5700, 0, "is no UDP port"},
		{"127.0.0.1:", 5700, 0, "is no UDP port"},
		{"127.0.0.1:8x", 5700, 0, "is no UDP port"},
		{":80", 5700, 0, "names no machine"},
		{"", 5700, 0, "names no machine"},
		{"0", 0, 0, "is no UDP port"},
		{"name:80", 0, 0, "name:80: "},
	};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		union sw_echo_address a;
		char why[400] = "";
		socklen_t n;

		memset(&a, 0, sizeof(a));
		n = sw_echo_address(
			rows[i].text, rows[i].port, &a, why, sizeof(why));
		if (!rows[i].want != !n)
			fail_msg("%s: %s", rows[i].text, why);
		assert_contains(why, rows[i].why);
		if (n)
			assert_int_equal(ntohs(a.v4.sin_port), rows[i].want);
	}
}

static void hello__judges_answers(void **state)
{
	uint8_t p[200] = {0};

	assert_false(sw_hello_is_answer(p, 0, 7));
	assert_false(sw_hello_is_answer(p, sizeof(p), 7));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge__answers_no_more_than_it_got),
		cmocka_unit_test(judge__limits_each_source),
		cmocka_unit_test(address__good_and_bad),
		cmocka_unit_test(hello__judges_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
