/* unit_plan_share.c - compare shares, times and gains with the paper.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <math.h>

#include "apps/topo/plan_share.h"

static void assert_near(double a, double b)
{
	assert_true(fabs(a - b) < 1e-9 * (1 + fabs(b)));
}

static void share__of_the_paper(void **state)
{
	struct sw_plan_share s = sw_plan_share(32, 16, 1e9, 12.5e9);

	assert_near(s.over_allreduce, 1.46875);
	assert_near(s.over_ps, 1.5161290322580645);
	assert_near(s.cpu, 62.0 / 1504);
	assert_near(s.gpu, 16.0 / 1504);
	assert_near(s.optimal_s, 2.0 * 32 * 31 / 1504 * 0.08);
}

/* With the shares of equations 1 and 2 both kinds of machine need the optimal
 * time (equations 3 and 4), and the shares add up (5). */
static void share__balances_both_kinds(void **state)
{
	for (uint32_t n = 2; n <= 40; n++)
		for (uint32_t k = 1; k <= n; k++) {
			struct sw_plan_share s = sw_plan_share(n, k, 7e8, 1e9);

			assert_near(k * s.cpu + n * s.gpu, 1);
			assert_near(n * s.cpu * 0.7, s.optimal_s);
			assert_near((1 + (n - 2.0) * s.gpu) * 0.7, s.optimal_s);
			assert_near(
				s.over_allreduce, s.allreduce_s / s.optimal_s);
			assert_near(s.over_ps, (n * n + (double)k * n - 2 * k) /
						       (2.0 * k * (n - 1)));
		}
}

static void share__at_the_borders(void **state)
{
	struct sw_plan_share none = sw_plan_share(8, 0, 1, 1);
	struct sw_plan_share all = sw_plan_share(8, 8, 1, 1);
	struct sw_plan_share many = sw_plan_share(4, 5, 1, 1);
	struct sw_plan_share one = sw_plan_share(1, 2, 1, 1);
	struct sw_plan_share alone = sw_plan_share(1, 0, 1, 1);

	assert_true(isnan(none.cpu) && isnan(none.ps_s) && isnan(none.over_ps));
	assert_near(none.gpu, 1.0 / 8);
	assert_near(none.over_allreduce, 1);
	assert_near(all.gpu, 0);
	assert_near(all.cpu, 1.0 / 8);
	assert_near(all.over_ps, 1);
	assert_near(all.optimal_s, 1);
	assert_near(many.cpu, 1.0 / 5);
	assert_near(many.optimal_s, 1);
	assert_near(one.cpu, 1.0 / 2);
	assert_true(isnan(one.over_allreduce));
	assert_near(alone.gpu, 1);
	assert_near(alone.optimal_s, 0);
	assert_true(isnan(alone.over_ps) && isnan(alone.over_allreduce));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__of_the_paper),
		cmocka_unit_test(share__balances_both_kinds),
		cmocka_unit_test(share__at_the_borders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
