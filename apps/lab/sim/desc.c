/* desc.c - read a description from its file, and check it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/desc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/sim/copies.h"
#include "apps/lab/sim/desc_rows.h"
#include "apps/lab/sim/net.h"
#include "conf/value.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"

#define WRONG(f, e, ...) \
	sw_report_error( \
		&(f)->report, (e)->line, (e)->section, (e)->key, __VA_ARGS__)

/* --- a file, and its axes --- */

static bool is_text(const struct sw_option *o)
{
	return o->type == SW_OPTION_PATH;
}

/* Return whether commas in a key's value may separate values of a sweep. */
static bool is_axis(const struct sw_option *o)
{
	return !is_text(o) || !strcmp(o->key, "model") ||
	       !strcmp(o->key, "straggler_time") || !strcmp(o->key, "stall") ||
	       !strcmp(o->key, "stall_gap");
}

/* Find the section "job" of a header "job a".  Sets *@label to "a", or to
 * "". */
static const struct sw_sim_section *section_of(
	const char *name, const char **label)
{
	const struct sw_sim_section *s = sw_sim_sections;

	for (; s->name; s++) {
		size_t n = strlen(s->name);

		if (strncmp(s->name, name, n) || (name[n] && name[n] != ' '))
			continue;
		*label = name[n] ? name + n + 1 : "";
		return s->most || !name[n] ? s : NULL;
	}
	return NULL;
}

/* Find the row of a key.  Sets *@base_at to the offset of its struct in the
 * section's struct. */
static const struct sw_option *row_of(const struct sw_sim_section *s,
	const char *key, size_t *base_at, struct sw_nearest *near)
{
	*base_at = 0;
	for (uint32_t i = 0; i < s->n_rows; i++) {
		if (!strcmp(s->rows[i].key, key))
			return &s->rows[i];
		sw_nearest_add(near, s->rows[i].key);
	}
	if (strcmp(s->name, "job") != 0)
		return NULL;
	for (const struct sw_sim_borrowed *b = sw_sim_borrowed; b->key; b++) {
		if (!strcmp(b->key, key)) {
			*base_at = sw_sim_borrowed_at(b->section);
			return sw_option_find(sw_section_find(b->section), key);
		}
		sw_nearest_add(near, b->key);
	}
	return NULL;
}

static bool is_list(const char *key)
{
	for (const char *const *s = sw_sim_lists; *s; s++)
		if (!strcmp(*s, key))
			return true;
	return false;
}

/* Return the axis of all lists: they step with the first one. */
static const struct sw_sim_axis *list_axis(const struct sw_sim_file *f)
{
	for (uint32_t i = 0; i < f->n_axes; i++)
		if (f->axes[i].is_list)
			return &f->axes[i];
	return NULL;
}

/* Read a range like 1-10, which only seeds may have.  Returns its length, and
 * its first seed.  Returns 0 if the value is no range. */
static uint64_t range_of(const struct sw_scan_entry *e, uint64_t *first)
{
	unsigned long long from, to;
	int end = 0;

	if (strcmp(e->section, "run") != 0 || strcmp(e->key, "seed") != 0 ||
		sscanf(e->value, "%19llu-%19llu%n", &from, &to, &end) != 2 ||
		e->value[end] || to < from)
		return 0;
	*first = from;
	return to - from + 1;
}

/* Make an axis of a key.  @separator: ',' separates values, '|' lists of nodes,
 * '-' the ends of a range of seeds. */
static void axis_add(
	struct sw_sim_file *f, const struct sw_scan_entry *e, char separator)
{
	struct sw_sim_axis *a = &f->axes[f->n_axes];
	const struct sw_sim_axis *lists = list_axis(f);
	uint64_t first = 0, n = separator == '-' ? range_of(e, &first) : 1;

	for (const char *s = e->value; *s && separator != '-'; s++)
		n += *s == separator;
	if (separator == '|' && lists) {
		if (n != lists->n)
			WRONG(f, e,
				"has %llu values, [%s] %s %u: lists step "
				"together",
				(unsigned long long)n, lists->section,
				lists->key, lists->n);
		return;
	}
	if (f->n_axes == SW_SIM_AXES) {
		WRONG(f, e, "has several values; at most %d keys may",
			SW_SIM_AXES);
		return;
	}
	if (n > SW_SIM_POINTS || n * f->n_points > SW_SIM_POINTS) {
		WRONG(f, e, "makes a sweep of %llu points; at most %d",
			(unsigned long long)(n > SW_SIM_POINTS
						     ? n
						     : n * f->n_points),
			SW_SIM_POINTS);
		return;
	}
	*a = (struct sw_sim_axis){e->section, e->key, e->value, e->line,
		(uint32_t)n, separator == '|', separator == '-', first};
	f->n_points *= (uint32_t)n;
	f->n_axes++;
}

int sw_sim_file_open(
	struct sw_sim_file *f, const char *path, const struct sw_log *log)
{
	int err;

	*f = (struct sw_sim_file){
		.report = {.log = log, .path = path}, .n_points = 1};
	err = sw_scan_open(&f->report, &f->scan);
	for (uint32_t i = 0; !err && i < f->scan.n_entries; i++) {
		const struct sw_scan_entry *e = &f->scan.entries[i];
		struct sw_nearest near;
		const struct sw_sim_section *s;
		const struct sw_option *o;
		const char *label;
		uint64_t first;
		size_t at;

		if (e->key && range_of(e, &first) > 1)
			axis_add(f, e, '-');
		if (!e->key || !strpbrk(e->value, ",|"))
			continue;
		s = section_of(e->section, &label);
		sw_nearest_init(&near, e->key);
		o = s ? row_of(s, e->key, &at, &near) : NULL;
		if (o && is_list(o->key) && strchr(e->value, '|'))
			axis_add(f, e, '|');
		else if (o && is_axis(o) && strchr(e->value, ','))
			axis_add(f, e, ',');
	}
	return err;
}

void sw_sim_file_close(struct sw_sim_file *f)
{
	sw_scan_close(&f->scan);
}

static const char *pick(
	const char *s, char separator, uint32_t index, char out[SW_SIM_TEXT])
{
	const char stop[] = {separator, '\0'};
	size_t n;

	for (; index; index--)
		s = strchr(s, separator) + 1;
	s += strspn(s, " \t");
	n = strcspn(s, stop);
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	snprintf(out, SW_SIM_TEXT, "%.*s", (int)n, s);
	return out;
}

static uint32_t index_at(const struct sw_sim_file *f,
	const struct sw_sim_axis *a, uint32_t point)
{
	for (uint32_t k = (uint32_t)(a - f->axes) + 1; k < f->n_axes; k++)
		point /= f->axes[k].n;
	return point % a->n;
}

const char *sw_sim_axis_value(const struct sw_sim_file *f, uint32_t i,
	uint32_t point, char out[SW_SIM_TEXT])
{
	const struct sw_sim_axis *a = &f->axes[i];

	if (a->is_range) {
		snprintf(out, SW_SIM_TEXT, "%llu",
			(unsigned long long)(a->first + index_at(f, a, point)));
		return out;
	}
	return pick(
		a->values, a->is_list ? '|' : ',', index_at(f, a, point), out);
}

/* --- keys --- */

static const char *value_at(const struct sw_sim_file *f,
	const struct sw_scan_entry *e, uint32_t point, char buf[SW_SIM_TEXT])
{
	const struct sw_sim_axis *lists = list_axis(f);

	for (uint32_t i = 0; i < f->n_axes; i++)
		if (f->axes[i].line == e->line)
			return sw_sim_axis_value(f, i, point, buf);
	if (lists && is_list(e->key) && strchr(e->value, '|'))
		return pick(e->value, '|', index_at(f, lists, point), buf);
	return e->value;
}

static void defaults(const struct sw_sim_section *s, char *base)
{
	char why[SW_WHY_BYTES];

	for (uint32_t i = 0; i < s->n_rows; i++)
		if (s->rows[i].def && !is_text(&s->rows[i]))
			(void)sw_option_parse(&s->rows[i], s->rows[i].def,
				base + s->rows[i].offset, why);
	for (const struct sw_sim_borrowed *b = sw_sim_borrowed;
		b->key && !strcmp(s->name, "job"); b++)
		sw_section_defaults(sw_section_find(b->section),
			base + sw_sim_borrowed_at(b->section));
}

/* Return the struct of a section; NULL: an error was reported. */
static char *base_of(struct sw_sim_file *f, struct sw_sim_desc *d,
	const struct sw_sim_section *s, const struct sw_scan_entry *e,
	const char *label)
{
	char *base = (char *)d + s->offset;
	uint32_t *n = (uint32_t *)((char *)d + s->n_offset), i;

	if (!s->most)
		return base;
	for (i = 0; i < *n; i++, base += s->bytes)
		if (!strcmp(base, *label ? label : s->name))
			return base;
	if (e->key) /* the header was refused */
		return NULL;
	if (*n == s->most || strlen(label) >= SW_SIM_NAME) {
		WRONG(f, e, "at most %u of these, with names of 1 to %d bytes",
			s->most, SW_SIM_NAME - 1);
		return NULL;
	}
	++*n;
	snprintf(base, SW_SIM_NAME, "%s", *label ? label : s->name);
	defaults(s, base);
	return base;
}

static void key_take(struct sw_sim_file *f, const struct sw_sim_section *s,
	char *base, const struct sw_scan_entry *e, uint32_t point)
{
	char why[SW_WHY_BYTES], buf[SW_SIM_TEXT];
	const char *value = value_at(f, e, point, buf);
	const struct sw_option *o;
	struct sw_nearest near;
	size_t at;

	sw_nearest_init(&near, e->key);
	o = row_of(s, e->key, &at, &near);
	if (!o)
		WRONG(f, e, "unknown key%s%s%s",
			near.best ? "; did you mean " : "",
			near.best ? near.best : "", near.best ? "?" : "");
	else if (is_text(o) && strlen(value) >= o->bytes)
		WRONG(f, e, "is longer than %zu bytes", o->bytes - 1);
	else if (is_text(o))
		strcpy(base + at + o->offset, value);
	else if (sw_option_parse(o, value, base + at + o->offset, why))
		WRONG(f, e, "%s", why);
}

static void entry_take(struct sw_sim_file *f, struct sw_sim_desc *d,
	const struct sw_scan_entry *e, uint32_t point)
{
	const char *label = "";
	const struct sw_sim_section *s = section_of(e->section, &label);
	struct sw_nearest near;
	char *base;

	if (!s) {
		if (e->key)
			return;
		sw_nearest_init(&near, e->section);
		for (s = sw_sim_sections; s->name; s++)
			sw_nearest_add(&near, s->name);
		WRONG(f, e, "unknown section%s%s%s",
			near.best ? "; did you mean [" : "",
			near.best ? near.best : "", near.best ? "]?" : "");
		return;
	}
	base = base_of(f, d, s, e, label);
	if (base && e->key)
		key_take(f, s, base, e, point);
}

/* --- names --- */

static bool add_range(const char *name, size_t n, uint64_t low, uint64_t high,
	bool (*add)(void *ctx, const char *name), void *ctx, uint32_t *n_added)
{
	char one[SW_SIM_NAME + 32];

	for (uint64_t i = low; i <= high; i++, ++*n_added) {
		snprintf(one, sizeof(one), "%.*s%llu", (int)n, name,
			(unsigned long long)i);
		if (strlen(one) >= SW_SIM_NAME || !add(ctx, one))
			return false;
	}
	return true;
}

static bool is_named(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* Add one item of @n bytes, a name or a range.  Returns false with the reason
 * in @why. */
static bool add_item(const char *s, size_t n,
	bool (*add)(void *ctx, const char *name), void *ctx, uint32_t *n_added,
	char *why, size_t why_len)
{
	char one[SW_SIM_NAME];
	unsigned long long low, high;
	size_t len = 0;
	int end = 0;

	while (len < n && is_named(s[len]))
		len++;
	if (len == n && n && n < SW_SIM_NAME) {
		snprintf(one, sizeof(one), "%.*s", (int)n, s);
		++*n_added;
		if (add(ctx, one))
			return true;
	} else if (len && len < n && s[len] == '[' &&
		   sscanf(s + len, "[%9llu-%9llu]%n", &low, &high, &end) == 2 &&
		   (size_t)end + len == n && low <= high) {
		if (high - low >= SW_SIM_NODES_MAX) {
			snprintf(why, why_len,
				"%llu nodes; a network has at most %d",
				high - low + 1, SW_SIM_NODES_MAX);
			return false;
		}
		if (add_range(s, len, low, high, add, ctx, n_added))
			return true;
	} else {
		snprintf(why, why_len,
			"\"%.*s\" is not a name or a range, like gpu[0-3]",
			(int)n, s);
		return false;
	}
	snprintf(why, why_len,
		"more than %d nodes, or a name of more than %d "
		"bytes",
		SW_SIM_NODES_MAX, SW_SIM_NAME - 1);
	return false;
}

uint32_t sw_sim_names(const char *list,
	bool (*add)(void *ctx, const char *name), void *ctx, char *why,
	size_t why_len)
{
	uint32_t n_added = 0;

	for (const char *s = list;; s++) {
		size_t n, cut;

		s += strspn(s, " \t");
		n = cut = strcspn(s, ",");
		while (cut && (s[cut - 1] == ' ' || s[cut - 1] == '\t'))
			cut--;
		if (!add_item(s, cut, add, ctx, &n_added, why, why_len))
			return 0;
		s += n;
		if (!*s)
			return n_added;
	}
}

uint32_t sw_sim_find(const struct sw_sim_desc *d, const char *name)
{
	for (uint32_t i = 0; i < d->n_nodes + d->n_switches; i++)
		if (!strcmp(d->names[i], name))
			return i;
	return UINT32_MAX;
}

struct found {
	const struct sw_sim_desc *d;
	uint32_t *nodes, n;
};

static bool add_found(void *ctx, const char *name)
{
	struct found *x = ctx;

	if (x->n < SW_SIM_NODES_MAX)
		x->nodes[x->n++] = sw_sim_find(x->d, name);
	return true;
}

uint32_t sw_sim_find_all(const struct sw_sim_desc *d, const char *list,
	uint32_t out[SW_SIM_NODES_MAX])
{
	struct found x = {.d = d, .nodes = out};
	char why[SW_WHY_BYTES]; /* unused: the list was checked before */

	sw_sim_names(list, add_found, &x, why, sizeof(why));
	return x.n;
}

static bool ignore_name(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	return true;
}

/* Count of names that are no agents of the first job. */
struct beside {
	const struct sw_sim_desc *d;
	uint32_t n;
};

static bool add_beside(void *ctx, const char *name)
{
	struct beside *b = ctx;
	uint32_t agents[SW_SIM_NODES_MAX];
	uint32_t n = sw_sim_find_all(b->d, b->d->jobs[0].agents, agents);
	bool is_agent = false;

	for (uint32_t i = 0; i < n; i++)
		is_agent |= agents[i] == sw_sim_find(b->d, name);
	b->n += !is_agent;
	return true;
}

uint32_t sw_sim_axis_count(
	const struct sw_sim_file *f, uint32_t i, uint32_t point)
{
	char list[SW_SIM_TEXT], why[SW_WHY_BYTES];
	struct sw_sim_file copy = *f;
	struct beside b = {0};
	struct sw_sim_desc *d;

	sw_sim_axis_value(f, i, point, list);
	if (strcmp(f->axes[i].key, "servers") != 0)
		return sw_sim_names(list, ignore_name, NULL, why, sizeof(why));
	if (sw_sim_desc_read(&copy, point, &d))
		return 0;
	b.d = d;
	sw_sim_names(list, add_beside, &b, why, sizeof(why));
	sw_sim_desc_free(d);
	return b.n;
}

static bool add_node(void *ctx, const char *name)
{
	struct sw_sim_desc *d = ctx;

	if (sw_sim_find(d, name) != UINT32_MAX)
		return true;
	if (d->n_nodes == SW_SIM_NODES_MAX)
		return false;
	strcpy(d->names[d->n_nodes++], name);
	return true;
}

static bool add_switch(void *ctx, const char *name)
{
	struct sw_sim_desc *d = ctx;

	if (sw_sim_find(d, name) != UINT32_MAX ||
		d->n_switches == SW_SIM_SWITCHES_MAX)
		return false;
	strcpy(d->names[d->n_nodes + d->n_switches++], name);
	return true;
}

/* Write a section's header as in the file, such as "job a". */
static const char *section_name(
	const char *kind, const char *label, char out[SW_SIM_NAME * 2])
{
	if (!strcmp(kind, label))
		snprintf(out, SW_SIM_NAME * 2, "%s", kind);
	else
		snprintf(out, SW_SIM_NAME * 2, "%s %s", kind, label);
	return out;
}

static void wrong_at(struct sw_sim_file *f, const char *section,
	const char *key, const char *why)
{
	sw_report_error(&f->report, sw_scan_line(&f->scan, section, key),
		section, key, "%s", why);
}

static void take_names(struct sw_sim_file *f, struct sw_sim_desc *d,
	const char *section, const char *key, const char *list,
	bool (*add)(void *ctx, const char *name))
{
	char why[SW_WHY_BYTES] = "";

	if (!sw_sim_names(list, add, d, why, sizeof(why)))
		wrong_at(f, section, key,
			*list ? why : "must be given, like gpu[0-3]");
}

static void name_nodes(struct sw_sim_file *f, struct sw_sim_desc *d)
{
	const struct sw_sim_desc_job *full = sw_sim_copies_make(d);
	char at[SW_SIM_NAME * 2];

	if (full) {
		wrong_at(f, section_name("job", full->label, at), "copies",
			"more than 16 jobs, or a list of nodes of more than "
			"511 bytes");
		return;
	}
	for (uint32_t i = 0; i < d->n_jobs; i++) {
		const struct sw_sim_desc_job *j = &d->jobs[i];

		if (j->copy_of && f->report.n_errors)
			break; /* its lists have the same errors */
		section_name("job", j->label, at);
		take_names(f, d, at, "agents", j->agents, add_node);
		take_names(f, d, at, "servers", j->servers, add_node);
	}
	for (uint32_t i = 0; i < d->n_rosters; i++) {
		section_name("roster", d->rosters[i].label, at);
		take_names(
			f, d, at, "servers", d->rosters[i].servers, add_node);
	}
	for (uint32_t i = 0; i < d->n_traffic; i++) {
		const struct sw_sim_desc_traffic *t = &d->traffic[i];

		section_name("traffic", t->label, at);
		take_names(f, d, at, "from", t->from, add_node);
		take_names(f, d, at, "to", t->to, add_node);
	}
	if (d->net.topology == SW_SIM_EXPLICIT)
		take_names(
			f, d, "net", "switches", d->net.switches, add_switch);
}

/* --- checks --- */

static void check_buffer(struct sw_sim_file *f, const char *section,
	uint64_t bytes, uint32_t mtu)
{
	char why[SW_WHY_BYTES];

	if (bytes >= mtu + 18)
		return;
	snprintf(why, sizeof(why),
		"%llu bytes are less than one frame of %u (mtu, and 18 of "
		"Ethernet)",
		(unsigned long long)bytes, mtu + 18);
	wrong_at(f, section, "buffer", why);
}

static void check_links(struct sw_sim_file *f, struct sw_sim_desc *d)
{
	const struct sw_sim_desc_net *n = &d->net;

	d->least_mtu = d->n_links ? UINT32_MAX : n->mtu;
	for (uint32_t i = 0; i < d->n_links; i++) {
		struct sw_sim_desc_link *l = &d->links[i];
		char at[SW_SIM_NAME * 2];

		section_name("link", l->label, at);
		if (n->topology != SW_SIM_EXPLICIT)
			wrong_at(f, at, NULL, "needs [net] topology = links");
		if (l->buffer_bytes && n->is_shared)
			wrong_at(f, at, "buffer",
				"ports share their switch's buffer: give "
				"[net] buffer, or leave out [net] shared");
		l->mtu = l->mtu ? l->mtu : n->mtu;
		l->buffer_bytes =
			l->buffer_bytes ? l->buffer_bytes : n->buffer_bytes;
		check_buffer(f, at, l->buffer_bytes, l->mtu);
		d->least_mtu = (uint32_t)sw_min64(d->least_mtu, l->mtu);
	}
}

static void check_net(struct sw_sim_file *f, struct sw_sim_desc *d)
{
	struct sw_sim_desc_net *n = &d->net;

	if (!n->ecn_most_bytes)
		n->ecn_most_bytes = n->ecn_bytes;
	if (n->ecn_most_bytes < n->ecn_bytes)
		wrong_at(f, "net", "ecn_all", "is less than ecn");
	check_buffer(f, "net", n->buffer_bytes, n->mtu);
	check_links(f, d);
	if (n->leaf_nodes)
		n->leaves = (d->n_nodes + n->leaf_nodes - 1) / n->leaf_nodes;
	if (n->leaves > SW_SIM_LEAVES_MAX)
		wrong_at(f, "net", "leaf_nodes",
			"is too small: these nodes need more than 256 leaves");
	if (!n->alpha)
		wrong_at(f, "net", "alpha", "is 0: no port could queue");
	for (uint32_t i = 0; i < d->n_jobs; i++) {
		const struct sw_sim_desc_job *j = &d->jobs[i];
		char at[SW_SIM_NAME * 2];

		if (j->copy_of)
			break;
		section_name("job", j->label, at);
		if (j->is_keyed && !d->run.has_oracle)
			wrong_at(f, at, "key",
				"needs [run] oracle = yes: tags cover "
				"payloads, which frames do not carry without");
		if (j->job.encrypt && !j->is_keyed)
			wrong_at(f, at, "encrypt", "needs key = yes");
	}
}

int sw_sim_desc_read(
	struct sw_sim_file *f, uint32_t point, struct sw_sim_desc **out)
{
	struct sw_sim_desc *d = calloc(1, sizeof(*d));

	*out = NULL;
	if (d)
		d->names = calloc(
			SW_SIM_NODES_MAX + SW_SIM_SWITCHES_MAX, SW_SIM_NAME);
	if (!d || !d->names) {
		free(d);
		return SW_ENOMEM;
	}
	for (const struct sw_sim_section *s = sw_sim_sections; s->name; s++)
		if (!s->most)
			defaults(s, (char *)d + s->offset);
	for (uint32_t i = 0; i < f->scan.n_entries; i++)
		entry_take(f, d, &f->scan.entries[i], point);
	if (!f->report.n_errors && !d->n_jobs && !d->n_traffic)
		sw_report_error(&f->report, 0, NULL, NULL,
			"there is no [job] and no [traffic NAME]");
	d->most_lcores = 1;
	for (uint32_t i = 0; i < d->n_jobs; i++)
		d->most_lcores = (uint32_t)sw_max64(
			d->most_lcores, sw_max64(d->jobs[i].job.server_lcores,
						d->jobs[i].agent.lcores));
	if (!f->report.n_errors)
		name_nodes(f, d);
	if (!f->report.n_errors)
		check_net(f, d);
	if (f->report.n_errors) {
		sw_sim_desc_free(d);
		return SW_ECONF;
	}
	*out = d;
	return 0;
}

void sw_sim_desc_free(struct sw_sim_desc *d)
{
	if (d)
		free(d->names);
	free(d);
}

void sw_sim_file_refuse(struct sw_sim_file *f, const char *why)
{
	char section[SW_SIM_NAME * 2] = "", key[SW_SIM_NAME] = "";
	char kind[SW_SIM_NAME], label[SW_SIM_NAME];
	int end = 0, key_end = 0;

	if (sscanf(why, "[%63[^]]] %n", section, &end) != 1 || !end) {
		sw_report_error(&f->report, 0, NULL, NULL, "%s", why);
		return;
	}
	if (sscanf(section, "%31s %31s", kind, label) == 2)
		section_name(kind, label, section);
	if (sscanf(why + end, "%31[a-z_]: %n", key, &key_end) != 1)
		key_end = 0;
	sw_report_error(&f->report,
		sw_scan_line(&f->scan, section, key_end ? key : NULL), section,
		key_end ? key : NULL, "%s", why + end + key_end);
}

/* --- the reference --- */

static void print_row(FILE *f, const struct sw_option *o)
{
	fprintf(f, "  %-16s %s\n", o->key, o->text);
	if (!is_text(o)) {
		fprintf(f, "  %-16s   ", "");
		sw_option_allowed_print(o, f);
		if (o->def)
			fprintf(f, "; default %s", o->def);
		fputc('\n', f);
	}
}

void sw_sim_reference(FILE *f)
{
	for (const struct sw_sim_section *s = sw_sim_sections; s->name; s++) {
		fprintf(f, "[%s]%s%s\n", s->name, *s->text ? "  " : "",
			s->text);
		for (uint32_t i = 0; i < s->n_rows; i++)
			print_row(f, &s->rows[i]);
		for (const struct sw_sim_borrowed *b = sw_sim_borrowed;
			b->key && !strcmp(s->name, "job"); b++)
			fprintf(f, "  %-16s as [%s] %s of a daemon\n", b->key,
				b->section, b->key);
		fputc('\n', f);
	}
}
