/* result.c - the figures of a run, as a table and as JSON.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/result.h"

#include <stdio.h>

#include "apps/cli/json.h"

/* Format milliseconds with three decimals.  Without floating point, the text is
 * the same on every machine. */
static const char *ms(uint64_t ns, char out[32])
{
	snprintf(out, 32, "%llu.%03llu", (unsigned long long)(ns / 1000000),
		(unsigned long long)(ns / 1000 % 1000));
	return out;
}

static const char *gbit(uint64_t bit_s, char out[32])
{
	snprintf(out, 32, "%llu.%03llu",
		(unsigned long long)(bit_s / 1000000000),
		(unsigned long long)(bit_s / 1000000 % 1000));
	return out;
}

static void print_job(const struct sw_sim_job_result *j)
{
	char good[32], q[3][32], u[2][32];

	printf("%-10s %6u %7u %6u %8s %10s %10s %10s %10s %10s %8llu %8llu\n",
		j->name, j->n_agents, j->n_servers, j->n_rounds,
		gbit(j->goodput_bit_s, good), ms(j->round_ns[0], q[0]),
		ms(j->round_ns[1], q[1]), ms(j->round_ns[2], q[2]),
		ms(j->urgent_ns[0], u[0]), ms(j->urgent_ns[1], u[1]),
		(unsigned long long)j->n_again,
		(unsigned long long)j->n_timeouts);
}

void sw_sim_print(const struct sw_sim_result *r)
{
	char buf[32];

	if (r->n_jobs)
		printf("%-10s %6s %7s %6s %8s %10s %10s %10s %10s %10s %8s "
		       "%8s\n",
			"job", "agents", "servers", "rounds", "Gb/s",
			"ms/round", "(middle)", "(high)", "urgent ms", "(p99)",
			"again", "timeouts");
	for (uint32_t i = 0; i < r->n_jobs; i++)
		print_job(&r->jobs[i]);
	if (r->n_traffic)
		printf("%-32s %8s %8s %8s\n", "traffic", "Gb/s", "again",
			"timeouts");
	for (uint32_t i = 0; i < r->n_traffic; i++)
		printf("%-32s %8s %8llu %8llu\n", r->traffic[i].name,
			gbit(r->traffic[i].goodput_bit_s, buf),
			(unsigned long long)r->traffic[i].n_again,
			(unsigned long long)r->traffic[i].n_timeouts);
	printf("frames %llu, dropped %llu, lost %llu, marked %llu, longest "
	       "queue %llu B (%s to %s), time %s ms\n",
		(unsigned long long)r->n_frames,
		(unsigned long long)(r->n_dropped + r->n_full),
		(unsigned long long)r->n_lost, (unsigned long long)r->n_marked,
		(unsigned long long)r->most_queued, r->most_from, r->most_to,
		ms(r->time_ns, buf));
}

static void json_job(struct sw_json *j, const struct sw_sim_job_result *r)
{
	sw_json_object_open(j, NULL);
	sw_json_text(j, "name", r->name);
	sw_json_u64(j, "agents", r->n_agents);
	sw_json_u64(j, "servers", r->n_servers);
	sw_json_u64(j, "rounds", r->n_rounds);
	sw_json_u64(j, "round_bytes", r->bytes);
	sw_json_u64(j, "goodput_bit_s", r->goodput_bit_s);
	sw_json_u64(j, "round_low_ns", r->round_ns[0]);
	sw_json_u64(j, "round_median_ns", r->round_ns[1]);
	sw_json_u64(j, "round_high_ns", r->round_ns[2]);
	sw_json_u64(j, "urgent_median_ns", r->urgent_ns[0]);
	sw_json_u64(j, "urgent_p99_ns", r->urgent_ns[1]);
	sw_json_u64(j, "retransmissions", r->n_again);
	sw_json_u64(j, "timeouts", r->n_timeouts);
	sw_json_u64(j, "wrong_elements", r->n_wrong);
	sw_json_close(j);
}

static void json_traffic(
	struct sw_json *j, const struct sw_sim_traffic_result *r)
{
	sw_json_object_open(j, NULL);
	sw_json_text(j, "name", r->name);
	sw_json_u64(j, "goodput_bit_s", r->goodput_bit_s);
	sw_json_u64(j, "retransmissions", r->n_again);
	sw_json_u64(j, "timeouts", r->n_timeouts);
	sw_json_close(j);
}

int sw_sim_print_json(const struct sw_sim_result *r, FILE *f)
{
	struct sw_json j;

	sw_json_init(&j, f);
	sw_json_object_open(&j, NULL);
	sw_json_array_open(&j, "jobs");
	for (uint32_t i = 0; i < r->n_jobs; i++)
		json_job(&j, &r->jobs[i]);
	sw_json_close(&j);
	sw_json_array_open(&j, "traffic");
	for (uint32_t i = 0; i < r->n_traffic; i++)
		json_traffic(&j, &r->traffic[i]);
	sw_json_close(&j);
	sw_json_u64(&j, "time_ns", r->time_ns);
	sw_json_u64(&j, "frames", r->n_frames);
	sw_json_u64(&j, "dropped", r->n_dropped + r->n_full);
	sw_json_u64(&j, "lost", r->n_lost);
	sw_json_u64(&j, "marked", r->n_marked);
	sw_json_u64(&j, "longest_queue_bytes", r->most_queued);
	sw_json_text(&j, "longest_queue_from", r->most_from);
	sw_json_text(&j, "longest_queue_to", r->most_to);
	sw_json_text(&j, "error", r->why[0] ? r->why : NULL);
	sw_json_close(&j);
	return sw_json_fini(&j);
}
