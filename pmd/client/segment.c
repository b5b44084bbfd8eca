/* segment.c - shared memory that cannot shrink, with its pages reserved.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/client/denied.h"
#include "pmd/client/huge.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, PAGE_BYTES = 4096 };

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* Map the file at an address where its huge pages can be mapped whole. */
static void *map_aligned(const struct sw_segment *s, int prot)
{
	void *at = sw_huge_reserve(s->bytes);

	if (at == MAP_FAILED || mmap(at, s->bytes, prot, MAP_SHARED | MAP_FIXED,
					s->fd, 0) != MAP_FAILED)
		return at;
	munmap(at, s->bytes);
	return MAP_FAILED;
}

static int map(struct sw_segment *s, int prot)
{
	s->base = s->bytes < SW_HUGE_PAGE_BYTES
			  ? mmap(NULL, s->bytes, prot, MAP_SHARED, s->fd, 0)
			  : map_aligned(s, prot);
	if (s->base == MAP_FAILED)
		return SW_ENOMEM;
	/* Keep gradients out of core dumps. */
	madvise(s->base, s->bytes, MADV_DONTDUMP);
	if (s->bytes >= SW_HUGE_PAGE_BYTES)
		madvise(s->base, s->bytes, MADV_HUGEPAGE);
	return 0;
}

/* Request huge pages within @bytes from @at, ignoring errors.  The kernel makes
 * them from present pages, so touch one page of each first.  If it makes none
 * (too little memory, too old), small pages remain.  Unlike MADV_HUGEPAGE, this
 * request needs no setting of the machine. */
static void make_huge(struct sw_segment *s, uint64_t at, uint64_t bytes)
{
	const uint64_t huge = SW_HUGE_PAGE_BYTES;
	uint64_t from = (at + huge - 1) / huge * huge;
	uint64_t to = (at + bytes) / huge * huge;
	char *base = s->base;

	for (uint64_t i = from; i < to; i += huge)
		if (madvise(base + i, PAGE_BYTES, MADV_POPULATE_WRITE))
			return;
	if (from < to)
		(void)!madvise(base + from, to - from, MADV_COLLAPSE);
}

static uint64_t limit_of(int resource)
{
	struct rlimit r;

	return getrlimit((__rlimit_resource_t)resource, &r) ||
			       r.rlim_cur == RLIM_INFINITY
		       ? UINT64_MAX
		       : r.rlim_cur;
}

static bool can_create(void)
{
	int fd = memfd_create("", MFD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

const char *sw_segment_limit(uint64_t bytes, char out[SW_LIMIT_TEXT])
{
	uint64_t file = limit_of(RLIMIT_FSIZE), space = limit_of(RLIMIT_AS);
	bool is_file = bytes > file;

	out[0] = 0;
	if (!can_create()) {
		snprintf(out, SW_LIMIT_TEXT, "; memfd_create: %s%s",
			strerror(errno), sw_denied_text(errno));
		return out;
	}
	if (is_file || space != UINT64_MAX)
		snprintf(out, SW_LIMIT_TEXT,
			"; its limit RLIMIT_%s is %llu bytes (ulimit -%c)",
			is_file ? "FSIZE" : "AS",
			(unsigned long long)(is_file ? file : space),
			is_file ? 'f' : 'v');
	return out;
}

/* Check the limit of file sizes first: SIGXFSZ would kill the process.  Add a
 * seal against writing only after this process's own mapping. */
static int create(
	struct sw_segment *s, const char *name, uint64_t bytes, int seals)
{
	*s = (struct sw_segment){.bytes = (bytes + 4095) & ~UINT64_C(4095)};
	s->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0)
		goto undo_nothing;
	if (s->bytes > limit_of(RLIMIT_FSIZE) ||
		ftruncate(s->fd, (off_t)s->bytes) ||
		map(s, PROT_READ | PROT_WRITE))
		goto undo_fd;
	if (fcntl(s->fd, F_ADD_SEALS, seals))
		goto undo_map;
	return 0;
undo_map:
	munmap(s->base, s->bytes);
undo_fd:
	close(s->fd);
undo_nothing:
	*s = (struct sw_segment){.fd = -1};
	return SW_ENOMEM;
}

int sw_segment_create(struct sw_segment *s, const char *name, uint64_t bytes)
{
	return create(s, name, bytes, SEALS);
}

int sw_segment_create_shown(
	struct sw_segment *s, const char *name, uint64_t bytes)
{
	return create(s, name, bytes, SEALS | F_SEAL_FUTURE_WRITE);
}

/* Touch every page with a write that changes no byte.  Other threads may use
 * neighbouring bytes meanwhile. */
static void touch(char *base, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
		__atomic_fetch_or(base + at, 0, __ATOMIC_RELAXED);
}

/* An older kernel lacks the advice, and a filter may deny either call.
 * Touching the pages needs no call, but kills the process if no memory is left.
 */
int sw_segment_reserve(struct sw_segment *s, uint64_t at, uint64_t bytes)
{
	make_huge(s, at, bytes);
	if (!madvise((char *)s->base + at, bytes, MADV_POPULATE_WRITE))
		return 0;
	if (!sw_is_denied(errno))
		return SW_ENOMEM;
	if (!fallocate(s->fd, 0, (off_t)at, (off_t)bytes))
		return 0;
	if (!sw_is_denied(errno))
		return SW_ENOMEM;
	touch((char *)s->base + at, bytes);
	return 0;
}

int sw_segment_attach(struct sw_segment *s, int fd, uint64_t bytes)
{
	struct stat st;
	int err = SW_EPROTO;

	*s = (struct sw_segment){.bytes = bytes, .fd = fd};
	if (!fstat(fd, &st) && bytes && (uint64_t)st.st_size == bytes &&
		(fcntl(fd, F_GET_SEALS) & SEALS) == SEALS)
		err = map(s, PROT_READ | PROT_WRITE);
	close(fd);
	s->fd = -1;
	if (err) {
		s->bytes = 0;
		return err;
	}
	/* The pages exist: this only fills the page tables. */
	madvise(s->base, bytes, MADV_POPULATE_WRITE);
	return 0;
}

int sw_segment_attach_shown(struct sw_segment *s, int fd)
{
	struct stat st;
	int err = SW_EPROTO;

	*s = (struct sw_segment){.fd = fd};
	if (!fstat(fd, &st) && st.st_size > 0 &&
		(fcntl(fd, F_GET_SEALS) & SEALS) == SEALS) {
		s->bytes = (uint64_t)st.st_size;
		err = map(s, PROT_READ);
	}
	close(fd);
	s->fd = -1;
	if (err)
		s->bytes = 0;
	return err;
}

void sw_segment_unhand(struct sw_segment *s)
{
	close(s->fd);
	s->fd = -1;
}

void sw_segment_fini(struct sw_segment *s)
{
	if (s->bytes)
		munmap(s->base, s->bytes);
	if (s->bytes && s->fd >= 0)
		close(s->fd);
	*s = (struct sw_segment){.fd = -1};
}
