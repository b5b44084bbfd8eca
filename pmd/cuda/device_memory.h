/* device_memory.h - shared memory that a device pins.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CUDA_DEVICE_MEMORY_H
#define SW_PMD_CUDA_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct sw_device;

/* sw_device_pin - pin the whole pages that hold @bytes at @at. Returns the
 * address to unpin, or NULL if they cannot be pinned, which it logs once. */
void *sw_device_pin(
	struct sw_device *d, const void *at, uint64_t bytes, bool is_read_only);

/* sw_device_pin_stage - pin the stages at @base, unless they are pinned.  Must
 * be called without the client's lock: a driver may let the call wait for a
 * stream that waits for this library. */
void sw_device_pin_stage(struct sw_device *d, const void *base, uint64_t bytes);

/* sw_device_unpin_stage - unpin the stages at @base, if they are pinned, before
 * their memory is unmapped. Must also be called without the client's lock. */
void sw_device_unpin_stage(struct sw_device *d, const void *base);

/* sw_device_unpin_stages - unpin all stages when the device is closed. */
void sw_device_unpin_stages(struct sw_device *d);

#endif
