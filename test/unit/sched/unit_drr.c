/* unit_drr.c - whose turn it is to send.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/sched/drr.h"

/* Send @n frames of @bytes; add what each job sends to @sent. */
static void send(struct sw_drr *d, uint32_t n,
	const uint32_t bytes[SW_MAX_JOBS], uint64_t sent[SW_MAX_JOBS])
{
	while (n--) {
		uint32_t job = sw_drr_take(d);

		assert_true(job < SW_MAX_JOBS && d->ready >> job & 1);
		sw_drr_charge(d, job, bytes[job]);
		sent[job] += bytes[job];
	}
}

static void take__nobody(void **state)
{
	struct sw_drr d = {0};

	sw_drr_open(&d, 3, 1);
	assert_int_equal(sw_drr_take(&d), SW_MAX_JOBS);
	sw_drr_put(&d, 3, true);
	assert_int_equal(sw_drr_take(&d), 3);
	sw_drr_put(&d, 3, false);
	assert_int_equal(sw_drr_take(&d), SW_MAX_JOBS);
}

/* Taking a turn is not sending: a job that was not charged keeps its turn. */
static void take__twice(void **state)
{
	struct sw_drr d = {0};

	for (uint32_t j = 0; j < 2; j++) {
		sw_drr_open(&d, j, 1);
		sw_drr_put(&d, j, true);
	}
	assert_int_equal(sw_drr_take(&d), sw_drr_take(&d));
}

static void take__shares_bytes_by_weight(void **state)
{
	static const uint32_t bytes[SW_MAX_JOBS] = {8246, 1398, 58, 8246};
	static const uint32_t weights[] = {1, 7, 2, 10};
	struct sw_drr d = {0};
	uint64_t sent[SW_MAX_JOBS] = {0}, sum = 0;

	for (uint32_t j = 0; j < 4; j++) {
		sw_drr_open(&d, j, weights[j]);
		sw_drr_put(&d, j, true);
	}
	send(&d, 1000000, bytes, sent);
	for (uint32_t j = 0; j < 4; j++)
		sum += sent[j];
	for (uint32_t j = 0; j < 4; j++)
		assert_in_range(sent[j] * 2000 / sum, weights[j] * 100 - 1,
			weights[j] * 100 + 1);
}

/* An idle job does not save up a larger share for later. */
static void put__idleness_saves_nothing(void **state)
{
	static const uint32_t bytes[SW_MAX_JOBS] = {1024, 1024};
	struct sw_drr d = {0};
	uint64_t sent[SW_MAX_JOBS] = {0};

	sw_drr_open(&d, 0, 1);
	sw_drr_open(&d, 1, 1);
	sw_drr_put(&d, 0, true);
	for (uint32_t i = 0; i < 1000; i++) {
		sw_drr_put(&d, 1, true);
		sw_drr_put(&d, 1, false);
		send(&d, 1, bytes, sent);
	}
	assert_int_equal(sent[0], 1000 * 1024);
	sw_drr_put(&d, 1, true);
	send(&d, 320, bytes, sent);
	assert_in_range(sent[1], 144 * 1024, 176 * 1024);
}

/* Leaving and returning cancels no debt: a job that returns for each frame gets
 * only its share. */
static void put__debt_stays(void **state)
{
	static const uint32_t bytes[SW_MAX_JOBS] = {16000, 16000};
	struct sw_drr d = {0};
	uint64_t sent[SW_MAX_JOBS] = {0};

	sw_drr_open(&d, 0, 1);
	sw_drr_open(&d, 1, 1);
	sw_drr_put(&d, 0, true);
	for (uint32_t i = 0; i < 1000; i++) {
		sw_drr_put(&d, 1, true);
		send(&d, 1, bytes, sent);
		sw_drr_put(&d, 1, false);
	}
	assert_in_range(sent[1], 480 * 16000, 520 * 16000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__nobody),
		cmocka_unit_test(take__twice),
		cmocka_unit_test(take__shares_bytes_by_weight),
		cmocka_unit_test(put__idleness_saves_nothing),
		cmocka_unit_test(put__debt_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
