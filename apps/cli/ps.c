/* ps.c - sumwire ps: the daemons and jobs of this machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <sumwire/version.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/find.h"
#include "apps/cli/json.h"

static void job_write(struct sw_json *j, const struct sw_daemon_job *job)
{
	sw_json_object_open(j, NULL);
	sw_json_text(j, "name", job->name);
	sw_json_text(j, "part", job->is_served ? "server" : "agent");
	sw_json_text(j, "state", job->state);
	sw_json_u64(j, job->is_served ? "agents_here" : "local_ranks_here",
		job->n_here);
	sw_json_u64(j, job->is_served ? "agents" : "local_ranks", job->n_all);
	sw_json_u64(j, "ranks_here", job->n_ranks);
	if (job->size)
		sw_json_u64(j, "ranks", job->size);
	if (job->size && !job->is_served)
		sw_json_u64(j, "first_rank", job->first);
	sw_json_u64(j, "age_s", job->age_s);
	if (job->is_served)
		sw_json_u64(j, "open_chunks", job->open_chunks);
	if (job->missing)
		sw_json_text(j, "missing", job->missing);
	if (job->text)
		sw_json_text(j, "text", job->text);
	sw_json_close(j);
}

static void daemon_write(struct sw_json *j, const struct sw_found_daemon *d)
{
	sw_json_object_open(j, NULL);
	sw_json_text(j, "name", d->name);
	sw_json_text(j, "role", d->role);
	sw_json_u64(j, "pid", (uint64_t)d->pid);
	sw_json_u64(j, "uid", d->uid);
	sw_json_text(j, "version", d->version);
	sw_json_text(j, "state", sw_find_state(d, d->n_jobs ? d->jobs : NULL));
	if (d->since_s)
		sw_json_u64(j, "since_s", d->since_s);
	sw_json_text(j, "stats", d->stats);
	sw_json_text(j, "socket", d->socket);
	sw_json_array_open(j, "jobs");
	for (uint32_t i = 0; i < d->n_jobs; i++)
		job_write(j, &d->jobs[i]);
	sw_json_close(j);
	sw_json_close(j);
}

static void json_write(const struct sw_found_daemons *found)
{
	struct sw_json j;

	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	sw_json_array_open(&j, "daemons");
	for (uint32_t i = 0; i < found->n; i++)
		daemon_write(&j, &found->all[i]);
	sw_json_close(&j);
	sw_json_close(&j);
	sw_json_fini(&j);
}

int sw_cmd_ps(int argc, char **argv)
{
	bool is_json = false;
	const struct sw_arg rows[] = {
		{"--json", SW_ARG_FLAG, {.flag = &is_json}, 0, 0,
			"print one JSON object"},
	};
	const struct sw_args args = {.name = "sumwire ps",
		.summary = "list the daemons and jobs of this machine",
		.rows = rows,
		.n_rows = 1};
	struct sw_found_daemons found;
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	err = sw_daemons_find(&found);
	if (err)
		fprintf(stderr, "sumwire ps: no memory\n");
	else if (is_json)
		json_write(&found);
	else
		sw_find_print(stdout, &found);
	sw_daemons_free(&found);
	return err ? 1 : 0;
}
