/* back.h - a back end: how bytes get from a device to this machine and back.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All that is above it (pipeline.h) is the same for each, so that it runs where
 * there is no GPU.  A copy and its event are put to the back end's own stream
 * of that direction, which does them in order; nothing here blocks, but open,
 * close, pin, unpin, alloc, release and move.
 *
 * Thread: the pipeline's, after enter; record, hold, event_open, event_close
 * and what is about the device's own memory any. Errors: SW_EDEVICE, after
 * which this process cannot use the device, unless said otherwise; @why, of
 * SW_BACK_WHY bytes, is a sentence of it.
 */
#ifndef SW_PMD_CUDA_BACK_H
#define SW_PMD_CUDA_BACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmd/client/rows.h"

enum { SW_BACK_WHY = 160 };

enum sw_back_way {
	SW_BACK_OUT, /* of the device */
	SW_BACK_IN,
	SW_BACK_WAYS,
};

struct sw_back; /* one device as one process uses it */

struct sw_back_ops {
	const char *name;

	/* @options  what stands behind "NAME:"; NULL: nothing
	 * Errors: SW_EDEVICE no such device, no driver, …; SW_EINVAL. */
	int (*open)(const char *options, int32_t device, struct sw_back **out,
		char *why);
	void (*close)(struct sw_back *b);

	/* Before this thread makes any other call. */
	int (*enter)(struct sw_back *b, char *why);

	/* Copies from and to @p, a whole number of pages, are then fast and
	 * asynchronous; some of the pages may be pinned before.  Any error:
	 * they work all the same, slower. */
	int (*pin)(struct sw_back *b, void *p, size_t bytes, bool is_read_only,
		char *why);
	void (*unpin)(struct sw_back *b, void *p);

	int (*event_open)(struct sw_back *b, void **event, char *why);
	void (*event_close)(struct sw_back *b, void *event);

	/* @event is done when what @stream, of the program, has so far is.
	 * Errors: SW_EINVAL the stream is being captured into a graph. */
	int (*record)(struct sw_back *b, void *event, void *stream, char *why);

	/* Begin a copy; @event is done when it is. */
	int (*copy)(struct sw_back *b, enum sw_back_way way,
		const struct sw_rows *rows, void *event, char *why);

	/* 0: it is; SW_EAGAIN: not yet. */
	int (*poll)(struct sw_back *b, void *event, char *why);

	/* Later work in @stream, a stream of the program, waits until
	 * (int32_t)(*word - value) >= 0; @word is in pinned memory.
	 * Errors: SW_ENOENT it cannot be done here, and @why; SW_EPERM the
	 * stream is being captured into a graph. */
	int (*hold)(struct sw_back *b, void *stream, _Atomic uint32_t *word,
		uint32_t value, char *why);

	/* The machine's NUMA node that the device is near; -1: not known. */
	int (*node)(const struct sw_back *b);

	/* Memory of the device, at a multiple of 256; SW_ENOMEM it has too
	 * little. */
	int (*alloc)(struct sw_back *b, uint64_t bytes, void **out, char *why);
	void (*release)(struct sw_back *b, void *p);

	/* A copy that is done when this returns: of the device's memory, of
	 * the machine's, from one to the other.  SW_EINVAL it is neither. */
	int (*move)(struct sw_back *b, void *to, const void *from,
		uint64_t bytes, char *why);

	/* A number of what @p, of the device, has now; those of parts add up
	 * to that of the whole.  false: it is not asked for.  NULL: never. */
	bool (*digest)(const struct sw_back *b, const void *p, uint64_t bytes,
		uint64_t *out);
};

extern const struct sw_back_ops sw_back_fake, sw_back_cuda;

/* sw_back_find - return the back end of "NAME" or "NAME:OPTIONS"; NULL:
 * unknown.
 * @options  set to what stands behind the colon, in @name; NULL: nothing */
const struct sw_back_ops *sw_back_find(const char *name, const char **options);

#endif
