/* status.c - sumwire status: the state of jobs, and the ranks they wait for.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/find.h"
#include "apps/cli/json.h"
#include "apps/cli/suspects.h"
#include "engine/base/bytes.h"

enum { LATE_SAMPLES = 20, SHOWN_GROUPS = 4 };

/* Print the members in state @state in a line, if there are any. */
static void members_print(const struct sw_daemon_job *job, const char *state)
{
	char who[SW_WHO];
	bool has_one = false;

	for (uint32_t m = 0; m < job->n_members; m++) {
		if (strcmp(job->members[m].state, state))
			continue;
		sw_suspects_who(job, m, who);
		if (has_one)
			printf(", %s", who);
		else
			printf("  %-8s %s", state, who);
		has_one = true;
	}
	if (has_one)
		printf("\n");
}

static void wait_print(
	const struct sw_daemon_job *job, const struct sw_daemon_wait *w)
{
	char who[SW_WHO];
	bool has_one = false;

	printf("  waits    %s %s", w->is_stream ? "group" : "tensor", w->name);
	if (w->kind && w->number)
		printf(", %s %u", w->is_stream ? w->kind : "round", w->number);
	if (w->kind)
		printf(", %.1f s", (double)w->still_ms / 1e3);
	printf(": %u chunk%s", w->n_chunks, w->n_chunks == 1 ? "" : "s");
	if (w->who)
		printf(" for %s", w->who);
	for (uint32_t m = 0; m < job->n_members; m++) {
		if (!(w->lacks >> m & 1))
			continue;
		sw_suspects_who(job, m, who);
		printf("%s%s", has_one ? ", " : " for ", who);
		has_one = true;
	}
	printf("\n");
}

/* Print the member that was late for longest, if its share of the waits is at
 * least half more than an equal share. */
static void late_print(const struct sw_daemon_job *job)
{
	uint64_t n = 0, all_ns = 0;
	uint32_t worst = 0;
	char who[SW_WHO], text[SW_DURATION];

	for (uint32_t m = 0; m < job->n_members; m++) {
		n += job->members[m].n_last;
		all_ns += job->members[m].late_ns;
		if (job->members[m].late_ns > job->members[worst].late_ns)
			worst = m;
	}
	if (job->n_members < 2 || n < LATE_SAMPLES ||
		!job->members[worst].n_last ||
		2 * job->members[worst].late_ns * job->n_members < 3 * all_ns)
		return;
	sw_suspects_who(job, worst, who);
	printf("  late     %s: last in %.0f %% of %llu samples, then %s "
	       "after the first\n",
		who, 100.0 * (double)job->members[worst].n_last / (double)n,
		(unsigned long long)n,
		sw_suspects_duration((double)job->members[worst].late_ns /
					     (double)job->members[worst].n_last,
			text));
}

static void groups_print(const struct sw_daemon_job *job)
{
	char text[SW_DURATION];
	uint32_t n = 0;

	for (uint32_t i = 0; i < job->n_groups; i++) {
		const struct sw_daemon_group *g = &job->groups[i];

		if (!g->n_done || ++n > SHOWN_GROUPS)
			continue;
		printf("  group    %s: %llu calls, %.1f MB, %s each\n", g->name,
			(unsigned long long)g->n_done, (double)g->bytes / 1e6,
			sw_suspects_duration(
				(double)g->ns / (double)g->n_done, text));
	}
	if (n > SHOWN_GROUPS)
		printf("  group    %u more\n", n - SHOWN_GROUPS);
}

static void job_print(
	const struct sw_found_daemon *d, const struct sw_daemon_job *job)
{
	printf("job %s at %s %s (pid %ld): %s, %u of %u %s", job->name,
		job->is_served ? "server" : "agent", d->name ? d->name : "-",
		(long)d->pid, sw_find_state(d, job), job->n_here, job->n_all,
		job->is_served ? "agents" : "local ranks");
	if (job->size && !job->is_served && job->n_all == 1)
		printf(": rank %u of %u", job->first, job->size);
	else if (job->size && !job->is_served)
		printf(": ranks %u-%u of %u", job->first,
			job->first + job->n_all - 1, job->size);
	else if (job->size)
		printf(", %u of %u ranks", job->n_ranks, job->size);
	if (job->has_key)
		printf(", %s%s", job->is_keyed ? "keyed" : "without a key",
			job->is_encrypted ? ", encrypted" : "");
	if (job->has_idle && job->idle_s && job->done_chunks)
		printf(", last push %llu s ago",
			(unsigned long long)job->idle_s);
	printf("\n");
	members_print(job, "here");
	members_print(job, "missing");
	members_print(job, "left");
	groups_print(job);
	late_print(job);
	sw_suspects_print(job, stdout);
	if (job->text)
		printf("  note     %s\n", job->text);
	for (uint32_t i = 0; i < job->n_waits; i++)
		wait_print(job, &job->waits[i]);
	if (job->n_more)
		printf("  waits    %llu more\n",
			(unsigned long long)job->n_more);
}

/* Write each bucket that is not empty: its count and its upper limit. */
static void late_write(struct sw_json *j, const struct sw_daemon_member *x)
{
	sw_json_array_open(j, "late_buckets");
	for (uint32_t i = 0; i < SW_HISTOGRAM_BUCKETS; i++) {
		if (!x->late[i])
			continue;
		sw_json_object_open(j, NULL);
		sw_json_u64(j, "n", x->late[i]);
		if (sw_histogram_bound(i) != UINT64_MAX)
			sw_json_u64(j, "most_ns", sw_histogram_bound(i));
		sw_json_close(j);
	}
	sw_json_close(j);
}

static void path_write(struct sw_json *j, const struct sw_daemon_path *p)
{
	sw_json_object_open(j, "path");
	sw_json_u64(j, "rtt_ns", p->srtt_ns);
	sw_json_u64(j, "least_rtt_ns", p->least_ns);
	sw_json_u64(j, "window_bytes", p->window_bytes);
	sw_json_u64(j, "sent", p->sent);
	sw_json_u64(j, "lost", p->lost);
	sw_json_u64(j, "numbered", p->numbered);
	sw_json_u64(j, "missed", p->missed);
	sw_json_u64(j, "payload", p->payload);
	sw_json_u64(j, "lost_of_10000", p->lost_part);
	sw_json_u64(j, "missed_of_10000", p->missed_part);
	sw_json_close(j);
}

static void processes_write(struct sw_json *j, const struct sw_daemon_job *job)
{
	sw_json_array_open(j, "processes");
	for (uint32_t i = 0; i < job->n_processes; i++) {
		sw_json_object_open(j, NULL);
		sw_json_u64(j, "pid", (uint64_t)job->processes[i].pid);
		sw_json_u64(j, "local_rank", job->processes[i].local);
		sw_json_text(
			j, "state", sw_suspects_process(job->processes[i].pid));
		sw_json_close(j);
	}
	sw_json_close(j);
}

static void member_write(
	struct sw_json *j, const struct sw_daemon_job *job, uint32_t m)
{
	const struct sw_daemon_member *x = &job->members[m];

	sw_json_object_open(j, NULL);
	sw_json_u64(j, "agent", m);
	sw_json_text(j, "state", x->state);
	sw_json_text(j, "node", strcmp(x->node, "-") ? x->node : NULL);
	if (x->n_ranks)
		sw_json_u64(j, "ranks", x->n_ranks);
	if (x->n_ranks && x->first != UINT32_MAX)
		sw_json_u64(j, "first_rank", x->first);
	sw_json_u64(j, "last", x->n_last);
	sw_json_u64(j, "late_ns", x->late_ns);
	late_write(j, x);
	path_write(j, &x->path);
	sw_json_close(j);
}

static void wait_write(struct sw_json *j, const struct sw_daemon_wait *w)
{
	sw_json_object_open(j, NULL);
	sw_json_text(j, "name", w->name);
	sw_json_text(j, "kind", w->is_stream ? "group" : "tensor");
	sw_json_u64(j, "chunks", w->n_chunks);
	if (w->kind) {
		sw_json_text(j, "call", w->kind);
		sw_json_u64(j, "number", w->number);
		sw_json_u64(j, "still_ms", w->still_ms);
	}
	if (w->who)
		sw_json_text(j, "for", w->who);
	sw_json_array_open(j, "missing_agents");
	for (uint32_t m = 0; m < SW_MAX_MEMBERS; m++)
		if (w->lacks >> m & 1)
			sw_json_u64(j, NULL, m);
	sw_json_close(j);
	sw_json_close(j);
}

static void job_write(struct sw_json *j, const struct sw_found_daemon *d,
	const struct sw_daemon_job *job)
{
	sw_json_object_open(j, NULL);
	sw_json_text(j, "name", job->name);
	sw_json_text(j, job->is_served ? "server" : "at_agent", d->name);
	sw_json_u64(j, "pid", (uint64_t)d->pid);
	sw_json_text(j, "state", sw_find_state(d, job));
	sw_json_u64(j, "age_s", job->age_s);
	if (job->has_key)
		sw_json_bool(j, "keyed", job->is_keyed);
	if (job->has_key)
		sw_json_bool(j, "encrypted", job->is_encrypted);
	if (job->has_idle)
		sw_json_u64(j, "idle_s", job->idle_s);
	sw_json_u64(j, "open_chunks", job->open_chunks);
	if (job->text)
		sw_json_text(j, "text", job->text);
	if (job->most_payload) {
		sw_json_u64(j, "payload", job->payload);
		sw_json_u64(j, "most_payload", job->most_payload);
	}
	processes_write(j, job);
	sw_json_array_open(j, "agents");
	for (uint32_t m = 0; m < job->n_members; m++)
		member_write(j, job, m);
	sw_json_close(j);
	sw_json_array_open(j, "waits");
	for (uint32_t i = 0; i < job->n_waits; i++)
		wait_write(j, &job->waits[i]);
	sw_json_close(j);
	sw_json_close(j);
}

/* Return whether the user asks for this job.  @name may also name a daemon. */
static bool is_asked(const struct sw_found_daemon *d,
	const struct sw_daemon_job *job, const char *name)
{
	char pid[24];

	snprintf(pid, sizeof(pid), "%ld", (long)d->pid);
	return (!name || !strcmp(job->name, name) || !strcmp(pid, name) ||
		(d->name && !strcmp(d->name, name)));
}

/* Return whether a daemon sums a job that the user asks for. */
static bool serves(const struct sw_found_daemon *d, const char *name)
{
	for (uint32_t k = 0; k < d->n_jobs; k++)
		if (d->jobs[k].is_served && is_asked(d, &d->jobs[k], name))
			return true;
	return false;
}

/* Show jobs as their servers know them, or as their agents do.  Servers know
 * the late members. */
static uint32_t show_some(const struct sw_found_daemons *found,
	const char *name, bool are_served, struct sw_json *j)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < found->n; i++) {
		const struct sw_found_daemon *d = &found->all[i];
		bool is_told = !are_served && serves(d, name);

		for (uint32_t k = 0; k < d->n_jobs; k++) {
			if (d->jobs[k].is_served != are_served ||
				!is_asked(d, &d->jobs[k], name))
				continue;
			if (j)
				job_write(j, d, &d->jobs[k]);
			else
				job_print(d, &d->jobs[k]);
			if (!j && !is_told)
				sw_suspects_print_daemon(d, stdout);
			is_told = true;
			n++;
		}
	}
	return n;
}

/* Explain why nothing was shown. */
static int show_none(
	const struct sw_found_daemons *found, const char *name, FILE *to)
{
	uint32_t at;

	if (!name) {
		fprintf(to, "no daemon of this machine has a job\n");
		return 0;
	}
	if (sw_daemons_match(found, name, &at)) {
		fprintf(stderr, "sumwire status: no daemon of this machine has "
				"a job of this name\n");
		return 1;
	}
	return sw_find_unknown("sumwire status", name, found);
}

int sw_cmd_status(int argc, char **argv)
{
	bool is_json = false;
	struct sw_arg_list names = {0};
	const struct sw_arg rows[] = {
		{"--json", SW_ARG_FLAG, {.flag = &is_json}, 0, 0,
			"print one JSON object"},
	};
	const struct sw_args args = {.name = "sumwire status",
		.summary = "show the ranks of jobs at this machine's daemons, "
			   "and which ranks their tensors wait for",
		.rows = rows,
		.n_rows = 1,
		.positional = "JOB",
		.max_positionals = 1,
		.positionals = &names};
	struct sw_found_daemons found;
	struct sw_json j;
	const char *name;
	int err = sw_args_parse(&args, argc, argv);
	uint32_t n;

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	name = names.n ? names.items[0] : NULL;
	if (sw_daemons_find(&found)) {
		fprintf(stderr, "sumwire status: no memory\n");
		sw_daemons_free(&found);
		return 1;
	}
	sw_json_init(&j, stdout);
	if (is_json) {
		sw_json_object_open(&j, NULL);
		sw_json_array_open(&j, "jobs");
	}
	n = show_some(&found, name, true, is_json ? &j : NULL);
	n += show_some(&found, name, false, is_json ? &j : NULL);
	if (is_json) {
		sw_json_close(&j);
		sw_json_close(&j);
	}
	sw_json_fini(&j);
	err = n ? 0 : show_none(&found, name, is_json ? stderr : stdout);
	sw_daemons_free(&found);
	return err ? 1 : 0;
}
