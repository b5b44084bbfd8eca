/* topo_conf.c - read the description of a machine, or of its differences.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "apps/topo/topo.h"
#include "conf/report.h"
#include "conf/scan.h"
#include "conf/value.h"
#include "engine/base/error.h"

/* The rates of [machine], for every device whose section gives none; 0:
 * unset. */
struct rates {
	double pcie, cross, nvlink, wire;
};

struct walk {
	struct sw_machine *m;
	struct rates rates;
	struct sw_report report;
	struct sw_scan scan;
};

enum { NODE_MAX = 1023 }; /* largest NUMA node number of the kernel */

enum value_type { BANDWIDTH, NODE, SWITCH };

/* A key, and the field of its section's struct that it sets. */
struct key {
	const char *name;
	enum value_type type;
	size_t offset;
};

#define DEVICE(field) offsetof(struct sw_machine_device, field)

static const struct key switch_keys[] = {
	{"numa_node", NODE, offsetof(struct sw_machine_switch, numa_node)},
	{"pcie", BANDWIDTH, offsetof(struct sw_machine_switch, link)},
	{NULL, 0, 0}};
static const struct key gpu_keys[] = {{"switch", SWITCH, DEVICE(switch_no)},
	{"numa_node", NODE, DEVICE(numa_node)},
	{"pcie", BANDWIDTH, DEVICE(link)},
	{"nvlink", BANDWIDTH, DEVICE(nvlink)}, {NULL, 0, 0}};
static const struct key nic_keys[] = {{"switch", SWITCH, DEVICE(switch_no)},
	{"numa_node", NODE, DEVICE(numa_node)},
	{"pcie", BANDWIDTH, DEVICE(link)}, {"rate", BANDWIDTH, DEVICE(wire)},
	{NULL, 0, 0}};
static const struct key machine_keys[] = {
	{"pcie", BANDWIDTH, offsetof(struct rates, pcie)},
	{"cross", BANDWIDTH, offsetof(struct rates, cross)},
	{"nvlink", BANDWIDTH, offsetof(struct rates, nvlink)},
	{"rate", BANDWIDTH, offsetof(struct rates, wire)}, {NULL, 0, 0}};

#define WRONG(w, e, ...) \
	sw_report_error( \
		&(w)->report, (e)->line, (e)->section, (e)->key, __VA_ARGS__)

/* --- values --- */

static void take_bandwidth(
	struct walk *w, const struct sw_scan_entry *e, double *out)
{
	char why[200];
	uint64_t bits_s;

	if (sw_value_parse(e->value, SW_UNIT_RATE, &bits_s, why, sizeof(why)))
		WRONG(w, e, "%s", why);
	else
		*out = (double)bits_s / 8;
}

static void take_number(
	struct walk *w, const struct sw_scan_entry *e, uint32_t max, int *out)
{
	char why[200];
	uint64_t n;

	if (sw_value_parse(e->value, SW_UNIT_NONE, &n, why, sizeof(why)))
		WRONG(w, e, "%s", why);
	else if (n > max)
		WRONG(w, e, "is %s; it goes from 0 to %u", e->value, max);
	else
		*out = (int)n;
}

static void take_switch(struct walk *w, const struct sw_scan_entry *e, int *out)
{
	uint32_t before = w->report.n_errors;
	int n = 0;

	take_number(w, e, SW_MACHINE_MAX - 1, &n);
	if (w->report.n_errors != before)
		return;
	if ((uint32_t)n >= w->m->n_switches)
		WRONG(w, e, "there is no switch %d: the machine has %u", n,
			w->m->n_switches);
	else
		*out = n;
}

static const struct key *key_of(
	struct walk *w, const struct sw_scan_entry *e, const struct key *keys)
{
	struct sw_nearest near;

	sw_nearest_init(&near, e->key);
	for (; keys->name; keys++) {
		if (!strcmp(keys->name, e->key))
			return keys;
		sw_nearest_add(&near, keys->name);
	}
	WRONG(w, e, "unknown key%s%s%s", near.best ? "; did you mean " : "",
		near.best ? near.best : "", near.best ? "?" : "");
	return NULL;
}

static void set_field(struct walk *w, const struct sw_scan_entry *e,
	const struct key *keys, void *base)
{
	const struct key *k = key_of(w, e, keys);
	void *field = k ? (char *)base + k->offset : NULL;

	if (!k)
		return;
	if (k->type == BANDWIDTH)
		take_bandwidth(w, e, field);
	else if (k->type == NODE)
		take_number(w, e, NODE_MAX, field);
	else
		take_switch(w, e, field);
}

/* --- sections --- */

/* Refuse a section once, at its header, and not again with each key. */
#define REFUSE(w, e, ...)                         \
	do {                                      \
		if (!(e)->key)                    \
			WRONG(w, e, __VA_ARGS__); \
	} while (0)

/* Read the number of a label like "gpu 3" into @out.  Returns false after
 * reporting an error. */
static bool number_of(struct walk *w, const struct sw_scan_entry *e,
	const char *label, uint32_t n_now, uint32_t *out)
{
	char why[200];
	uint64_t n;

	if (sw_value_parse(label, SW_UNIT_NONE, &n, why, sizeof(why)) ||
		n >= SW_MACHINE_MAX) {
		REFUSE(w, e, "has a number from 0 to %d behind its name",
			SW_MACHINE_MAX - 1);
		return false;
	}
	if (n > n_now) {
		REFUSE(w, e, "number %u is missing", n_now);
		return false;
	}
	*out = (uint32_t)n;
	return true;
}

static const struct sw_machine_device nowhere = {
	.switch_no = SW_MACHINE_NONE, .numa_node = SW_MACHINE_NONE};

static struct sw_machine_device *gpu_of(
	struct walk *w, const struct sw_scan_entry *e, const char *label)
{
	struct sw_machine *m = w->m;
	uint32_t i;

	if (!number_of(w, e, label, m->n_gpus, &i))
		return NULL;
	if (i == m->n_gpus)
		m->gpus[m->n_gpus++] = nowhere;
	return &m->gpus[i];
}

static struct sw_machine_device *nic_of(
	struct walk *w, const struct sw_scan_entry *e, const char *label)
{
	struct sw_machine *m = w->m;
	struct sw_machine_device d = nowhere;

	for (uint32_t i = 0; i < m->n_nics; i++)
		if (!strcasecmp(m->nics[i].name, label))
			return &m->nics[i];
	if (m->n_nics == SW_MACHINE_MAX || !*label ||
		strlen(label) >= sizeof(d.name)) {
		REFUSE(w, e, "a machine has %d NICs, with names of 1 to %d",
			SW_MACHINE_MAX, SW_MACHINE_NAME - 1);
		return NULL;
	}
	snprintf(d.name, sizeof(d.name), "%s", label);
	m->nics[m->n_nics] = d;
	return &m->nics[m->n_nics++];
}

static struct sw_machine_switch *switch_at(
	struct walk *w, const struct sw_scan_entry *e, const char *label)
{
	struct sw_machine *m = w->m;
	uint32_t i;

	if (!number_of(w, e, label, m->n_switches, &i))
		return NULL;
	if (i == m->n_switches)
		m->switches[m->n_switches++] = (struct sw_machine_switch){
			.numa_node = SW_MACHINE_NONE};
	return &m->switches[i];
}

/* Return the text after @name and a blank; "" if nothing follows @name; NULL:
 * another section. */
static const char *label_of(const struct sw_scan_entry *e, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(e->section, name, n))
		return NULL;
	return e->section[n] == ' ' ? e->section + n + 1
				    : (e->section[n] ? NULL : "");
}

/* Process sections in this order, regardless of their order in the file: a
 * section may name devices of an earlier turn. */
enum turn { MACHINE, SWITCHES, DEVICES, N_TURNS };

static void take_device(struct walk *w, const struct sw_scan_entry *e)
{
	const char *gpu = label_of(e, "gpu"), *nic = label_of(e, "nic");
	struct sw_machine_device *d =
		gpu ? gpu_of(w, e, gpu) : nic_of(w, e, nic);

	if (d && e->key)
		set_field(w, e, gpu ? gpu_keys : nic_keys, d);
}

static void take_entry(
	struct walk *w, const struct sw_scan_entry *e, enum turn turn)
{
	const char *label = label_of(e, "switch");
	bool is_device = label_of(e, "gpu") || label_of(e, "nic");
	bool is_machine = !strcmp(e->section, "machine");
	struct sw_machine_switch *s;

	if (turn == MACHINE && is_machine && e->key)
		set_field(w, e, machine_keys, &w->rates);
	else if (turn == SWITCHES && label) {
		s = switch_at(w, e, label);
		if (s && e->key)
			set_field(w, e, switch_keys, s);
	} else if (turn == DEVICES && is_device)
		take_device(w, e);
	else if (turn == MACHINE && !is_machine && !label && !is_device)
		REFUSE(w, e,
			"unknown section: only [machine], "
			"[switch N], [gpu N] and [nic NAME]");
}

/* --- places --- */

/* Set the place of a device.  If its section names a switch, the device is at
 * the switch's NUMA node.  If the section names only a NUMA node, the device is
 * at a root port of that node. */
static void place(
	struct walk *w, struct sw_machine_device *d, const char *section)
{
	bool has_node = sw_scan_has(&w->scan, section, "numa_node");
	bool has_switch = sw_scan_has(&w->scan, section, "switch");
	uint32_t line = sw_scan_line(&w->scan, section, "numa_node");
	int numa_node;

	if (has_node && !has_switch)
		d->switch_no = SW_MACHINE_NONE;
	if (d->switch_no == SW_MACHINE_NONE)
		return;
	numa_node = w->m->switches[d->switch_no].numa_node;
	if (has_node && d->numa_node != numa_node)
		sw_report_error(&w->report, line, section, "numa_node",
			"is %d, but switch %d is at NUMA node %d", d->numa_node,
			d->switch_no, numa_node);
	d->numa_node = numa_node;
}

/* Apply a rate of [machine], unless @section has its own. */
static void spread(const struct walk *w, const char *section, const char *key,
	double rate, double *out)
{
	if (rate > 0 && !sw_scan_has(&w->scan, section, key))
		*out = rate;
}

/* Write the section's name of a NIC in lower case, as in the scan; the NIC's
 * own name may have capitals. */
static void nic_section(
	const struct sw_machine_device *d, char *out, size_t size)
{
	snprintf(out, size, "nic %s", d->name);
	for (; *out; out++)
		*out = (char)tolower((unsigned char)*out);
}

static void place_all(struct walk *w)
{
	struct sw_machine *m = w->m;
	const struct rates *r = &w->rates;
	char section[16 + SW_MACHINE_NAME];

	for (uint32_t i = 0; i < m->n_gpus; i++) {
		snprintf(section, sizeof(section), "gpu %u", i);
		place(w, &m->gpus[i], section);
		spread(w, section, "pcie", r->pcie, &m->gpus[i].link);
		spread(w, section, "nvlink", r->nvlink, &m->gpus[i].nvlink);
	}
	for (uint32_t i = 0; i < m->n_nics; i++) {
		nic_section(&m->nics[i], section, sizeof(section));
		place(w, &m->nics[i], section);
		spread(w, section, "pcie", r->pcie, &m->nics[i].link);
		spread(w, section, "rate", r->wire, &m->nics[i].wire);
	}
	for (uint32_t i = 0; i < m->n_switches; i++) {
		snprintf(section, sizeof(section), "switch %u", i);
		spread(w, section, "pcie", r->pcie, &m->switches[i].link);
	}
}

static void add_node(struct sw_machine *m, int numa_node)
{
	if (numa_node == SW_MACHINE_NONE || m->n_numa_nodes == SW_MACHINE_MAX)
		return;
	for (uint32_t i = 0; i < m->n_numa_nodes; i++)
		if (m->numa_nodes[i].id == (uint32_t)numa_node)
			return;
	m->numa_nodes[m->n_numa_nodes++] =
		(struct sw_machine_numa_node){.id = (uint32_t)numa_node};
}

/* If the machine was unknown, add the NUMA nodes that the description names. */
static void find_nodes(struct sw_machine *m)
{
	if (m->n_numa_nodes)
		return;
	for (int id = 0; id <= NODE_MAX; id++) {
		for (uint32_t i = 0; i < m->n_switches; i++)
			if (m->switches[i].numa_node == id)
				add_node(m, id);
		for (uint32_t i = 0; i < m->n_gpus; i++)
			if (m->gpus[i].numa_node == id)
				add_node(m, id);
		for (uint32_t i = 0; i < m->n_nics; i++)
			if (m->nics[i].numa_node == id)
				add_node(m, id);
	}
}

int sw_topo_describe(struct sw_machine *m, double *cross, const char *path,
	const struct sw_log *log)
{
	struct walk w = {.m = m, .report = {.log = log, .path = path}};
	int err = sw_scan_open(&w.report, &w.scan);

	if (err)
		return err;
	for (int turn = MACHINE; turn < N_TURNS; turn++)
		for (uint32_t i = 0; i < w.scan.n_entries; i++)
			take_entry(&w, &w.scan.entries[i], (enum turn)turn);
	if (!w.report.n_errors)
		place_all(&w);
	if (!w.report.n_errors)
		find_nodes(m);
	*cross = w.rates.cross;
	sw_scan_close(&w.scan);
	return w.report.n_errors ? SW_ECONF : 0;
}
