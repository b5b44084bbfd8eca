/* proc_lost.c - a training process whose last rank dies; others continue.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All ranks sum in group "all" and tensor "t"; all except the last also sum in
 * group "living". They wait in the first two when the last rank dies, and
 * report "ended NAME ERROR SENTENCE" for each, then "living goes on" if it
 * does.
 */
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "test/proc/proc_say.h"
#include <sumwire/coll.h>

enum { MANY = 3 << 20, FEW = 5000 };

struct lost {
	struct sw_client *c;
	struct sw_group *all, *living;
	struct sw_tensor *t;
	uint32_t rank, size;
	int32_t *memory;
};

static void must(struct lost *l, int err, const char *where)
{
	proc_must(&l->c, err, where);
}

static int call(struct lost *l, struct sw_group *g, enum sw_coll_kind kind,
	uint64_t count, uint64_t *handle)
{
	struct sw_coll_args args = SW_COLL_ARGS_INIT;

	args.kind = kind;
	args.dtype = SW_I32;
	args.count = count;
	args.send = args.recv = l->memory;
	return sw_coll(g, &args, handle);
}

/* Check a sum of ranks 1 to @n. */
static void use(struct lost *l, struct sw_group *g, uint32_t n)
{
	uint64_t h;

	for (uint32_t i = 0; i < FEW; i++)
		l->memory[i] = (int32_t)l->rank + 1;
	must(l, call(l, g, SW_ALL_REDUCE, FEW, &h), "coll");
	must(l, sw_wait(l->c, h), "wait");
	for (uint32_t i = 0; i < FEW; i++)
		if (l->memory[i] != (int32_t)(n * (n + 1) / 2)) {
			printf("wrong: element %u is %d\n", i, l->memory[i]);
			exit(EXIT_WRONG);
		}
}

static void say(struct lost *l, const char *what, int err)
{
	printf("ended %s %s %s\n", what, sw_error_name(err),
		err ? sw_last_error(l->c) : "");
	fflush(stdout);
}

static void open_all(struct lost *l, const char *agent)
{
	const struct sw_tensor_desc desc = {.size = sizeof(desc),
		.name = "t",
		.n_elems = FEW,
		.dtype = SW_I32};
	uint32_t ranks[64];
	struct sw_settings s;
	void *p;

	sw_settings_init(&s);
	s.agent = agent;
	s.wait_timeout_s = 60;
	must(l, sw_open(&s, &l->c), "open");
	l->rank = sw_rank(l->c);
	l->size = sw_size(l->c);
	printf("rank %u\n", l->rank);
	fflush(stdout);
	must(l, sw_alloc(l->c, 4 * MANY, &p), "alloc");
	l->memory = p;
	must(l, sw_declare(l->c, &desc, 1, &l->t), "declare");
	must(l, sw_group_open(l->c, "all", NULL, 0, &l->all), "group");
	for (uint32_t i = 0; i < l->size - 1; i++)
		ranks[i] = i;
	if (l->rank != l->size - 1)
		must(l,
			sw_group_open(
				l->c, "living", ranks, l->size - 1, &l->living),
			"group");
}

static void die(struct lost *l)
{
	puts("dies");
	fflush(stdout);
	raise(SIGKILL);
}

static void wait_for_the_dead(struct lost *l)
{
	uint64_t coll, sum;
	int coll_err = call(l, l->all, SW_ALL_REDUCE, MANY, &coll);
	int sum_err = sw_push_pull(l->c, l->t, 1, &sum);

	use(l, l->living, l->size - 1); /* independent of those */
	say(l, "coll", coll_err ? coll_err : sw_wait(l->c, coll));
	say(l, "sum", sum_err ? sum_err : sw_wait(l->c, sum));
	coll_err = call(l, l->all, SW_BARRIER, 0, &coll);
	say(l, "later", coll_err ? coll_err : sw_wait(l->c, coll));
}

static void go_on(struct lost *l)
{
	struct sw_group *g;
	uint32_t ranks[64];

	for (uint32_t i = 0; i < 100; i++)
		use(l, l->living, l->size - 1);
	for (uint32_t i = 0; i < l->size - 1; i++)
		ranks[i] = i;
	must(l, sw_group_open(l->c, "new", ranks, l->size - 1, &g), "group");
	use(l, g, l->size - 1);
	must(l, sw_group_close(g), "close");
	puts("living goes on");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"agent", required_argument, NULL, 'a'},
		{"stay", no_argument, NULL, 's'}, {0}};
	static struct lost l;
	const char *agent = NULL;
	bool stays = false; /* the whole agent dies */
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (o == 'a')
			agent = optarg;
		else if (o == 's')
			stays = true;
		else
			return 2;
	open_all(&l, agent);
	if (l.living)
		use(&l, l.living, l.size - 1);
	use(&l, l.all, l.size);
	if (!l.living && !stays)
		die(&l);
	if (!l.living) {
		puts("stays");
		fflush(stdout);
		pause();
		return 0;
	}
	wait_for_the_dead(&l);
	go_on(&l);
	sw_close(&l.c);
	return 0;
}
