/* suspects.c - sentences about the paths and processes that slow a job down.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/suspects.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/params.h"

enum {
	NODE = 40,
	SLOW_TIMES = 4,   /* slow: this many round trips of the others */
	ALONE_TIMES = 50, /* without others: this many of its own shortest */
	LOST_10000 = 100, /* lost, of 10,000 frames */
	WAIT_1000 = 250,  /* waited for a CPU, of 1000 ns */
	FLAP_MS = 600000, /* a link that stayed up this long has recovered */
};

#define SLOW_NS (3 * SW_MS)

const char *sw_suspects_duration(double ns, char out[SW_DURATION])
{
	if (ns < 1e9)
		snprintf(out, SW_DURATION, "%.3g ms", ns / 1e6);
	else
		snprintf(out, SW_DURATION, "%.1f s", ns / 1e9);
	return out;
}

void sw_suspects_who(
	const struct sw_daemon_job *job, uint32_t m, char out[SW_WHO])
{
	const struct sw_daemon_member *x = &job->members[m];
	char ranks[48];

	if (!x->n_ranks || x->first == UINT32_MAX)
		snprintf(ranks, sizeof(ranks), "agent %u", m);
	else if (x->n_ranks == 1)
		snprintf(ranks, sizeof(ranks), "rank %u", x->first);
	else
		snprintf(ranks, sizeof(ranks), "ranks %u-%u", x->first,
			x->first + x->n_ranks - 1);
	if (strcmp(x->node, "-"))
		snprintf(out, SW_WHO, "%s (node %.*s)", ranks, NODE, x->node);
	else
		snprintf(out, SW_WHO, "%s", ranks);
}

/* --- paths --- */

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Return the median round trip of the members except @m; 0: none is
 * measured. */
static uint64_t rtt_of_others(const struct sw_daemon_job *job, uint32_t m)
{
	uint64_t all[SW_MAX_MEMBERS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < job->n_members; i++)
		if (i != m && job->members[i].path.srtt_ns)
			all[n++] = job->members[i].path.srtt_ns;
	qsort(all, n, sizeof(*all), compare);
	return n ? all[n / 2] : 0;
}

static void slow_print(const struct sw_daemon_job *job, uint32_t m, FILE *to)
{
	const struct sw_daemon_path *p = &job->members[m].path;
	uint64_t others = rtt_of_others(job, m);
	char who[SW_WHO], text[SW_DURATION];

	if (p->srtt_ns < SLOW_NS ||
		p->srtt_ns < (others ? SLOW_TIMES * others
				     : ALONE_TIMES * p->least_ns))
		return;
	sw_suspects_who(job, m, who);
	fprintf(to, "  slow     %s: round trips of %s", who,
		sw_suspects_duration((double)p->srtt_ns, text));
	if (others)
		fprintf(to, ", others %s",
			sw_suspects_duration((double)others, text));
	if (p->least_ns)
		fprintf(to, ", at best %s",
			sw_suspects_duration((double)p->least_ns, text));
	fprintf(to, ": a slow or full link, or a busy machine\n");
}

static void loss_print(const struct sw_daemon_job *job, uint32_t m, FILE *to)
{
	const struct sw_daemon_path *p = &job->members[m].path;
	char who[SW_WHO];

	if (p->lost_part < LOST_10000 && p->missed_part < LOST_10000)
		return;
	sw_suspects_who(job, m, who);
	fprintf(to,
		"  loses    %s: %.2g %% of the frames to it, and %.2g %% from "
		"it, were lost within 10 s\n",
		who, (double)p->lost_part / 100, (double)p->missed_part / 100);
}

/* Name the members whose paths limit the job's payload. */
static void payload_print(const struct sw_daemon_job *job, FILE *to)
{
	char who[SW_WHO];
	bool has_one = false;

	if (!job->payload || job->payload >= job->most_payload)
		return;
	fprintf(to, "  payload  %llu B, though our ports carry %llu B",
		(unsigned long long)job->payload,
		(unsigned long long)job->most_payload);
	for (uint32_t m = 0; m < job->n_members; m++) {
		if (job->members[m].path.payload != job->payload)
			continue;
		sw_suspects_who(job, m, who);
		fprintf(to, "%s%s",
			has_one ? ", " : ": no larger frame reaches ", who);
		has_one = true;
	}
	fprintf(to, "\n");
}

/* --- processes --- */

const char *sw_suspects_process(pid_t pid)
{
	static const struct {
		char letter;
		const char *word;
	} words[] = {{'R', "running"}, {'S', "running"}, {'I', "running"},
		{'T', "stopped"}, {'t', "in a debugger"},
		{'D', "waiting for a disk"}, {'Z', "dead"}, {'X', "dead"}};
	char path[64], text[512], *end;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	f = fopen(path, "re");
	if (!f)
		return "unknown";
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')'); /* the name may contain any character */
	for (size_t i = 0; end && end[1] && i < SW_ARRAY_SIZE(words); i++)
		if (end[2] == words[i].letter)
			return words[i].word;
	return "unknown";
}

static void processes_print(const struct sw_daemon_job *job, FILE *to)
{
	for (uint32_t i = 0; i < job->n_processes; i++) {
		const struct sw_daemon_process *p = &job->processes[i];
		const char *word = sw_suspects_process(p->pid);

		if (!strcmp(word, "running") || !strcmp(word, "unknown"))
			continue;
		fprintf(to, "  process  %ld (local rank %u) is %s%s",
			(long)p->pid, p->local, word,
			strcmp(word, "stopped") ? "\n" : ": ");
		if (!strcmp(word, "stopped"))
			fprintf(to, "kill -CONT %ld lets it continue\n",
				(long)p->pid);
	}
}

void sw_suspects_print(const struct sw_daemon_job *job, FILE *to)
{
	for (uint32_t m = 0; m < job->n_members; m++) {
		slow_print(job, m, to);
		loss_print(job, m, to);
	}
	payload_print(job, to);
	processes_print(job, to);
}

/* --- the daemon --- */

void sw_suspects_print_daemon(const struct sw_found_daemon *d, FILE *to)
{
	for (uint32_t i = 0; i < d->n_ports; i++)
		if (d->ports[i].ago_ms < FLAP_MS)
			fprintf(to,
				"  link     port %s of %s came up again %llu "
				"time%s, the last time %.1f s ago\n",
				d->ports[i].label, d->name ? d->name : "-",
				(unsigned long long)d->ports[i].n_ups,
				d->ports[i].n_ups == 1 ? "" : "s",
				(double)d->ports[i].ago_ms / 1e3);
	for (uint32_t i = 0; i < d->n_cores; i++) {
		const struct sw_daemon_core *c = &d->cores[i];

		if (c->period_ns &&
			c->waited_ns * 1000 > c->period_ns * WAIT_1000)
			fprintf(to,
				"  cpu      polling core %u of %s had no CPU "
				"for %.0f %% of %.1f s: other threads run "
				"there, or a CPU quota limits it\n",
				i, d->name ? d->name : "-",
				100.0 * (double)c->waited_ns /
					(double)c->period_ns,
				(double)c->period_ns / 1e9);
	}
}
