/* select.c - select rows of a sweep by the values of their axes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/select.h"

#include <stdio.h>
#include <string.h>

/* An item such as "policy p3".  The key "" ends a selector. */
struct item {
	char key[SW_SIM_NAME], value[SW_SIM_TEXT];
};

static const char *next_item(const char *s, struct item *out)
{
	size_t n;

	*out = (struct item){0};
	s += strspn(s, " \t,");
	n = strcspn(s, " \t,");
	snprintf(out->key, sizeof(out->key), "%.*s", (int)n, s);
	s += n;
	s += strspn(s, " \t");
	n = strcspn(s, ",");
	snprintf(out->value, sizeof(out->value), "%.*s", (int)n, s);
	return s + n;
}

static uint32_t axis_of(const struct sw_sim_file *file, const char *key)
{
	uint32_t a = 0;

	while (a < file->n_axes && strcmp(file->axes[a].key, key) != 0)
		a++;
	return a;
}

static const char *value_of(const struct sw_sim_file *file, uint32_t axis,
	uint32_t point, char out[SW_SIM_TEXT])
{
	if (!file->axes[axis].is_list)
		return sw_sim_axis_value(file, axis, point, out);
	snprintf(out, SW_SIM_TEXT, "%u", sw_sim_axis_count(file, axis, point));
	return out;
}

static bool has_value(
	const struct sw_sim_file *file, uint32_t axis, const char *value)
{
	char buf[SW_SIM_TEXT];

	for (uint32_t p = 0; p < file->n_points; p++)
		if (!strcmp(value_of(file, axis, p, buf), value))
			return true;
	return false;
}

bool sw_sim_select_check(
	const struct sw_sim_file *file, const char *selector, char *why)
{
	struct item item;

	for (;;) {
		uint32_t a;

		selector = next_item(selector, &item);
		if (!*item.key)
			return true;
		if (!strcmp(item.key, "job"))
			continue;
		a = axis_of(file, item.key);
		if (a == file->n_axes)
			snprintf(why, SW_SIM_TEXT,
				"\"%s\" is no key with several values",
				item.key);
		else if (!has_value(file, a, item.value))
			snprintf(why, SW_SIM_TEXT, "%s is never \"%.200s\"",
				item.key, item.value);
		else
			continue;
		return false;
	}
}

static bool fits(const struct sw_sim_file *file, const struct sw_sim_row *row,
	const struct item *item)
{
	char buf[SW_SIM_TEXT];

	if (!strcmp(item->key, "job"))
		return !strcmp(row->job, item->value);
	return !strcmp(
		value_of(file, axis_of(file, item->key), row->point, buf),
		item->value);
}

bool sw_sim_select_fits(const struct sw_sim_file *file,
	const struct sw_sim_row *row, const char *selector)
{
	struct item item;

	for (;;) {
		selector = next_item(selector, &item);
		if (!*item.key)
			return true;
		if (!fits(file, row, &item))
			return false;
	}
}

bool sw_sim_select_has(const char *selector, const char *key)
{
	struct item item;

	do
		selector = next_item(selector, &item);
	while (*item.key && strcmp(item.key, key) != 0);
	return *item.key;
}

static bool are_alike(const struct sw_sim_file *file,
	const struct sw_sim_row *x, const struct sw_sim_row *y,
	const char *except)
{
	char a[SW_SIM_TEXT], b[SW_SIM_TEXT];

	if (!sw_sim_select_has(except, "job") && strcmp(x->job, y->job) != 0)
		return false;
	for (uint32_t i = 0; i < file->n_axes; i++)
		if (!sw_sim_select_has(except, file->axes[i].key) &&
			strcmp(sw_sim_axis_value(file, i, x->point, a),
				sw_sim_axis_value(file, i, y->point, b)) != 0)
			return false;
	return true;
}

const struct sw_sim_row *sw_sim_select_partner(const struct sw_sim_table *t,
	const struct sw_sim_file *file, const struct sw_sim_row *row,
	const char *selector)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (sw_sim_select_fits(file, &t->rows[i], selector) &&
			are_alike(file, row, &t->rows[i], selector))
			return &t->rows[i];
	return NULL;
}
