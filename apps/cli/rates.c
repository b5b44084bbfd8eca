/* rates.c - sumwire stats --interval: rates of counters, line by line.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/rates.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "apps/cli/clock.h"
#include "apps/cli/counters.h"
#include "apps/cli/json.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "pmd/host/stats_read.h"

enum { HEAD_EVERY = 20, WIDTH_MIN = 9 };

#define S 1000000000

static const char *const traffic[] = {"rx_frames", "tx_frames", "push_bytes",
	"result_bytes", "lost", "retransmissions", "timeouts", "query_wait"};

struct column {
	const char *name;
	bool is_gauge, is_bytes, is_seen;
	uint64_t value, before;
};

struct table {
	struct column columns[SW_ARG_LIST_MAX];
	uint32_t n, n_lines;
	uint64_t at_ns, before_ns; /* times of the values */
};

const char *sw_stats_error(int err)
{
	switch (err) {
	case SW_ECLOSED:
		return "no daemon is listening there";
	case SW_EPERM:
		return "permission denied: only the user that runs the daemon "
		       "and root may read its counters";
	case SW_EPROTO:
		return "this socket is not for counters: give the one that the "
		       "daemon's log names";
	default:
		return sw_error_text(err);
	}
}

static void column_add(struct table *t, const char *name)
{
	struct sw_counter c;
	struct column *k = &t->columns[t->n++];

	if (!sw_counter_find(name, &c)) /* a newer daemon may have it */
		c = (struct sw_counter){.unit = ""};
	*k = (struct column){.name = name,
		.is_gauge = c.kind != SW_COUNTER_COUNTER &&
			    c.kind != SW_COUNTER_TIMES,
		.is_bytes = c.kind == SW_COUNTER_COUNTER &&
			    !strcmp(c.unit, "bytes")};
}

static void each(void *ctx, const char *name, uint64_t value)
{
	struct table *t = ctx;

	for (uint32_t i = 0; i < t->n; i++)
		if (!strcmp(t->columns[i].name, name)) {
			t->columns[i].value = value;
			t->columns[i].is_seen = true;
		}
}

static int values_read(struct table *t, const char *path)
{
	t->before_ns = t->at_ns;
	for (uint32_t i = 0; i < t->n; i++) {
		t->columns[i].before = t->columns[i].value;
		t->columns[i].is_seen = false;
	}
	t->at_ns = sw_now_ns();
	return sw_stats_read(path, each, t);
}

/* Return a gauge's value, or a counter's growth per second.  The growth is 0 if
 * the daemon has restarted. */
static double rate_of(const struct table *t, const struct column *c)
{
	double s = (double)(t->at_ns - t->before_ns) / 1e9;
	uint64_t grown = c->value > c->before ? c->value - c->before : 0;

	if (c->is_gauge)
		return (double)c->value;
	return (double)grown / s / (c->is_bytes ? 1e6 : 1);
}

static int width_of(const struct column *c)
{
	int n = (int)strlen(c->name);

	return n > WIDTH_MIN ? n : WIDTH_MIN;
}

static void head_print(const struct table *t)
{
	printf("#   time");
	for (uint32_t i = 0; i < t->n; i++)
		printf(" %*s", width_of(&t->columns[i]), t->columns[i].name);
	printf("\n#       ");
	for (uint32_t i = 0; i < t->n; i++)
		printf(" %*s", width_of(&t->columns[i]),
			t->columns[i].is_gauge   ? "(now)"
			: t->columns[i].is_bytes ? "(MB/s)"
						 : "(1/s)");
	printf("\n");
}

static void line_print(struct table *t)
{
	time_t now = time(NULL);
	struct tm tm;

	if (t->n_lines++ % HEAD_EVERY == 0)
		head_print(t);
	localtime_r(&now, &tm);
	printf("%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct column *c = &t->columns[i];

		if (c->is_seen)
			printf(" %*.*f", width_of(c), c->is_bytes ? 2 : 0,
				rate_of(t, c));
		else
			printf(" %*s", width_of(c), "-");
	}
	printf("\n");
	fflush(stdout);
}

static void line_write(struct table *t)
{
	struct sw_json j;
	char name[SW_COUNTER_NAME + 16];

	t->n_lines++;
	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	sw_json_u64(&j, "time_s", (uint64_t)time(NULL));
	for (uint32_t i = 0; i < t->n; i++) {
		const struct column *c = &t->columns[i];

		if (!c->is_seen)
			continue;
		snprintf(name, sizeof(name), "%s%s", c->name,
			c->is_gauge ? "" : "_per_s");
		sw_json_double(
			&j, name, rate_of(t, c) * (c->is_bytes ? 1e6 : 1));
	}
	sw_json_close(&j);
	sw_json_fini(&j);
}

/* Wait until @at_ns.  Returns true if a signal arrived. */
static bool wait_until(uint64_t at_ns, const sigset_t *set)
{
	uint64_t now_ns = sw_now_ns();
	uint64_t ns = at_ns > now_ns ? at_ns - now_ns : 0;
	struct timespec t = {
		.tv_sec = (time_t)(ns / S), .tv_nsec = (long)(ns % S)};

	return sigtimedwait(set, NULL, &t) > 0;
}

static bool are_seen(const struct table *t, const struct sw_rates *r)
{
	for (uint32_t i = 0; i < t->n && r->names->n; i++)
		if (!t->columns[i].is_seen) {
			fprintf(stderr,
				"sumwire stats: this daemon has no counter "
				"%s\n",
				t->columns[i].name);
			return false;
		}
	return true;
}

static int fail(const struct sw_rates *r, int err)
{
	fprintf(stderr, "sumwire stats: %s: %s\n", r->path,
		sw_stats_error(err));
	return 1;
}

int sw_rates_print(const struct sw_rates *r)
{
	struct table t = {0};
	uint64_t step_ns = (uint64_t)(r->interval_s * 1e9), at_ns;
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (uint32_t i = 0; i < r->names->n; i++)
		column_add(&t, r->names->items[i]);
	for (size_t i = 0; i < SW_ARRAY_SIZE(traffic) && !r->names->n; i++)
		column_add(&t, traffic[i]);
	err = values_read(&t, r->path);
	if (err)
		return fail(r, err);
	if (!are_seen(&t, r))
		return 1;
	at_ns = t.at_ns;
	while (!r->n_lines || t.n_lines < r->n_lines) {
		at_ns += step_ns;
		if (wait_until(at_ns, &set))
			return 0;
		err = values_read(&t, r->path);
		if (err == SW_ECLOSED) {
			fprintf(stderr,
				"sumwire stats: the daemon has ended\n");
			return 0;
		}
		if (err)
			return fail(r, err);
		if (r->is_json)
			line_write(&t);
		else
			line_print(&t);
		if (ferror(stdout))
			return 1;
	}
	return 0;
}
