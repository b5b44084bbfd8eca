/* metric.c - counters with the names and units of Prometheus.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/watch/metric.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/text.h"

enum { VALUE = 256 };

/* Our units, and the base units of Prometheus.  @word replaces @ours at the end
 * of a counter's name. */
static const struct unit {
	const char *unit, *ours, *word;
	double scale;
} units[] = {
	{"bytes", "_bytes", "bytes", 1},
	{"ns", "_ns", "seconds", 1e-9},
	{"us", "_us", "seconds", 1e-6},
	{"ms", "_ms", "seconds", 1e-3},
	{"s", "_s", "seconds", 1},
	{"bit/s", "_bit_s", "bytes_per_second", 0.125},
};

void sw_label_add(char *out, size_t size, const char *label, const char *value)
{
	char text[VALUE], one[2 * VALUE + 96];
	size_t n, used = strlen(out);

	snprintf(text, sizeof(text), "%s", value);
	sw_text_clean(text, sizeof(text));
	n = (size_t)snprintf(one, 96, "%s%.64s=\"", *out ? "," : "", label);
	for (const char *s = text; *s; s++) {
		if (*s == '"' || *s == '\\')
			one[n++] = '\\';
		one[n++] = *s;
	}
	one[n++] = '"';
	if (used + n >= size)
		return;
	memcpy(out + used, one, n);
	out[used + n] = '\0';
}

/* Cut a part like "lcore3." off *name: label "lcore", value "3". */
static bool number_cut(const char **name, const char *word, struct sw_metric *m)
{
	size_t n = strlen(word), digits;
	char value[16];

	if (strncmp(*name, word, n))
		return false;
	digits = strspn(*name + n, "0123456789");
	if (!digits || digits >= sizeof(value) || (*name)[n + digits] != '.')
		return false;
	snprintf(value, sizeof(value), "%.*s", (int)digits, *name + n);
	sw_label_add(m->labels, sizeof(m->labels), word, value);
	*name += n + digits + 1;
	return true;
}

/* Split "port.LABEL.device.COUNTER" or "port.LABEL.queue0.rx_frames"; a label
 * may contain dots.  Cuts the head off *name, and returns the beginning of the
 * family's name. */
static const char *port_cut(const char **name, struct sw_metric *m)
{
	const char *rest = *name + 5, *end = strrchr(rest, '.'), *p;
	char label[VALUE];
	const char *begin = "port_";

	if (!end || end == rest)
		return NULL;
	p = strstr(rest + 1, ".device.");
	if (p) {
		end = p;
		begin = "port_device";
	} else {
		for (p = rest + 1; (p = strstr(p, ".queue")) && p < end; p++)
			if (p + 6 + strspn(p + 6, "0123456789") == end) {
				begin = "port_queue_";
				end = p;
				break;
			}
	}
	snprintf(label, sizeof(label), "%.*s", (int)(end - rest), rest);
	sw_label_add(m->labels, sizeof(m->labels), "port", label);
	*name = end + 1;
	if (!strcmp(begin, "port_queue_"))
		number_cut(name, "queue", m);
	if (!strcmp(begin, "port_device")) {
		sw_label_add(m->labels, sizeof(m->labels), "counter",
			*name + strlen("device."));
		*name = "";
	}
	return begin;
}

/* Cut the parts that become labels off *name.  Returns the beginning of the
 * family's name. */
static const char *begin_cut(const char **name, struct sw_metric *m)
{
	if (!strncmp(*name, "port.", 5))
		return port_cut(name, m);
	if (number_cut(name, "lcore", m))
		return "lcore_";
	if (number_cut(name, "lane", m))
		return "lane_";
	if (number_cut(name, "class", m))
		return "class_";
	if (!strncmp(*name, "daemon.", 7)) {
		*name += 7;
		return "daemon_";
	}
	if (!strncmp(*name, "job.J.member.M.", 15)) {
		*name += 15;
		return "job_member_";
	}
	if (!strncmp(*name, "job.J.session.S.", 16)) {
		*name += 16;
		return "job_session_";
	}
	if (!strncmp(*name, "job.J.group.G.", 14)) {
		*name += 14;
		return "job_group_";
	}
	if (!strncmp(*name, "job.J.", 6)) {
		*name += 6;
		return "job_";
	}
	return "";
}

static void unit_set(const char *unit, struct sw_metric *m)
{
	for (size_t i = 0; i < SW_ARRAY_SIZE(units); i++) {
		const struct unit *u = &units[i];
		size_t n = strlen(m->family), cut = strlen(u->ours);

		if (strcmp(u->unit, unit))
			continue;
		if (n > cut && !strcmp(m->family + n - cut, u->ours))
			n -= cut;
		snprintf(m->family + n, sizeof(m->family) - n, "_%s", u->word);
		m->unit = u->word;
		m->scale = u->scale;
	}
}

/* Return whether a name only has letters that Prometheus allows, as ours do. */
static bool is_name(const char *s)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

/* Cut ".bucket7" or ".sum" off the name of a histogram's counter. */
static void part_cut(char name[SW_COUNTER_NAME], struct sw_metric *m)
{
	char *end = strrchr(name, '.');

	m->is_times = true;
	if (!end || (strcmp(end, ".sum") && strncmp(end, ".bucket", 7)))
		return; /* the name of the whole histogram */
	m->is_sum = end[1] == 's';
	if (!m->is_sum)
		m->bucket = (uint32_t)strtoul(end + 7, NULL, 10);
	*end = '\0';
}

void sw_metric_of(const char *name, struct sw_metric *m)
{
	struct sw_counter row;
	char whole[SW_COUNTER_NAME];
	const char *rest = whole, *begin;

	*m = (struct sw_metric){.scale = 1, .text = ""};
	m->is_known = sw_counter_find(name, &row);
	snprintf(whole, sizeof(whole), "%s", name);
	if (m->is_known && row.kind == SW_COUNTER_TIMES)
		part_cut(whole, m);
	if (m->is_known && !strncmp(rest, "server.", 7))
		rest += 7;
	begin = m->is_known ? begin_cut(&rest, m) : NULL;
	if (!begin || !is_name(rest)) {
		*m = (struct sw_metric){.family = "sumwire_other",
			.text = "counters that this version does not know",
			.scale = 1};
		sw_label_add(m->labels, sizeof(m->labels), "counter", name);
		return;
	}
	m->text = row.text;
	m->is_counter = row.kind == SW_COUNTER_COUNTER;
	snprintf(m->family, sizeof(m->family), "sumwire_%s%.64s", begin, rest);
	unit_set(row.unit, m);
}
