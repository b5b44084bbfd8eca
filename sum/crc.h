/* crc.h - the CRC-32C kernels one by one, for the checker and the bench.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SW_SUM_CRC_H
#define SW_SUM_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One kernel; sum.h describes its functions. */
struct sw_crc {
	const char *name; /* "scalar", "clmul128", …; as in the file name */
	uint32_t (*crc)(uint32_t crc, const void *p, size_t n);
	uint32_t (*far)(uint32_t crc, const void *p, size_t n);
};

/* sw_crc_row - return row @i of the table of kernels, NULL past its end; the
 * widest last. Set @runs (or NULL) to whether this CPU supports the kernel. */
const struct sw_crc *sw_crc_row(uint32_t i, bool *runs);

/* Inside sum/ only: a block of crc.inc.h, and the rows. */
struct sw_crc_block {
	size_t n_steps;
	uint64_t jump[2];    /* advance the vectors past the streams */
	uint64_t join[4][2]; /* factors that join the streams to the first
				vector; 0 */
};

extern const struct sw_crc sw_crc_scalar;
extern const struct sw_crc sw_crc_clmul128_slow;
extern const struct sw_crc sw_crc_clmul128;
extern const struct sw_crc sw_crc_clmul256;
extern const struct sw_crc sw_crc_clmul512;

#endif
