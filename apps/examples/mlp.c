/* mlp.c - a multi-layer perceptron in f32 that is reproducible bit by bit.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/examples/mlp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/random.h"

enum { MAX_DIM = 1 << 16, ALIGN_ELEMS = 16 };

/* Round @n elements up so that each piece starts on a cache line. */
static size_t padded(size_t n)
{
	return (n + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
}

/* Fill with uniform values in [-limit, limit): 24 random bits are exact in a
 * float. */
static void fill_random(struct sw_mlp_tensor *t, float limit, uint64_t *state)
{
	for (uint64_t i = 0; i < t->n_elems; i++) {
		float u = (float)(sw_random_next(state) >> 40) / (1 << 24);

		t->value[i] = limit * (2 * u - 1);
	}
}

/* Return the next @n elements of @memory, which is NULL while sizes are
 * counted. */
static float *piece(float *memory, size_t *at, size_t n)
{
	float *p = memory ? memory + *at : NULL;

	*at += padded(n);
	return p;
}

/* Give every array its place.  Returns the total number of elements. */
static size_t lay_out(struct sw_mlp *m, float *memory)
{
	size_t at = 0, rows = m->max_rows, widest = rows;

	for (uint32_t i = 0; i < m->n_tensors; i++)
		m->tensors[i].value = piece(memory, &at, m->tensors[i].n_elems);
	for (uint32_t i = 0; i < m->n_tensors; i++)
		m->tensors[i].velocity =
			piece(memory, &at, m->tensors[i].n_elems);
	for (uint32_t i = 0; i < m->n_tensors; i++)
		m->tensors[i].grad = piece(memory, &at, m->tensors[i].n_elems);
	for (uint32_t l = 0; l < m->n_layers; l++) {
		struct sw_mlp_layer *y = &m->layers[l];

		y->out = piece(memory, &at, rows * y->n_out);
		y->delta = piece(memory, &at, rows * y->n_out);
		widest = widest > y->n_in ? widest : y->n_in;
		widest = widest > y->n_out ? widest : y->n_out;
	}
	m->pack = piece(memory, &at, widest * SW_MATMUL_COLS);
	m->delta_t = piece(memory, &at, widest * rows);
	m->input_t = piece(memory, &at, widest * rows);
	return at;
}

static void name_tensor(
	struct sw_mlp_tensor *t, uint32_t l, const char *what, uint64_t n_elems)
{
	snprintf(t->name, sizeof(t->name), "fc%u.%s", l + 1, what);
	t->n_elems = n_elems;
}

static void add_layer(
	struct sw_mlp *m, uint32_t l, uint32_t n_in, uint32_t n_out)
{
	struct sw_mlp_layer *y = &m->layers[l];

	y->n_in = n_in;
	y->n_out = n_out;
	y->weight = &m->tensors[m->n_tensors++];
	y->bias = &m->tensors[m->n_tensors++];
	name_tensor(y->weight, l, "weight", (uint64_t)n_in * n_out);
	name_tensor(y->bias, l, "bias", n_out);
	m->n_params += y->weight->n_elems + y->bias->n_elems;
}

static bool is_dim(uint32_t n)
{
	return n > 0 && n <= MAX_DIM;
}

static float *allocate(size_t n_elems)
{
	float *p = aligned_alloc(64, n_elems * sizeof(float));

	if (p)
		memset(p, 0, n_elems * sizeof(float));
	return p;
}

int sw_mlp_init(struct sw_mlp *m, const uint32_t *dims, uint32_t n_layers,
	uint32_t max_rows, uint64_t seed)
{
	if (!n_layers || n_layers > SW_MLP_MAX_LAYERS || !is_dim(max_rows))
		return SW_EINVAL;
	for (uint32_t i = 0; i <= n_layers; i++)
		if (!is_dim(dims[i]))
			return SW_EINVAL;
	*m = (struct sw_mlp){.n_layers = n_layers, .max_rows = max_rows};
	for (uint32_t l = 0; l < n_layers; l++)
		add_layer(m, l, dims[l], dims[l + 1]);
	m->memory = allocate(lay_out(m, NULL));
	if (!m->memory)
		return SW_ENOMEM;
	lay_out(m, m->memory);
	for (uint32_t l = 0; l < n_layers; l++)
		fill_random(m->layers[l].weight, sqrtf(6.0f / (float)dims[l]),
			&seed);
	return 0;
}

void sw_mlp_fini(struct sw_mlp *m)
{
	free(m->memory);
	*m = (struct sw_mlp){0};
}

static void add_bias(struct sw_mlp_layer *y, uint32_t n_rows, bool is_last)
{
	const float *bias = y->bias->value;

	for (uint32_t r = 0; r < n_rows; r++) {
		float *out = y->out + (size_t)r * y->n_out;

		for (uint32_t j = 0; j < y->n_out; j++) {
			float v = out[j] + bias[j];

			out[j] = v > 0 || is_last ? v : 0;
		}
	}
}

static const float *input_of(const struct sw_mlp *m, uint32_t l, const float *x)
{
	return l ? m->layers[l - 1].out : x;
}

void sw_mlp_forward(
	struct sw_mlp *m, uint32_t l, const float *x, uint32_t n_rows)
{
	struct sw_mlp_layer *y = &m->layers[l];

	sw_matmul(&(struct sw_matmul){
		.a = {input_of(m, l, x), y->n_in, 1},
		.b = y->weight->value,
		.c = y->out,
		.n_rows = n_rows,
		.n_cols = y->n_out,
		.n_inner = y->n_in,
		.pack = m->pack,
	});
	add_bias(y, n_rows, l + 1 == m->n_layers);
}

static uint32_t largest(const float *v, uint32_t n)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < n; i++)
		if (v[i] > v[best])
			best = i;
	return best;
}

/* Return the cross-entropy of one row; @delta becomes @scale * (softmax -
 * one-hot). */
static double row_loss(
	const float *out, float *delta, uint32_t n, uint32_t label, float scale)
{
	float top = out[largest(out, n)], sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		delta[i] = expf(out[i] - top);
		sum += delta[i];
	}
	for (uint32_t i = 0; i < n; i++)
		delta[i] = scale * (delta[i] / sum - (i == label));
	return log((double)sum) - ((double)out[label] - (double)top);
}

double sw_mlp_loss(struct sw_mlp *m, const uint8_t *labels, uint32_t n_rows,
	float scale, uint32_t *n_correct)
{
	struct sw_mlp_layer *y = &m->layers[m->n_layers - 1];
	double loss = 0;

	for (uint32_t r = 0; r < n_rows; r++) {
		size_t at = (size_t)r * y->n_out;

		loss += row_loss(
			y->out + at, y->delta + at, y->n_out, labels[r], scale);
		*n_correct += largest(y->out + at, y->n_out) == labels[r];
	}
	return loss;
}

static void bias_gradient(const struct sw_mlp_layer *y, uint32_t n_rows)
{
	float *grad = y->bias->grad;

	memset(grad, 0, y->n_out * sizeof(float));
	for (uint32_t r = 0; r < n_rows; r++)
		for (uint32_t j = 0; j < y->n_out; j++)
			grad[j] += y->delta[(size_t)r * y->n_out + j];
}

/* weight.grad = input^T * delta */
static void weight_gradient(struct sw_mlp *m, const struct sw_mlp_layer *y,
	const float *input, uint32_t n_rows)
{
	sw_matmul(&(struct sw_matmul){
		.a = {input, 1, y->n_in},
		.b = y->delta,
		.c = y->weight->grad,
		.n_rows = y->n_in,
		.n_cols = y->n_out,
		.n_inner = n_rows,
		.pack = m->pack,
	});
}

static void transpose(
	float *to, const float *from, uint32_t n_rows, uint32_t n_cols)
{
	for (uint32_t j = 0; j < n_cols; j++)
		for (uint32_t i = 0; i < n_rows; i++)
			to[(size_t)j * n_rows + i] =
				from[(size_t)i * n_cols + j];
}

/* Set delta of the layer below to (weight * delta^T)^T where its ReLU was open.
 * In this form the weights are read row by row. */
static void pass_down(struct sw_mlp *m, const struct sw_mlp_layer *y,
	struct sw_mlp_layer *below, uint32_t n_rows)
{
	transpose(m->delta_t, y->delta, n_rows, y->n_out);
	sw_matmul(&(struct sw_matmul){
		.a = {y->weight->value, y->n_out, 1},
		.b = m->delta_t,
		.c = m->input_t,
		.n_rows = y->n_in,
		.n_cols = n_rows,
		.n_inner = y->n_out,
		.pack = m->pack,
	});
	transpose(below->delta, m->input_t, y->n_in, n_rows);
	for (size_t i = 0; i < (size_t)n_rows * y->n_in; i++)
		below->delta[i] = below->out[i] > 0 ? below->delta[i] : 0;
}

void sw_mlp_backward(
	struct sw_mlp *m, uint32_t l, const float *x, uint32_t n_rows)
{
	struct sw_mlp_layer *y = &m->layers[l];

	bias_gradient(y, n_rows);
	weight_gradient(m, y, input_of(m, l, x), n_rows);
	if (l)
		pass_down(m, y, &m->layers[l - 1], n_rows);
}

void sw_mlp_update(struct sw_mlp_tensor *t, float rate, float momentum)
{
	for (uint64_t i = 0; i < t->n_elems; i++) {
		t->velocity[i] = momentum * t->velocity[i] + t->grad[i];
		t->value[i] -= rate * t->velocity[i];
	}
}

/* Both lines are one-to-one in @h, so a difference in one word persists unless
 * a later word also differs. */
static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15;
	return h ^ (h >> 32);
}

/* Use four chains: a single chain would wait for each multiplication. */
uint64_t sw_mlp_hash(uint64_t h, const float *p, uint64_t n)
{
	uint64_t chain[4] = {h, 1, 2, 3}, words[4] = {0};
	uint64_t i = 0;

	for (; i + 8 <= n; i += 8) {
		memcpy(words, p + i, sizeof(words));
		for (int c = 0; c < 4; c++)
			chain[c] = mix(chain[c], words[c]);
	}
	memset(words, 0, sizeof(words));
	memcpy(words, p + i, (n - i) * sizeof(*p));
	for (int c = 0; c < 4; c++)
		chain[c] = mix(chain[c], words[c]);
	for (int c = 1; c < 4; c++)
		chain[0] = mix(chain[0], chain[c]);
	return chain[0];
}
