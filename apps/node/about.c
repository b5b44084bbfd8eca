/* about.c - tell "sumwire ps" about this daemon.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/about.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sumwire/version.h>

#include "apps/node/serve.h"
#include "engine/base/coll_kind.h"
#include "engine/wire/wire.h"
#include "pmd/client/folder.h"
#include "pmd/host/daemons.h"
#include "pmd/host/stale.h"

enum {
	/* how long a reader waits for the lcores' answers */
	LOOK_MS = 300,
	LOOK_EVERY_MS = 250, /* interval of looks at ports and lcores */
};

/* Choose the socket's folder.  Only the system service's RUNTIME_DIRECTORY
 * counts: ignore any other. */
static int choose_folder(char out[SW_FOLDER_BYTES], const struct sw_log *log)
{
	const char *env = getenv("RUNTIME_DIRECTORY");
	char why[SW_FOLDER_WHY_BYTES];
	int err;

	if (env && !strcmp(env, "/run/sumwire")) {
		strcpy(out, env);
		return 0;
	}
	err = sw_folder_make(out, why);
	if (err)
		sw_log(log, SW_LOG_INFO,
			"sumwire ps will not find this daemon: %s", why);
	return err;
}

void sw_about_open(struct sw_daemon *d)
{
	char folder[SW_FOLDER_BYTES], path[SW_FOLDER_BYTES + 32];
	int n;

	d->about.began = time(NULL);
	if (choose_folder(folder, &d->log))
		return;
	sw_stale_sweep(folder, SW_DAEMON_PREFIX);
	sw_stale_sweep(folder, SW_TRACE_PREFIX);
	n = snprintf(path, sizeof(path), "%s/" SW_DAEMON_PREFIX "%ld.sock",
		folder, (long)getpid());
	if (n >= SW_FOLDER_BYTES ||
		sw_tell_open(&d->about.tell, path, "socket", &d->log))
		sw_log(&d->log, SW_LOG_INFO,
			"sumwire ps will not find this daemon: no socket in %s",
			folder);
	sw_trace_open(d, folder);
}

/* --- the text --- */

struct text {
	const struct sw_daemon *daemon;
	const struct sw_server_view *served; /* NULL: the jobs are unknown */
	bool is_stuck;
	const struct sw_about_job *job;
};

static const char *state_of(const struct sw_server_job *job)
{
	static const char *const names[] = {[SW_JOB_FORMING] = "forming",
		[SW_JOB_RUNNING] = "running",
		[SW_JOB_FAILED] = "failed",
		[SW_JOB_PROBING] = "probing"};

	if (job->is_closing)
		return "closing";
	return job->state < SW_ARRAY_SIZE(names) ? names[job->state] : "-";
}

static void write_late(const struct sw_histogram *h, FILE *to)
{
	uint64_t n = sw_histogram_count(h);

	if (!n)
		return;
	fprintf(to, "last %llu %llu\nlate", (unsigned long long)n,
		(unsigned long long)h->sum_ns);
	for (uint32_t i = 0; i < SW_HISTOGRAM_BUCKETS; i++)
		fprintf(to, " %llu", (unsigned long long)h->n[i]);
	fprintf(to, "\n");
}

static void write_numbers(
	const char *key, const uint64_t *fields, size_t n, FILE *to)
{
	fprintf(to, "%s", key);
	for (size_t i = 0; i < n; i++)
		fprintf(to, " %llu", (unsigned long long)fields[i]);
	fprintf(to, "\n");
}

void sw_about_path(const struct sw_peer_view *p, uint32_t payload,
	uint64_t push_bytes, uint64_t result_bytes, FILE *to)
{
	const uint64_t path[] = {p->srtt_ns, p->least_ns, p->window_bytes,
		p->sent, p->lost, p->numbered, p->missed, payload, p->lost_part,
		p->missed_part};
	const uint64_t moved[] = {push_bytes, result_bytes,
		p->stalled_ns[SW_STALL_GRANT], p->stalled_ns[SW_STALL_WINDOW],
		p->stalled_ns[SW_STALL_FLIGHT], p->marked_part};
	const uint64_t losses[] = {p->queued, p->timeouts};

	write_numbers("path", path, SW_ARRAY_SIZE(path), to);
	write_numbers("moved", moved, SW_ARRAY_SIZE(moved), to);
	write_numbers("losses", losses, SW_ARRAY_SIZE(losses), to);
}

static void write_members(const struct sw_server_job *j, FILE *to)
{
	for (uint32_t m = 0; m < j->n_members; m++) {
		const struct sw_server_member *x = &j->members[m];

		fprintf(to, "member %s %u %u %s\n",
			x->is_here    ? "here"
			: x->has_left ? "left"
				      : "missing",
			x->n_local, x->is_ranked ? x->first : UINT32_MAX,
			x->node[0] ? x->node : "-");
		write_late(&x->late, to);
		sw_about_path(&x->path, x->payload, x->push_bytes,
			x->result_bytes, to);
	}
}

static void write_waits(const struct sw_server_view *l, uint32_t job, FILE *to)
{
	for (uint32_t i = 0; i < l->n_waits; i++) {
		const struct sw_server_wait *w = &l->waits[i];

		if (w->job != job)
			continue;
		fprintf(to, "wait %s %u %llx %s\n",
			w->is_stream ? "stream" : "tensor", w->n_open,
			(unsigned long long)w->lacks, w->name);
		fprintf(to, "still %llu %u %s\n",
			(unsigned long long)(w->still_ns / SW_MS), w->number,
			sw_coll_name(w->kind));
	}
	if (l->n_more && job + 1 == l->n_jobs)
		fprintf(to, "more %u\n", l->n_more);
}

static void write_served(const struct sw_server_view *v, FILE *to)
{
	char agents[SW_AGENTS_TEXT], why[SW_TEXT_MAX];

	for (uint32_t i = 0; i < v->n_jobs; i++) {
		const struct sw_server_job *j = &v->jobs[i];

		sw_daemons_write_job(
			to, &(struct sw_daemon_job){.is_served = true,
				    .state = state_of(j),
				    .n_here = j->n_here,
				    .n_all = j->n_members,
				    .n_ranks = j->n_ranks,
				    .size = j->size,
				    .age_s = j->age_ns / SW_S,
				    .open_chunks = j->open_chunks,
				    .name = j->name});
		if (j->missing && j->state != SW_JOB_FAILED)
			fprintf(to, "missing %s\n",
				sw_agents_text(j->missing, agents));
		sw_fault_text(&j->why, false, NULL, why);
		if (j->state != SW_JOB_RUNNING && why[0])
			fprintf(to, "text %s\n", why);
		fprintf(to, "keyed %d\nencrypted %d\npayload %u %u\n",
			j->is_keyed, j->is_encrypted, j->payload,
			j->most_payload);
		fprintf(to, "idle %llu\nsums %llu %llu\n",
			(unsigned long long)(j->idle_ns / SW_S),
			(unsigned long long)j->open_slots,
			(unsigned long long)j->done_chunks);
		write_members(j, to);
		write_waits(v, i, to);
	}
}

/* --- ports and cores --- */

/* Note when a port's link has come up since the last look. */
static void look_at_ports(struct sw_daemon *d, uint64_t now_ns)
{
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++) {
		struct sw_about_port *p = &d->about.ports[i];
		struct sw_dpdk_port_stats ps;

		sw_dpdk_port_stats_get(d->queues[0][i], &ps);
		if (ps.link_ups != p->n_ups)
			p->at_ns = now_ns;
		p->n_ups = ps.link_ups;
	}
}

static void look_at_cores(struct sw_daemon *d, uint64_t now_ns)
{
	for (uint32_t i = 0; i < d->n_lcores; i++)
		sw_cpu_wait_look(&d->about.waits[i],
			atomic_load_explicit(
				&d->pollers[i].tid, memory_order_relaxed),
			now_ns);
}

/* Write the links that came up again after the start, and each lcore's wait. */
static void write_ports(const struct sw_daemon *d, FILE *to)
{
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++) {
		const struct sw_about_port *p = &d->about.ports[i];

		if (p->n_ups > 1)
			fprintf(to, "port %llu %llu %s\n",
				(unsigned long long)p->n_ups - 1,
				(unsigned long long)((sw_now_ns() - p->at_ns) /
						     SW_MS),
				d->conf.ports[i].label);
	}
	for (uint32_t i = 0; i < d->n_lcores; i++)
		fprintf(to, "core %llu %llu\n",
			(unsigned long long)d->about.waits[i].waited_ns,
			(unsigned long long)d->about.waits[i].period_ns);
}

static void write_all(void *ctx, FILE *to)
{
	static const char *const roles[] = {[SW_ROLE_SERVER] = "server",
		[SW_ROLE_AGENT] = "agent",
		[SW_ROLE_BOTH] = "both"};
	const struct text *t = ctx;
	const struct sw_daemon *d = t->daemon;

	fprintf(to,
		"sumwire %d %s\nname %s\nrole %s\npid %ld\nstate %s\n"
		"since %lld\nstats %s\n",
		SW_DAEMON_FORMAT, SW_VERSION, d->conf.node.name,
		roles[d->conf.node.role], (long)getpid(),
		t->is_stuck     ? "stuck"
		: d->drained_ns ? "draining"
				: "up",
		(long long)d->about.began, sw_stats_serve_path(d->stats));
	if (*sw_feed_path(&d->trace.feed))
		fprintf(to, "trace %s\n", sw_feed_path(&d->trace.feed));
	if (d->conf.node.role != SW_ROLE_SERVER)
		fprintf(to, "socket %s\n", d->conf.agent.socket);
	write_ports(d, to);
	if (t->job)
		t->job->write(t->job->ctx, to);
	if (t->served)
		write_served(t->served, to);
}

bool sw_about_poll(struct sw_daemon *d, struct sw_serve *serve,
	const struct sw_about_job *job)
{
	struct sw_about *a = &d->about;
	struct text t = {.daemon = d, .job = job};
	bool has_served, has_job;
	uint64_t now_ns;

	now_ns = sw_now_ns();
	if (now_ns >= a->look_at_ns) {
		a->look_at_ns = now_ns + LOOK_EVERY_MS * SW_MS;
		look_at_ports(d, now_ns);
		look_at_cores(d, now_ns);
	}
	if (!sw_tell_has_reader(&a->tell))
		return false;
	if (!a->asked_ns)
		a->asked_ns = now_ns;
	t.served = serve ? sw_serve_look(serve) : NULL;
	has_served = !serve || t.served;
	has_job = !job || job->look(job->ctx);
	if (!(has_served && has_job) && now_ns - a->asked_ns < LOOK_MS * SW_MS)
		return false;
	t.is_stuck = !(has_served && has_job);
	sw_tell_poll(&a->tell, write_all, &t);
	a->asked_ns = 0;
	if (t.served)
		sw_serve_looked(serve);
	return has_job;
}
