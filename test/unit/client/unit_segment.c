/* unit_segment.c - shared memory: reservation and size of pages.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmd/client/segment.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* added in Linux 6.1 */
#endif

enum { PAGE = 4096, HUGE = 2 << 20 };

/* Return the bytes of huge pages in the mapping at @base, as counted by the
 * kernel. */
static uint64_t huge_bytes(const void *base)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long long at, kib, sum = 0;
	bool is_ours = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%*x", &at) == 1 && strchr(line, '-'))
			is_ours = at == (uintptr_t)base;
		if (is_ours && sscanf(line, "ShmemPmdMapped: %llu", &kib) == 1)
			sum = kib << 10;
	}
	fclose(f);
	return sum;
}

static uint64_t file_bytes(const struct sw_segment *s)
{
	struct stat st;

	assert_int_equal(fstat(s->fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Does this kernel collapse a memfd into huge pages on request? */
static bool has_collapse(void)
{
	int fd = memfd_create("probe", 0);
	char *raw = mmap(
		NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = raw + -(uintptr_t)raw % HUGE;
	bool is_made = false;

	if (fd >= 0 && !ftruncate(fd, HUGE) &&
		mmap(at, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			fd, 0) == at) {
		*at = 1;
		is_made = !madvise(at, HUGE, MADV_COLLAPSE) &&
			  huge_bytes(at) == HUGE;
	}
	munmap(raw, 2 * HUGE);
	close(fd);
	return is_made;
}

static bool is_mapped(const void *at)
{
	return !msync((void *)((uintptr_t)at / PAGE * PAGE), PAGE, MS_ASYNC);
}

static void create__large_ones_begin_at_a_huge_page(void **state)
{
	static const uint64_t sizes[] = {
		HUGE, HUGE + PAGE, 5 * HUGE - PAGE, 5 * HUGE + 1};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct sw_segment s, twin;
		char *last;

		assert_int_equal(sw_segment_create(&s, "t", sizes[i]), 0);
		last = (char *)s.base + s.bytes - 1;
		assert_true(s.bytes >= sizes[i] && s.bytes < sizes[i] + PAGE);
		assert_int_equal((uintptr_t)s.base % HUGE, 0);
		assert_false(is_mapped(last + 1));
		*last = 7;
		assert_int_equal(
			sw_segment_attach(&twin, dup(s.fd), s.bytes), 0);
		assert_int_equal((uintptr_t)twin.base % HUGE, 0);
		assert_int_equal(((char *)twin.base)[s.bytes - 1], 7);
		sw_segment_fini(&twin);
		sw_segment_fini(&s);
		assert_false(is_mapped(last));
	}
}

static void create__small_ones_are_as_asked(void **state)
{
	struct sw_segment s;

	(void)state;
	assert_int_equal(sw_segment_create(&s, "t", 1), 0);
	assert_int_equal(s.bytes, PAGE);
	assert_int_equal(file_bytes(&s), 0);
	assert_int_equal(sw_segment_reserve(&s, 0, s.bytes), 0);
	assert_true(file_bytes(&s) >= PAGE);
	sw_segment_fini(&s);
}

/* For any page size the requested bytes are present, plus at most the rest of a
 * huge page at each end. */
static void reserve__every_page_is_there(void **state)
{
	struct sw_segment s;

	(void)state;
	assert_int_equal(sw_segment_create(&s, "t", 4 * HUGE), 0);
	assert_int_equal(
		sw_segment_reserve(&s, PAGE, (uint64_t)2 * HUGE + PAGE), 0);
	assert_in_range(file_bytes(&s), 2 * HUGE + PAGE, 4 * HUGE);
	assert_int_equal(sw_segment_reserve(&s, 0, s.bytes), 0);
	assert_int_equal(file_bytes(&s), s.bytes);
	sw_segment_fini(&s);
}

static void reserve__huge_pages_without_a_setting(void **state)
{
	struct sw_segment s;

	(void)state;
	if (!has_collapse()) {
		print_message("this kernel makes no huge pages of a memfd's\n");
		skip();
	}
	assert_int_equal(sw_segment_create(&s, "t", 4 * HUGE + PAGE), 0);
	memset(s.base, 5, PAGE);
	for (uint64_t at = 0; at < s.bytes; at += 2 * HUGE)
		assert_int_equal(
			sw_segment_reserve(&s, at,
				at + 2 * HUGE < s.bytes ? 2 * HUGE : PAGE),
			0);
	assert_int_equal(huge_bytes(s.base), 4 * HUGE);
	assert_int_equal(((char *)s.base)[PAGE - 1], 5);
	assert_int_equal(((char *)s.base)[PAGE], 0);
	sw_segment_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(create__large_ones_begin_at_a_huge_page),
		cmocka_unit_test(create__small_ones_are_as_asked),
		cmocka_unit_test(reserve__every_page_is_there),
		cmocka_unit_test(reserve__huge_pages_without_a_setting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
