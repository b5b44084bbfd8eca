/* job_wait.c - whom a job that forms waits for, in words.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/server/job.h"

enum {
	FIRST_S = 2, /* then after twice the time, and so on */
	LONGEST_S = 600,
};

struct out {
	char *text;
	size_t n, size;
};

static void add(struct out *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void add(struct out *o, const char *fmt, ...)
{
	va_list ap;

	if (o->n + 1 >= o->size)
		return; /* it is cut */
	va_start(ap, fmt);
	o->n += (size_t)vsnprintf(o->text + o->n, o->size - o->n, fmt, ap);
	va_end(ap);
}

static uint64_t missing(const struct sw_job *job)
{
	return ~job->joined & ~0ULL >> (64 - job->n_members);
}

/* What was seen of a rank that is missing. */
static void add_missing(struct out *o, const struct sw_job *job, uint32_t rank)
{
	const struct sw_member *m = &job->members[rank];
	char ip[SW_IP_TEXT];

	if (m->refused_err)
		add(o, "%srank %u at %s was refused (%s)", o->n ? "; " : "",
			rank, sw_ip_text(m->refused_ip, ip),
			sw_error_name(m->refused_err));
	else if (m->ip)
		add(o, "%srank %u left (%.32s, %s)", o->n ? "; " : "", rank,
			m->node, sw_ip_text(m->ip, ip));
}

void sw_job_describe(const struct sw_job *job, char *text, size_t size)
{
	struct out o = {text, 0, size};
	const char *sep = "here: rank ";
	char ip[SW_IP_TEXT];

	text[0] = 0;
	for (uint64_t left = missing(job); left; left &= left - 1)
		add_missing(&o, job, (uint32_t)__builtin_ctzll(left));
	if (o.n)
		add(&o, "; ");
	for (uint64_t left = job->joined; left; left &= left - 1) {
		uint32_t rank = (uint32_t)__builtin_ctzll(left);

		add(&o, "%s%u %s", sep, rank,
			sw_ip_text(job->members[rank].ip, ip));
		sep = ", ";
	}
}

void sw_job_wait(struct sw_server *srv, struct sw_job *job)
{
	job->wait_ns = FIRST_S * SW_S;
	job->wait_at_ns = srv->now_ns + job->wait_ns;
	srv->wait_at_ns = sw_min64(srv->wait_at_ns, job->wait_at_ns);
}

static bool is_waiting(const struct sw_job *job)
{
	return job->is_used && job->is_coordinated &&
	       job->state == SW_JOB_FORMING;
}

static void tell(struct sw_server *srv, struct sw_job *job)
{
	char ranks[SW_RANKS_TEXT], known[400];

	sw_job_describe(job, known, sizeof(known));
	sw_log(srv->env->log, SW_LOG_INFO,
		"job %s: waiting for %s of %u workers; %s", job->name,
		sw_ranks_text(missing(job), ranks), job->n_members, known);
	job->wait_ns = sw_min64(2 * job->wait_ns, LONGEST_S * SW_S);
	job->wait_at_ns = srv->now_ns + job->wait_ns;
}

void sw_job_tell_waiting(struct sw_server *srv)
{
	srv->wait_at_ns = UINT64_MAX;
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++) {
		struct sw_job *job = &srv->jobs[i];

		if (!is_waiting(job))
			continue;
		if (srv->now_ns >= job->wait_at_ns)
			tell(srv, job);
		srv->wait_at_ns = sw_min64(srv->wait_at_ns, job->wait_at_ns);
	}
}
