/* unit_mlp.c - the perceptron: products, gradients, repeatable bits.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/examples/mlp.h"
#include "engine/base/random.h"
#include "engine/base/error.h"

enum { ROWS = 7, CLASSES = 5, LAYERS = 3, IN = 9 };

static const uint32_t dims[LAYERS + 1] = {IN, 21, 18, CLASSES};

static float uniform(uint64_t *seed)
{
	return (float)(sw_random_next(seed) >> 40) / (1 << 23) - 1;
}

/* Multiply in the order of additions that the real product promises. */
static void plain(const struct sw_matmul *m, float *c)
{
	for (size_t i = 0; i < m->n_rows; i++) {
		for (size_t j = 0; j < m->n_cols; j++) {
			volatile float sum = 0;

			for (size_t k = 0; k < m->n_inner; k++) {
				volatile float x =
					m->a.p[i * m->a.row + k * m->a.col] *
					m->b[k * m->n_cols + j];

				sum = sum + x;
			}
			c[i * m->n_cols + j] = sum;
		}
	}
}

static void matmul_case(size_t rows, size_t cols, size_t inner, int is_trans)
{
	float a[20 * 20], b[20 * 40], c[20 * 40 + 1], want[20 * 40];
	float pack[20 * SW_MATMUL_COLS];
	uint64_t seed = rows * 1000 + cols * 10 + inner;
	struct sw_matmul m = {
		.a = {a, is_trans ? 1 : inner, is_trans ? rows : 1},
		.b = b,
		.c = c,
		.n_rows = rows,
		.n_cols = cols,
		.n_inner = inner,
		.pack = pack,
	};

	for (size_t i = 0; i < 20 * 20; i++)
		a[i] = uniform(&seed);
	for (size_t i = 0; i < 20 * 40; i++)
		b[i] = uniform(&seed);
	c[rows * cols] = 42;
	sw_matmul(&m);
	plain(&m, want);
	assert_memory_equal(c, want, rows * cols * sizeof(float));
	assert_true(c[rows * cols] == 42);
}

static void matmul__equals_plain_loops_bit_by_bit(void **state)
{
	for (size_t rows = 1; rows <= 9; rows++)
		for (size_t cols = 1; cols <= 35; cols++)
			for (size_t inner = 1; inner <= 19; inner += 6)
				for (int t = 0; t < 2; t++)
					matmul_case(rows, cols, inner, t);
}

/* Compute the loss in double from the parameters alone, without mlp.c. */
static double plain_loss(const struct sw_mlp *m, const float *x,
	const uint8_t *labels, double values[][32 * 32])
{
	double total = 0;

	for (int r = 0; r < ROWS; r++) {
		double now[32], next[32], sum = 0;

		for (int i = 0; i < IN; i++)
			now[i] = (double)x[r * IN + i];
		for (uint32_t l = 0; l < LAYERS; l++) {
			for (uint32_t j = 0; j < dims[l + 1]; j++) {
				double v = values[2 * l + 1][j];

				for (uint32_t i = 0; i < dims[l]; i++)
					v += now[i] *
					     values[2 * l][i * dims[l + 1] + j];
				next[j] = l + 1 < LAYERS && v < 0 ? 0 : v;
			}
			memcpy(now, next, sizeof(now));
		}
		for (int j = 0; j < CLASSES; j++)
			sum += exp(now[j]);
		total += log(sum) - now[labels[r]];
	}
	return total;
}

static void make_rows(float *x, uint8_t *labels)
{
	uint64_t seed = 5;

	for (int i = 0; i < ROWS * IN; i++)
		x[i] = uniform(&seed);
	for (int r = 0; r < ROWS; r++)
		labels[r] = (uint8_t)(r % CLASSES);
}

static double one_pass(
	struct sw_mlp *m, const float *x, const uint8_t *labels, float scale)
{
	uint32_t right = 0;
	double loss;

	for (uint32_t l = 0; l < m->n_layers; l++)
		sw_mlp_forward(m, l, x, ROWS);
	loss = sw_mlp_loss(m, labels, ROWS, scale, &right);
	for (uint32_t l = m->n_layers; l-- > 0;)
		sw_mlp_backward(m, l, x, ROWS);
	return loss;
}

/* Compare each parameter's gradient with central differences of the loss. */
static void backward__equals_finite_differences(void **state)
{
	static double values[2 * LAYERS][32 * 32];
	const double eps = 1e-6;
	uint8_t labels[ROWS];
	float x[ROWS * IN];
	struct sw_mlp m;

	assert_int_equal(sw_mlp_init(&m, dims, LAYERS, ROWS, 3), 0);
	make_rows(x, labels);
	for (uint32_t t = 0; t < m.n_tensors; t++)
		for (uint64_t i = 0; i < m.tensors[t].n_elems; i++)
			values[t][i] = (double)m.tensors[t].value[i];
	assert_true(fabs(one_pass(&m, x, labels, 1) -
			    plain_loss(&m, x, labels, values)) < 1e-5);
	for (uint32_t t = 0; t < m.n_tensors; t++) {
		for (uint64_t i = 0; i < m.tensors[t].n_elems; i++) {
			double was = values[t][i], up, down;

			values[t][i] = was + eps;
			up = plain_loss(&m, x, labels, values);
			values[t][i] = was - eps;
			down = plain_loss(&m, x, labels, values);
			values[t][i] = was;
			assert_true(
				fabs((up - down) / (2 * eps) -
					(double)m.tensors[t].grad[i]) < 2e-5);
		}
	}
	sw_mlp_fini(&m);
}

static void loss__scale_divides_the_gradient(void **state)
{
	uint8_t labels[ROWS];
	float x[ROWS * IN], whole;
	struct sw_mlp m;

	assert_int_equal(sw_mlp_init(&m, dims, LAYERS, ROWS, 3), 0);
	make_rows(x, labels);
	one_pass(&m, x, labels, 1);
	whole = m.tensors[0].grad[3];
	assert_true(whole != 0);
	one_pass(&m, x, labels, 0.25f);
	assert_true(m.tensors[0].grad[3] == whole / 4);
	sw_mlp_fini(&m);
}

static void loss__counts_right_answers(void **state)
{
	uint8_t labels[ROWS], best;
	float x[ROWS * IN];
	uint32_t right = 10;
	struct sw_mlp m;

	assert_int_equal(sw_mlp_init(&m, dims, LAYERS, ROWS, 3), 0);
	make_rows(x, labels);
	for (uint32_t l = 0; l < LAYERS; l++)
		sw_mlp_forward(&m, l, x, 1);
	best = 0;
	for (uint8_t j = 1; j < CLASSES; j++)
		if (m.layers[LAYERS - 1].out[j] >
			m.layers[LAYERS - 1].out[best])
			best = j;
	sw_mlp_loss(&m, &best, 1, 1, &right);
	assert_int_equal(right, 11);
	best = (uint8_t)((best + 1) % CLASSES);
	sw_mlp_loss(&m, &best, 1, 1, &right);
	assert_int_equal(right, 11);
	sw_mlp_fini(&m);
}

/* A naive exp would overflow on outputs this large. */
static void loss__large_outputs_stay_finite(void **state)
{
	uint8_t labels[ROWS];
	float x[ROWS * IN];
	struct sw_mlp m;

	assert_int_equal(sw_mlp_init(&m, dims, LAYERS, ROWS, 3), 0);
	make_rows(x, labels);
	m.layers[LAYERS - 1].bias->value[2] = 1000;
	assert_true(isfinite(one_pass(&m, x, labels, 1)));
	assert_true(isfinite(m.tensors[0].grad[0]));
	sw_mlp_fini(&m);
}

static uint64_t train_hash(uint64_t seed)
{
	uint8_t labels[ROWS];
	float x[ROWS * IN];
	uint64_t h = 0;
	struct sw_mlp m;

	assert_int_equal(sw_mlp_init(&m, dims, LAYERS, ROWS, seed), 0);
	make_rows(x, labels);
	for (int step = 0; step < 50; step++) {
		one_pass(&m, x, labels, 1.0f / ROWS);
		for (uint32_t t = 0; t < m.n_tensors; t++)
			sw_mlp_update(&m.tensors[t], 0.1f, 0.9f);
	}
	for (uint32_t t = 0; t < m.n_tensors; t++)
		h = sw_mlp_hash(h, m.tensors[t].value, m.tensors[t].n_elems);
	sw_mlp_fini(&m);
	return h;
}

static void train__same_seed_same_bits(void **state)
{
	assert_true(train_hash(1) == train_hash(1));
	assert_true(train_hash(1) != train_hash(2));
}

static void update__learns_the_rows(void **state)
{
	uint8_t labels[ROWS];
	float x[ROWS * IN];
	double first, last = 0;
	struct sw_mlp m;

	assert_int_equal(sw_mlp_init(&m, dims, LAYERS, ROWS, 3), 0);
	make_rows(x, labels);
	first = one_pass(&m, x, labels, 1.0f / ROWS);
	for (int step = 0; step < 100; step++) {
		for (uint32_t t = 0; t < m.n_tensors; t++)
			sw_mlp_update(&m.tensors[t], 0.1f, 0.9f);
		last = one_pass(&m, x, labels, 1.0f / ROWS);
	}
	assert_true(last < first / 100);
	sw_mlp_fini(&m);
}

static void update__momentum(void **state)
{
	float value = 1, velocity = 2, grad = 3;
	struct sw_mlp_tensor t = {"t", 1, &value, &velocity, &grad};

	sw_mlp_update(&t, 0.5f, 0.25f);
	assert_true(velocity == 3.5f);
	assert_true(value == 1 - 0.5f * 3.5f);
}

/* The gradient of a batch is the sum of the gradients of its parts, up to
 * rounding. Training on several workers relies on this. */
static void backward__parts_add_up(void **state)
{
	static float parts[32 * 32];
	uint8_t labels[ROWS];
	float x[ROWS * IN];
	uint32_t right = 0;
	struct sw_mlp m;
	float *grad;

	assert_int_equal(sw_mlp_init(&m, dims, LAYERS, ROWS, 3), 0);
	grad = m.tensors[2].grad;
	make_rows(x, labels);
	for (int part = 0; part < 2; part++) {
		int at = part * 4, n = part ? ROWS - 4 : 4;

		for (uint32_t l = 0; l < LAYERS; l++)
			sw_mlp_forward(&m, l, x + at * IN, (uint32_t)n);
		sw_mlp_loss(&m, labels + at, (uint32_t)n, 1, &right);
		for (uint32_t l = LAYERS; l-- > 0;)
			sw_mlp_backward(&m, l, x + at * IN, (uint32_t)n);
		for (uint64_t i = 0; i < m.tensors[2].n_elems; i++)
			parts[i] += grad[i];
	}
	one_pass(&m, x, labels, 1);
	for (uint64_t i = 0; i < m.tensors[2].n_elems; i++)
		assert_true(fabsf(parts[i] - grad[i]) < 1e-5f);
	sw_mlp_fini(&m);
}

static void hash__any_bit_counts(void **state)
{
	float v[21];
	uint64_t h;

	for (int n = 1; n <= 21; n++) {
		memset(v, 0, sizeof(v));
		h = sw_mlp_hash(0, v, (uint64_t)n);
		for (int bit = 0; bit < n * 32; bit++) {
			((unsigned char *)v)[bit / 8] ^= 1 << (bit % 8);
			assert_true(sw_mlp_hash(0, v, (uint64_t)n) != h);
			((unsigned char *)v)[bit / 8] ^= 1 << (bit % 8);
		}
		assert_true(sw_mlp_hash(1, v, (uint64_t)n) != h);
	}
}

static void init__names_and_sizes(void **state)
{
	struct sw_mlp m;

	assert_int_equal(sw_mlp_init(&m, dims, LAYERS, ROWS, 3), 0);
	assert_int_equal(m.n_tensors, 6);
	assert_string_equal(m.tensors[0].name, "fc1.weight");
	assert_string_equal(m.tensors[5].name, "fc3.bias");
	assert_int_equal(m.n_params,
		9 * 21 + 21 + 21 * 18 + 18 + 18 * CLASSES + CLASSES);
	for (uint32_t t = 0; t < m.n_tensors; t++)
		assert_int_equal((uintptr_t)m.tensors[t].value % 64, 0);
	sw_mlp_fini(&m);
	assert_null(m.memory);
}

static void init__bad_sizes(void **state)
{
	const uint32_t zero[] = {4, 0, 2}, huge[] = {4, 1 << 20, 2};
	struct sw_mlp m;

	assert_int_equal(sw_mlp_init(&m, zero, 2, 1, 1), SW_EINVAL);
	assert_int_equal(sw_mlp_init(&m, huge, 2, 1, 1), SW_EINVAL);
	assert_int_equal(sw_mlp_init(&m, dims, 0, 1, 1), SW_EINVAL);
	assert_int_equal(sw_mlp_init(&m, dims, LAYERS, 0, 1), SW_EINVAL);
	assert_int_equal(
		sw_mlp_init(&m, dims, SW_MLP_MAX_LAYERS + 1, 1, 1), SW_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matmul__equals_plain_loops_bit_by_bit),
		cmocka_unit_test(backward__equals_finite_differences),
		cmocka_unit_test(backward__parts_add_up),
		cmocka_unit_test(loss__scale_divides_the_gradient),
		cmocka_unit_test(loss__counts_right_answers),
		cmocka_unit_test(loss__large_outputs_stay_finite),
		cmocka_unit_test(train__same_seed_same_bits),
		cmocka_unit_test(update__learns_the_rows),
		cmocka_unit_test(update__momentum),
		cmocka_unit_test(hash__any_bit_counts),
		cmocka_unit_test(init__names_and_sizes),
		cmocka_unit_test(init__bad_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
