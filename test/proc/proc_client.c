/* proc_client.c - a training process that follows its options.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Declares tensors, pushes them in steps, checks every element of the sums.
 * Reports its progress on stdout: "attached 0 of 2", "declared", "step 3
 * exact", "ended"; or "error WHERE SW_EPEER: sentence", and then exits with 3.
 */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmd/client/client_device.h"
#include "pmd/client/client_push.h"
#include "pmd/client/client_turn.h"
#include "test/proc/proc_say.h"
#include "sum/half.h"

enum { TENSORS_MAX = 1024, LINE = 64 };

enum misbehaviour {
	GOOD,
	DIE,  /* by SIGKILL, right after its pushes */
	EDIT, /* write the first tensor until its push ends */
	/* writes into the rings: */
	RING_DONE,   /* an impossible index in the ring of completions */
	RING_INDEX,  /* the same in the ring of submits */
	RING_TENSOR, /* a tensor that it has not declared */
	RING_TWICE,  /* a tensor with an open push */
	RING_RANDOM, /* random bytes over the whole rings */
	/* The first tensor grows: it reports more bytes missing than it has; or
	 * it reports half of it, then dies. */
	GROW_BEYOND,
	GROW_DIE,
	N_MISBEHAVIOURS,
};

static const char *const misbehaviours[N_MISBEHAVIOURS] = {"good", "die",
	"edit", "ring-done", "ring-index", "ring-tensor", "ring-twice",
	"ring-random", "grow-beyond", "grow-die"};

/* How its calls of the first tensor differ from the other ranks' calls. */
enum mismatch { INTOLERANT, NONE, STEP, ROOT, SUM, N_MISMATCHES };

static const char *const mismatches[N_MISMATCHES] = {
	"", "none", "step", "root", "sum"};

struct tensor {
	char name[SW_EDGE_NAME_BYTES];
	struct sw_tensor_desc desc;
	struct sw_tensor *handle;
	uint64_t push;
	bool is_dead; /* its push ended with SW_EMISMATCH */
};

struct client {
	struct sw_settings settings;
	struct tensor tensors[TENSORS_MAX];
	uint32_t n_tensors, n_steps, first_step;
	uint32_t n_jobs;   /* one after another */
	uint32_t rest_ms;  /* after each step */
	bool is_copying;   /* odd steps broadcast */
	bool is_paused;    /* a line on stdin starts each step */
	bool is_unchecked; /* except in the first step */
	/* In the last step; EDIT: in all steps except the first. */
	enum misbehaviour how;
	/* Not INTOLERANT: report SW_EMISMATCH and continue. */
	enum mismatch mismatch;
	struct sw_client *c;
};

static void must(struct client *k, int err, const char *where)
{
	proc_must(&k->c, err, where);
}

/* Check @err; return false for a tolerated mismatch. */
static bool may(struct client *k, int err, const char *where)
{
	if (err != SW_EMISMATCH || !k->mismatch) {
		must(k, err, where);
		return true;
	}
	printf("mismatch %s: %s\n", where, sw_last_error(k->c));
	fflush(stdout);
	return false;
}

/* --- the tensors --- */

/* Return rank 0's value; rank r gives r + 1 times as much. */
static int base_of(uint64_t i, uint32_t tensor, uint32_t step)
{
	return (int)((i * 31 + tensor * 13 + step * 7) % 97);
}

static void put(void *data, uint32_t dtype, uint64_t i, int value)
{
	switch (dtype) {
	case SW_F32:
		((float *)data)[i] = (float)value;
		break;
	case SW_F64:
		((double *)data)[i] = value;
		break;
	case SW_F16:
		((uint16_t *)data)[i] = sw_f16_round((float)value);
		break;
	case SW_I32:
		((int32_t *)data)[i] = value;
		break;
	default:
		((int64_t *)data)[i] = value;
	}
}

static bool is_value(const void *data, uint32_t dtype, uint64_t i, int value)
{
	switch (dtype) {
	case SW_F32:
		return ((const float *)data)[i] == (float)value;
	case SW_F64:
		return ((const double *)data)[i] == value;
	case SW_F16:
		return ((const uint16_t *)data)[i] ==
		       sw_f16_round((float)value);
	case SW_I32:
		return ((const int32_t *)data)[i] == value;
	default:
		return ((const int64_t *)data)[i] == value;
	}
}

static void fill(const struct client *k, uint32_t step)
{
	int factor = (int)sw_rank(k->c) + 1;

	for (uint32_t t = 0; t < k->n_tensors; t++) {
		const struct sw_tensor_desc *d = &k->tensors[t].desc;
		void *data = sw_tensor_data(k->tensors[t].handle);

		for (uint64_t i = 0; i < d->n_elems; i++)
			put(data, d->dtype, i, factor * base_of(i, t, step));
	}
}

/* Return the rank that broadcasts in this step, or the size for a sum. */
static uint32_t root_of(const struct client *k, uint32_t step)
{
	return k->is_copying && step % 2 ? step / 2 % sw_size(k->c)
					 : sw_size(k->c);
}

static void check(const struct client *k, uint32_t step)
{
	int n = (int)sw_size(k->c), root = (int)root_of(k, step);
	int factor = root < n ? root + 1 : n * (n + 1) / 2;
	uint64_t n_wrong = 0;

	for (uint32_t t = 0; t < k->n_tensors; t++) {
		const struct sw_tensor_desc *d = &k->tensors[t].desc;
		const void *data = sw_tensor_result(k->tensors[t].handle);

		for (uint64_t i = 0; i < d->n_elems && !k->tensors[t].is_dead;
			i++)
			n_wrong += !is_value(data, d->dtype, i,
				factor * base_of(i, t, step));
	}
	if (!n_wrong) {
		printf("step %u exact\n", step);
		fflush(stdout);
		return;
	}
	printf("wrong step %u: %llu elements\n", step,
		(unsigned long long)n_wrong);
	exit(EXIT_WRONG);
}

static bool is_growing(const struct client *k)
{
	return k->how >= GROW_BEYOND;
}

static void declare(struct client *k)
{
	struct sw_tensor_desc descs[TENSORS_MAX];
	struct sw_tensor *handles[TENSORS_MAX];

	if (!k->n_tensors)
		return;
	for (uint32_t t = 0; t < k->n_tensors; t++)
		descs[t] = k->tensors[t].desc;
	if (is_growing(k))
		must(k,
			sw_client_declare_growing(
				k->c, descs, k->n_tensors, handles),
			"declare");
	else
		may(k, sw_declare(k->c, descs, k->n_tensors, handles),
			"declare");
	for (uint32_t t = 0; t < k->n_tensors; t++)
		k->tensors[t].handle = handles[t];
	proc_say("declared");
}

/* --- a step, and misbehaviour in it --- */

static void push(
	struct client *k, struct tensor *t, uint32_t root, uint32_t step)
{
	bool is_odd = t == k->tensors;
	int err;

	step += is_odd && k->mismatch == STEP;
	if (is_odd && k->mismatch == ROOT && root < sw_size(k->c))
		root = (root + 1) % sw_size(k->c);
	if (root < sw_size(k->c) && !(is_odd && k->mismatch == SUM))
		err = sw_broadcast(k->c, t->handle, root, step, &t->push);
	else
		err = sw_push_pull(k->c, t->handle, step, &t->push);
	must(k, err, "push");
}

/* Push the whole first tensor, or half of it in the last step. */
static void push_growing(struct client *k, uint32_t step, bool is_last)
{
	struct tensor *t = &k->tensors[0];
	uint64_t half = t->desc.n_elems / 2 * sw_dtype_bytes(t->desc.dtype);

	must(k,
		sw_client_push(
			k->c, t->handle, 0, step, is_last ? half : 0, &t->push),
		"push");
}

static void push_all(struct client *k, uint32_t step)
{
	if (is_growing(k)) {
		push_growing(k, step, step + 1 == k->n_steps);
		return;
	}
	for (uint32_t i = 0; i < k->n_tensors; i++)
		push(k, &k->tensors[i], root_of(k, step), step);
}

static void wait_all(struct client *k)
{
	for (uint32_t i = 0; i < k->n_tensors; i++) {
		struct tensor *t = &k->tensors[i];

		t->is_dead = !may(k, sw_wait(k->c, t->push), "wait");
	}
}

/* Write to each cache line, repeatedly. */
static void edit(struct client *k)
{
	struct tensor *t = &k->tensors[0];
	uint64_t bytes = t->desc.n_elems * sw_dtype_bytes(t->desc.dtype);
	volatile unsigned char *data = sw_tensor_data(t->handle);
	int err;

	do {
		for (uint64_t i = 0; i < bytes; i += LINE)
			data[i]++;
		err = sw_poll(k->c, t->push);
	} while (err == SW_EAGAIN);
	must(k, err, "poll");
}

static void fill_random(void *at, size_t n)
{
	uint64_t x = 88172645463325252u;

	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		((unsigned char *)at)[i] = (unsigned char)x;
	}
}

static void spoil_rings(struct client *k, uint32_t step)
{
	struct sw_edge_control *ctl = k->c->control;
	struct sw_spsc_shared *done = (void *)ctl->completions;
	struct sw_submit s = {.handle = k->tensors[0].push,
		.tensor = k->how == RING_TENSOR ? 4000 : 0,
		.step = (uint16_t)step};
	struct sw_submit twice[] = {s, s};

	switch (k->how) {
	case RING_INDEX:
		atomic_store(&k->c->submits.shared->n_put, 123456789);
		break;
	case RING_DONE:
		atomic_store(&done->n_taken, 123456789);
		break;
	case RING_RANDOM:
		fill_random(ctl, sizeof(*ctl));
		break;
	default:
		sw_spsc_put(
			&k->c->submits, twice, k->how == RING_TWICE ? 2 : 1);
	}
	sw_edge_bell_write(k->c->bell);
}

/* Ignore the rings and read only the agent's messages. */
static void await_hang_up(struct client *k)
{
	uint64_t until_ns = sw_edge_now_ns() +
			    k->settings.wait_timeout_s * UINT64_C(1000000000);
	union sw_edge_msg m;
	int fds[2], err;

	(void)!sw_client_lock(k->c);
	sw_client_lead(k->c);
	while (!(err = sw_client_rx(k->c, &m, fds)) &&
		sw_edge_now_ns() < until_ns)
		sw_client_sleep(k->c, POLLIN, until_ns);
	sw_client_follow(k->c);
	sw_client_unlock(k->c);
	must(k, err ? err : SW_ETIMEDOUT, "wait");
}

/* Wait until the agent has taken the push and, unless it is very slow, also the
 * first report of missing bytes; then report the next one. */
static void grow(struct client *k)
{
	uint64_t bytes = k->tensors[0].desc.n_elems *
			 sw_dtype_bytes(k->tensors[0].desc.dtype);
	bool is_beyond = k->how == GROW_BEYOND;

	while (sw_spsc_room(&k->c->submits) < k->c->submits.size)
		usleep(1000);
	usleep(10000);
	must(k,
		sw_client_grow(k->c, k->tensors[0].handle,
			is_beyond ? UINT64_MAX : bytes / 4),
		"grow");
}

static void misbehave(struct client *k, uint32_t step)
{
	if (is_growing(k))
		grow(k);
	if (k->how == DIE || k->how == GROW_DIE)
		raise(SIGKILL);
	else if (k->how == EDIT)
		edit(k);
	else if (k->how != GOOD && !is_growing(k))
		spoil_rings(k, step);
	if (k->how > RING_DONE)
		await_hang_up(k);
}

static void run_step(struct client *k, uint32_t i)
{
	uint32_t step = k->first_step + i;
	bool is_last = i + 1 == k->n_steps;
	char line[16];

	if (k->is_paused && !fgets(line, sizeof(line), stdin))
		k->is_paused = false;
	fill(k, step);
	/* Leave a double push to misbehave(): the first push might end before
	 * the second. */
	if (k->how != RING_TWICE || !is_last)
		push_all(k, step);
	if (k->how == EDIT ? i > 0 : is_last)
		misbehave(k, step);
	if (k->how == EDIT && i > 0)
		return;
	wait_all(k);
	if (!k->is_unchecked || !i)
		check(k, step);
	usleep(k->rest_ms * 1000);
}

/* --- the command line --- */

static _Noreturn void usage(const char *why)
{
	fprintf(stderr,
		"proc_client: %s\n"
		"usage: --agent SOCKET [--tensor NAME:ELEMENTS:DTYPE[:PRIORITY]"
		"]... [--steps N] [--first-step N] [--timeout S] [--pause] "
		"[--rest MS] [--no-check] [--copy] [--local-rank N] [--jobs N] "
		"[--misbehave HOW] [--mismatch none|step|root|sum]\n",
		why);
	exit(2);
}

static uint32_t parse_dtype(const char *name)
{
	static const uint32_t dtypes[] = {
		SW_F32, SW_F64, SW_F16, SW_I32, SW_I64};

	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
		if (!strcmp(name, sw_dtype_name(dtypes[i])))
			return dtypes[i];
	usage("--tensor: f32, f64, f16, i32 or i64 expected");
}

static void parse_tensor(struct client *k, const char *text)
{
	struct tensor *t = &k->tensors[k->n_tensors];
	unsigned long long n_elems;
	unsigned int priority = k->n_tensors;
	char dtype[8];

	if (k->n_tensors == TENSORS_MAX ||
		sscanf(text, "%127[^:]:%llu:%7[a-z0-9]:%u", t->name, &n_elems,
			dtype, &priority) < 3)
		usage("--tensor: up to 1024 of NAME:ELEMENTS:DTYPE[:PRIORITY]");
	t->desc = (struct sw_tensor_desc){.size = sizeof(struct sw_tensor_desc),
		.name = t->name,
		.n_elems = n_elems,
		.dtype = (enum sw_dtype)parse_dtype(dtype),
		.priority = priority};
	k->n_tensors++;
}

static enum misbehaviour parse_how(const char *name)
{
	for (int i = 0; i < N_MISBEHAVIOURS; i++)
		if (!strcmp(name, misbehaviours[i]))
			return (enum misbehaviour)i;
	usage("--misbehave: there is no such way");
}

static enum mismatch parse_mismatch(const char *name)
{
	for (uint32_t i = NONE; i < N_MISMATCHES; i++)
		if (!strcmp(name, mismatches[i]))
			return (enum mismatch)i;
	usage("--mismatch: there is no such way");
}

static void parse(struct client *k, int argc, char **argv)
{
	static const struct option rows[] = {{"agent", 1, 0, 'a'},
		{"tensor", 1, 0, 't'}, {"steps", 1, 0, 'n'},
		{"first-step", 1, 0, 'f'}, {"timeout", 1, 0, 'o'},
		{"pause", 0, 0, 'p'}, {"rest", 1, 0, 'r'},
		{"misbehave", 1, 0, 'm'}, {"no-check", 0, 0, 'u'},
		{"copy", 0, 0, 'c'}, {"local-rank", 1, 0, 'l'},
		{"jobs", 1, 0, 'j'}, {"mismatch", 1, 0, 'd'}, {0, 0, 0, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", rows, NULL)) != -1) {
		if (c == 'a')
			k->settings.agent = optarg;
		else if (c == 't')
			parse_tensor(k, optarg);
		else if (c == 'n')
			k->n_steps = (uint32_t)atoi(optarg);
		else if (c == 'f')
			k->first_step = (uint32_t)atoi(optarg);
		else if (c == 'o')
			k->settings.open_timeout_s =
				k->settings.wait_timeout_s =
					(uint32_t)atoi(optarg);
		else if (c == 'p')
			k->is_paused = true;
		else if (c == 'r')
			k->rest_ms = (uint32_t)atoi(optarg);
		else if (c == 'l')
			k->settings.local_rank = (uint32_t)atoi(optarg);
		else if (c == 'j')
			k->n_jobs = (uint32_t)atoi(optarg);
		else if (c == 'c')
			k->is_copying = true;
		else if (c == 'u')
			k->is_unchecked = true;
		else if (c == 'm')
			k->how = parse_how(optarg);
		else if (c == 'd')
			k->mismatch = parse_mismatch(optarg);
		else
			usage("unknown option");
	}
	if (k->n_tensors)
		return;
	if (k->n_steps > 1)
		usage("--steps: a step without a --tensor shows nothing");
	k->n_steps = 0;
}

static void run_job(struct client *k)
{
	must(k, sw_open(&k->settings, &k->c), "open");
	printf("attached %u of %u\n", sw_rank(k->c), sw_size(k->c));
	if (sw_agent_size(k->c) > 1)
		printf("local %u of %u\n", sw_agent_rank(k->c),
			sw_agent_size(k->c));
	fflush(stdout);
	declare(k);
	for (uint32_t i = 0; i < k->n_steps; i++)
		run_step(k, i);
	sw_close(&k->c);
	proc_say("ended");
}

int main(int argc, char **argv)
{
	struct client k = {.n_steps = 1, .n_jobs = 1};

	sw_settings_init(&k.settings);
	k.settings.open_timeout_s = k.settings.wait_timeout_s = 100;
	parse(&k, argc, argv);
	for (uint32_t i = 0; i < k.n_jobs; i++)
		run_job(&k);
	return 0;
}
