/* proc_device.c - a training process with tensors in a device's memory.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * SUMWIRE_DEVICE names the device, here threads and memcpy (pmd/cuda/host.h).
 * Each step sums tensors of drawn sizes, all at once, and every third step
 * broadcasts them; the program checks every element. At odd steps the result
 * goes to other memory.
 */
#include <getopt.h>
#include <stdint.h>

#include <sumwire/device.h>

#include "test/proc/proc_say.h"
#include "test/support/random.h"

enum { TENSORS = 7, ELEMS_MAX = 600000 };

struct train {
	struct sw_client *c;
	struct sw_device *d;
	struct sw_device_tensor *t[TENSORS];
	uint64_t n[TENSORS];
	int32_t *own[TENSORS], *other[TENSORS];
	uint32_t rank, size;
};

static int32_t given(uint32_t rank, uint32_t step, uint32_t t, uint64_t i)
{
	return (int32_t)((i * 31 + t * 7 + step) % 100003 * (rank + 1));
}

static void declare(struct train *x, uint64_t rng)
{
	struct sw_tensor_desc descs[TENSORS];
	char names[TENSORS][16];

	for (uint32_t i = 0; i < TENSORS; i++) {
		descs[i] = (struct sw_tensor_desc)SW_TENSOR_DESC_INIT;
		snprintf(names[i], sizeof(names[i]), "layer%u", i);
		x->n[i] = 1 + test_random(&rng) % ELEMS_MAX;
		descs[i].name = names[i];
		descs[i].n_elems = x->n[i];
		descs[i].dtype = SW_I32;
		descs[i].priority = i;
		x->own[i] = malloc(4 * x->n[i]);
		x->other[i] = malloc(4 * x->n[i]);
	}
	proc_must(&x->c, sw_device_declare(x->d, descs, TENSORS, x->t),
		"declare");
}

/* @root is the size for a sum. */
static void check(const struct train *x, uint32_t step, uint32_t t,
	uint32_t root, const int32_t *got)
{
	for (uint64_t i = 0; i < x->n[t]; i++) {
		int64_t expected = 0;

		for (uint32_t r = 0; r < x->size; r++)
			if (root == x->size || r == root)
				expected += given(r, step, t, i);
		if (got[i] == (int32_t)expected)
			continue;
		printf("wrong: step %u, tensor %u, element %llu is %d, not "
		       "%d\n",
			step, t, (unsigned long long)i, got[i],
			(int32_t)expected);
		exit(EXIT_WRONG);
	}
}

static void submit(struct train *x, uint32_t step, uint32_t t, uint32_t root)
{
	struct sw_device_call call = SW_DEVICE_CALL_INIT;

	for (uint64_t i = 0; i < x->n[t]; i++)
		x->own[t][i] = given(x->rank, step, t, i);
	call.from = x->own[t];
	call.to = step % 2 ? x->other[t] : x->own[t];
	call.step = step;
	call.root = root;
	if (root == x->size)
		proc_must(&x->c, sw_push_pull_device(x->t[t], &call), "push");
	else
		proc_must(&x->c, sw_broadcast_device(x->t[t], &call),
			"broadcast");
}

static void run_step(struct train *x, uint32_t step)
{
	uint32_t root = step % 3 ? x->size : step % x->size;

	for (uint32_t t = TENSORS; t--;) /* in the order of a backward pass */
		submit(x, step, t, root);
	for (uint32_t t = 0; t < TENSORS; t++) {
		proc_must(&x->c, sw_device_wait(x->t[t]), "wait");
		check(x, step, t, root, step % 2 ? x->other[t] : x->own[t]);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"agent", required_argument, NULL, 'a'},
		{"steps", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'r'},
		{0},
	};
	struct sw_settings settings;
	struct train x = {0};
	uint32_t steps = 6, seed = 1;
	int option;

	sw_settings_init(&settings);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'a')
			settings.agent = optarg;
		else if (option == 's')
			steps = (uint32_t)atoi(optarg);
		else if (option == 'r')
			seed = (uint32_t)atoi(optarg);
	}
	proc_must(&x.c, sw_open(&settings, &x.c), "open");
	x.rank = sw_rank(x.c);
	x.size = sw_size(x.c);
	proc_must(&x.c, sw_device_open(x.c, NULL, &x.d), "device");
	declare(&x, seed);
	proc_say("declared");
	for (uint32_t step = 1; step <= steps; step++)
		run_step(&x, step);
	proc_say("exact");
	sw_device_close(&x.d);
	sw_close(&x.c);
	for (uint32_t i = 0; i < TENSORS; i++) {
		free(x.own[i]);
		free(x.other[i]);
	}
	return 0;
}
