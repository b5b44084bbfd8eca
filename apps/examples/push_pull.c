/* push_pull.c - example: sum declared tensors, step by step, urgent ones first.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   cc push_pull.c -o push_pull $(pkg-config --cflags --libs sumwire)
 *   sumwire run -np 2 ./push_pull
 */
#include <stdio.h>

#include <sumwire/sumwire.h>

enum { LAYERS = 2, STEPS = 3 };

/* Print the library's message for an error. */
static int failed(const struct sw_client *c, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, sw_last_error(c));
	return 1;
}

/* Names, sizes and types must be equal on all ranks.  The next forward pass
 * needs the first layer first, so its priority is 0, the most urgent. */
static const struct sw_tensor_desc layers[LAYERS] = {
	{.size = sizeof(struct sw_tensor_desc),
		.name = "first.weight",
		.n_elems = 1 << 16,
		.dtype = SW_F32,
		.priority = 0},
	{.size = sizeof(struct sw_tensor_desc),
		.name = "second.weight",
		.n_elems = 1 << 20,
		.dtype = SW_F32,
		.priority = 1},
};

/* A stand-in for a gradient. */
static float gradient(uint32_t rank, uint32_t step)
{
	return (float)((rank + 1) * (step + 1));
}

static int check(const struct sw_client *c, struct sw_tensor *t, uint32_t l,
	uint32_t step)
{
	/* With several local ranks the sum is stored apart from the tensor. */
	const float *sum = sw_tensor_result(t);
	float want = 0;

	for (uint32_t r = 0; r < sw_size(c); r++)
		want += gradient(r, step);
	for (uint64_t i = 0; i < layers[l].n_elems; i++)
		if (sum[i] != want) {
			fprintf(stderr, "%s: element %llu is %g, not %g\n",
				layers[l].name, (unsigned long long)i,
				(double)sum[i], (double)want);
			return 1;
		}
	return 0;
}

/* Compute gradients from the last layer to the first.  Each gradient is in
 * flight while the next one is computed. */
static int train_step(struct sw_client *c, struct sw_tensor **t, uint32_t step)
{
	uint64_t handles[LAYERS];

	for (uint32_t l = LAYERS; l-- > 0;) {
		float *g = sw_tensor_data(t[l]);

		for (uint64_t i = 0; i < layers[l].n_elems; i++)
			g[i] = gradient(sw_rank(c), step);
		if (sw_push_pull(c, t[l], step, &handles[l]))
			return failed(c, "sw_push_pull");
	}
	for (uint32_t l = 0; l < LAYERS; l++) {
		if (sw_wait(c, handles[l]))
			return failed(c, "sw_wait");
		if (check(c, t[l], l, step))
			return 1;
	}
	printf("rank %u of %u: step %u\n", sw_rank(c), sw_size(c), step);
	return 0;
}

int main(void)
{
	struct sw_tensor *t[LAYERS];
	struct sw_client *c = NULL;
	int err = 0;

	/* NULL: the agent that sumwire run names in the environment.  Returns
	 * when all ranks have joined. */
	if (sw_open(NULL, &c))
		return failed(NULL, "sw_open");
	if (sw_declare(c, layers, LAYERS, t))
		err = failed(c, "sw_declare");
	for (uint32_t step = 0; step < STEPS && !err; step++)
		err = train_step(c, t, step);
	sw_close(&c); /* also frees the tensors */
	return err;
}
