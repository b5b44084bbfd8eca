/* unit_metric.c - counters under the names and units of Prometheus.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "apps/watch/export.h"
#include "apps/watch/metric.h"
#include "engine/base/bytes.h"

static void metric__names_units_and_labels(void **state)
{
	static const struct {
		const char *counter, *family, *labels, *unit;
		bool is_counter;
		double scale;
	} rows[] = {
		{"rx_bytes", "sumwire_rx_bytes", "", "bytes", true, 1},
		{"server.lost", "sumwire_lost", "", NULL, true, 1},
		{"poll_gap_max_us", "sumwire_poll_gap_max_seconds", "",
			"seconds", false, 1e-6},
		{"lcore12.turn_p99_ns", "sumwire_lcore_turn_p99_seconds",
			"lcore=\"12\"", "seconds", false, 1e-9},
		{"lane3.push_bytes", "sumwire_lane_push_bytes", "lane=\"3\"",
			"bytes", true, 1},
		{"rate_bit_s", "sumwire_rate_bytes_per_second", "",
			"bytes_per_second", false, 0.125},
		{"port.lan.rx_frames", "sumwire_port_rx_frames", "port=\"lan\"",
			NULL, true, 1},
		{"port.a.b.queue2.rx_frames", "sumwire_port_queue_rx_frames",
			"port=\"a.b\",queue=\"2\"", NULL, true, 1},
		{"port.a.queue10.tx_bytes", "sumwire_port_queue_tx_bytes",
			"port=\"a\",queue=\"10\"", "bytes", true, 1},
		{"port.a.device.rx_q0packets", "sumwire_port_device",
			"port=\"a\",counter=\"rx_q0packets\"", NULL, true, 1},
		{"server.rtt_ns.bucket3", "sumwire_rtt_seconds", "", "seconds",
			false, 1e-9},
		{"rtt_ns.sum", "sumwire_rtt_seconds", "", "seconds", false,
			1e-9},
		{"rtt_ns.bucketx", "sumwire_other",
			"counter=\"rtt_ns.bucketx\"", NULL, false, 1},
		{"job.J.member.M.present", "sumwire_job_member_present", "",
			NULL, false, 1},
		{"job.J.session.S.tx_timeouts",
			"sumwire_job_session_tx_timeouts", "", NULL, true, 1},
		/* a daemon of another version, or a foreign one */
		{"new", "sumwire_other", "counter=\"new\"", NULL, false, 1},
		{"lcorex.turns", "sumwire_other", "counter=\"lcorex.turns\"",
			NULL, false, 1},
		{"port..rx_frames", "sumwire_other",
			"counter=\"port..rx_frames\"", NULL, false, 1},
		{"a\"b\\c\n", "sumwire_other", "counter=\"a\\\"b\\\\c?\"", NULL,
			false, 1},
	};
	struct sw_metric m;

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		sw_metric_of(rows[i].counter, &m);
		assert_string_equal(m.family, rows[i].family);
		assert_string_equal(m.labels, rows[i].labels);
		assert_int_equal(m.is_counter, rows[i].is_counter);
		assert_true(m.scale == rows[i].scale);
		assert_int_equal(!m.unit, !rows[i].unit);
		if (m.unit)
			assert_string_equal(m.unit, rows[i].unit);
	}
}

/* All counters of a family have the same kind. */
static void metric__every_row_has_a_family_of_one_kind(void **state)
{
	struct sw_counter c, other;
	struct sw_metric m, k;

	for (uint32_t i = 0; sw_counter_at(i, &c); i++) {
		if (strstr(c.name, "N."))
			continue; /* N is a placeholder */
		sw_metric_of(c.name, &m);
		assert_true(m.is_known);
		assert_false(strpbrk(m.text, "\\\n"));
		for (uint32_t j = 0; j < i && sw_counter_at(j, &other); j++) {
			sw_metric_of(other.name, &k);
			if (!strstr(other.name, "N.") &&
				!strcmp(m.family, k.family))
				assert_string_equal(m.family, "sumwire_other");
		}
	}
}

static void label__does_not_fit(void **state)
{
	char out[24] = "";

	sw_label_add(out, sizeof(out), "a", "123456");
	assert_string_equal(out, "a=\"123456\"");
	sw_label_add(out, sizeof(out), "b", "123456789");
	assert_string_equal(out, "a=\"123456\"");
	sw_label_add(out, sizeof(out), "b", "12345678");
	assert_string_equal(out, "a=\"123456\",b=\"12345678\"");
}

static char *export(struct sw_scan_daemon *all, struct sw_found_daemon *found,
	uint32_t n, bool is_open)
{
	struct sw_scan scan = {.found = {.n = n, .all = found}, .all = all};
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	for (uint32_t i = 0; i < n; i++)
		all[i].d = &found[i];
	assert_int_equal(sw_export(&scan, is_open, to), 0);
	fclose(to);
	return text;
}

static void export__one_family_after_the_other(void **state)
{
	struct sw_scan_value values[] = {{"lost", 1}, {"server.lost", 2},
		{"lost", 3}, {"poll_gap_max_us", 1500}};
	struct sw_found_daemon found[] = {
		{.name = "x", .role = "both", .pid = 1, .version = "1"},
		{.name = "x", .role = "agent", .pid = 2, .version = "1"},
		{.pid = 3, .found = SW_FOUND_SILENT}};
	struct sw_scan_daemon all[] = {
		{.n = 4, .values = values}, {.n = 1, .values = values}, {0}};
	char *text = export(all, found, 3, true);

	assert_non_null(strstr(text,
		"# HELP sumwire_lost data frames declared lost\n"
		"# TYPE sumwire_lost counter\n"
		"sumwire_lost_total{daemon=\"x:1\",part=\"agent\"} "));
	assert_non_null(strstr(text, "part=\"server\"} 2\n"
				     "sumwire_lost_total{daemon=\"x:2\",part="
				     "\"agent\"} 1\n"));
	assert_non_null(
		strstr(text, "# UNIT sumwire_poll_gap_max_seconds seconds\n"
			     "sumwire_poll_gap_max_seconds{daemon=\"x:1\",part="
			     "\"agent\"} 0.0015\n"));
	assert_non_null(strstr(text, "sumwire_daemon_up{daemon=\":3\"} 0\n"));
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
	free(text);
	text = export(all, found, 3, false);
	assert_non_null(strstr(text, "# TYPE sumwire_lost_total counter\n"));
	assert_null(strstr(text, "# UNIT"));
	assert_null(strstr(text, "# EOF"));
	free(text);
}

static void export__jobs_and_who_is_late(void **state)
{
	struct sw_found_daemon *found = calloc(1, sizeof(*found));
	struct sw_scan_daemon all = {0};
	char *text;

	*found = (struct sw_found_daemon){
		.name = "s", .role = "server", .version = "1", .n_jobs = 1};
	found->jobs[0] = (struct sw_daemon_job){.is_served = true,
		.name = "t\"1",
		.state = "running",
		.n_ranks = 5,
		.size = 5,
		.n_members = 2,
		.members = {{"here", 1, 0, "a", 0, 0},
			{"left", 4, 1, "b", 7, 2500000, {3, [7] = 4}}},
		.n_waits = 2,
		.waits = {{.n_chunks = 10, .lacks = 2, .name = "w"},
			{.is_stream = true,
				.n_chunks = 3,
				.lacks = 3,
				.still_ms = 1500,
				.name = "g"}}};
	text = export(&all, found, 1, false);
#define JOB "daemon=\"s\",job_name=\"t\\\"1\",part=\"server\""
	assert_non_null(strstr(text, "sumwire_job_waiting_tensors{" JOB "} 2"));
	assert_non_null(
		strstr(text, "waited_chunks{" JOB
			     ",agent=\"0\",node=\"a\",ranks=\"0\"} 3\n"));
	assert_non_null(
		strstr(text, "waited_chunks{" JOB
			     ",agent=\"1\",node=\"b\",ranks=\"1-4\"} 13\n"));
	assert_non_null(strstr(text,
		"present{" JOB ",agent=\"1\",node=\"b\",ranks=\"1-4\"} 0\n"));
	assert_contains(text, "longest_wait_seconds{" JOB "} 1.5\n");
#define LATE "member_late_seconds_"
#define WHO  JOB ",agent=\"1\",node=\"b\",ranks=\"1-4\""
	assert_contains(
		text, "# TYPE sumwire_job_member_late_seconds histogram\n");
	assert_contains(text, LATE "bucket{" WHO ",le=\"1.024e-06\"} 3\n");
	assert_contains(text, LATE "bucket{" WHO ",le=\"6.5536e-05\"} 3\n");
	assert_contains(text, LATE "bucket{" WHO ",le=\"0.000131072\"} 7\n");
	assert_contains(text, LATE "bucket{" WHO ",le=\"+Inf\"} 7\n"
				   "sumwire_job_" LATE "sum{" WHO "} 0.0025\n"
				   "sumwire_job_" LATE "count{" WHO "} 7\n");
	free(text);
	free(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metric__names_units_and_labels),
		cmocka_unit_test(metric__every_row_has_a_family_of_one_kind),
		cmocka_unit_test(label__does_not_fit),
		cmocka_unit_test(export__one_family_after_the_other),
		cmocka_unit_test(export__jobs_and_who_is_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
