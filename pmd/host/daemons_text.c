/* daemons_text.c - write and parse a daemon's answer about itself.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/text.h"
#include "pmd/host/daemons.h"

void sw_daemons_write_job(FILE *to, const struct sw_daemon_job *j)
{
	fprintf(to, "job %s %s %u %u %u %u %u %" PRIu64 " %" PRIu64 " %s\n",
		j->is_served ? "server" : "agent", j->state, j->n_here,
		j->n_all, j->n_ranks, j->size, j->first, j->age_s,
		j->open_chunks, j->name);
}

/* Cut the next word off *@rest and return it; NULL if there is none. */
static char *word(char **rest)
{
	char *w = strsep(rest, " ");

	return w && *w ? w : NULL;
}

static bool number(char **rest, uint64_t most, uint64_t *out)
{
	char *w = word(rest), *end;

	if (!w || *w < '0' || *w > '9')
		return false;
	*out = strtoull(w, &end, 10);
	return !*end && *out <= most;
}

/* Add a job to @d; ignore an invalid line. */
static void take_job(char *rest, struct sw_found_daemon *d)
{
	struct sw_daemon_job j = {0};
	const char *kind = word(&rest);
	uint32_t *const fields[] = {
		&j.n_here, &j.n_all, &j.n_ranks, &j.size, &j.first};
	uint64_t value;

	j.is_served = kind && !strcmp(kind, "server");
	j.state = word(&rest);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!number(&rest, UINT32_MAX, &value))
			return;
		*fields[i] = (uint32_t)value;
	}
	if (!number(&rest, UINT64_MAX, &j.age_s) ||
		!number(&rest, UINT64_MAX, &j.open_chunks) || !rest || !*rest ||
		d->n_jobs == SW_DAEMON_JOBS)
		return;
	j.name = rest;
	d->jobs[d->n_jobs++] = j;
}

static void take_member(char *rest, struct sw_daemon_job *job)
{
	struct sw_daemon_member m = {.state = word(&rest)};
	uint64_t n, first;

	if (job->n_members == SW_MAX_MEMBERS ||
		!number(&rest, UINT32_MAX, &n) ||
		!number(&rest, UINT32_MAX, &first) || !rest || !*rest)
		return;
	m.n_ranks = (uint32_t)n;
	m.first = (uint32_t)first;
	m.node = rest;
	job->members[job->n_members++] = m;
}

static void take_wait(char *rest, struct sw_daemon_job *job)
{
	const char *kind = word(&rest), *lacks;
	struct sw_daemon_wait w = {0};
	uint64_t n;
	char *end;

	if (job->n_waits == SW_DAEMON_WAITS || !number(&rest, UINT32_MAX, &n))
		return;
	w.is_stream = kind && !strcmp(kind, "stream");
	w.n_chunks = (uint32_t)n;
	lacks = word(&rest);
	if (!lacks || !rest || !*rest)
		return;
	w.lacks = strtoull(lacks, &end, 16);
	if (*end)
		return;
	w.name = rest;
	job->waits[job->n_waits++] = w;
}

static void take_last(char *rest, struct sw_daemon_job *job)
{
	uint32_t m = job->n_members;
	uint64_t n, ns;

	if (!m || !number(&rest, UINT64_MAX, &n) ||
		!number(&rest, UINT64_MAX, &ns))
		return;
	job->members[m - 1].n_last = n;
	job->members[m - 1].late_ns = ns;
}

static void take_late(char *rest, struct sw_daemon_job *job)
{
	uint64_t n[SW_HISTOGRAM_BUCKETS];

	if (!job->n_members)
		return;
	for (size_t i = 0; i < SW_HISTOGRAM_BUCKETS; i++)
		if (!number(&rest, UINT64_MAX, &n[i]))
			return;
	memcpy(job->members[job->n_members - 1].late, n, sizeof(n));
}

static bool numbers(char **rest, uint64_t *const *fields, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!number(rest, UINT64_MAX, fields[i]))
			return false;
	return true;
}

static void take_session(char *rest, struct sw_found_daemon *d)
{
	const char *state = word(&rest);
	struct sw_daemon_session s = {
		.is_open = state && !strcmp(state, "open")};
	uint64_t lane;

	if (d->n_sessions == SW_MAX_SERVERS ||
		!number(&rest, UINT32_MAX, &lane) || !rest || !*rest)
		return;
	s.lane = (uint32_t)lane;
	s.server = rest;
	d->sessions[d->n_sessions++] = s;
}

/* Return the path of the member or session above a line; NULL if there is no
 * such path. */
static struct sw_daemon_path *path_above(
	struct sw_found_daemon *d, struct sw_daemon_job *job)
{
	if (job->is_served)
		return job->n_members ? &job->members[job->n_members - 1].path
				      : NULL;
	return d->n_sessions ? &d->sessions[d->n_sessions - 1].path : NULL;
}

/* Take the numbers of a line about a path: all, or none if one is missing. */
static void take_path(const char *key, char *rest, struct sw_daemon_path *path)
{
	struct sw_daemon_path p;
	const struct {
		const char *key;
		uint64_t *fields[12];
	} lines[] = {
		{"path", {&p.srtt_ns, &p.least_ns, &p.window_bytes, &p.sent,
				 &p.lost, &p.numbered, &p.missed, &p.payload,
				 &p.lost_part, &p.missed_part}},
		{"moved", {&p.push_bytes, &p.result_bytes, &p.grant_ns,
				  &p.window_ns, &p.flight_ns, &p.marked_part}},
		{"losses", {&p.queued, &p.timeouts}}};

	if (!path)
		return;
	p = *path;
	for (size_t i = 0; i < SW_ARRAY_SIZE(lines); i++) {
		size_t n = 0;

		if (strcmp(key, lines[i].key))
			continue;
		while (lines[i].fields[n])
			n++;
		if (numbers(&rest, lines[i].fields, n))
			*path = p;
	}
}

static void take_group(char *rest, struct sw_daemon_job *job)
{
	struct sw_daemon_group g;
	uint64_t *const fields[] = {&g.n_open, &g.n_done, &g.bytes, &g.ns};

	if (job->n_groups == SW_DAEMON_GROUPS ||
		!numbers(&rest, fields, SW_ARRAY_SIZE(fields)) || !rest ||
		!*rest)
		return;
	g.name = rest;
	job->groups[job->n_groups++] = g;
}

static void take_sums(char *rest, struct sw_daemon_job *job)
{
	uint64_t slots, chunks;

	if (!numbers(&rest, (uint64_t *const[]){&slots, &chunks}, 2))
		return;
	job->open_slots = slots;
	job->done_chunks = chunks;
}

static void take_payload(char *rest, struct sw_daemon_job *job)
{
	uint64_t agreed, most;

	if (!number(&rest, UINT32_MAX, &agreed) ||
		!number(&rest, UINT32_MAX, &most))
		return;
	job->payload = agreed;
	job->most_payload = most;
}

static void take_process(char *rest, struct sw_daemon_job *job)
{
	uint64_t pid, local;

	if (job->n_processes == SW_DAEMON_PROCESSES ||
		!number(&rest, INT32_MAX, &pid) ||
		!number(&rest, UINT32_MAX, &local))
		return;
	job->processes[job->n_processes++] =
		(struct sw_daemon_process){(pid_t)pid, (uint32_t)local};
}

static void take_port(char *rest, struct sw_found_daemon *d)
{
	struct sw_daemon_port p;

	if (d->n_ports == SW_DAEMON_PORTS ||
		!number(&rest, UINT64_MAX, &p.n_ups) ||
		!number(&rest, UINT64_MAX, &p.ago_ms) || !rest || !*rest)
		return;
	p.label = rest;
	d->ports[d->n_ports++] = p;
}

static void take_core(char *rest, struct sw_found_daemon *d)
{
	struct sw_daemon_core c;

	if (d->n_cores == SW_DAEMON_CORES ||
		!number(&rest, UINT64_MAX, &c.waited_ns) ||
		!number(&rest, UINT64_MAX, &c.period_ns))
		return;
	d->cores[d->n_cores++] = c;
}

static void take_still(char *rest, struct sw_daemon_job *job)
{
	struct sw_daemon_wait *w = job->waits + job->n_waits;
	uint64_t ms, n;

	if (w == job->waits || !number(&rest, UINT64_MAX, &ms) ||
		!number(&rest, UINT32_MAX, &n) || !rest || !*rest)
		return;
	w[-1].still_ms = ms;
	w[-1].number = (uint32_t)n;
	w[-1].kind = rest;
}

static void take_job_line(
	const char *key, char *value, struct sw_daemon_job *job)
{
	if (!strcmp(key, "missing"))
		job->missing = value;
	else if (!strcmp(key, "text"))
		job->text = value;
	else if (!strcmp(key, "idle"))
		job->has_idle = number(&value, INT64_MAX, &job->idle_s);
	else if (!strcmp(key, "keyed")) {
		job->has_key = true;
		job->is_keyed = !strcmp(value, "1");
	} else if (!strcmp(key, "encrypted"))
		job->is_encrypted = !strcmp(value, "1");
	else if (!strcmp(key, "more"))
		number(&value, INT64_MAX, &job->n_more);
	else if (!strcmp(key, "member"))
		take_member(value, job);
	else if (!strcmp(key, "last"))
		take_last(value, job);
	else if (!strcmp(key, "late"))
		take_late(value, job);
	else if (!strcmp(key, "sums"))
		take_sums(value, job);
	else if (!strcmp(key, "group"))
		take_group(value, job);
	else if (!strcmp(key, "payload"))
		take_payload(value, job);
	else if (!strcmp(key, "process"))
		take_process(value, job);
	else if (!strcmp(key, "wait"))
		take_wait(value, job);
	else if (!strcmp(key, "still"))
		take_still(value, job);
	else if (!strcmp(key, "for") && job->n_waits)
		job->waits[job->n_waits - 1].who = value;
}

static void take_line(const char *key, char *value, struct sw_found_daemon *d)
{
	const struct {
		const char *key;
		const char **to;
	} texts[] = {{"name", &d->name}, {"role", &d->role},
		{"state", &d->state}, {"stats", &d->stats},
		{"socket", &d->socket}, {"trace", &d->trace}};
	struct sw_daemon_job *job = d->n_jobs ? &d->jobs[d->n_jobs - 1] : NULL;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(key, texts[i].key) && *value)
			*texts[i].to = value;
	if (!strcmp(key, "since"))
		number(&value, INT64_MAX, &d->since_s);
	else if (!strcmp(key, "port"))
		take_port(value, d);
	else if (!strcmp(key, "core"))
		take_core(value, d);
	else if (!strcmp(key, "job"))
		take_job(value, d);
	else if (!strcmp(key, "session"))
		take_session(value, d);
	else if (!strcmp(key, "path") || !strcmp(key, "moved") ||
		 !strcmp(key, "losses"))
		take_path(key, value, job ? path_above(d, job) : NULL);
	else if (job)
		take_job_line(key, value, job);
}

bool sw_daemons_parse(char *text, struct sw_found_daemon *d)
{
	uint64_t format;
	char *line, *value;

	line = strsep(&text, "\n");
	if (!text || strncmp(line, "sumwire ", 8))
		return false;
	sw_text_clean(line, strlen(line) + 1);
	line += 8;
	if (!number(&line, UINT32_MAX, &format) || !line || !*line)
		return false;
	d->format = (uint32_t)format;
	d->version = line;
	while ((line = strsep(&text, "\n"))) {
		value = strchr(line, ' ');
		if (!value || !text) /* the last line is truncated */
			continue;
		*value++ = '\0';
		sw_text_clean(value, strlen(value) + 1);
		take_line(line, value, d);
	}
	return true;
}

static bool has_job(const struct sw_found_daemon *d, const char *name)
{
	for (uint32_t i = 0; i < d->n_jobs; i++)
		if (!strcmp(d->jobs[i].name, name))
			return true;
	return false;
}

static bool is_meant(
	const struct sw_found_daemon *d, const char *name, uint32_t by)
{
	char pid[24];

	if (by == 0)
		return d->name && !strcmp(d->name, name);
	if (by == 2)
		return has_job(d, name);
	snprintf(pid, sizeof(pid), "%ld", (long)d->pid);
	return !strcmp(pid, name);
}

bool sw_daemon_is_called(const struct sw_found_daemon *d, const char *name)
{
	return is_meant(d, name, 0) || is_meant(d, name, 1) ||
	       is_meant(d, name, 2);
}

uint32_t sw_daemons_match(
	const struct sw_found_daemons *found, const char *name, uint32_t *at)
{
	uint32_t n = 0;

	for (uint32_t by = 0; by < 3 && !n; by++)
		for (uint32_t i = found->n; i--;)
			if (is_meant(&found->all[i], name, by)) {
				*at = i;
				n++;
			}
	return n;
}
