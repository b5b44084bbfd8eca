/* polyval.c - the table of POLYVAL kernels, their choice, and keys.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "sum/polyval.h"

#include <string.h>

#include "sum/clmul.h"

/* To add a kernel, add a file and a row; the widest is last. */
static const struct {
	const struct sw_polyval *polyval;
	bool (*runs)(void);
} rows[] = {
	{&sw_polyval_scalar, sw_has_any},
#if SW_CRC_HAS_CLMUL128
	{&sw_polyval_clmul128, sw_has_clmul128},
#endif
#if SW_CRC_HAS_CLMUL256
	{&sw_polyval_clmul256, sw_has_clmul256},
#endif
#if SW_CRC_HAS_CLMUL512
	{&sw_polyval_clmul512, sw_has_clmul512},
#endif
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct sw_polyval *sw_polyval_row(uint32_t i, bool *runs)
{
	if (i >= N_ROWS)
		return NULL;
	if (runs)
		*runs = rows[i].runs();
	return rows[i].polyval;
}

static const struct sw_polyval *best(void)
{
	uint32_t i = N_ROWS - 1;

	while (!rows[i].runs())
		i--;
	return rows[i].polyval;
}

/* Fill @powers with the first @n powers of @h, the highest first. */
static void fill(uint64_t (*powers)[2], uint64_t (*middles)[2], uint32_t n,
	const uint64_t h[2])
{
	uint64_t power[2] = {h[0], h[1]};

	while (n--) {
		memcpy(powers[n], power, sizeof(power));
		middles[n][0] = power[0] ^ power[1];
		middles[n][1] = 0;
		sw_polyval_dot(power, h);
	}
}

void sw_polyval_prepare_for(struct sw_polyval_key *key, const uint8_t *bytes,
	const struct sw_polyval *kernel)
{
	uint64_t h[2];

	key->kernel = kernel;
	memcpy(h, bytes, sizeof(h));
	fill(key->powers, key->middles, SW_POLYVAL_POWERS, h);
	fill(key->strides, key->stride_middles, SW_POLYVAL_STRIDES,
		key->powers[SW_POLYVAL_POWERS - kernel->lanes]);
}

void sw_polyval_prepare(struct sw_polyval_key *key, const uint8_t *bytes)
{
	sw_polyval_prepare_for(key, bytes, best());
}
