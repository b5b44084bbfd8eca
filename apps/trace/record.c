/* record.c - record what this machine's daemons do.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/trace/record.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "apps/cli/find.h"
#include "apps/cli/signals.h"
#include "apps/cli/trace_format.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/params.h"
#include "pmd/host/daemons.h"
#include "pmd/host/feed.h"

enum {
	DAEMONS = 64,
	POLL_MS = 50,
	LAST_MS = 5000, /* for the daemons to send what is left */
	BUFFER = 2 * (SW_TRACE_BLOCK_MAX + (int)sizeof(struct sw_trace_block))
};

/* A daemon that is recorded. */
struct source {
	const struct sw_found_daemon *d;
	int fd; /* -1: it has said all, or ended */
	bool has_ended;
	size_t n; /* bytes in the buffer */
	char buffer[BUFFER];
};

struct recording {
	const struct sw_record *r;
	struct source *all;
	uint32_t n, n_open;
	uint64_t n_bytes; /* written, whole blocks */
	bool has_failed, is_full;
};

static const char *name_of(const struct source *s)
{
	return s->d->name ? s->d->name : "-";
}

static void drop(struct recording *rec, struct source *s)
{
	close(s->fd);
	s->fd = -1;
	rec->n_open--;
}

static void fail(struct recording *rec, const struct source *s, const char *why)
{
	fprintf(stderr, "sumwire trace: %s (pid %ld): %s\n", name_of(s),
		(long)s->d->pid, why);
	rec->has_failed = true;
}

/* Append to the file.  A part of a block is no use to anybody. */
static void append(struct recording *rec, const void *bytes, size_t n)
{
	if (rec->is_full)
		return;
	if (fwrite(bytes, 1, n, rec->r->to) == n && !fflush(rec->r->to)) {
		rec->n_bytes += n;
		return;
	}
	fprintf(stderr,
		"sumwire trace: cannot write %s: %s; the trace ends "
		"here\n",
		rec->r->path, strerror(errno));
	rec->has_failed = rec->is_full = true;
	clearerr(rec->r->to);
	if (ftruncate(fileno(rec->r->to), (off_t)rec->n_bytes) &&
		errno != EINVAL) /* a device has no size */
		fprintf(stderr, "sumwire trace: %s: %s\n", rec->r->path,
			strerror(errno));
}

/* Take a whole block at the begin of the buffer. */
static void take_block(
	struct recording *rec, struct source *s, struct sw_trace_block *b)
{
	if (b->kind == SW_TRACE_BUSY) {
		fail(rec, s, "is being traced by another sumwire trace");
		s->has_ended = true;
		return;
	}
	s->has_ended = b->kind == SW_TRACE_END;
	b->daemon = (uint16_t)(s - rec->all);
	memcpy(s->buffer, b, sizeof(*b));
	append(rec, s->buffer, sizeof(*b) + b->bytes);
}

static void take_blocks(struct recording *rec, struct source *s)
{
	struct sw_trace_block b;
	size_t at = 0;

	while (s->fd >= 0 && s->n >= sizeof(b)) {
		memcpy(&b, s->buffer, sizeof(b));
		if (b.bytes > SW_TRACE_BLOCK_MAX) {
			fail(rec, s, "sends what is no trace");
			drop(rec, s);
			return;
		}
		at = sizeof(b) + b.bytes;
		if (s->n < at)
			return;
		take_block(rec, s, &b);
		s->n -= at;
		memmove(s->buffer, s->buffer + at, s->n);
		if (s->has_ended)
			drop(rec, s);
	}
}

static void take(struct recording *rec, struct source *s)
{
	ssize_t n = read(s->fd, s->buffer + s->n, BUFFER - s->n);

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		fail(rec, s,
			"ended while it was traced; what it said before "
			"is kept");
		drop(rec, s);
		return;
	}
	s->n += (size_t)n;
	take_blocks(rec, s);
}

/* Is it one of those that are asked for? */
static bool is_asked(
	const struct sw_found_daemon *d, const struct sw_arg_list *names)
{
	for (uint32_t i = 0; i < names->n; i++)
		if (sw_daemon_is_called(d, names->items[i]))
			return true;
	return !names->n;
}

static void open_one(struct recording *rec, const struct sw_found_daemon *d)
{
	struct source *s = &rec->all[rec->n];
	int err = SW_ECLOSED;

	if (rec->n == DAEMONS)
		return;
	*s = (struct source){.d = d, .fd = -1};
	rec->n++;
	if (d->trace)
		err = sw_feed_dial(d->trace, &s->fd);
	if (!err) {
		rec->n_open++;
		return;
	}
	s->fd = -1;
	fail(rec, s,
		err == SW_EPERM || d->found == SW_FOUND_DENIED
			? "only its user and root may trace it"
		: !d->trace ? "cannot be traced"
			    : "does not answer");
}

/* --- until it is over --- */

static void poll_all(struct recording *rec)
{
	struct pollfd polls[DAEMONS];

	for (uint32_t i = 0; i < rec->n; i++)
		polls[i] =
			(struct pollfd){.fd = rec->all[i].fd, .events = POLLIN};
	if (poll(polls, rec->n, POLL_MS) <= 0)
		return;
	for (uint32_t i = 0; i < rec->n; i++)
		if (polls[i].revents)
			take(rec, &rec->all[i]);
}

/* Take all that the daemons still say after they were told to end. */
static void finish(struct recording *rec)
{
	uint64_t until_ns = sw_now_ns() + LAST_MS * SW_MS;

	for (uint32_t i = 0; i < rec->n; i++)
		if (rec->all[i].fd >= 0)
			(void)!write(rec->all[i].fd, ".", 1);
	while (rec->n_open && sw_now_ns() < until_ns)
		poll_all(rec);
	for (uint32_t i = 0; i < rec->n; i++)
		if (rec->all[i].fd >= 0) {
			fail(rec, &rec->all[i], "has not sent the end");
			drop(rec, &rec->all[i]);
		}
}

static void run(struct recording *rec, const sigset_t *ends)
{
	const struct sw_record *r = rec->r;
	uint64_t until_ns = r->time_ns ? sw_now_ns() + r->time_ns : UINT64_MAX;
	struct timespec none = {0};

	while (rec->n_open && !rec->is_full && sw_now_ns() < until_ns &&
		sigtimedwait(ends, NULL, &none) < 0) {
		poll_all(rec);
		if (rec->n_bytes <= r->max_bytes)
			continue;
		fprintf(stderr,
			"sumwire trace: %s has its size, the trace ends here\n",
			r->path);
		break;
	}
	finish(rec);
}

static int begin(struct recording *rec, const struct sw_found_daemons *found)
{
	const struct sw_arg_list *names = rec->r->names;

	for (uint32_t i = 0; i < found->n; i++)
		if (is_asked(&found->all[i], names))
			open_one(rec, &found->all[i]);
	if (!rec->n)
		return sw_find_unknown("sumwire trace",
			names->n ? names->items[0] : NULL, found);
	append(rec, SW_TRACE_MAGIC, SW_TRACE_MAGIC_BYTES);
	return 0;
}

int sw_record_run(const struct sw_record *r)
{
	struct recording rec = {.r = r};
	struct sw_found_daemons found;
	sigset_t ends;
	int err;

	sw_signals_take_ends(&ends);
	rec.all = calloc(DAEMONS, sizeof(*rec.all));
	if (sw_daemons_find(&found) || !rec.all) {
		fprintf(stderr, "sumwire trace: no memory\n");
		sw_daemons_free(&found);
		free(rec.all);
		return 1;
	}
	err = begin(&rec, &found);
	if (!err && rec.n_open) {
		fprintf(stderr, "recording %u daemon%s\n", rec.n_open,
			rec.n_open == 1 ? "" : "s");
		run(&rec, &ends);
	}
	sw_daemons_free(&found);
	free(rec.all);
	return err || rec.has_failed;
}
