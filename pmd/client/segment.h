/* segment.h - shared memory that cannot shrink, with its pages reserved.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_SEGMENT_H
#define SW_PMD_CLIENT_SEGMENT_H

#include <stdint.h>

struct sw_segment {
	void *base;
	uint64_t bytes; /* whole pages; 0: not open */
	int fd;         /* -1 once closed */
};

enum { SW_LIMIT_TEXT = 80 };

/* sw_segment_limit - write "; " and the limit of this process, or the
 * system-call filter, that may have refused @bytes of memory; "": neither.
 * Returns @out. */
const char *sw_segment_limit(uint64_t bytes, char out[SW_LIMIT_TEXT]);

/* sw_segment_create - make and map @bytes of zeros (agent).  The file is sealed
 * against any change of size.  Its pages are not present yet.
 * Errors: SW_ENOMEM. */
int sw_segment_create(struct sw_segment *s, const char *name, uint64_t bytes);

/* sw_segment_create_shown - the same for memory that other processes only read:
 * no other process can map it writable, write to the file, or punch holes in
 * it. */
int sw_segment_create_shown(
	struct sw_segment *s, const char *name, uint64_t bytes);

/* sw_segment_reserve - make the pages of @bytes from @at present, so that no
 * access fails for lack of memory (agent).
 * Errors: SW_ENOMEM. */
int sw_segment_reserve(struct sw_segment *s, uint64_t at, uint64_t bytes);

/* sw_segment_attach - map the segment behind @fd (client).
 * @fd       owned by the callee in any case, closed at return
 * Errors: SW_EPROTO not sealed or not of @bytes; SW_ENOMEM. */
int sw_segment_attach(struct sw_segment *s, int fd, uint64_t bytes);

/* sw_segment_attach_shown - map a segment of any size to read (client).
 * @fd       owned by the callee in any case, closed at return
 * Errors: SW_EPROTO not sealed; SW_ENOMEM. */
int sw_segment_attach_shown(struct sw_segment *s, int fd);

/* sw_segment_unhand - close the descriptor after it has been passed on. */
void sw_segment_unhand(struct sw_segment *s);

/* sw_segment_fini - unmap and close; @s may be closed already. */
void sw_segment_fini(struct sw_segment *s);

#endif
