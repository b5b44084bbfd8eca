/* device_coll.h - collectives on a device's memory.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CUDA_DEVICE_COLL_H
#define SW_PMD_CUDA_DEVICE_COLL_H

#include <stdbool.h>

struct sw_device;

/* sw_device_serve - do the work of collectives other than copies. Called by the
 * pipeline's thread with the device. Returns whether there was any work. */
bool sw_device_serve(void *ctx);

/* sw_device_free_colls - free all collectives, after the pipeline was
 * closed. */
void sw_device_free_colls(struct sw_device *d);

#endif
