/* select.h - select rows of a sweep by the values of their axes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A selector is text like "policy p3, rate 1Gb/s".  Each item names an axis and
 * one of its values, or "job" and a name.  The value of a list of nodes is
 * their number.  The empty selector fits all rows.
 */
#ifndef SW_APPS_LAB_SIM_SELECT_H
#define SW_APPS_LAB_SIM_SELECT_H

#include "apps/lab/sim/table.h"

/* sw_sim_select_check - return whether each item is a value of an axis.  If
 * not, @why (SW_SIM_TEXT bytes) gets the reason. */
bool sw_sim_select_check(
	const struct sw_sim_file *file, const char *selector, char *why);

/* sw_sim_select_fits - return whether @row has all values of the selector. */
bool sw_sim_select_fits(const struct sw_sim_file *file,
	const struct sw_sim_row *row, const char *selector);

/* sw_sim_select_has - return whether the selector gives a value for @key. */
bool sw_sim_select_has(const char *selector, const char *key);

/* sw_sim_select_partner - return the row with the values of @selector, and with
 * @row's values of all other axes; NULL: none. */
const struct sw_sim_row *sw_sim_select_partner(const struct sw_sim_table *t,
	const struct sw_sim_file *file, const struct sw_sim_row *row,
	const char *selector);

#endif
