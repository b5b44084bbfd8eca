/* proc_ends.c - a training process with groups that end; --do NAME says how.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The last rank ends group "dp" while the others wait in it; all use "other"
 * before and after. Reports the end of each collective of "dp" as "ended NAME
 * ERROR SENTENCE".
 */
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "test/proc/proc_say.h"
#include <sumwire/coll.h>

enum {
	MANY = 3 << 20,
	FEW = 5000,
	OFTEN = 4200,
	EARLY = 1100,
	SELDOM = 50,
	RING = 100,
};

struct ends {
	struct sw_client *c;
	struct sw_group *dp, *other;
	uint32_t rank, size;
	bool is_last;
	uint32_t root;
	int32_t *memory; /* from sw_alloc */
	int32_t *own;
	uint64_t first, second;    /* open collectives of dp */
	int first_err, second_err; /* errors of begin's calls */
};

static void must(struct ends *e, int err, const char *where)
{
	proc_must(&e->c, err, where);
}

/* Call a collective in place. */
static int call(struct ends *e, struct sw_group *g, enum sw_coll_kind kind,
	int32_t *buffer, uint64_t count, uint64_t *handle)
{
	struct sw_coll_args args = SW_COLL_ARGS_INIT;
	int32_t *part = buffer ? buffer + e->rank * count : NULL;

	args.kind = kind;
	args.dtype = SW_I32;
	args.count = count;
	args.root = e->root;
	args.send = kind == SW_ALL_GATHER ? part : buffer;
	args.recv = kind == SW_REDUCE_SCATTER ? part : buffer;
	return sw_coll(g, &args, handle);
}

/* Check that the group works: sum a one from each rank, in memory outside
 * sw_alloc. */
static void use(struct ends *e, struct sw_group *g)
{
	uint64_t h;

	for (uint32_t i = 0; i < FEW; i++)
		e->own[i] = (int32_t)e->rank + 1;
	must(e, call(e, g, SW_ALL_REDUCE, e->own, FEW, &h), "coll");
	must(e, sw_wait(e->c, h), "wait");
	for (uint32_t i = 0; i < FEW; i++)
		if (e->own[i] != (int32_t)(e->size * (e->size + 1) / 2)) {
			printf("wrong: element %u is %d\n", i, e->own[i]);
			exit(EXIT_WRONG);
		}
}

static void say(struct ends *e, const char *what, int err)
{
	printf("ended %s %s %s\n", what, sw_error_name(err),
		err ? sw_last_error(e->c) : "");
	fflush(stdout);
}

/* @err is the return value of the call. */
static void say_end(struct ends *e, const char *what, int err, uint64_t handle)
{
	say(e, what, err ? err : sw_wait(e->c, handle));
}

/* Start a large sum in memory of sw_alloc and a small one that is staged. Other
 * ranks may already have ended the group. */
static void begin(struct ends *e)
{
	e->first_err =
		call(e, e->dp, SW_ALL_REDUCE, e->memory, MANY, &e->first);
	e->second_err =
		call(e, e->dp, SW_REDUCE_SCATTER, e->own, FEW, &e->second);
}

/* Wait until all ranks have reached this point. */
static void meet(struct ends *e)
{
	uint64_t h;

	must(e, call(e, e->other, SW_BARRIER, NULL, 0, &h), "coll");
	must(e, sw_wait(e->c, h), "wait");
}

static void finish(struct ends *e)
{
	say_end(e, "first", e->first_err, e->first);
	say_end(e, "second", e->second_err, e->second);
}

/* Check that calls of every kind fail. */
static void try_later(struct ends *e)
{
	uint64_t h;
	int err = call(e, e->dp, SW_ALL_GATHER, e->own, FEW, &h);

	say_end(e, "later", err, h);
}

/* With @is_called the last rank also makes the calls before it aborts. */
static void do_abort(struct ends *e, bool is_called)
{
	bool begins = is_called ? e->rank != e->size - 2 : !e->is_last;

	if (begins)
		begin(e);
	meet(e);
	if (e->is_last)
		must(e, sw_group_abort(e->dp, SW_EABORTED, "enough"), "abort");
	if (begins)
		finish(e);
	meet(e); /* a rank that has not begun may not know of the abort */
	try_later(e);
}

/* The last rank stays away until the others have timed out. A rank with a limit
 * begins after the ranks without. */
static void do_timeout(struct ends *e, bool has_one)
{
	must(e, sw_group_set_timeout(e->dp, has_one), "timeout");
	if (!e->is_last && !has_one)
		begin(e);
	meet(e);
	if (!e->is_last && has_one)
		begin(e);
	if (!e->is_last)
		finish(e);
	meet(e);
	try_later(e);
}

static void do_mismatch(struct ends *e)
{
	uint64_t count = e->is_last ? FEW - 1 : FEW;

	e->first_err = call(e, e->dp, SW_ALL_REDUCE, e->own, count, &e->first);
	if (!e->is_last)
		e->second_err = call(e, e->dp, SW_BARRIER, NULL, 0, &e->second);
	say_end(e, "first", e->first_err, e->first);
	if (!e->is_last)
		say_end(e, "second", e->second_err, e->second);
	try_later(e);
}

/* Make one call on "dp" and wait for its end, which may already be known. */
static void try_first(
	struct ends *e, enum sw_coll_kind kind, int32_t *buffer, uint64_t count)
{
	int err = call(e, e->dp, kind, buffer, count, &e->first);

	say_end(e, "first", err, e->first);
	try_later(e);
}

/* The last rank calls another kind: it waits for the result, or not, as the
 * root of a broadcast. */
static void do_kinds(struct ends *e, enum sw_coll_kind kind, bool is_giver)
{
	if (!e->is_last)
		kind = SW_ALL_REDUCE;
	e->root = is_giver ? e->rank : 0;
	try_first(e, kind, e->memory, FEW);
}

/* Call two kinds, in swapped order at the last rank. */
static void do_swapped(struct ends *e)
{
	uint64_t h[2];
	int err[2];

	for (uint32_t i = 0; i < 2; i++)
		err[i] = call(e, e->dp,
			i == e->is_last ? SW_ALL_REDUCE : SW_BARRIER, e->own,
			FEW, &h[i]);
	say_end(e, "first", err[0], h[0]);
	say_end(e, "second", err[1], h[1]);
	try_later(e);
}

/* Wait until the test has measured the daemons' memory. A freed window stays as
 * long as a port's ring holds a frame of it, so push these frames out first. */
static void wait_for_look(struct ends *e, const char *when)
{
	for (uint32_t i = 0; i < RING; i++)
		meet(e);
	puts(when);
	fflush(stdout);
	if (getchar() != '\n')
		exit(EXIT_ERROR);
}

/* Open and close more often than keys have indices. Barriers open fastest,
 * because their window is small. */
static void do_again(struct ends *e)
{
	meet(e); /* allocate its stage before the first measurement */
	for (uint32_t i = 1; i <= OFTEN; i++) {
		bool is_sum = i % SELDOM == 0;

		e->own[0] = 1;
		must(e,
			call(e, e->dp, is_sum ? SW_ALL_REDUCE : SW_BARRIER,
				is_sum ? e->own : NULL, is_sum, &e->first),
			"coll");
		must(e, sw_wait(e->c, e->first), "wait");
		if (is_sum && e->own[0] != (int32_t)e->size)
			exit(EXIT_WRONG);
		must(e, sw_group_close(e->dp), "close");
		must(e, sw_group_open(e->c, "dp", NULL, 0, &e->dp), "group");
		if (i == EARLY) /* now all rings were full once */
			wait_for_look(e, "early");
	}
	wait_for_look(e, "late");
}

/* Open and close repeatedly, more groups than servers have room for at once. */
static void do_reopen(struct ends *e)
{
	for (uint32_t i = 0; i < 12; i++) {
		use(e, e->dp);
		must(e, call(e, e->dp, SW_BARRIER, NULL, 0, &e->first), "coll");
		must(e, sw_wait(e->c, e->first), "wait");
		must(e, sw_group_close(e->dp), "close");
		must(e, sw_group_open(e->c, "dp", NULL, 0, &e->dp), "group");
	}
	puts("reopened");
}

/* Open groups until servers have no room for the next. */
static void do_fill(struct ends *e)
{
	uint64_t h = 0;
	int err = 0;

	for (uint32_t i = 0; !err; i++) {
		char name[16];

		snprintf(name, sizeof(name), "g%u", i);
		must(e, sw_group_open(e->c, name, NULL, 0, &e->dp), "group");
		err = call(e, e->dp, SW_ALL_REDUCE, e->own, FEW, &h);
		if (!err)
			err = sw_wait(e->c, h);
	}
	say(e, "first", err);
	try_later(e);
	must(e, sw_group_close(e->dp), "close");
}

static void do_close(struct ends *e)
{
	int err = 0;

	if (e->is_last) {
		must(e, call(e, e->dp, SW_ALL_REDUCE, e->own, FEW, &e->first),
			"coll");
		must(e, sw_group_close(e->dp), "close");
	}
	meet(e);
	if (!e->is_last)
		err = call(e, e->dp, SW_ALL_REDUCE, e->own, FEW, &e->first);
	say_end(e, "first", err, e->first);
	if (!e->is_last)
		try_later(e);
}

/* The last rank closes after its part; the others call once more. */
static void do_close_early(struct ends *e)
{
	use(e, e->dp);
	if (e->is_last) {
		must(e, sw_group_close(e->dp), "close");
		return;
	}
	try_first(e, SW_ALL_REDUCE, e->memory, MANY);
}

/* The last rank closes a group in which it never called. */
static void do_close_unused(struct ends *e)
{
	if (e->is_last) {
		must(e, sw_group_close(e->dp), "close");
		return;
	}
	try_first(e, SW_ALL_REDUCE, e->memory, MANY);
}

/* Rank 1, which shares its agent, leaves after its first sum with rank 2 and
 * closes nothing; rank 2 starts another sum, and meets rank 0. */
static void do_leave(struct ends *e)
{
	static const uint32_t pair[] = {1, 2}, rest[] = {0, 2};
	struct sw_group *g;
	uint64_t h;
	int err;

	if (e->rank) {
		must(e, sw_group_open(e->c, "pair", pair, 2, &g), "group");
		must(e, call(e, g, SW_BARRIER, NULL, 0, &h), "coll");
		must(e, sw_wait(e->c, h), "wait");
	}
	if (e->rank == 2) {
		err = call(e, g, SW_BARRIER, NULL, 0, &h);
		say_end(e, "first", err, h);
	}
	if (e->rank != 1) {
		must(e, sw_group_open(e->c, "rest", rest, 2, &g), "group");
		must(e, call(e, g, SW_BARRIER, NULL, 0, &h), "coll");
		must(e, sw_wait(e->c, h), "wait");
	}
	puts("other goes on");
	sw_close(&e->c);
	exit(EXIT_SUCCESS);
}

/* Die when all ranks are here; others may notice while they still wait. */
static void do_die(struct ends *e)
{
	uint64_t h;

	if (e->is_last) {
		meet(e);
		raise(SIGKILL);
	}
	begin(e);
	if (!call(e, e->other, SW_BARRIER, NULL, 0, &h))
		(void)sw_wait(e->c, h);
	finish(e);
	exit(EXIT_SUCCESS);
}

static void open_all(struct ends *e, const char *agent)
{
	struct sw_settings s;
	void *p;

	sw_settings_init(&s);
	s.agent = agent;
	s.wait_timeout_s = 60;
	must(e, sw_open(&s, &e->c), "open");
	e->rank = sw_rank(e->c);
	e->size = sw_size(e->c);
	e->is_last = e->rank == e->size - 1;
	printf("rank %u\n", e->rank);
	fflush(stdout);
	must(e, sw_alloc(e->c, 4 * MANY, &p), "alloc");
	e->memory = p;
	e->own = calloc(e->size, 4 * FEW);
	must(e, sw_group_open(e->c, "dp", NULL, 0, &e->dp), "group");
	must(e, sw_group_open(e->c, "other", NULL, 0, &e->other), "group");
}

static void run(struct ends *e, const char *what)
{
	if (!strcmp(what, "abort"))
		do_abort(e, false);
	else if (!strcmp(what, "abort_own"))
		do_abort(e, true);
	else if (!strcmp(what, "timeout"))
		do_timeout(e, e->rank == 0);
	else if (!strcmp(what, "timeouts"))
		do_timeout(e, true);
	else if (!strcmp(what, "mismatch"))
		do_mismatch(e);
	else if (!strcmp(what, "kinds"))
		do_kinds(e, SW_BCAST, false);
	else if (!strcmp(what, "kinds_giver"))
		do_kinds(e, SW_BCAST, true);
	else if (!strcmp(what, "kinds_part"))
		do_kinds(e, SW_ALL_GATHER, false);
	else if (!strcmp(what, "swapped"))
		do_swapped(e);
	else if (!strcmp(what, "reopen"))
		do_reopen(e);
	else if (!strcmp(what, "fill"))
		do_fill(e);
	else if (!strcmp(what, "again"))
		do_again(e);
	else if (!strcmp(what, "close"))
		do_close(e);
	else if (!strcmp(what, "close_early"))
		do_close_early(e);
	else if (!strcmp(what, "close_unused"))
		do_close_unused(e);
	else if (!strcmp(what, "leave"))
		do_leave(e);
	else
		do_die(e);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"agent", required_argument, NULL, 'a'},
		{"do", required_argument, NULL, 'd'}, {0}};
	static struct ends e;
	const char *agent = NULL, *what = "";
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (o == 'a')
			agent = optarg;
		else if (o == 'd')
			what = optarg;
		else
			return 2;
	open_all(&e, agent);
	use(&e, e.other);
	run(&e, what);
	use(&e, e.other);
	puts("other goes on");
	sw_close(&e.c);
	free(e.own);
	return 0;
}
