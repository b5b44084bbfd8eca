/* mlp.h - a multi-layer perceptron in f32 that is reproducible bit by bit.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * ReLU between the layers, softmax and cross-entropy at the end, stochastic
 * gradient descent with momentum.  Every sum has one fixed order, and no
 * multiplication is fused with an addition, so equal inputs give equal bits in
 * every process.
 * One step: 1. sw_mlp_forward for layer 0, 1, …  2. sw_mlp_loss
 * 3. sw_mlp_backward for the last layer down to 0  4. sw_mlp_update for each
 * tensor.  Thread: one network belongs to one thread.
 */
#ifndef SW_APPS_EXAMPLES_MLP_H
#define SW_APPS_EXAMPLES_MLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SW_MLP_MAX_LAYERS = 4, SW_MLP_NAME_BYTES = 24 };

/* One parameter tensor; weights are [inputs][outputs]. */
struct sw_mlp_tensor {
	char name[SW_MLP_NAME_BYTES]; /* "fc1.weight", "fc1.bias", … */
	uint64_t n_elems;
	float *value;
	float *velocity;
	/* output of sw_mlp_backward; the caller may point it elsewhere (n_elems
	 * elements) */
	float *grad;
};

/* A matrix of C = A * B (mlp_matmul.c). */
struct sw_mat {
	const float *p; /* element (i, j) is p[i * row + j * col] */
	size_t row, col;
};
struct sw_matmul {
	struct sw_mat a; /* n_rows x n_inner */
	const float *b;  /* n_inner x n_cols, dense */
	float *c;        /* n_rows x n_cols, dense; must not overlap */
	size_t n_rows, n_cols, n_inner;
	float *pack; /* scratch of n_inner * SW_MATMUL_COLS */
};
enum { SW_MATMUL_COLS = 16 };
void sw_matmul(const struct sw_matmul *m);

struct sw_mlp_layer {
	uint32_t n_in, n_out;
	struct sw_mlp_tensor *weight, *bias;
	float *out;   /* [max_rows][n_out] after bias and ReLU */
	float *delta; /* [max_rows][n_out] gradient before the ReLU */
};

struct sw_mlp {
	uint32_t n_layers, n_tensors, max_rows;
	struct sw_mlp_layer layers[SW_MLP_MAX_LAYERS];
	/* Forward order: weight and bias of layer 0, of layer 1, … */
	struct sw_mlp_tensor tensors[2 * SW_MLP_MAX_LAYERS];
	uint64_t n_params;
	/* Scratch of a product and of sw_mlp_backward. */
	float *pack, *delta_t, *input_t;
	float *memory; /* one allocation for all arrays above */
};

/* sw_mlp_init - make a network of @n_layers layers, with @dims[0] inputs and
 * @dims[i + 1] outputs of layer i.  Its weights are drawn from @seed (He,
 * uniform).
 * @max_rows  largest batch of a later call
 * Errors: SW_EINVAL, SW_ENOMEM. */
int sw_mlp_init(struct sw_mlp *m, const uint32_t *dims, uint32_t n_layers,
	uint32_t max_rows, uint64_t seed);
void sw_mlp_fini(struct sw_mlp *m);

/* sw_mlp_forward - compute layer @l for @n_rows rows.  Only layer 0 reads @x
 * ([n_rows][n_in]), which is borrowed until sw_mlp_backward of layer 0. */
void sw_mlp_forward(
	struct sw_mlp *m, uint32_t l, const float *x, uint32_t n_rows);

/* sw_mlp_loss - return the cross-entropy with @labels, summed over @n_rows, and
 * keep @scale times its gradient for sw_mlp_backward.  Adds the rows whose
 * largest output is the label to *@n_correct. */
double sw_mlp_loss(struct sw_mlp *m, const uint8_t *labels, uint32_t n_rows,
	float scale, uint32_t *n_correct);

/* sw_mlp_backward - compute the gradients of layer @l's two tensors, replacing
 * their grad.  Called from the last layer down; @x as in sw_mlp_forward. */
void sw_mlp_backward(
	struct sw_mlp *m, uint32_t l, const float *x, uint32_t n_rows);

/* sw_mlp_update - set velocity = momentum * velocity + grad and value -= rate *
 * velocity. */
void sw_mlp_update(struct sw_mlp_tensor *t, float rate, float momentum);

/* sw_mlp_hash - return a 64-bit hash over the bits of @n floats, continuing
 * from @h (start with any value).  Arrays that differ in exactly one element
 * never have the same hash. */
uint64_t sw_mlp_hash(uint64_t h, const float *p, uint64_t n);

#endif
