/* proc_nccl.c - NCCL's calls of collectives, in NCCL's order, from all nodes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   proc_nccl --so PLUGIN --version 8|11 --agent SOCKET... CASE
 */
#include "test/proc/proc_nccl.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/proc/proc_say.h"

struct test_case {
	const char *name;
	void (*run)(struct node *k);
};

static void run_first(struct node *k)
{
	enum { COUNT = 1000 };
	void *comm = nccl_connect(k), *mr, *request = NULL;
	float *data = calloc(2 * COUNT, sizeof(*data));
	uint32_t n_tries = 0;

	mr = nccl_register(k, comm, data, 2 * COUNT * sizeof(*data));
	for (uint32_t i = 0; i < COUNT; i++)
		data[i] = (float)(i + k->rank);
	for (; !request; nccl_later(&n_tries))
		nccl_must(!nccl_all_reduce(k, comm, data, data + COUNT, COUNT,
				  NCCL_F32, NCCL_SUM, mr, mr, &request),
			"iallreduce");
	nccl_must(nccl_await(k, request) == COUNT * sizeof(*data), "size");
	for (uint32_t i = 0; i < COUNT; i++)
		nccl_must(data[COUNT + i] ==
				  (float)(k->n * i + k->n * (k->n - 1) / 2),
			"element %u is %g", i, (double)data[COUNT + i]);
	nccl_deregister(k, comm, mr);
	nccl_close(k, comm);
	free(data);
}

static const struct test_case cases[] = {
	{"first", run_first},
};

static int run_node(struct node *k, const char *so, const char *agent,
	const struct test_case *c)
{
	int n_coll;

	setenv("SUMWIRE_AGENT", agent, 1);
	nccl_load(k, so, &n_coll);
	nccl_must(n_coll == 1, "%d devices that sum", n_coll);
	c->run(k);
	printf("node %u done\n", k->rank);
	fflush(stdout);
	return 0;
}

/* The first that is not 0, of all nodes. */
static int await_all(uint32_t n)
{
	int code = 0, status;

	for (uint32_t i = 0; i < n; i++) {
		if (wait(&status) < 0)
			return EXIT_ERROR;
		if (status && !code)
			code = WIFEXITED(status) ? WEXITSTATUS(status)
						 : EXIT_ERROR;
	}
	return code;
}

static struct bootstrap *make_bootstrap(uint32_t n)
{
	struct bootstrap *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t attr;

	if (b == MAP_FAILED)
		exit(EXIT_ERROR);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&b->barrier, &attr, n);
	return b;
}

static const struct test_case *find_case(const char *name)
{
	for (size_t i = 0; name && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, name))
			return &cases[i];
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"so", required_argument, NULL, 's'},
		{"version", required_argument, NULL, 'v'},
		{"agent", required_argument, NULL, 'a'}, {0}};
	const char *agents[NODES_MAX], *so = NULL;
	const struct test_case *c;
	struct node k = {0};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (o == 's')
			so = optarg;
		else if (o == 'v')
			k.version = (uint32_t)atoi(optarg);
		else if (o == 'a' && k.n < NODES_MAX)
			agents[k.n++] = optarg;
		else
			return 2;
	c = find_case(argv[optind]);
	k.shared = make_bootstrap(k.n);
	for (k.rank = 0; k.rank < k.n; k.rank++) {
		pid_t pid = fork();

		if (pid < 0)
			return EXIT_ERROR;
		if (!pid)
			return run_node(&k, so, agents[k.rank], c);
	}
	return await_all(k.n);
}
