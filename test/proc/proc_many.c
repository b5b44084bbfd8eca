/* proc_many.c - many ranks in one process: a thread and a client for each.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * They make the same collectives and check every element. With --late N rank N
 * makes its last all_reduce after the other ranks' call has failed.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>

#include "test/proc/proc_say.h"
#include <sumwire/coll.h>

enum { COUNT = 5000, PART = 3, TIMEOUT_S = 3, LONG_S = 60 };

struct many {
	const char *agent;
	uint32_t n, late;
	pthread_barrier_t end;
};

struct one {
	struct sw_client *c;
	struct sw_group *g;
	struct many *all;
	int32_t *v;
};

static void call(struct one *o, enum sw_coll_kind kind, uint64_t count,
	const void *send, void *recv)
{
	struct sw_coll_args args = {.size = sizeof(args),
		.kind = kind,
		.dtype = SW_I32,
		.count = count,
		.send = send,
		.recv = recv};
	uint64_t handle;

	proc_must(&o->c, sw_coll(o->g, &args, &handle), "coll");
	proc_must(&o->c, sw_wait(o->c, handle), "wait");
}

static void expect(const struct one *o, const int32_t *v, uint64_t n,
	int32_t want, const char *what)
{
	for (uint64_t i = 0; i < n; i++)
		if (v[i] != want) {
			printf("wrong: %s at rank %u: element %llu is %d, not "
			       "%d\n",
				what, sw_rank(o->c), (unsigned long long)i,
				v[i], want);
			exit(EXIT_WRONG);
		}
}

static int32_t sum_of(uint32_t size)
{
	return (int32_t)(size * (size + 1) / 2);
}

/* Sum r + 1 of each rank r. */
static void all_reduce(struct one *o)
{
	for (uint32_t i = 0; i < COUNT; i++)
		o->v[i] = (int32_t)sw_rank(o->c) + 1;
	call(o, SW_ALL_REDUCE, COUNT, o->v, o->v);
	expect(o, o->v, COUNT, sum_of(sw_size(o->c)), "all_reduce");
}

/* Give each rank a part. */
static void in_parts(struct one *o)
{
	uint32_t size = sw_size(o->c), n = size * PART;
	int32_t part[PART];

	for (uint32_t i = 0; i < n; i++)
		o->v[i] = (int32_t)(i / PART);
	call(o, SW_REDUCE_SCATTER, PART, o->v, part);
	expect(o, part, PART, (int32_t)(size * sw_rank(o->c)),
		"reduce_scatter");
	call(o, SW_ALL_GATHER, PART, part, o->v);
	for (uint32_t r = 0; r < size; r++)
		expect(o, o->v + r * PART, PART, (int32_t)(size * r),
			"all_gather");
}

/* All ranks except one wait until the timeout, first the ranks that know which
 * one is late. */
static void wait_in_vain(struct one *o)
{
	struct sw_coll_args args = {.size = sizeof(args),
		.kind = SW_ALL_REDUCE,
		.dtype = SW_I32,
		.count = 1,
		.send = o->v,
		.recv = o->v};
	uint32_t first = sw_rank(o->c) - sw_local_rank(o->c);
	bool knows = o->all->late - first < sw_local_size(o->c);
	uint64_t handle;
	int err;

	if (sw_rank(o->c) == o->all->late)
		return;
	proc_must(&o->c, sw_group_set_timeout(o->g, knows ? TIMEOUT_S : LONG_S),
		"timeout");
	err = sw_coll(o->g, &args, &handle);
	if (!err)
		err = sw_wait(o->c, handle);
	printf("rank %u %s: %s\n", sw_rank(o->c), sw_error_name(err),
		sw_last_error(o->c));
	fflush(stdout);
}

static void *run(void *ctx)
{
	struct one o = {.all = ctx};
	struct sw_settings s;
	void *mem;

	sw_settings_init(&s);
	s.agent = o.all->agent;
	proc_must(&o.c, sw_open(&s, &o.c), "open");
	proc_must(&o.c, sw_alloc(o.c, COUNT * sizeof(*o.v), &mem), "alloc");
	o.v = mem;
	proc_must(&o.c, sw_group_open(o.c, "all", NULL, 0, &o.g), "group");
	all_reduce(&o);
	in_parts(&o);
	call(&o, SW_BARRIER, 0, NULL, NULL);
	if (o.all->late < sw_size(o.c))
		wait_in_vain(&o);
	pthread_barrier_wait(&o.all->end);
	sw_close(&o.c);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"agent", required_argument, NULL, 'a'},
		{"clients", required_argument, NULL, 'n'},
		{"late", required_argument, NULL, 'l'}, {0}};
	struct many all = {.n = 1, .late = UINT32_MAX};
	pthread_t *threads;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) > 0)
		if (o == 'a')
			all.agent = optarg;
		else if (o == 'n')
			all.n = (uint32_t)atoi(optarg);
		else if (o == 'l')
			all.late = (uint32_t)atoi(optarg);
	threads = calloc(all.n, sizeof(*threads));
	pthread_barrier_init(&all.end, NULL, all.n);
	for (uint32_t i = 0; i < all.n; i++)
		if (pthread_create(&threads[i], NULL, run, &all))
			return EXIT_ERROR;
	for (uint32_t i = 0; i < all.n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	proc_say("all exact");
	return 0;
}
