/* record.c - record figures over time: a row or count for each change.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "apps/lab/sim/pcapng.h"
#include "apps/lab/sim/route.h"
#include "engine/base/error.h"
#include "engine/wire/wire.h"

struct sw_sim_record {
	struct sw_sim *sim;
	FILE *csv, *trace, *pcapng;     /* NULL: not written */
	const struct sw_sim_link *link; /* link that pcapng records */
	uint64_t *last; /* last figures, in the order of their rows */
	uint64_t *sent; /* by link: bytes at the last sample */
	uint32_t at;
};

static void write_row(struct sw_sim_record *r, const char *what,
	const char *from, const char *to, uint64_t value)
{
	fprintf(r->csv, "%llu.%03llu,%s,%s,%s,%llu\n",
		(unsigned long long)((r->sim->net.now_ns - SW_S) / 1000),
		(unsigned long long)(r->sim->net.now_ns % 1000), what, from, to,
		(unsigned long long)value);
}

/* Note that a tensor of a class is summed.  A class is complete with its last
 * tensor; its time counts from the first push of any of its tensors. */
static void note_class(
	struct sw_sim_record *r, struct sw_sim_agent *a, uint32_t tensor)
{
	uint8_t class = sw_class_of(tensor);
	uint64_t from_ns = a->pushed_ns[tensor];
	uint32_t n = 0;
	char name[24];

	for (uint32_t t = 0; t < a->job->n_tensors; t++)
		if (sw_class_of(t) == class) {
			from_ns = sw_min64(from_ns, a->pushed_ns[t]);
			n++;
		}
	if (++a->n_class_done[class] < n)
		return;
	a->n_class_done[class] = 0;
	snprintf(name, sizeof(name), "class %u", class);
	write_row(r, "class_ns", a->node->name, name,
		r->sim->net.now_ns - from_ns);
}

void sw_sim_record_tensor(
	struct sw_sim_record *r, struct sw_sim_agent *a, uint32_t tensor)
{
	char name[24];

	if (!r->csv)
		return;
	if (!a->colls)
		note_class(r, a, tensor);
	snprintf(name, sizeof(name), "tensor %u", tensor);
	write_row(r, "tensor_ns", a->node->name, name,
		r->sim->net.now_ns - a->pushed_ns[tensor]);
}

static void put(struct sw_sim_record *r, const char *what, const char *from,
	const char *to, uint64_t value)
{
	uint64_t *last = &r->last[r->at++];

	if (*last == value)
		return;
	*last = value;
	if (r->trace)
		sw_sim_perfetto_count(&r->sim->trace, r->sim->net.now_ns, what,
			from, to, value);
	if (r->csv)
		write_row(r, what, from, to, value);
}

static void put_agent(struct sw_sim_record *r, const struct sw_sim_agent *a)
{
	const char *name = a->node->name;
	uint32_t n = a->job->most_servers * a->job->desc->job.server_lcores;
	struct sw_worker_path p;
	uint64_t n_again = 0;

	for (uint32_t i = 0; i < n * a->n_lanes; i++) {
		if (!sw_worker_path(&a->worker[i / n], i % n, &p)) {
			r->at += 3;
			continue;
		}
		put(r, "window_bytes", name, p.server, p.path.window_bytes);
		put(r, "grant_bytes", name, p.server, p.path.granted_bytes);
		put(r, "rtt_ns", name, p.server, p.path.srtt_ns);
	}
	for (uint32_t i = 0; i < a->n_lanes; i++)
		n_again += sw_word(
			&sw_worker_stats(&a->worker[i])->retransmissions);
	put(r, "retransmissions", name, "", n_again);
}

/* Put the bits per second on the wire since the last sample. */
static void put_rate(struct sw_sim_record *r, const struct sw_sim_link *l,
	const char *from, const char *to)
{
	uint64_t bytes = l->n.bytes - r->sent[l->index];

	r->sent[l->index] = l->n.bytes;
	put(r, "rate_bit_s", from, to,
		(uint64_t)((unsigned __int128)bytes * 8 * SW_S /
			   r->sim->desc->record.every_ns));
}

static uint64_t sample(void *ctx, uint64_t now_ns)
{
	struct sw_sim_record *r = ctx;
	struct sw_sim *s = r->sim;
	char from[SW_SIM_NAME], to[SW_SIM_NAME];

	r->at = 0;
	for (uint32_t i = 0; i < s->net.n_links; i++) {
		struct sw_sim_link *l = &s->net.links[i];
		const char *at =
			sw_sim_name_of(&s->net, s->desc, l->from, from);
		const char *end = sw_sim_name_of(&s->net, s->desc, l->to, to);

		put(r, "queue_bytes", at, end, sw_sim_queued(&s->net, l));
		put(r, "frames", at, end, l->n.n_frames);
		put(r, "dropped", at, end, l->n.n_dropped + l->n.n_down);
		put_rate(r, l, at, end);
	}
	for (uint32_t j = 0; j < s->n_jobs; j++)
		for (uint32_t i = 0; i < s->jobs[j].n_agents; i++)
			put_agent(r, &s->jobs[j].agents[i]);
	for (uint32_t i = 0; i < s->net.n_cores; i++)
		if (s->servers && s->servers[i])
			put(r, "retransmissions", s->net.nodes[i].name, "",
				sw_word(&sw_server_stats(s->servers[i])
						 ->retransmissions));
	return now_ns + s->desc->record.every_ns;
}

static void tap(
	void *ctx, const struct sw_sim_link *l, const struct sw_sim_frame *f)
{
	const struct sw_sim_record *r = ctx;

	if (l == r->link)
		sw_sim_pcapng_frame(r->pcapng, r->sim->net.now_ns, f,
			r->sim->desc->record.snap);
}

static FILE *open_file(struct sw_sim *s, const char *key, const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		snprintf(s->why, sizeof(s->why),
			"[record] %s: %.200s cannot be written: %s", key, path,
			strerror(errno));
	return f;
}

static uint32_t n_figures(const struct sw_sim *s)
{
	uint32_t n = 4 * s->net.n_links + s->net.n_cores;

	for (uint32_t j = 0; j < s->n_jobs; j++)
		n += s->jobs[j].n_agents *
		     (3 * s->jobs[j].most_servers *
				     s->jobs[j].desc->job.server_lcores *
				     s->jobs[j].desc->agent.lcores +
			     1);
	return n;
}

static int open_csv(struct sw_sim *s, struct sw_sim_record *r)
{
	r->csv = open_file(s, "csv", s->desc->record.csv);
	if (!r->csv)
		return SW_EIO;
	fputs("time_us,figure,from,to,value\n", r->csv);
	return 0;
}

static int open_trace(struct sw_sim *s, struct sw_sim_record *r)
{
	r->trace = open_file(s, "trace", s->desc->record.trace);
	if (!r->trace)
		return SW_EIO;
	sw_sim_perfetto_begin(&s->trace, r->trace, s);
	return 0;
}

static void start(struct sw_sim *s, struct sw_sim_record *r)
{
	r->last = sw_lab_array(n_figures(s), sizeof(*r->last));
	r->sent = sw_lab_array(s->net.n_links, sizeof(*r->sent));
	sw_sim_timer_add(&s->net, s->net.now_ns, sample, r);
}

static int open_pcapng(struct sw_sim *s, struct sw_sim_record *r)
{
	const struct sw_sim_desc_record *d = &s->desc->record;

	r->link = sw_sim_link_between(&s->net, s->desc, d->from, d->to);
	if (!r->link) {
		snprintf(s->why, sizeof(s->why),
			"[record] pcapng: there is no link from \"%.40s\" to "
			"\"%.40s\"; from and to name a node or a switch, like "
			"switch, leaf0 or spine0",
			d->from, d->to);
		return SW_ECONF;
	}
	r->pcapng = open_file(s, "pcapng", d->pcapng);
	if (!r->pcapng)
		return SW_EIO;
	sw_sim_pcapng_begin(r->pcapng);
	s->net.tap = tap;
	s->net.tap_ctx = r;
	return 0;
}

int sw_sim_record_open(struct sw_sim *s, struct sw_sim_record **out)
{
	const struct sw_sim_desc_record *d = &s->desc->record;
	struct sw_sim_record *r;
	int err = 0;

	*out = NULL;
	if (!*d->csv && !*d->trace && !*d->pcapng)
		return 0;
	*out = r = calloc(1, sizeof(*r));
	if (!r)
		return SW_ENOMEM;
	r->sim = s;
	if (*d->csv)
		err = open_csv(s, r);
	if (*d->trace && !err)
		err = open_trace(s, r);
	if ((r->csv || r->trace) && !err)
		start(s, r);
	if (*d->pcapng && !err)
		err = open_pcapng(s, r);
	return err;
}

static void close_file(struct sw_sim *s, const char *key, FILE *f)
{
	bool is_bad = f && ferror(f);

	if (f && fclose(f))
		is_bad = true;
	if (is_bad && !s->why[0])
		snprintf(s->why, sizeof(s->why),
			"[record] %s: the file is not complete: %s", key,
			strerror(errno));
}

void sw_sim_record_close(struct sw_sim *s, struct sw_sim_record *r)
{
	if (!r)
		return;
	if (s->trace.to)
		sw_chrome_end(&s->trace);
	s->trace.to = NULL;
	close_file(s, "csv", r->csv);
	close_file(s, "trace", r->trace);
	close_file(s, "pcapng", r->pcapng);
	free(r->last);
	free(r->sent);
	free(r);
}
