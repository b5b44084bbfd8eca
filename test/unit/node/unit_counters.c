/* unit_counters.c - the explanation of each counter.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/counters.h"

static const char *root;

static void at__no_row_lacks_anything(void **state)
{
	struct sw_counter c, other;
	uint32_t n;

	for (n = 0; sw_counter_at(n, &c); n++) {
		assert_true(c.name[0] && c.unit[0]);
		assert_true(strlen(c.text) > 6 && !strchr(c.text, '|'));
		assert_non_null(sw_counter_kind(c.kind));
		for (uint32_t i = 0; i < n; i++) {
			assert_true(sw_counter_at(i, &other));
			assert_string_not_equal(c.name, other.name);
		}
		assert_true(sw_counter_find(c.name, &other));
		assert_string_equal(c.name, other.name);
	}
	assert_true(n > 80);
}

static void find_case(const char *name, const char *row)
{
	struct sw_counter c;

	if (!row) {
		assert_false(sw_counter_find(name, &c));
		return;
	}
	assert_true(sw_counter_find(name, &c));
	assert_string_equal(c.name, row);
}

static void find__names_as_daemons_print_them(void **state)
{
	find_case("lost", "lost");
	find_case("server.lost", "lost");
	find_case("server.attached", NULL);
	find_case("class0.tx_bytes", "classN.tx_bytes");
	find_case("server.class7.rx_frames", "classN.rx_frames");
	find_case("lcore0.turns", "lcoreN.turns");
	find_case("lcore31.turns_over_1ms", "lcoreN.turns_over_1ms");
	find_case("lcores", "lcores");
	find_case("lane3.push_bytes", "laneN.push_bytes");
	find_case("rtt_ns.bucket25", "rtt_ns");
	find_case("server.rtt_ns.sum", "rtt_ns");
	find_case("rtt_ns.bucket", NULL);
	find_case("port.lan.rx_frames", "port.P.rx_frames");
	find_case("port.a.b.c.rx_frames", "port.P.rx_frames");
	find_case("port.queue1.rx_frames", "port.P.rx_frames");
	find_case("port.a.queue1.rx_frames", "port.P.queueN.rx_frames");
	find_case("port.a.queue12.tx_full", "port.P.queueN.tx_full");
	find_case("port.a.device.rx_q0packets", "port.P.device.COUNTER");
}

static void find__names_that_do_not_exist(void **state)
{
	static const char *const names[] = {"", ".", "los", "lostt", "port.",
		"port.a.", "port.a.nothing", "port.a.queue1.nothing",
		"lcore.turns", "lcore0.", "server."};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		find_case(names[i], NULL);
}

static void reference__page_is_current(void **state)
{
	char path[512], *text = NULL, *page;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	sw_counter_reference(f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/doc/counters.md", root);
	f = fopen(path, "r");
	assert_non_null(f);
	page = calloc(1, n + 2);
	assert_int_equal(fread(page, 1, n + 1, f), n);
	fclose(f);
	if (strcmp(page, text))
		fail_msg("run \"sumwire stats --reference > doc/counters.md\"");
	free(page);
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at__no_row_lacks_anything),
		cmocka_unit_test(find__names_as_daemons_print_them),
		cmocka_unit_test(find__names_that_do_not_exist),
		cmocka_unit_test(reference__page_is_current),
	};

	root = argc > 1 ? argv[1] : ".";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
