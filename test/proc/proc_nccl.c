/* proc_nccl.c - NCCL's calls of collectives, in NCCL's order, at all nodes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   proc_nccl --so PLUGIN --version 8|11 --agent SOCKET... --pid AGENT... CASE
 */
#include "test/proc/proc_nccl.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sum/half.h"
#include "test/proc/proc_say.h"

struct test_case {
	const char *name;
	void (*run)(struct node *k);
};

enum { BYTES_MAX = 4 << 20, OPEN = 8 };

/* One request: the node's contribution, and the place of the result. */
struct call {
	char *send, *recv;
	void *send_mr, *recv_mr, *request;
	size_t count;
	int dtype, op;
	uint32_t number;
};

static const uint32_t elem_bytes[NCCL_N_DTYPES] = {
	1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

static void open_buffers(struct node *k, void *comm, struct call *c)
{
	c->send = malloc(BYTES_MAX);
	c->recv = malloc(BYTES_MAX);
	c->send_mr = nccl_register(k, comm, c->send, BYTES_MAX);
	c->recv_mr = nccl_register(k, comm, c->recv, BYTES_MAX);
}

static void close_buffers(struct node *k, void *comm, struct call *c)
{
	nccl_deregister(k, comm, c->send_mr);
	nccl_deregister(k, comm, c->recv_mr);
	free(c->send);
	free(c->recv);
}

/* Return 1 to 4: sums and products of eight are exact in all types. */
static int number_of(const struct call *c, uint32_t rank, size_t i)
{
	bool is_small = c->op == NCCL_PROD;

	return 1 + (int)((i * 7 + c->number + rank * 3) % (is_small ? 2 : 4));
}

static void put_number(int dtype, int value, void *out)
{
	int64_t i64 = value;
	float f32 = (float)value;
	double f64 = value;
	uint16_t f16 = sw_f16_round(f32), bf16 = sw_bf16_round(f32);

	if (dtype == NCCL_F16)
		memcpy(out, &f16, sizeof(f16));
	else if (dtype == NCCL_BF16)
		memcpy(out, &bf16, sizeof(bf16));
	else if (dtype == NCCL_F32)
		memcpy(out, &f32, sizeof(f32));
	else if (dtype == NCCL_F64)
		memcpy(out, &f64, sizeof(f64));
	else
		memcpy(out, &i64, elem_bytes[dtype]);
}

static int expected(const struct node *k, const struct call *c, size_t i)
{
	int all = number_of(c, 0, i);

	for (uint32_t r = 1; r < k->n; r++) {
		int x = number_of(c, r, i);

		all = c->op == NCCL_SUM    ? all + x
		      : c->op == NCCL_PROD ? all * x
		      : c->op == NCCL_MIN  ? (all < x ? all : x)
					   : (all > x ? all : x);
	}
	return all;
}

static void fill(const struct node *k, struct call *c)
{
	for (size_t i = 0; i < c->count; i++)
		put_number(c->dtype, number_of(c, k->rank, i),
			c->send + i * elem_bytes[c->dtype]);
	memset(c->recv, 0x77, c->count * elem_bytes[c->dtype]);
}

static void check(const struct node *k, const struct call *c)
{
	uint32_t each = elem_bytes[c->dtype];
	char want[8];

	for (size_t i = 0; i < c->count; i++) {
		put_number(c->dtype, expected(k, c, i), want);
		nccl_must(!memcmp(want, c->recv + i * each, each),
			"operation %d of type %d, element %zu of %zu", c->op,
			c->dtype, i, c->count);
	}
}

static void start(struct node *k, void *comm, struct call *c)
{
	uint32_t n_tries = 0;

	for (c->request = NULL; !c->request; nccl_later(&n_tries))
		nccl_must(!nccl_all_reduce(k, comm, c->send, c->recv, c->count,
				  c->dtype, c->op, c->send_mr, c->recv_mr,
				  &c->request),
			"iallreduce");
}

static void finish(struct node *k, struct call *c)
{
	int bytes = nccl_await(k, c->request);

	nccl_must(bytes == (int)(c->count * elem_bytes[c->dtype]),
		"test: %d of %zu elements", bytes, c->count);
	check(k, c);
}

static void run_first(struct node *k)
{
	struct call c = {.count = 1000, .dtype = NCCL_F32};
	void *comm = nccl_connect(k);

	open_buffers(k, comm, &c);
	fill(k, &c);
	start(k, comm, &c);
	finish(k, &c);
	close_buffers(k, comm, &c);
	nccl_close(k, comm);
}

/* An unsupported operation is reported and refused. */
static void run_unsupported(struct node *k, void *comm, struct call *c)
{
	nccl_must(nccl_all_reduce(k, comm, c->send, c->recv, 1, c->dtype, c->op,
			  c->send_mr, c->recv_mr, &c->request) &&
			  !c->request,
		"type %d, operation %d was taken", c->dtype, c->op);
}

/* Run each type with each operation. */
static void run_types(struct node *k)
{
	void *comm = nccl_connect(k);
	uint32_t n_supported = 0;
	struct call c = {0};

	open_buffers(k, comm, &c);
	for (c.dtype = -1; c.dtype <= NCCL_N_DTYPES; c.dtype++)
		for (c.op = 0; c.op <= NCCL_N_OPS; c.op++) {
			c.number++;
			c.count = 1 + c.number * 37 % 3000;
			if (!nccl_supports(k, c.dtype, c.op)) {
				run_unsupported(k, comm, &c);
				continue;
			}
			n_supported++;
			fill(k, &c);
			start(k, comm, &c);
			finish(k, &c);
		}
	nccl_must(n_supported == 8 * 4 + 2 * 2, "%u supported", n_supported);
	nccl_ask_too_much(k, comm, c.send, c.send_mr);
	close_buffers(k, comm, &c);
	nccl_close(k, comm);
}

/* Run eight at once, from one element to 4 MiB. */
static void run_sizes(struct node *k)
{
	static const size_t counts[] = {
		1, 3, 1000, 100003, BYTES_MAX / 4, 17, BYTES_MAX / 4, 65536};
	struct call calls[OPEN] = {0};
	void *comm = nccl_connect(k);

	for (uint32_t i = 0; i < OPEN; i++)
		open_buffers(k, comm, &calls[i]);
	for (uint32_t number = 0; number < 3 * OPEN; number++) {
		struct call *c = &calls[number % OPEN];

		if (c->request)
			finish(k, c);
		c->number = number;
		c->count = counts[number * 3 % OPEN];
		c->dtype = NCCL_F32;
		fill(k, c);
		start(k, comm, c);
	}
	for (uint32_t i = 0; i < OPEN; i++) {
		finish(k, &calls[i]);
		close_buffers(k, comm, &calls[i]);
	}
	nccl_close(k, comm);
}

/* Start more than fit: the rest start later, in the same order. */
static void run_later(struct node *k)
{
	enum { N = 3 * NCCL_REQUESTS };
	void *comm = nccl_connect(k), *requests[N];
	struct call c = {.count = 1, .dtype = NCCL_I32};
	uint32_t n_started = 0, n_ended = 0, n_later = 0, n_tries = 0;

	open_buffers(k, comm, &c);
	memset(c.send, 0, BYTES_MAX);
	while (n_ended < N) {
		char *at = c.send + n_started * 4, *to = c.recv + n_started * 4;

		if (n_started < N) {
			memcpy(at, &n_started, sizeof(n_started));
			nccl_must(!nccl_all_reduce(k, comm, at, to, 1, NCCL_I32,
					  NCCL_SUM, c.send_mr, c.recv_mr,
					  &requests[n_started]),
				"iallreduce");
			if (requests[n_started]) {
				n_started++;
				continue;
			}
			n_later++;
		}
		nccl_later(&n_tries);
		nccl_must(nccl_await(k, requests[n_ended++]) == 4, "test");
	}
	nccl_must(n_later > 0, "%u requests were never too many", N);
	for (uint32_t i = 0; i < N; i++)
		nccl_must(((uint32_t *)(void *)c.recv)[i] == i * k->n,
			"request %u", i);
	close_buffers(k, comm, &c);
	nccl_close(k, comm);
}

/* Gather and reduce parts of all nodes' data, cut anywhere. */
static void run_windows(struct node *k)
{
	enum { EACH = 1200 };
	static const size_t windows[][2] = {
		{0, 0}, {0, 400}, {1196, 8}, {400, 1600}, {1200, 1200}};
	void *comm = nccl_connect(k);
	size_t all = EACH * k->n;
	struct call c = {.dtype = NCCL_I32};

	open_buffers(k, comm, &c);
	for (uint32_t w = 0; w < 5; w++) {
		size_t at = windows[w][0], n = w ? windows[w][1] : all;
		size_t first = EACH * k->rank > at ? EACH * k->rank : at;
		size_t end = EACH * (k->rank + 1);
		int got;

		end = end < at + n ? end : at + n;
		for (size_t i = 0; i < EACH; i += 4)
			put_number(NCCL_I32,
				(int)(k->rank * 1000 +
					(first - EACH * k->rank + i) / 4),
				c.send + i);
		memset(c.recv, 0x77, all);
		nccl_gather(k, comm, c.send, c.recv, EACH, at, n, c.send_mr,
			c.recv_mr, &c.request);
		got = nccl_await(k, c.request);
		nccl_must(got == (int)n, "gathered %d of %zu", got, n);
		for (size_t i = at; i < at + n; i += 4) {
			memcpy(&got, c.recv + (i - at), 4);
			nccl_must(got == (int)(i / EACH * 1000 + i % EACH / 4),
				"gathered %d at %zu of %zu at %zu", got, i, n,
				at);
		}
		for (size_t i = at; i < at + n; i += 4)
			put_number(NCCL_I32, (int)(i + k->rank),
				c.send + (i - at));
		nccl_scatter(k, comm, c.send, c.recv, EACH, at, n, NCCL_I32,
			c.send_mr, c.recv_mr, &c.request);
		got = nccl_await(k, c.request);
		nccl_must(got == (int)(end > first ? end - first : 0),
			"scattered %d", got);
		for (size_t i = first; i < end; i += 4) {
			memcpy(&got, c.recv + (i - first), 4);
			nccl_must(
				got == (int)(k->n * i + k->n * (k->n - 1) / 2),
				"reduced %d at %zu", got, i);
		}
	}
	close_buffers(k, comm, &c);
	nccl_close(k, comm);
}

/* A signal kills the last node in mid-flight. */
static void run_dead(struct node *k)
{
	struct call c = {.count = BYTES_MAX / 4, .dtype = NCCL_F32};
	void *comm = nccl_connect(k);
	uint32_t n_tries = 0;
	int err = 0;

	open_buffers(k, comm, &c);
	fill(k, &c);
	while (!err) {
		start(k, comm, &c);
		if (k->rank == k->n - 1 && n_tries > 3)
			_exit(printf("node %u done\n", k->rank) < 0 ||
				fflush(stdout));
		err = nccl_await(k, c.request) < 0;
		nccl_later(&n_tries);
	}
	nccl_must(nccl_all_reduce(k, comm, c.send, c.recv, 1, NCCL_F32,
			  NCCL_SUM, c.send_mr, c.recv_mr, &c.request),
		"a call after the end");
	close_buffers(k, comm, &c);
	nccl_close(k, comm);
}

/* The plugin refuses damaged handles and handles of another job. */
static void run_handles(struct node *k)
{
	void *handles[NODES_MAX], *listen_comm, *comm = NULL;
	uint8_t own[NCCL_HANDLE_BYTES], torn[NCCL_HANDLE_BYTES];

	for (uint32_t i = 0; i < NCCL_HANDLE_BYTES; i++) {
		nccl_must(!nccl_listen(k, own, &listen_comm), "listen");
		memcpy(torn, own, sizeof(own));
		torn[i] ^= (uint8_t)(1 << i % 8);
		for (uint32_t r = 0; r < k->n; r++)
			handles[r] = r == k->rank ? own : torn;
		nccl_must(nccl_join(k, handles, listen_comm, &comm) && !comm,
			"a handle whose byte %u is wrong was taken", i);
		nccl_must(nccl_join(k, handles, NULL, &comm) && !comm,
			"connect after a connect that failed");
	}
	run_first(k); /* the refusals had no effect */
}

/* Use communicators of some nodes beside one of all. */
static void run_some(struct node *k)
{
	struct node pair = *k;

	pair.shared = k->shared + 1 + k->rank / 2;
	pair.rank = k->rank % 2;
	pair.n = 2;
	run_first(&pair);
	run_first(k);
	run_sizes(&pair);
}

/* The agents have no place for these processes: connect fails, and NCCL
 * continues without. */
static void run_busy(struct node *k)
{
	k->is_refused = true;
	nccl_must(!nccl_connect(k), "refused");
}

/* Stay attached until a file exists. */
static void run_held(struct node *k)
{
	uint32_t n_tries = 0;

	run_first(k);
	printf("node %u holds\n", k->rank);
	fflush(stdout);
	while (access(getenv("TEST_END"), F_OK))
		nccl_later(&n_tries);
	run_first(k);
}

static const struct test_case cases[] = {
	{"first", run_first}, {"types", run_types}, {"sizes", run_sizes},
	{"later", run_later}, {"windows", run_windows},
	{"close", nccl_run_close}, {"frozen", nccl_run_frozen},
	{"dead", run_dead}, {"handles", run_handles}, {"some", run_some},
	{"busy", run_busy}, {"held", run_held}, {"alone", NULL}, /* no agent */
};

static int run_node(struct node *k, const char *so, const char *agent,
	const struct test_case *c)
{
	int n_coll;

	setenv("SUMWIRE_AGENT", agent, 1);
	nccl_load(k, so, &n_coll);
	nccl_must(n_coll == !!c->run, "%d devices that sum", n_coll);
	if (c->run)
		c->run(k);
	nccl_unload(k);
	printf("node %u done\n", k->rank);
	fflush(stdout);
	return 0;
}

/* Wait for all nodes; return the first exit status that is not 0. */
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

/* Make a group of all nodes, and one of each pair. */
static struct bootstrap *make_bootstrap(uint32_t n)
{
	struct bootstrap *b = mmap(NULL, (1 + NODES_MAX) * sizeof(*b),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t attr;

	if (b == MAP_FAILED)
		exit(EXIT_ERROR);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	for (uint32_t i = 0; i <= NODES_MAX; i++)
		pthread_barrier_init(&b[i].barrier, &attr, i ? 2 : n);
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
		{"agent", required_argument, NULL, 'a'},
		{"pid", required_argument, NULL, 'p'}, {0}};
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
		else if (o == 'p' && k.n_pids < NODES_MAX)
			k.pids[k.n_pids++] = (pid_t)atoi(optarg);
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
