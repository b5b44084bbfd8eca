/* unit_frame.c - the lines of sumwire top.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "apps/watch/frame.h"

enum { DAEMONS = 40 };

/* Daemons d0, d1, …; counters of daemon i have grown by i. */
struct rig {
	struct sw_found_daemon found[DAEMONS];
	struct sw_scan_value old[DAEMONS][4], now[DAEMONS][4];
	struct sw_scan_daemon all[2][DAEMONS];
	struct sw_scan scans[2];
	char names[DAEMONS][8];
};

static void setup(struct rig *r)
{
	static const char *const counters[] = {
		"push_bytes", "lost", "port.lan.rx_not_ours", "lcore0.turns"};

	for (uint32_t i = 0; i < DAEMONS; i++) {
		snprintf(r->names[i], 8, "d%u", i);
		r->found[i] = (struct sw_found_daemon){.name = r->names[i],
			.role = "server",
			.state = "up",
			.pid = (pid_t)i + 1};
		for (uint32_t k = 0; k < 4; k++) {
			strcpy(r->old[i][k].name, counters[k]);
			strcpy(r->now[i][k].name, counters[k]);
			r->old[i][k].value = 5000000;
			r->now[i][k].value = 5000000;
		}
		r->now[i][0].value += i * UINT64_C(2000000);
		r->now[i][1].value += 2 * (DAEMONS - i);
		r->all[0][i] = (struct sw_scan_daemon){
			&r->found[i], 1000000000, 4, 4, r->old[i]};
		r->all[1][i] = (struct sw_scan_daemon){
			&r->found[i], 3000000000, 4, 4, r->now[i]};
	}
	for (uint32_t s = 0; s < 2; s++)
		r->scans[s] = (struct sw_scan){{DAEMONS, r->found}, r->all[s]};
}

static char *frame(const struct rig *r, uint32_t lines, enum sw_frame_sort sort)
{
	struct sw_frame f = {
		&r->scans[0], &r->scans[1], lines, 80, sort, false};
	char *text;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	assert_int_equal(sw_frame_write(&f, to), 0);
	fclose(to);
	return text;
}

static uint32_t count_lines(const char *text)
{
	uint32_t n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

static void frame__rates_and_order(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	char *text;

	setup(r);
	text = frame(r, 0, SW_SORT_RATE);
	assert_int_equal(count_lines(text), 3 * (DAEMONS + 1));
	/* d39 has grown by 39 times 2 MB and 2 times 1 in 2 s */
	assert_contains(text, "\nd39           server  up             39.0"
			      "          0.0       1 ");
	assert_true(strstr(text, "\nd39 ") < strstr(text, "\nd38 "));
	free(text);
	text = frame(r, 0, SW_SORT_LOSS);
	assert_true(strstr(text, "\nd0 ") < strstr(text, "\nd39 "));
	free(text);
	/* the first sample after a restart has no rate */
	r->all[0][39].n = 0;
	text = frame(r, 0, SW_SORT_NAME);
	assert_contains(text, "\nd39           server  up              0.0");
	free(text);
	free(r);
}

static void frame__no_more_lines_than_there_is_room(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	char *text;

	setup(r);
	for (uint32_t lines = 1; lines < 60; lines++) {
		text = frame(r, lines, SW_SORT_RATE);
		assert_true(count_lines(text) <= lines ||
			    count_lines(text) == 3); /* the header lines */
		for (const char *at = text, *end; *at; at = end + 1) {
			end = strchr(at, '\n');
			assert_true(end - at <= 80);
		}
		free(text);
	}
	text = frame(r, 23, SW_SORT_RATE);
	assert_int_equal(count_lines(text), 23);
	assert_contains(text, "DAEMON +33    ROLE ");
	free(text);
	free(r);
}

/* A long name loses its middle. A pid distinguishes daemons with one name. If
 * two shortened names look alike, the second one has another mark. The two
 * names of a member share the room. */
static void frame__long_names(void **state)
{
	static const char *const jobs[] = {"language-model-seed-1-pretraining",
		"language-model-seed-2-pretraining", "short"};
	struct rig *r = calloc(1, sizeof(*r));
	char *text;

	setup(r);
	for (uint32_t i = 0; i < 3; i++) {
		struct sw_daemon_job *job = &r->found[i].jobs[0];

		*job = (struct sw_daemon_job){.is_served = true,
			.state = "running",
			.name = jobs[i],
			.n_members = 1};
		job->members[0] = (struct sw_daemon_member){
			.state = "here", .n_ranks = 1, .node = "gpu0"};
		r->found[i].n_jobs = 1;
	}
	r->found[4].name = r->found[5].name = "twin";
	r->found[6].name = NULL;
	text = frame(r, 0, SW_SORT_NAME);
	assert_contains(text, "\nlangua~aining d0 ");
	assert_contains(text, "\nlangua?aining d1 ");
	assert_contains(text, "\nshort         d2 ");
	assert_contains(text, "\n  RANKS     NODE JOB                STATE ");
	assert_contains(text, "\n  0         gpu0 language~etraining here ");
	assert_contains(text, "\n  0         gpu0 language?etraining here ");
	assert_contains(text, "\nd3            server ");
	assert_contains(text, "\ntwin:5        server ");
	assert_contains(text, "\ntwin:6        server ");
	assert_contains(text, "\npid 7         server ");
	assert_contains(text, "\n  0         gpu0 short              here ");
	free(text);
	free(r);
}

/* A port with several queues has one row, and one more for each queue. */
static void frame__queues(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	char *text;

	setup(r);
	for (uint32_t i = 0; i < 2; i++) {
		struct sw_scan_value *v = i ? r->now[0] : r->old[0];

		strcpy(v[1].name, "port.lan.queue0.rx_not_ours");
		strcpy(v[3].name, "port.lan.queue0.rx_frames");
	}
	r->now[0][3].value += 14;
	text = frame(r, 0, SW_SORT_NAME);
	assert_contains(text, "\nd0 lan  ");
	assert_false(strstr(text, "queue0")); /* there is only one queue */
	free(text);
	for (uint32_t i = 0; i < 2; i++)
		strcpy((i ? r->now[0] : r->old[0])[0].name,
			"port.lan.queue1.rx_not_ours");
	text = frame(r, 0, SW_SORT_NAME);
	assert_contains(text, "\nd0 lan.queue0                0.0      0.0"
			      "        7        0");
	assert_contains(text, "\nd0 lan.queue1  ");
	free(text);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame__rates_and_order),
		cmocka_unit_test(frame__no_more_lines_than_there_is_room),
		cmocka_unit_test(frame__long_names),
		cmocka_unit_test(frame__queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
