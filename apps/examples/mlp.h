/* mlp.h - a multi-layer perceptron in f32 whose every bit can be repeated.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * ReLU between the layers, softmax and cross-entropy at the end, stochastic
 * gradient descent with momentum.  Every sum is made in one fixed order and no
 * multiplication is fused with an addition, so equal inputs give equal bits in
 * every process.
 *
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

/* One tensor of parameters; weights are [inputs][outputs]. */
struct sw_mlp_tensor {
	char name[SW_MLP_NAME_BYTES]; /* "fc1.weight", "fc1.bias", … */
	uint64_t n_elems;
	float *value;
	float *velocity;
	float *grad; /* where sw_mlp_backward writes; the caller may point it
			elsewhere (n_elems elements) */
};

/* C = A * B, see mlp_matmul.c. */
struct sw_mat {
	const float *p; /* element (i, j) is p[i * row + j * col] */
	size_t row, col;
};
struct sw_matmul {
	struct sw_mat a; /* n_rows x n_inner */
	const float *b;  /* n_inner x n_cols, dense */
	float *c;        /* n_rows x n_cols, dense; overlaps nothing */
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
	/* forward order: weight and bias of layer 0, of layer 1, … */
	struct sw_mlp_tensor tensors[2 * SW_MLP_MAX_LAYERS];
	uint64_t n_params;
	/* scratch of a product and of sw_mlp_backward */
	float *pack, *delta_t, *input_t;
	float *memory; /* all arrays above, one allocation */
};

/* sw_mlp_init - a network of @n_layers layers, @dims[0] inputs and @dims[i + 1]
 * outputs of layer i, its weights drawn from @seed (He, uniform).
 * @max_rows  largest batch of a later call
 * Errors: SW_EINVAL, SW_ENOMEM. */
int sw_mlp_init(struct sw_mlp *m, const uint32_t *dims, uint32_t n_layers,
	uint32_t max_rows, uint64_t seed);
void sw_mlp_fini(struct sw_mlp *m);

/* sw_mlp_forward - layer @l for @n_rows rows; @x ([n_rows][n_in]) is read by
 * layer 0 only and is borrowed until sw_mlp_backward of layer 0. */
void sw_mlp_forward(
	struct sw_mlp *m, uint32_t l, const float *x, uint32_t n_rows);

/* sw_mlp_loss - sum over @n_rows of the cross-entropy with @labels; leaves
 * @scale times its gradient for sw_mlp_backward.  Adds to *@n_correct the rows
 * whose largest output is the label. */
double sw_mlp_loss(struct sw_mlp *m, const uint8_t *labels, uint32_t n_rows,
	float scale, uint32_t *n_correct);

/* sw_mlp_backward - gradients of layer @l's two tensors, written over what is
 * in their grad.  From the last layer down; @x as in sw_mlp_forward. */
void sw_mlp_backward(
	struct sw_mlp *m, uint32_t l, const float *x, uint32_t n_rows);

/* sw_mlp_update - velocity = momentum * velocity + grad;
 * value -= rate * velocity. */
void sw_mlp_update(struct sw_mlp_tensor *t, float rate, float momentum);

/* sw_mlp_hash - 64 bits over the bits of @n floats, going on from @h (start
 * with any).  Arrays that differ in exactly one element never have the same. */
uint64_t sw_mlp_hash(uint64_t h, const float *p, uint64_t n);

#endif
