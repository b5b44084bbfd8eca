/* pins.h - ranges of memory that a back end has pinned, which may overlap.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A runtime refuses to pin a page twice, and to copy over the border of two
 * pins. Therefore each pin adds only pages that are not pinned yet, as ranges
 * of its own, and a copy can query the distance to the next border.
 *
 * Thread: any.  No call of the runtime is made with the lock held.
 */
#ifndef SW_PMD_CUDA_PINS_H
#define SW_PMD_CUDA_PINS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct sw_pin {
	struct sw_pin *next; /* next higher range */
	uintptr_t first, end;
	uintptr_t owner; /* address of the pin that added it */
	bool is_ours;    /* we pinned it, so we unpin it */
};

struct sw_pins {
	pthread_mutex_t lock;
	struct sw_pin *first;
};

void sw_pins_init(struct sw_pins *p);
void sw_pins_fini(struct sw_pins *p);

/* sw_pins_add - add the next range of @bytes at @at that is not pinned yet,
 * from *@from on, and move *@from past it. Returns NULL if all are pinned or,
 * with *@has_memory false, if there is no memory. */
struct sw_pin *sw_pins_add(struct sw_pins *p, uintptr_t at, uint64_t bytes,
	uintptr_t *from, bool *has_memory);

/* sw_pins_drop - remove and free a range that could not be pinned. */
void sw_pins_drop(struct sw_pins *p, struct sw_pin *pin);

/* sw_pins_take - remove a range that the pin at @at added; the caller unpins
 * and frees it. Returns NULL if none is left. */
struct sw_pin *sw_pins_take(struct sw_pins *p, uintptr_t at);

/* sw_pins_run - return how many of @bytes at @at come before the next
 * border. */
uint64_t sw_pins_run(struct sw_pins *p, const void *at, uint64_t bytes);

#endif
