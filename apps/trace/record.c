/* record.c - record the events or frames of this machine's daemons.
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
	LULL_MS = 20, /* between two reads that take less than LULL_BYTES */
	LULL_BYTES = SW_TRACE_BLOCK_MAX,
	LAST_MS = 5000, /* wait for the daemons to send the rest */
	BUFFER = 2 * (SW_TRACE_BLOCK_MAX + (int)sizeof(struct sw_trace_block))
};

/* A daemon that is recorded. */
struct source {
	const struct sw_found_daemon *d;
	int fd; /* -1: it has sent everything, or ended */
	bool has_begun, has_ended;
	size_t n; /* bytes in the buffer */
	char buffer[BUFFER];
};

struct recording {
	const struct sw_record *r;
	struct source *all;
	uint32_t n, n_open;
	uint64_t n_bytes; /* written, in whole blocks */
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
	fprintf(stderr, "%s: %s (pid %ld): %s\n", rec->r->who, name_of(s),
		(long)s->d->pid, why);
	rec->has_failed = true;
}

/* Note that the file is full, or that the pipe has no reader.  Cut off an
 * incomplete block, which no reader can use. */
static void end_file(struct recording *rec)
{
	const struct sw_record *r = rec->r;

	rec->is_full = true;
	if (errno == EPIPE)
		return;
	fprintf(stderr, "%s: cannot write %s: %s; recording stopped\n", r->who,
		r->path, strerror(errno));
	rec->has_failed = true;
	clearerr(r->to);
	if (ftruncate(fileno(r->to), (off_t)rec->n_bytes) &&
		errno != EINVAL) /* a device has no size */
		fprintf(stderr, "%s: %s: %s\n", r->who, r->path,
			strerror(errno));
}

static void append(struct recording *rec, const struct source *s,
	const struct sw_trace_block *b)
{
	const struct sw_record *r = rec->r;
	size_t n;

	if (rec->is_full)
		return;
	n = r->write(r->ctx, r->to, s->d, b, s->buffer + sizeof(*b));
	if (ferror(r->to) || fflush(r->to))
		end_file(rec);
	else
		rec->n_bytes += n;
}

/* Handle a complete block at the start of the buffer. */
static void take_block(
	struct recording *rec, struct source *s, struct sw_trace_block *b)
{
	if (b->kind == SW_TRACE_BUSY) {
		fail(rec, s,
			"another sumwire trace or capture records this daemon");
		s->has_ended = true;
		return;
	}
	s->has_begun = true;
	s->has_ended = b->kind == SW_TRACE_END;
	b->daemon = (uint16_t)(s - rec->all);
	append(rec, s, b);
}

static void take_blocks(struct recording *rec, struct source *s)
{
	struct sw_trace_block b;
	size_t at = 0;

	while (s->fd >= 0 && s->n >= sizeof(b)) {
		memcpy(&b, s->buffer, sizeof(b));
		if (b.bytes > SW_TRACE_BLOCK_MAX) {
			fail(rec, s, "sends what is no recording");
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

/* Return how many bytes came. */
static size_t take_records(struct recording *rec, struct source *s)
{
	ssize_t n = read(s->fd, s->buffer + s->n, BUFFER - s->n);
	char why[80];

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0) {
		snprintf(why, sizeof(why),
			s->has_begun
				? "ended while it was %s; what it said "
				  "before is kept"
				: "cannot be %s: it ends, or is of another "
				  "version",
			rec->r->verb);
		fail(rec, s, why);
		drop(rec, s);
		return 0;
	}
	s->n += (size_t)n;
	take_blocks(rec, s);
	return (size_t)n;
}

/* Return whether the user named the daemon. */
static bool is_asked(
	const struct sw_found_daemon *d, const struct sw_arg_list *names)
{
	for (uint32_t i = 0; i < names->n; i++)
		if (sw_daemon_is_called(d, names->items[i]))
			return true;
	return !names->n;
}

/* Send the request.  If the daemon has ended, the next read notices it. */
static void ask(const struct recording *rec, const struct source *s)
{
	(void)!write(s->fd, rec->r->ask, sizeof(*rec->r->ask));
}

static void refuse(struct recording *rec, struct source *s, const char *format)
{
	char why[80];

	snprintf(why, sizeof(why), format, rec->r->verb);
	s->fd = -1;
	fail(rec, s, why);
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
	if (err == SW_EPERM || d->found == SW_FOUND_DENIED) {
		refuse(rec, s, "only its user and root may have it %s");
	} else if (!d->trace) {
		refuse(rec, s, "cannot be %s");
	} else if (err) {
		refuse(rec, s, "cannot be %s: it does not answer");
	} else {
		rec->n_open++;
		ask(rec, s);
	}
}

/* --- until the end --- */

/* Read what has come.  The daemons' sockets hold what comes during a lull; to
 * wake for each of their sends would take time from lcores that share a core.
 */
static void poll_all(struct recording *rec)
{
	static const struct timespec lull = {.tv_nsec = LULL_MS * SW_MS};
	struct pollfd polls[DAEMONS];
	size_t most = 0, n;

	for (uint32_t i = 0; i < rec->n; i++)
		polls[i] =
			(struct pollfd){.fd = rec->all[i].fd, .events = POLLIN};
	if (poll(polls, rec->n, POLL_MS) <= 0)
		return;
	for (uint32_t i = 0; i < rec->n; i++)
		if (polls[i].revents) {
			n = take_records(rec, &rec->all[i]);
			most = n > most ? n : most;
		}
	if (most < LULL_BYTES && rec->n_open)
		nanosleep(&lull, NULL);
}

/* Read everything that the daemons still send after the order to end. */
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
		!(r->has_enough && r->has_enough(r->ctx)) &&
		sigtimedwait(ends, NULL, &none) < 0) {
		poll_all(rec);
		if (rec->n_bytes <= r->max_bytes)
			continue;
		fprintf(stderr,
			"%s: %s has reached its size limit; recording "
			"stopped\n",
			r->who, r->path);
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
		return sw_find_unknown(
			rec->r->who, names->n ? names->items[0] : NULL, found);
	return 0;
}

int sw_record_run(const struct sw_record *r, size_t n_head)
{
	struct recording rec = {.r = r, .n_bytes = n_head};
	struct sw_found_daemons found;
	sigset_t ends;
	int err;

	sw_signals_take_ends(&ends);
	rec.all = calloc(DAEMONS, sizeof(*rec.all));
	if (sw_daemons_find(&found) || !rec.all) {
		fprintf(stderr, "%s: no memory\n", r->who);
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
