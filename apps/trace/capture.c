/* capture.c - sumwire capture: write daemons' frames for Wireshark.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/args.h"
#include "apps/cli/clock.h"
#include "apps/cli/cmd.h"
#include "apps/cli/pcapng.h"
#include "apps/trace/record.h"
#include "engine/base/bytes.h"
#include "engine/base/params.h"
#include "engine/loop/engine.h"

enum { INTERFACES = 1024, DAEMONS = 64, PORTS = SW_MAX_PORTS };

#define SIZE_MOST (UINT64_C(1) << 44)

struct options {
	const char *path, *job, *way;
	uint64_t n_most, time_ns, max_bytes;
	uint32_t snap;
	struct sw_arg_list names;
};

/* An interface of the file: a port as one lcore polls it. */
struct interface {
	uint16_t daemon, lcore, port;
};

struct capture {
	const struct options *o;
	uint64_t ahead_ns; /* lead of the wall clock over CLOCK_MONOTONIC */
	uint64_t n_frames;
	bool has_begun;
	uint32_t n; /* interfaces */
	struct interface all[INTERFACES];
	uint32_t dropped[DAEMONS][SW_MAX_LCORES]; /* so far */
	char ports[DAEMONS][PORTS][SW_NAME_MAX];
	uint32_t n_ports[DAEMONS];
	char names[DAEMONS][SW_NAME_MAX];
};

static int parse(struct options *o, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"-w, --write", SW_ARG_PATH, {.string = &o->path}, 0, 0,
			"file to write, FILE.pcapng; -: standard output"},
		{"-c, --count", SW_ARG_U64, {.u64 = &o->n_most}, 0, 1e12,
			"end after N frames; 0: no limit"},
		{"-s, --snaplen", SW_ARG_U32, {.u32 = &o->snap}, SW_HEAD_BYTES,
			SW_TRACE_KEPT_MAX,
			"bytes of each frame to keep, sumwire's header and "
			"payload"},
		{"--direction", SW_ARG_STRING, {.string = &o->way}, 0, 0,
			"frames to write: in, out or both"},
		{"--job", SW_ARG_STRING, {.string = &o->job}, 0, 0,
			"write only frames of this job"},
		{"--time", SW_ARG_TIME, {.u64 = &o->time_ns}, 0, 0,
			"how long to capture; 0: until Ctrl-C"},
		{"--size", SW_ARG_BYTES, {.u64 = &o->max_bytes}, 1,
			(double)SIZE_MOST,
			"end the capture at this size of the file"},
	};
	const struct sw_args args = {.name = "sumwire capture",
		.summary = "write the frames of this machine's daemons as "
			   "pcapng",
		.rows = rows,
		.n_rows = SW_ARRAY_SIZE(rows),
		.positional = "JOB",
		.max_positionals = SW_ARG_LIST_MAX,
		.positionals = &o->names};
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	return -1;
}

static int usage(const char *why)
{
	fprintf(stderr, "sumwire capture: %s\n", why);
	return 2;
}

/* --- blocks --- */

/* Return the interface of a frame; write it when it is new. */
static uint32_t interface_of(
	struct capture *c, FILE *to, struct interface i, size_t *sum)
{
	char name[2 * SW_NAME_MAX + 40];

	for (uint32_t k = 0; k < c->n; k++)
		if (!memcmp(&c->all[k], &i, sizeof(i)))
			return k;
	if (c->n == INTERFACES)
		return 0;
	snprintf(name, sizeof(name), "%s %s lcore %u", c->names[i.daemon],
		i.port < c->n_ports[i.daemon] ? c->ports[i.daemon][i.port]
					      : "port",
		i.lcore);
	*sum += sw_pcapng_interface(to, SW_PCAPNG_IP, name);
	c->all[c->n] = i;
	return c->n++;
}

static size_t put_frame(struct capture *c, FILE *to, struct interface i,
	const struct sw_trace_frame *f, const void *bytes)
{
	const struct sw_pcapng_udp udp = {.from = f->from,
		.to = f->to,
		.from_udp = f->from_udp,
		.to_udp = f->to_udp,
		.ecn = f->is_marked ? 3 : 0,
		.len = f->bytes};
	uint8_t heads[SW_PCAPNG_HEADS_MAX];
	size_t sum = 0, n = sw_pcapng_heads(heads, &udp);
	struct sw_pcapng_packet p = {
		.way = f->is_sent ? SW_PCAPNG_OUT : SW_PCAPNG_IN,
		.at_ns = f->t_ns + c->ahead_ns,
		.len = (uint32_t)n + f->bytes,
		.n_parts = 2,
		.parts = {{heads, n}, {bytes, f->kept}}};

	p.interface = interface_of(c, to, i, &sum);
	return sum + sw_pcapng_packet(to, &p);
}

static bool has_enough(const void *ctx)
{
	const struct capture *c = ctx;

	return c->o->n_most && c->n_frames >= c->o->n_most;
}

static size_t put_frames(struct capture *c, FILE *to,
	const struct sw_trace_block *b, const uint8_t *bytes)
{
	struct interface i = {.daemon = b->daemon, .lcore = b->lcore};
	struct sw_trace_frame f;
	size_t sum = 0, n;

	for (size_t at = 0; at + sizeof(f) <= b->bytes && !has_enough(c);
		at += n) {
		memcpy(&f, bytes + at, sizeof(f));
		n = sw_trace_frame_entries(f.kept) *
		    sizeof(struct sw_trace_event);
		if (f.kept > SW_TRACE_KEPT_MAX || at + n > b->bytes)
			break;
		i.port = f.port;
		sum += put_frame(c, to, i, &f, bytes + at + sizeof(f));
		c->n_frames++;
	}
	return sum;
}

/* Write the number of frames that each lcore has lost, at its first
 * interface. */
static void put_dropped(const struct capture *c, FILE *to)
{
	uint64_t at_ns = sw_now_ns() + c->ahead_ns;
	bool is_told[DAEMONS][SW_MAX_LCORES] = {0};

	for (uint32_t k = 0; k < c->n; k++) {
		const struct interface *i = &c->all[k];
		uint32_t n = c->dropped[i->daemon][i->lcore];

		if (!n || is_told[i->daemon][i->lcore])
			continue;
		is_told[i->daemon][i->lcore] = true;
		sw_pcapng_dropped(to, k, at_ns, n);
	}
}

static void tell(const struct capture *c)
{
	fprintf(stderr, "%llu frames\n", (unsigned long long)c->n_frames);
	for (uint32_t i = 0; i < DAEMONS; i++)
		for (uint32_t k = 0; k < SW_MAX_LCORES; k++)
			if (c->dropped[i][k])
				fprintf(stderr,
					"%s, lcore %u: %u more dropped, "
					"because "
					"the ring was full\n",
					c->names[i], k, c->dropped[i][k]);
}

static size_t write_block(void *ctx, FILE *to, const struct sw_found_daemon *d,
	const struct sw_trace_block *b, const void *bytes)
{
	struct capture *c = ctx;

	if (b->daemon >= DAEMONS || b->lcore >= SW_MAX_LCORES)
		return 0;
	c->has_begun = true;
	if (b->kind == SW_TRACE_HELLO)
		snprintf(c->names[b->daemon], SW_NAME_MAX, "%s",
			d->name ? d->name : "daemon");
	if (b->kind == SW_TRACE_PORT && c->n_ports[b->daemon] < PORTS)
		snprintf(c->ports[b->daemon][c->n_ports[b->daemon]++],
			SW_NAME_MAX, "%.*s", (int)b->bytes,
			(const char *)bytes);
	if (b->kind != SW_TRACE_FRAMES)
		return 0;
	c->dropped[b->daemon][b->lcore] = b->n_dropped;
	return put_frames(c, to, b, bytes);
}

/* --- the command --- */

static uint64_t wall_ahead_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * SW_S + (uint64_t)t.tv_nsec - sw_now_ns();
}

/* Open the file for its owner only: frames contain a job's confidential
 * data. */
static FILE *open_file(const char *path)
{
	int fd = strcmp(path, "-")
			 ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
				   0600)
			 : dup(STDOUT_FILENO);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

static int record(const struct options *o, const struct sw_trace_ask *ask)
{
	struct capture *c = calloc(1, sizeof(*c));
	struct sw_record r = {.who = "sumwire capture",
		.verb = "captured",
		.ask = ask,
		.names = &o->names,
		.time_ns = o->time_ns,
		.max_bytes = o->max_bytes,
		.path = strcmp(o->path, "-") ? o->path : "standard output",
		.write = write_block,
		.has_enough = has_enough,
		.ctx = c};
	int err;

	r.to = open_file(o->path);
	if (!c || !r.to) {
		fprintf(stderr, "sumwire capture: %s: %s\n", r.path,
			strerror(errno));
		free(c);
		return 1;
	}
	c->o = o;
	c->ahead_ns = wall_ahead_ns();
	err = sw_record_run(&r, sw_pcapng_begin(r.to));
	if (!err)
		put_dropped(c, r.to);
	if (c->has_begun)
		tell(c);
	if (fclose(r.to) && !err && errno != EPIPE) {
		fprintf(stderr, "sumwire capture: cannot write %s: %s\n",
			r.path, strerror(errno));
		err = 1;
	}
	free(c);
	return err;
}

int sw_cmd_capture(int argc, char **argv)
{
	struct options o = {.path = "-",
		.job = "",
		.way = "both",
		.snap = SW_TRACE_KEPT_MAX,
		.max_bytes = SIZE_MOST};
	struct sw_trace_ask ask = {.kind = SW_TRACE_ASK_FRAMES};
	int code = parse(&o, argc, argv);

	if (code >= 0)
		return code;
	ask.most = o.snap;
	ask.has_received = strcmp(o.way, "out") != 0;
	ask.has_sent = strcmp(o.way, "in") != 0;
	if (ask.has_received && ask.has_sent && strcmp(o.way, "both"))
		return usage("--direction takes in, out or both");
	if (strlen(o.job) >= sizeof(ask.job))
		return usage("--job: the name is too long");
	strcpy(ask.job, o.job);
	if (!strcmp(o.path, "-") && isatty(STDOUT_FILENO))
		return usage("standard output is a terminal: give --write "
			     "FILE.pcapng, or pipe it into wireshark -k -i -");
	return record(&o, &ask);
}
