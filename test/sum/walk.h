/* walk.h - compare one kernel with the reference: lengths, places, aliasing.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUM_WALK_H
#define SW_TEST_SUM_WALK_H

#include "sum/kernel.h"
#include "test/sum/arena.h"
#include "test/sum/data.h"

enum { N_VARIANTS = 8, WHY_BYTES = 160 };

/* Faults to plant into the kernel under test. */
enum plant {
	PLANT_NONE,
	PLANT_BIT,    /* flip the lowest bit of one element, at one length */
	PLANT_BEYOND, /* flip one byte after the last element */
	PLANT_BEFORE, /* flip one byte before the first */
	PLANT_SOURCE, /* flip one bit of a source */
	N_PLANTS,
};

/* Pools of one dtype and operation, and the results that the reference
 * computes. */
struct walk {
	struct arena dst, src[SW_KERNEL_MAX_SRC];
	bool is_quick; /* fewer lengths, for emulators */
	enum plant plant;
	uint8_t dst_pool[POOL * 8];
	uint8_t src_pool[SW_KERNEL_MAX_SRC][POOL * 8];
	uint8_t expected[N_VARIANTS][POOL * 8];
};

/* walk_open - return 0, or -1 without memory. */
int walk_open(struct walk *w);
void walk_close(struct walk *w);

/* walk_run - check operation @op of @dtype at level @sum. Returns true if all
 * results equal the reference; otherwise @why names the first difference. The
 * kernel must have the operation. */
bool walk_run(struct walk *w, const struct sw_sum *sum, enum sw_dtype dtype,
	enum sw_kernel op, char why[WHY_BYTES]);

#endif
