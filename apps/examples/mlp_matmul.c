/* mlp_matmul.c - the perceptron's matrix product: blocked, in one sum order.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * It packs 16 columns of B side by side, then multiplies 4 rows of A at a time
 * with them, and keeps the 64 sums in registers.  An element of C is always
 * ((a0*b0 + a1*b1) + a2*b2) + …: the vectors run along the columns, so their
 * width changes no bit.  Packing matters because the columns of a 1024 wide
 * matrix fall into one set of the cache.
 */
#include "apps/examples/mlp.h"

#include <string.h>

enum { LANES = 4, TILE_ROWS = 4, VECS = SW_MATMUL_COLS / LANES };

/* 4 floats at any address of a float array fit one register on every supported
 * machine.  8 floats are 1.7 times as fast with AVX2 and ten times as slow
 * without, which does not justify a choice at run time here. */
typedef float vec
	__attribute__((vector_size(LANES * 4), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE void pack(const struct sw_matmul *m, size_t col, size_t n_cols)
{
	for (size_t k = 0; k < m->n_inner; k++) {
		float *to = m->pack + k * SW_MATMUL_COLS;
		const float *from = m->b + k * m->n_cols + col;

		for (size_t j = 0; j < SW_MATMUL_COLS; j++)
			to[j] = j < n_cols ? from[j] : 0;
	}
}

/* Compute @n_rows rows of C.  @n_rows is constant at each inlined call. */
INLINE void tile(const struct sw_matmul *m, size_t row, size_t n_rows,
	size_t col, size_t n_cols)
{
	const float *a = m->a.p + row * m->a.row;
	const float *b = m->pack;
	vec sum[TILE_ROWS][VECS] = {0};

	for (size_t k = 0; k < m->n_inner; k++, b += SW_MATMUL_COLS) {
		for (size_t i = 0; i < n_rows; i++) {
			float f = a[i * m->a.row + k * m->a.col];

			for (size_t v = 0; v < VECS; v++)
				sum[i][v] += f * ((const vec *)b)[v];
		}
	}
	for (size_t i = 0; i < n_rows; i++)
		memcpy(m->c + (row + i) * m->n_cols + col, sum[i],
			n_cols * sizeof(float));
}

INLINE void panel(const struct sw_matmul *m, size_t col, size_t n_cols)
{
	size_t row = 0;

	pack(m, col, n_cols);
	for (; row + TILE_ROWS <= m->n_rows; row += TILE_ROWS)
		tile(m, row, TILE_ROWS, col, n_cols);
	for (; row < m->n_rows; row++)
		tile(m, row, 1, col, n_cols);
}

void sw_matmul(const struct sw_matmul *m)
{
	size_t col = 0;

	for (; col + SW_MATMUL_COLS <= m->n_cols; col += SW_MATMUL_COLS)
		panel(m, col, SW_MATMUL_COLS);
	if (col < m->n_cols)
		panel(m, col, m->n_cols - col);
}
