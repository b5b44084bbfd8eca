/* back.h - a back end, which copies between a device and this machine.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The code above (pipeline.h) is the same for all back ends, so it also runs
 * without a GPU. A back end queues a copy and its event in its own stream of
 * that direction, which runs them in order. Only open, close, pin, unpin,
 * alloc, release and move may block.
 *
 * Thread: copy and poll: the pipeline's, after enter; all others: any. Errors:
 * SW_EDEVICE, after which this process cannot use the device, and the errors
 * that a function names. @why, of SW_BACK_WHY bytes, receives a sentence.
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
	SW_BACK_OUT, /* from the device */
	SW_BACK_IN,
	SW_BACK_WAYS,
};

struct sw_back; /* one device as one process uses it */

struct sw_back_ops {
	const char *name;

	/* @options  the text after "NAME:"; NULL: none
	 * Errors: SW_EDEVICE no such device, no driver, …; SW_EINVAL. */
	int (*open)(const char *options, int32_t device, struct sw_back **out,
		char *why);
	void (*close)(struct sw_back *b);

	/* Prepare the calling thread; its first call. */
	int (*enter)(struct sw_back *b, char *why);

	/* Pin the whole pages at @p, so that copies from and to them are fast
	 * and asynchronous. Some of the pages may be pinned already. After any
	 * error, copies still work, but are slower. */
	int (*pin)(struct sw_back *b, void *p, size_t bytes, bool is_read_only,
		char *why);
	void (*unpin)(struct sw_back *b, void *p);

	int (*event_open)(struct sw_back *b, void **event, char *why);
	void (*event_close)(struct sw_back *b, void *event);

	/* Make @event done when the work that the program's @stream has so far
	 * is done.
	 * Errors: SW_EINVAL the stream is being captured into a graph. */
	int (*record)(struct sw_back *b, void *event, void *stream, char *why);

	/* Begin a copy; @event is done when the copy is. */
	int (*copy)(struct sw_back *b, enum sw_back_way way,
		const struct sw_rows *rows, void *event, char *why);

	/* Return 0 if @event is done; SW_EAGAIN: not yet. */
	int (*poll)(struct sw_back *b, void *event, char *why);

	/* Make later work in the program's @stream wait until (int32_t)(*word -
	 * value) >= 0; @word must be in pinned memory. Errors: SW_ENOENT
	 * streams cannot wait here, for the reason @why; SW_EPERM the stream is
	 * being captured into a graph. */
	int (*hold)(struct sw_back *b, void *stream, _Atomic uint32_t *word,
		uint32_t value, char *why);

	/* Return the NUMA node near the device; -1: unknown. */
	int (*node)(const struct sw_back *b);

	/* Allocate device memory at a multiple of 256. Errors: SW_ENOMEM the
	 * device has too little. */
	int (*alloc)(struct sw_back *b, uint64_t bytes, void **out, char *why);
	void (*release)(struct sw_back *b, void *p);

	/* Copy within or between device memory and the machine's memory, and
	 * return when the copy is done. Errors: SW_EINVAL an address is in
	 * neither. */
	int (*move)(struct sw_back *b, void *to, const void *from,
		uint64_t bytes, char *why);

	/* Digest the @bytes that are at @p in device memory now. Digests of
	 * parts add up to the digest of the whole. Returns false if digests are
	 * off. NULL: no digests. */
	bool (*digest)(const struct sw_back *b, const void *p, uint64_t bytes,
		uint64_t *out);
};

extern const struct sw_back_ops sw_back_fake, sw_back_cuda;

/* sw_back_find - return the back end of "NAME" or "NAME:OPTIONS"; NULL:
 * unknown.
 * @options  set to the text after the colon in @name; NULL: none */
const struct sw_back_ops *sw_back_find(const char *name, const char **options);

#endif
