/* unit_serve_view.c - merge the lcores' views of a service's jobs.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "apps/node/serve_view.h"
#include "test/support/unit.h"

static struct sw_server_view total, part;

static struct sw_server_job *job(
	struct sw_server_view *v, const char *name, uint64_t bytes)
{
	struct sw_server_job *j = &v->jobs[v->n_jobs++];

	*j = (struct sw_server_job){.n_members = 2, .n_here = 2, .n_ranks = 2};
	strcpy(j->name, name);
	for (uint32_t m = 0; m < 2; m++)
		j->members[m] = (struct sw_server_member){.is_here = true,
			.push_bytes = bytes + m,
			.path = {.srtt_ns = bytes, .least_ns = bytes}};
	return j;
}

static void wait_for(
	struct sw_server_view *v, uint32_t of, const char *name, uint64_t lacks)
{
	struct sw_server_wait *w = &v->waits[v->n_waits++];

	*w = (struct sw_server_wait){
		.job = of, .n_open = 3, .number = 7, .lacks = lacks};
	strcpy(w->name, name);
}

static int set_up(void **state)
{
	(void)state;
	total = part = (struct sw_server_view){0};
	return 0;
}

/* The lcores may list the jobs in different orders. */
static void add__bytes_by_job(void **state)
{
	(void)state;
	job(&total, "a", 10);
	job(&total, "b", 100);
	job(&part, "b", 200);
	job(&part, "a", 20);
	sw_serve_view_add(&total, &part);
	assert_int_equal(total.n_jobs, 2);
	assert_int_equal(total.jobs[0].members[1].push_bytes, 11 + 21);
	assert_int_equal(total.jobs[1].members[0].push_bytes, 300);
	assert_int_equal(total.jobs[1].members[0].path.srtt_ns, 200);
	assert_int_equal(total.jobs[1].members[0].path.least_ns, 100);
}

static void add__member_is_missing_at_one(void **state)
{
	struct sw_server_job *j;

	(void)state;
	job(&total, "a", 0);
	j = job(&part, "a", 0);
	j->members[1].is_here = false;
	j->n_here = j->n_ranks = 1;
	j->missing = 2;
	sw_serve_view_add(&total, &part);
	assert_true(total.jobs[0].members[0].is_here);
	assert_false(total.jobs[0].members[1].is_here);
	assert_int_equal(total.jobs[0].n_here, 1);
	assert_int_equal(total.jobs[0].missing, 2);
}

/* A tensor has chunks at each lcore, but one row shows the ranks that they wait
 * for. */
static void add__one_wait_of_a_tensor(void **state)
{
	(void)state;
	job(&total, "a", 0);
	/* lcore 0 does not have the job, so it is left out */
	job(&part, "b", 0);
	job(&part, "a", 0);
	wait_for(&total, 0, "w", 1);
	wait_for(&part, 0, "x", 1);
	wait_for(&part, 1, "w", 2);
	wait_for(&part, 1, "v", 2);
	sw_serve_view_add(&total, &part);
	assert_int_equal(total.n_jobs, 1);
	assert_int_equal(total.n_waits, 2);
	assert_int_equal(total.waits[0].n_open, 6);
	assert_int_equal(total.waits[0].lacks, 3);
	assert_string_equal(total.waits[1].name, "v");
	assert_int_equal(total.waits[1].job, 0);
}

static void add__more_waits_than_rows(void **state)
{
	(void)state;
	job(&total, "a", 0);
	job(&part, "a", 0);
	for (uint32_t i = 0; i < SW_LOOK_WAITS; i++)
		wait_for(&total, 0, (char[]){'A', (char)('A' + i), 0}, 1);
	wait_for(&part, 0, "w", 1);
	part.n_more = 4;
	sw_serve_view_add(&total, &part);
	assert_int_equal(total.n_waits, SW_LOOK_WAITS);
	assert_int_equal(total.n_more, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(add__bytes_by_job, set_up),
		cmocka_unit_test_setup(add__member_is_missing_at_one, set_up),
		cmocka_unit_test_setup(add__one_wait_of_a_tensor, set_up),
		cmocka_unit_test_setup(add__more_waits_than_rows, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
