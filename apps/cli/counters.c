/* counters.c - the meaning of each counter of a daemon.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/counters.h"

#include <ctype.h>
#include <string.h>

#include "conf/value.h"
#include "engine/base/bytes.h"
#include "engine/base/stats.h"
#include "pmd/dpdk/port.h"

static const struct {
	const char *name;
	enum sw_counter_kind kind;
	const char *unit, *text;
} own[] = {
#define SW_COUNTER(name, kind, unit, text) \
	{name, SW_COUNTER_##kind, unit, text},
#include "apps/cli/counters.def"
#undef SW_COUNTER
};

bool sw_counter_at(uint32_t i, struct sw_counter *out)
{
	uint32_t n;
	const struct sw_stat_row *rows = sw_stats_rows(&n);
	const struct sw_stat_times *times;

	*out = (struct sw_counter){.kind = SW_COUNTER_COUNTER};
	if (i < n) {
		snprintf(out->name, sizeof(out->name), "%s%s",
			rows[i].is_by_class ? "classN." : "", rows[i].name);
		out->kind = rows[i].is_max ? SW_COUNTER_MAXIMUM
					   : SW_COUNTER_COUNTER;
		out->unit = rows[i].unit;
		out->text = rows[i].text;
		out->is_engine = true;
		return true;
	}
	i -= n;
	times = sw_stats_times(&n);
	if (i < n) {
		snprintf(out->name, sizeof(out->name), "%s", times[i].name);
		out->kind = SW_COUNTER_TIMES;
		out->unit = "ns";
		out->text = times[i].text;
		out->is_engine = true;
		return true;
	}
	i -= n;
	if (i < SW_ARRAY_SIZE(own)) {
		snprintf(out->name, sizeof(out->name), "%s", own[i].name);
		out->kind = own[i].kind;
		out->unit = own[i].unit;
		out->text = own[i].text;
		return true;
	}
	i -= (uint32_t)SW_ARRAY_SIZE(own);
	if (i >= SW_DPDK_N_COUNTERS)
		return false;
	snprintf(out->name, sizeof(out->name), "port.P.%s",
		sw_dpdk_counters[i].name);
	out->unit = sw_dpdk_counters[i].unit;
	out->text = sw_dpdk_counters[i].text;
	return true;
}

/* Return whether a name ends like ".bucket7". */
static bool is_bucket(const char *end)
{
	return !strncmp(end, ".bucket", 7) && end[7] &&
	       !end[7 + strspn(end + 7, "0123456789")];
}

/* Replace the variable parts of a name: "rtt_ns.bucket3" becomes "rtt_ns",
 * "lcore3.turns" becomes "lcoreN.turns".  A port's label may contain dots. */
static void pattern_of(const char *name, char out[SW_COUNTER_NAME])
{
	static const char *const counted[] = {"lcore", "lane", "class"};
	const char *last = strrchr(name, '.'), *queue = NULL, *p;

	snprintf(out, SW_COUNTER_NAME, "%s", name);
	if (!last)
		return;
	if (!strncmp(name, "port.", 5)) {
		if (strstr(name, ".device.")) {
			snprintf(out, SW_COUNTER_NAME, "port.P.device.COUNTER");
			return;
		}
		/* skip the label's first character: a label has at least one */
		for (p = name[5] ? name + 6 : last;
			(p = strstr(p, ".queue")) && p < last; p++)
			queue = p;
		if (queue &&
			queue + 6 + strspn(queue + 6, "0123456789") == last)
			snprintf(out, SW_COUNTER_NAME, "port.P.queueN%s", last);
		else
			snprintf(out, SW_COUNTER_NAME, "port.P%s", last);
		return;
	}
	if (!strcmp(last, ".sum") || is_bucket(last)) {
		out[last - name] = '\0';
		return;
	}
	for (size_t i = 0; i < SW_ARRAY_SIZE(counted); i++) {
		size_t n = strlen(counted[i]);

		if (!strncmp(name, counted[i], n) &&
			isdigit((unsigned char)name[n]))
			snprintf(out, SW_COUNTER_NAME, "%sN%s", counted[i],
				last);
	}
}

static bool row_find(
	const char *pattern, bool is_engine, struct sw_counter *out)
{
	for (uint32_t i = 0; sw_counter_at(i, out); i++)
		if (!strcmp(out->name, pattern) &&
			(out->is_engine || !is_engine))
			return true;
	return false;
}

/* Find the row of a queue's counter: it counts as the port's does. */
static bool queue_row_find(const char *pattern, struct sw_counter *out)
{
	static const char queue[] = "port.P.queueN.";
	char port[SW_COUNTER_NAME];

	if (strncmp(pattern, queue, sizeof(queue) - 1) != 0)
		return false;
	snprintf(port, sizeof(port), "port.P.%s", pattern + sizeof(queue) - 1);
	if (!row_find(port, false, out))
		return false;
	snprintf(out->name, sizeof(out->name), "%s", pattern);
	return true;
}

bool sw_counter_find(const char *name, struct sw_counter *out)
{
	char pattern[SW_COUNTER_NAME];

	if (!strncmp(name, "server.", 7)) {
		pattern_of(name + 7, pattern);
		return row_find(pattern, true, out);
	}
	pattern_of(name, pattern);
	return row_find(name, false, out) || row_find(pattern, false, out) ||
	       queue_row_find(pattern, out);
}

const char *sw_counter_kind(enum sw_counter_kind kind)
{
	static const char *const words[] = {[SW_COUNTER_COUNTER] = "counter",
		[SW_COUNTER_MAXIMUM] = "maximum",
		[SW_COUNTER_GAUGE] = "gauge",
		[SW_COUNTER_TIMES] = "histogram"};

	return words[kind];
}

static void row_write(struct sw_json *j, const struct sw_counter *c)
{
	sw_json_object_open(j, NULL);
	sw_json_text(j, "name", c->name);
	sw_json_text(j, "kind", sw_counter_kind(c->kind));
	sw_json_text(j, "unit", c->unit);
	sw_json_text(j, "meaning", c->text);
	sw_json_close(j);
}

static void row_print(const struct sw_counter *c)
{
	printf("%s (%s, %s)\n    %s\n", c->name, sw_counter_kind(c->kind),
		c->unit, c->text);
}

static int unknown(const char *name)
{
	struct sw_counter c;
	struct sw_nearest near;
	char best[SW_COUNTER_NAME] = "";

	sw_nearest_init(&near, name);
	for (uint32_t i = 0; sw_counter_at(i, &c); i++) {
		/* search anew, but keep the smallest distance so far */
		near.best = NULL;
		sw_nearest_add(&near, c.name);
		if (near.best)
			memcpy(best, c.name, sizeof(best));
	}
	fprintf(stderr, "sumwire stats: unknown counter %s", name);
	if (*best)
		fprintf(stderr, "; did you mean %s?", best);
	fprintf(stderr, " (sumwire stats --explain lists all)\n");
	return 1;
}

int sw_counter_explain(const char *name, bool is_json)
{
	struct sw_counter c;
	struct sw_json j;

	if (name && !sw_counter_find(name, &c))
		return unknown(name);
	sw_json_init(&j, stdout);
	if (is_json) {
		sw_json_object_open(&j, NULL);
		sw_json_array_open(&j, "counters");
	}
	for (uint32_t i = 0; name ? !i : sw_counter_at(i, &c); i++) {
		if (is_json)
			row_write(&j, &c);
		else
			row_print(&c);
	}
	if (is_json) {
		sw_json_close(&j);
		sw_json_close(&j);
	}
	sw_json_fini(&j);
	return 0;
}

/* Return the part of the page that lists the counter. */
static uint32_t part_of(const struct sw_counter *c)
{
	if (c->is_engine)
		return 0;
	if (!strncmp(c->name, "port.", 5))
		return 2;
	return !strncmp(c->name, "job.", 4) || !strncmp(c->name, "daemon.", 7)
		       ? 3
		       : 1;
}

void sw_counter_reference(FILE *to)
{
	struct sw_counter c;

	fprintf(to,
		"# Counter reference\n\nThis page lists every counter that "
		"`sumwire stats` prints. `sumwire stats --reference` writes "
		"it; do not edit it.\n\n"
		"A counter grows since the start of the daemon, a maximum is "
		"the largest value so far, and a gauge is the value now. "
		"A histogram counts times: `NAME.bucketN` those of up to "
		"2^(10 + N) ns that no lower bucket counts (the last one: all "
		"longer ones), and `NAME.sum` is their sum. "
		"N is a number, P the name of a `[port P]`. An agent with "
		"`role = both` has the counters of the engine twice, those of "
		"its server with `server.` in front. Several engines, cores "
		"or queues are added up.\n");
	for (uint32_t part = 0; part < 4; part++) {
		static const char *const heads[] = {"The engine", "The daemon",
			"Its ports", "Its state and jobs (`sumwire metrics`)"};

		fprintf(to,
			"\n## %s\n\n| counter | kind | unit | meaning |\n"
			"|---|---|---|---|\n",
			heads[part]);
		for (uint32_t i = 0; sw_counter_at(i, &c); i++) {
			if (part == part_of(&c))
				fprintf(to, "| `%s` | %s | %s | %s |\n", c.name,
					sw_counter_kind(c.kind), c.unit,
					c.text);
		}
	}
}
