/* proc_coll.c - a training process that calls collectives, drawn from a seed.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All ranks draw the same calls, on a group of all and on other groups, several
 * of them open at once, and check every element. With --device some of the
 * buffers, not the same at all ranks, are in the memory of the device that
 * SUMWIRE_DEVICE names. Reports its progress as proc_client does.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/proc/proc_groups.h"
#include "test/proc/proc_say.h"
#include "test/support/random.h"
#include <sumwire/coll.h>
#include <sumwire/device.h>

enum {
	OPEN = 4,
	COUNT_MAX = 600000,
	AHEAD = 300,
};

struct call {
	struct sw_coll_args args;
	const struct group *group;
	uint64_t number, handle;
	int32_t *send, *recv;
	int32_t *sends[2], *recvs[2]; /* memory of sw_alloc; other memory */
};

struct coll_client {
	struct sw_client *c;
	struct sw_device *d; /* NULL: no device */
	struct group groups[GROUPS];
	uint32_t n_groups;
	uint32_t rank, size;
	uint64_t rng, n_colls;
	uint64_t odd;     /* from this call on its counts differ */
	bool is_odd_list; /* it gives the second group in another order */
	struct call open[OPEN];
};

static void must(struct coll_client *k, int err, const char *where)
{
	proc_must(&k->c, err, where);
}

static int32_t given(const struct call *call, uint32_t rank, uint64_t i)
{
	return (int32_t)((i * 31 + call->number * 7) % 97 * (rank + 1));
}

static bool is_parted(const struct call *call)
{
	return call->args.kind == SW_REDUCE_SCATTER ||
	       call->args.kind == SW_ALL_GATHER;
}

/* @i counts elements of all parts. */
static int32_t expected(const struct call *call, uint64_t i)
{
	const struct group *g = call->group;
	int32_t sum = 0;

	if (call->args.kind == SW_ALL_GATHER)
		return given(call, g->ranks[i / call->args.count], i);
	if (call->args.kind == SW_BCAST)
		return given(call, call->args.root, i);
	for (uint32_t r = 0; r < g->n; r++)
		sum += given(call, g->ranks[r], i);
	return sum;
}

static void draw(struct coll_client *k, struct call *call, uint64_t number)
{
	static const uint64_t counts[] = {1, 17, 3000, COUNT_MAX};

	call->number = number;
	call->group = &k->groups[test_random(&k->rng) % k->n_groups];
	call->args.size = sizeof(call->args);
	call->args.kind = (enum sw_coll_kind)(
		1 + test_random(&k->rng) % (SW_N_COLL_KINDS - 1));
	call->args.dtype = SW_I32;
	call->args.count =
		1 + test_random(&k->rng) % counts[test_random(&k->rng) % 4];
	call->args.root =
		call->group->ranks[test_random(&k->rng) % call->group->n];
	/* In this choice a rank may differ from the others. */
	call->send = call->sends[(number + k->rank) % 3 == 0];
	call->recv = call->recvs[(number + k->rank) % 4 == 0];
	call->args.send = call->send;
	call->args.recv = call->recv;
	if (number >= k->odd && call->group == k->groups)
		call->args.count++;
}

static void fill(const struct coll_client *k, struct call *call)
{
	bool is_scatter = call->args.kind == SW_REDUCE_SCATTER;
	uint64_t n = call->args.count * (is_scatter ? call->group->n : 1);
	uint64_t first = call->args.kind == SW_ALL_GATHER
				 ? call->args.count * call->group->me
				 : 0;

	for (uint64_t i = 0; i < n; i++)
		call->send[i] = given(call, k->rank, first + i);
	memset(call->recv, 0x77, 4 * call->args.count * call->group->n);
}

static void check(struct coll_client *k, const struct call *call)
{
	bool is_gather = call->args.kind == SW_ALL_GATHER;
	uint64_t n = call->args.count * (is_gather ? call->group->n : 1);
	uint64_t first = is_parted(call) && !is_gather
				 ? call->args.count * call->group->me
				 : 0;

	if ((call->args.kind == SW_REDUCE && call->args.root != k->rank) ||
		call->args.kind == SW_BARRIER)
		return;
	for (uint64_t i = 0; i < n; i++) {
		if (call->recv[i] == expected(call, first + i))
			continue;
		printf("wrong: call %llu, kind %d, element %llu is %d, not "
		       "%d\n",
			(unsigned long long)call->number, call->args.kind,
			(unsigned long long)i, call->recv[i],
			expected(call, first + i));
		exit(EXIT_WRONG);
	}
}

static void finish(struct coll_client *k, struct call *call)
{
	if (!call->handle)
		return;
	must(k, sw_wait(k->c, call->handle), "wait");
	call->handle = 0;
	check(k, call);
}

static void start(struct coll_client *k, struct call *call)
{
	if (k->d && (call->number + k->rank) % 3)
		must(k,
			sw_coll_device(k->d, call->group->g, &call->args, NULL,
				&call->handle),
			"coll of a device");
	else
		must(k, sw_coll(call->group->g, &call->args, &call->handle),
			"coll");
}

static void run(struct coll_client *k)
{
	for (uint64_t i = 0; i < k->n_colls; i++) {
		struct call *call = &k->open[i % OPEN];

		finish(k, call);
		draw(k, call, i);
		if (call->group->me == call->group->n)
			continue; /* this rank is not in the group */
		fill(k, call);
		start(k, call);
	}
	for (uint32_t i = 0; i < OPEN; i++)
		finish(k, &k->open[(k->n_colls + i) % OPEN]);
}

static uint64_t start_one(
	struct coll_client *k, enum sw_coll_kind kind, uint32_t i)
{
	const struct call *at = &k->open[kind == SW_ALL_GATHER];
	struct sw_coll_args a = {.size = sizeof(a),
		.kind = kind,
		.dtype = SW_I32,
		.count = 1,
		.send = at->sends[0] + i,
		.recv = at->recvs[0] + i};
	uint64_t handle;

	at->sends[0][i] = (int32_t)(i + k->rank);
	must(k, sw_coll(k->groups[kind == SW_ALL_GATHER].g, &a, &handle),
		"coll");
	return handle;
}

/* Rank 0 starts far more sums than a stream has room for before it gathers in
 * another group. The others gather first, and wait for it. */
static void run_ahead(struct coll_client *k)
{
	uint64_t handles[AHEAD], gather = 0;

	must(k, sw_group_open(k->c, "ahead", NULL, 0, &k->groups[1].g),
		"group");
	if (k->rank)
		must(k, sw_wait(k->c, start_one(k, SW_ALL_GATHER, 0)), "wait");
	for (uint32_t i = 0; i < AHEAD; i++)
		handles[i] = start_one(k, SW_ALL_REDUCE, i);
	if (!k->rank)
		gather = start_one(k, SW_ALL_GATHER, 0);
	if (gather)
		must(k, sw_wait(k->c, gather), "wait");
	for (uint32_t i = 0; i < AHEAD; i++) {
		uint32_t want = k->size * i + k->size * (k->size - 1) / 2;

		must(k, sw_wait(k->c, handles[i]), "wait");
		if (k->open[0].recvs[0][i] != (int32_t)want)
			exit(EXIT_WRONG);
	}
}

static void choose_groups(struct coll_client *k)
{
	k->n_groups = list_groups(k->groups, k->rank, k->size);
	for (uint32_t i = 0; i < GROUPS; i++)
		if (k->groups[i].me == RANKS)
			k->groups[i].me = k->groups[i].n;
	if (k->is_odd_list) {
		struct group *g = &k->groups[1];
		uint32_t first = g->ranks[0];

		g->ranks[0] = g->ranks[1];
		g->ranks[1] = first;
	}
}

static void open_groups(struct coll_client *k)
{
	char name[16];

	choose_groups(k);
	for (uint32_t i = 0; i < k->n_groups; i++) {
		struct group *g = &k->groups[i];

		snprintf(name, sizeof(name), "group%u", i);
		if (g->me < g->n)
			must(k,
				sw_group_open(k->c, name, i ? g->ranks : NULL,
					g->n, &g->g),
				"group");
	}
}

static void open_all(struct coll_client *k, const struct sw_settings *s)
{
	size_t bytes;
	void *p;

	must(k, sw_open(s, &k->c), "open");
	k->rank = sw_rank(k->c);
	k->size = sw_size(k->c);
	printf("attached %u of %u\n", k->rank, k->size);
	fflush(stdout);
	bytes = 4 * (COUNT_MAX + 1) * (size_t)k->size;
	for (uint32_t i = 0; i < OPEN; i++) {
		must(k, sw_alloc(k->c, bytes, &p), "alloc");
		k->open[i].sends[0] = p;
		must(k, sw_alloc(k->c, bytes, &p), "alloc");
		k->open[i].recvs[0] = p;
		k->open[i].sends[1] = malloc(bytes);
		k->open[i].recvs[1] = malloc(bytes);
	}
	open_groups(k);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"agent", required_argument, NULL, 'a'},
		{"seed", required_argument, NULL, 's'},
		{"colls", required_argument, NULL, 'n'},
		{"odd", required_argument, NULL, 'o'},
		{"odd-list", no_argument, NULL, 'l'},
		{"ahead", no_argument, NULL, 'h'},
		{"device", no_argument, NULL, 'd'}, {0}};
	static struct coll_client k = {.n_colls = 100, .odd = UINT64_MAX};
	struct sw_settings s;
	bool is_ahead = false, has_device = false;
	int o;

	sw_settings_init(&s);
	s.wait_timeout_s = 60;
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (o) {
		case 'a':
			s.agent = optarg;
			break;
		case 's':
			k.rng = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			k.n_colls = strtoull(optarg, NULL, 10);
			break;
		case 'o':
			k.odd = strtoull(optarg, NULL, 10);
			break;
		case 'l':
			k.is_odd_list = true;
			break;
		case 'h':
			is_ahead = true;
			break;
		case 'd':
			has_device = true;
			break;
		default:
			return 2;
		}
	open_all(&k, &s);
	if (has_device)
		must(&k, sw_device_open(k.c, NULL, &k.d), "device");
	(is_ahead ? run_ahead : run)(&k);
	proc_say("exact");
	sw_device_close(&k.d);
	sw_close(&k.c);
	proc_say("ended");
	return 0;
}
