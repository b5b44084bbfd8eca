/* frame.c - the lines of sumwire top.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/watch/frame.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"

enum {
	TEXT = 160,
	MB = 1000000,
	NAME = 64,         /* most columns of a name */
	CUTS = 64,         /* shortened names that are compared */
	MEMBERS_REST = 58, /* columns of a member's row, except both names */
	NAMES_LEAST = 5,
};

enum part { JOBS, MEMBERS, GROUPS, DAEMONS, PORTS, CORES, PARTS };

static const char *const heads[PARTS] = {
	[JOBS] = "JOB           SERVER      STATE     RANKS      PUSH MB/s "
		 "IDLE s  OPEN WAITING",
	/* The names of nodes and jobs fill the columns before it. */
	[MEMBERS] = " STATE      MB/s OPEN LAST %  LATE ms  RTT ms",
	[GROUPS] = "GROUP                    AGENT          CALLS/s      MB/s "
		   "ms/CALL  OPEN",
	[DAEMONS] = "DAEMON        ROLE    STATE     PUSH MB/s  RESULT MB/s  "
		    "LOST/s RESENT/s MEM %",
	[PORTS] = "PORT                     RX MB/s  TX MB/s     RX/s     TX/s "
		  " DROPPED/s   UPS",
	[CORES] = "CORE              TURNS/s  PUSH MB/s   P99 us  >100us/s   "
		  ">1ms/s  NO CPU %",
};

/* A row; tables are sorted by a number, the largest first, then by text. */
struct row {
	char text[TEXT];
	double rate, loss;
};

struct table {
	struct row *rows;
	uint32_t n, room;
	uint32_t shown;
};

/* A name that was shortened. */
struct cut {
	char name[SW_NAME_MAX], text[NAME + 1];
};

struct frame {
	const struct sw_frame *f;
	struct table tables[PARTS];
	struct cut cuts[CUTS];
	uint32_t n_cuts;
	int node_width, job_width;   /* in the table of members */
	char name[SW_NAME_MAX + 32]; /* a daemon's name with its pid */
	struct row none; /* replaces a row if memory is short; never read */
	bool has_failed;
};

const char *sw_frame_sort_name(enum sw_frame_sort sort)
{
	static const char *const names[SW_SORTS] = {"rate", "loss", "name"};

	return names[sort];
}

static struct row *row_add(struct frame *fr, enum part part)
{
	struct table *t = &fr->tables[part];

	if (t->n == t->room) {
		uint32_t room = t->room ? 2 * t->room : 16;
		void *more = realloc(t->rows, room * sizeof(*t->rows));

		if (!more) {
			fr->has_failed = true;
			return &fr->none;
		}
		t->rows = more;
		t->room = room;
	}
	t->rows[t->n] = (struct row){0};
	return &t->rows[t->n++];
}

/* --- names --- */

static int least(int a, int b)
{
	return a < b ? a : b;
}

static int most(int a, int b)
{
	return a > b ? a : b;
}

/* Return whether an earlier name has the same shortened @text. */
static bool is_alike(struct frame *fr, const char *name, const char *text)
{
	for (uint32_t i = 0; i < fr->n_cuts; i++)
		if (!strcmp(fr->cuts[i].text, text))
			return strcmp(fr->cuts[i].name, name);
	if (fr->n_cuts < CUTS) {
		struct cut *c = &fr->cuts[fr->n_cuts++];

		snprintf(c->name, sizeof(c->name), "%s", name);
		snprintf(c->text, sizeof(c->text), "%s", text);
	}
	return false;
}

/* Write @name in at most @width columns to @out.  A longer name loses its
 * middle: '~' replaces it, or '?' if an earlier name looks the same. */
static const char *fit(
	struct frame *fr, const char *name, int width, char out[NAME + 1])
{
	int n = (int)strlen(name), head = (width - 1) / 2;

	if (n <= width) {
		snprintf(out, NAME + 1, "%-*s", width, name);
		return out;
	}
	snprintf(out, NAME + 1, "%.*s~%s", head, name,
		name + n - (width - 1 - head));
	if (is_alike(fr, name, out))
		out[head] = '?';
	return out;
}

/* Return a daemon's name, with its pid if others have the same name, or none.
 */
static const char *name_of(struct frame *fr, const struct sw_found_daemon *d)
{
	const struct sw_found_daemons *found = &fr->f->now->found;
	bool is_alone = d->name != NULL;

	for (uint32_t i = 0; i < found->n && is_alone; i++)
		is_alone = fr->f->now->all[i].d == d ||
			   !fr->f->now->all[i].d->name ||
			   strcmp(fr->f->now->all[i].d->name, d->name) != 0;
	if (is_alone)
		return d->name;
	snprintf(fr->name, sizeof(fr->name), "%s%s%ld",
		d->name ? d->name : "pid", d->name ? ":" : " ", (long)d->pid);
	return fr->name;
}

/* Divide the columns for names between the nodes and the jobs of the members'
 * table: one takes the columns that the other does not need. */
static void widths_choose(struct frame *fr)
{
	int room = (int)fr->f->columns - MEMBERS_REST, node = 4, job = 3;

	for (uint32_t i = 0; i < fr->f->now->found.n; i++) {
		const struct sw_found_daemon *d = fr->f->now->all[i].d;

		for (uint32_t k = 0; k < d->n_jobs; k++) {
			const struct sw_daemon_job *j = &d->jobs[k];

			if (!j->is_served)
				continue;
			job = most(job, (int)strlen(j->name));
			for (uint32_t m = 0; m < j->n_members; m++)
				node = most(
					node, (int)strlen(j->members[m].node));
		}
	}
	room = room < 2 * NAMES_LEAST ? 2 * NAMES_LEAST : room;
	if (node + job > room) {
		node = least(node, most(room / 2, room - job));
		job = room - node;
	}
	fr->node_width = least(node, NAME);
	fr->job_width = least(job, NAME);
}

/* --- rates --- */

/* A daemon in both scans. */
struct pair {
	const struct sw_scan_daemon *before, *now;
};

static struct pair pair_of(const struct frame *fr, uint32_t i)
{
	struct pair p = {.now = &fr->f->now->all[i]};

	for (uint32_t k = 0; k < fr->f->before->found.n; k++) {
		const struct sw_scan_daemon *b = &fr->f->before->all[k];

		if (b->n && b->d->pid == p.now->d->pid &&
			b->d->since_s == p.now->d->since_s)
			p.before = b;
	}
	return p;
}

/* Return the growth of counter PREFIX.NAME per second. */
static double rate(const struct pair *p, const char *prefix, const char *name)
{
	char whole[SW_COUNTER_NAME];
	uint64_t now, before;

	if (!p->before || p->now->at_ns <= p->before->at_ns)
		return 0;
	snprintf(whole, sizeof(whole), "%s%s", prefix, name);
	now = sw_scan_value(p->now, whole, 0);
	before = sw_scan_value(p->before, whole, now);
	return now <= before
		       ? 0
		       : (double)(now - before) * 1e9 /
				 (double)(p->now->at_ns - p->before->at_ns);
}

/* --- the tables --- */

static const char *or_dash(const char *text)
{
	return text ? text : "-";
}

static void ranks_format(
	const struct sw_daemon_member *x, uint32_t m, char out[32])
{
	if (!x->n_ranks || x->first == UINT32_MAX)
		snprintf(out, 32, "agent %u", m);
	else if (x->n_ranks == 1)
		snprintf(out, 32, "%u", x->first);
	else
		snprintf(out, 32, "%u-%u", x->first, x->first + x->n_ranks - 1);
}

/* Return the same job at the same daemon in the earlier scan; NULL: it is
 * new. */
static const struct sw_daemon_job *job_before(
	const struct pair *p, const struct sw_daemon_job *job)
{
	const struct sw_found_daemon *d = p->before ? p->before->d : NULL;

	for (uint32_t k = 0; d && k < d->n_jobs; k++)
		if (d->jobs[k].is_served &&
			d->jobs[k].n_members == job->n_members &&
			d->jobs[k].age_s <= job->age_s &&
			!strcmp(d->jobs[k].name, job->name))
			return &d->jobs[k];
	return NULL;
}

/* Return the member with the counts between the scans. */
static struct sw_daemon_member grown(const struct sw_daemon_job *job,
	const struct sw_daemon_job *before, uint32_t m)
{
	struct sw_daemon_member x = job->members[m];

	if (!before || before->members[m].n_last > x.n_last)
		return x;
	x.n_last -= before->members[m].n_last;
	x.late_ns -= before->members[m].late_ns;
	return x;
}

/* Return the bytes that a member has pushed per second. */
static double push_rate(const struct pair *p, const struct sw_daemon_job *job,
	const struct sw_daemon_job *before, uint32_t m)
{
	uint64_t now = job->members[m].path.push_bytes;

	if (!before || before->members[m].path.push_bytes > now)
		return 0;
	return (double)(now - before->members[m].path.push_bytes) * 1e9 /
	       (double)(p->now->at_ns - p->before->at_ns);
}

static void members_add(
	struct frame *fr, const struct pair *p, const struct sw_daemon_job *job)
{
	const struct sw_daemon_job *before = job_before(p, job);
	char ranks[32];
	uint64_t n_all = 0;

	for (uint32_t m = 0; m < job->n_members; m++)
		n_all += grown(job, before, m).n_last;
	for (uint32_t m = 0; m < job->n_members; m++) {
		struct sw_daemon_member x = grown(job, before, m);
		struct row *row = row_add(fr, MEMBERS);
		char node[NAME + 1], name[NAME + 1];
		unsigned n = 0;

		for (uint32_t i = 0; i < job->n_waits; i++)
			if (job->waits[i].lacks >> m & 1)
				n += job->waits[i].n_chunks;
		ranks_format(&x, m, ranks);
		row->rate = n_all && job->n_members > 1
				    ? 100.0 * (double)x.n_last / (double)n_all
				    : 0;
		row->loss = n;
		snprintf(row->text, TEXT,
			"  %-9.9s %s %s %-7.7s %7.1f %4u %6.0f %8.2f %7.2f",
			ranks, fit(fr, x.node, fr->node_width, node),
			fit(fr, job->name, fr->job_width, name), x.state,
			push_rate(p, job, before, m) / MB, n, row->rate,
			x.n_last ? (double)x.late_ns / (double)x.n_last / 1e6
				 : 0,
			(double)x.path.srtt_ns / 1e6);
	}
}

static void job_add(
	struct frame *fr, const struct pair *p, const struct sw_daemon_job *job)
{
	const struct sw_daemon_job *before = job_before(p, job);
	const struct sw_found_daemon *d = p->now->d;
	struct row *row = row_add(fr, JOBS);
	char ranks[32], name[NAME + 1], server[NAME + 1];

	for (uint32_t m = 0; m < job->n_members; m++)
		row->rate += push_rate(p, job, before, m);
	snprintf(ranks, sizeof(ranks), "%u of %u", job->n_ranks, job->size);
	snprintf(row->text, TEXT,
		"%s %s %-9.9s %-10.10s %9.1f %6llu %5llu %7llu",
		fit(fr, job->name, 13, name),
		fit(fr, name_of(fr, d), 11, server), job->state, ranks,
		row->rate / MB, (unsigned long long)job->idle_s,
		(unsigned long long)job->open_chunks,
		(unsigned long long)(job->n_waits + job->n_more));
	row->loss = (double)(job->n_waits + job->n_more);
	members_add(fr, p, job);
}

/* Return the same group at the same agent in the earlier scan; NULL: it is
 * new. */
static const struct sw_daemon_group *group_before(
	const struct pair *p, const struct sw_daemon_group *g)
{
	const struct sw_found_daemon *d = p->before ? p->before->d : NULL;

	for (uint32_t k = 0; d && k < d->n_jobs; k++)
		for (uint32_t i = 0; i < d->jobs[k].n_groups; i++)
			if (!strcmp(d->jobs[k].groups[i].name, g->name) &&
				d->jobs[k].groups[i].n_done <= g->n_done)
				return &d->jobs[k].groups[i];
	return NULL;
}

/* Add a group's row.  Collectives within one machine send no frames, so only
 * this row shows them. */
static void group_add(
	struct frame *fr, const struct pair *p, const struct sw_daemon_group *g)
{
	const struct sw_daemon_group *b = group_before(p, g);
	double s = p->before ? (double)(p->now->at_ns - p->before->at_ns) / 1e9
			     : 0;
	uint64_t n = b ? g->n_done - b->n_done : 0;
	char name[NAME + 1], agent[NAME + 1];
	struct row *row = row_add(fr, GROUPS);

	row->rate = b && s > 0 ? (double)(g->bytes - b->bytes) / s : 0;
	snprintf(row->text, TEXT, "%s %s %9.1f %9.1f %8.2f %5llu",
		fit(fr, g->name, 24, name),
		fit(fr, name_of(fr, p->now->d), 12, agent),
		s > 0 ? (double)n / s : 0, row->rate / MB,
		n ? (double)(g->ns - b->ns) / (double)n / 1e6 : 0,
		(unsigned long long)g->n_open);
}

static void groups_add(
	struct frame *fr, const struct pair *p, const struct sw_daemon_job *job)
{
	for (uint32_t i = 0; i < job->n_groups; i++)
		group_add(fr, p, &job->groups[i]);
}

static void daemon_add(struct frame *fr, const struct pair *p)
{
	static const char *const found[] = {[SW_FOUND] = "",
		[SW_FOUND_SILENT] = "no answer",
		[SW_FOUND_DENIED] = "no access",
		[SW_FOUND_OTHER] = "unknown"};
	const struct sw_found_daemon *d = p->now->d;
	struct row *row = row_add(fr, DAEMONS);
	uint64_t quota = sw_scan_value(p->now, "memory_quota_bytes", 0);
	double push =
		rate(p, "", "push_bytes") + rate(p, "server.", "push_bytes");
	double result = rate(p, "", "result_bytes") +
			rate(p, "server.", "result_bytes");
	double lost = rate(p, "", "lost") + rate(p, "server.", "lost");
	double again = rate(p, "", "retransmissions") +
		       rate(p, "server.", "retransmissions");
	char short_name[NAME + 1], memory[16] = "-";

	if (quota)
		snprintf(memory, sizeof(memory), "%.0f",
			100.0 *
				(double)sw_scan_value(
					p->now, "memory_used_bytes", 0) /
				(double)quota);
	snprintf(row->text, TEXT,
		"%s %-7.7s %-9.9s %9.1f %12.1f %7.0f %8.0f %5s",
		fit(fr, name_of(fr, d), 13, short_name), or_dash(d->role),
		d->found ? found[d->found] : or_dash(d->state), push / MB,
		result / MB, lost, again, memory);
	row->rate = push;
	row->loss = lost;
}

/* Return the frames that a port has dropped, for all reasons. */
static double dropped(const struct pair *p, const char *prefix)
{
	static const char *const names[] = {"rx_overrun", "rx_not_ours",
		"rx_bad_ip", "rx_bad_udp", "rx_options", "rx_fragment",
		"rx_short", "rx_segments", "tx_no_buffer", "tx_refused",
		"tx_denied", "tx_link_down", "tx_no_neighbour"};
	double sum = 0;

	for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++)
		sum += rate(p, prefix, names[i]);
	return sum;
}

/* Write the names of a daemon and of its port or core in @width columns.
 * @prefix is "port.lan." or "lcore0.". */
static const char *part_fit(struct frame *fr, const struct pair *p,
	const char *prefix, int width, char out[NAME + 1])
{
	const char *daemon = name_of(fr, p->now->d);
	char whole[SW_COUNTER_NAME], part[NAME + 1], name[NAME + 1];
	int n = (int)strlen(prefix + 5) - 1, n_daemon = (int)strlen(daemon);

	snprintf(whole, sizeof(whole), "%.*s", n, prefix + 5);
	n = least(n, most(width / 2, width - 1 - n_daemon));
	n_daemon = least(n_daemon, width - 1 - n);
	snprintf(out, NAME + 1, "%s %s", fit(fr, daemon, n_daemon, name),
		fit(fr, whole, n, part));
	return out;
}

static void port_add(struct frame *fr, const struct pair *p, const char *prefix)
{
	struct row *row = row_add(fr, PORTS);
	double rx = rate(p, prefix, "rx_bytes"),
	       tx = rate(p, prefix, "tx_bytes");
	char name[NAME + 1], whole[SW_COUNTER_NAME + 16];

	row->rate = rx + tx;
	row->loss = dropped(p, prefix);
	snprintf(whole, sizeof(whole), "%slink_ups", prefix);
	snprintf(row->text, TEXT,
		"%-23.23s %8.1f %8.1f %8.0f %8.0f %10.0f %5llu",
		part_fit(fr, p, prefix, 23, name), rx / MB, tx / MB,
		rate(p, prefix, "rx_frames"), rate(p, prefix, "tx_frames"),
		row->loss, (unsigned long long)sw_scan_value(p->now, whole, 0));
}

static void core_add(struct frame *fr, const struct pair *p, const char *prefix)
{
	struct row *row = row_add(fr, CORES);
	char name[NAME + 1], whole[SW_COUNTER_NAME + 16];
	char push[16] = "-"; /* an agent's cores do not count pushes */

	snprintf(whole, sizeof(whole), "%spush_bytes", prefix);
	if (sw_scan_value(p->now, whole, UINT64_MAX) != UINT64_MAX)
		snprintf(push, sizeof(push), "%.1f",
			rate(p, prefix, "push_bytes") / MB);
	snprintf(whole, sizeof(whole), "%sturn_p99_ns", prefix);
	row->rate = rate(p, prefix, "turns");
	row->loss = rate(p, prefix, "turns_over_1ms");
	snprintf(row->text, TEXT, "%-16.16s %8.0f %10s %8.1f %9.0f %8.0f %9.0f",
		part_fit(fr, p, prefix, 16, name), row->rate, push,
		(double)sw_scan_value(p->now, whole, 0) / 1e3,
		rate(p, prefix, "turns_over_100us"), row->loss,
		rate(p, prefix, "cpu_wait_ns") / 1e7);
}

/* Write to @prefix the part of @name before @suffix, if it ends so. */
static bool ends_in(
	const char *name, const char *suffix, char prefix[SW_COUNTER_NAME])
{
	size_t n = strlen(name), cut = strlen(suffix);

	if (n <= cut + 5 || strcmp(name + n - cut, suffix))
		return false;
	snprintf(prefix, SW_COUNTER_NAME, "%.*s", (int)(n - cut), name);
	return true;
}

/* Is @prefix "port.lan.queue0." of a port that has no other queue? */
static bool is_only_queue(const struct pair *p, const char *prefix)
{
	char other[SW_COUNTER_NAME + 32];

	if (!ends_in(prefix, "queue0.", other))
		return false;
	strcat(other, "queue1.rx_not_ours");
	return sw_scan_value(p->now, other, UINT64_MAX) == UINT64_MAX;
}

static void counters_add(struct frame *fr, const struct pair *p)
{
	char prefix[SW_COUNTER_NAME];

	for (uint32_t i = 0; i < p->now->n; i++) {
		const char *name = p->now->values[i].name;

		if (!strncmp(name, "port.", 5) &&
			ends_in(name, "rx_not_ours", prefix) &&
			!is_only_queue(p, prefix))
			port_add(fr, p, prefix);
		else if (!strncmp(name, "lcore", 5) &&
			 isdigit((unsigned char)name[5]) &&
			 ends_in(name, "turns", prefix))
			core_add(fr, p, prefix);
	}
}

static void all_add(struct frame *fr)
{
	for (uint32_t i = 0; i < fr->f->now->found.n; i++) {
		struct pair p = pair_of(fr, i);
		const struct sw_found_daemon *d = p.now->d;

		daemon_add(fr, &p);
		for (uint32_t k = 0; k < d->n_jobs; k++)
			if (d->jobs[k].is_served)
				job_add(fr, &p, &d->jobs[k]);
			else
				groups_add(fr, &p, &d->jobs[k]);
		counters_add(fr, &p);
	}
}

/* --- the lines --- */

static int by_rate(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->rate != y->rate ? (x->rate < y->rate ? 1 : -1)
				  : strcmp(x->text, y->text);
}

static int by_loss(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->loss != y->loss ? (x->loss < y->loss ? 1 : -1)
				  : by_rate(a, b);
}

static int by_text(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return strcmp(x->text, y->text);
}

/* Give each table with rows a head, then give each table one row in turn. */
static void share(struct frame *fr)
{
	uint32_t left = fr->f->lines ? fr->f->lines : UINT32_MAX;
	bool has_given = true;

	for (int i = 0; i < PARTS; i++)
		left -= fr->tables[i].n && left;
	while (left && has_given) {
		has_given = false;
		for (int i = 0; i < PARTS; i++) {
			struct table *t = &fr->tables[i];

			if (!left || t->shown == t->n)
				continue;
			t->shown++;
			left--;
			has_given = true;
		}
	}
}

/* Write the number of hidden rows into the space behind a head's first word.
 */
static void more_say(char *head, uint32_t n)
{
	char more[16];
	size_t at = strspn(head, " "), len, room;

	at += strcspn(head + at, " ");
	room = strspn(head + at, " ");
	len = (size_t)snprintf(more, sizeof(more), " +%u", n);
	if (len < room)
		memcpy(head + at, more, len);
}

static void table_write(const struct frame *fr, enum part part, FILE *to)
{
	static int (*const orders[SW_SORTS])(const void *, const void *) = {
		by_rate, by_loss, by_text};
	const struct table *t = &fr->tables[part];
	int width = (int)fr->f->columns;
	char head[TEXT];

	if (!t->n)
		return;
	if (part == MEMBERS)
		snprintf(head, TEXT, "  RANKS     %-*s %-*s%s", fr->node_width,
			"NODE", fr->job_width, "JOB", heads[part]);
	else
		snprintf(head, TEXT, "%s", heads[part]);
	qsort(t->rows, t->n, sizeof(*t->rows), orders[fr->f->sort]);
	if (t->shown < t->n)
		more_say(head, t->n - t->shown);
	if (fr->f->is_terminal)
		fprintf(to, "\033[7m%-*.*s\033[0m\n", width, width, head);
	else
		fprintf(to, "%.*s\n", width, head);
	for (uint32_t i = 0; i < t->shown; i++)
		fprintf(to, "%.*s\n", width, t->rows[i].text);
}

int sw_frame_write(const struct sw_frame *f, FILE *to)
{
	struct frame fr = {.f = f};

	widths_choose(&fr);
	all_add(&fr);
	share(&fr);
	for (int i = 0; i < PARTS; i++) {
		table_write(&fr, (enum part)i, to);
		free(fr.tables[i].rows);
	}
	return fr.has_failed ? SW_ENOMEM : 0;
}
