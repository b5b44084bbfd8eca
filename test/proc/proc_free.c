/* proc_free.c - a training process that frees its memory repeatedly.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Several sums are open, each in memory of its own, which the program frees
 * after the sum has ended and was checked. With --die ROUND it kills itself in
 * that round, right after a sw_free. With --unmap shared it unmaps memory of
 * sw_alloc during a sum there; with --unmap staged, other memory.
 */
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/proc/proc_say.h"
#include "test/support/random.h"
#include <sumwire/coll.h>

enum { OPEN = 4, ROUNDS = 120, COUNT_MAX = 300000, UNMAP_AT = 30 };

struct call {
	int32_t *p;
	uint64_t count, handle;
	uint32_t number;
};

struct free_client {
	struct sw_client *c;
	struct sw_group *g;
	uint32_t rank, size;
	uint64_t rng, die;
	const char *unmap; /* "shared", "staged"; NULL: nothing */
	struct call calls[OPEN];
};

static int32_t given(uint32_t rank, uint32_t number, uint64_t i)
{
	return (int32_t)((i + number) % 1000 * (rank + 1));
}

static bool unmaps(const struct free_client *k, uint32_t number)
{
	return k->unmap && number == UNMAP_AT;
}

static void *take(struct free_client *k, uint32_t number, uint64_t bytes)
{
	void *p;

	if (unmaps(k, number) && !strcmp(k->unmap, "staged"))
		return mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	proc_must(&k->c, sw_alloc(k->c, bytes, &p), "alloc");
	return p;
}

static void start(struct free_client *k, struct call *call, uint32_t number)
{
	struct sw_coll_args a = SW_COLL_ARGS_INIT;
	void *p;

	call->number = number;
	call->count = 1 + test_random(&k->rng) % COUNT_MAX;
	call->p = p = take(k, number, 4 * call->count);
	for (uint64_t i = 0; i < call->count; i++)
		call->p[i] = given(k->rank, number, i);
	a.kind = SW_ALL_REDUCE;
	a.dtype = SW_I32;
	a.count = call->count;
	a.send = a.recv = p;
	proc_must(&k->c, sw_coll(k->g, &a, &call->handle), "coll");
	if (unmaps(k, number)) /* and never reuses the addresses */
		mmap((void *)((uintptr_t)p & ~UINT64_C(4095)), 4 * call->count,
			PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			0);
}

static void check(const struct free_client *k, const struct call *call)
{
	uint32_t sum = k->size * (k->size + 1) / 2;

	for (uint64_t i = 0; i < call->count; i++)
		if (call->p[i] != given(0, call->number, i) * (int32_t)sum) {
			proc_say("wrong");
			exit(EXIT_WRONG);
		}
}

/* A sw_free during the call must not release or change the memory. */
static void finish(struct free_client *k, struct call *call)
{
	if (!call->p)
		return;
	if (sw_poll(k->c, call->handle) == SW_EAGAIN) {
		if (!k->unmap && sw_free(k->c, call->p) == SW_EBUSY)
			proc_say("busy");
		proc_must(&k->c, sw_wait(k->c, call->handle), "wait");
	}
	if (unmaps(k, call->number))
		proc_say("summed what is not mapped here");
	check(k, call);
	proc_must(&k->c, sw_free(k->c, call->p), "free");
	call->p = NULL;
	if (call->number == k->die)
		kill(getpid(), SIGKILL);
}

static void run(struct free_client *k)
{
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		finish(k, &k->calls[i % OPEN]);
		start(k, &k->calls[i % OPEN], i);
	}
	for (uint32_t i = 0; i < OPEN; i++)
		finish(k, &k->calls[i]);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"agent", required_argument, NULL, 'a'},
		{"die", required_argument, NULL, 'd'},
		{"unmap", required_argument, NULL, 'u'}, {0}};
	static struct free_client k = {.rng = 5};
	struct sw_settings s;
	int o;

	sw_settings_init(&s);
	s.wait_timeout_s = 60;
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (o == 'a')
			s.agent = optarg;
		else if (o == 'd')
			k.die = strtoull(optarg, NULL, 10);
		else if (o == 'u')
			k.unmap = optarg;
		else
			return 2;
	proc_must(&k.c, sw_open(&s, &k.c), "open");
	k.rank = sw_rank(k.c);
	k.size = sw_size(k.c);
	proc_must(&k.c, sw_group_open(k.c, "all", NULL, 0, &k.g), "group");
	run(&k);
	proc_say("exact");
	(void)!getchar(); /* the test reads the agent's mappings */
	sw_close(&k.c);
	return 0;
}
