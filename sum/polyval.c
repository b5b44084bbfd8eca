/* polyval.c - the table of POLYVAL's kernels, which one to take, and keys.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "sum/polyval.h"

#include <string.h>

#include "sum/clmul.h"

/* A new kernel is one file and one row; the widest last. */
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

void sw_polyval_prepare(struct sw_polyval_key *key, const uint8_t *bytes)
{
	uint64_t h[2], power[2];

	key->kernel = best();
	memcpy(h, bytes, sizeof(h));
	memcpy(power, h, sizeof(power));
	for (uint32_t i = SW_POLYVAL_POWERS; i--;) {
		memcpy(key->powers[i], power, sizeof(power));
		key->middles[i][0] = power[0] ^ power[1];
		key->middles[i][1] = 0;
		sw_polyval_dot(power, h);
	}
}
