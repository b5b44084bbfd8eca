/* unit_scratch.c - a folder that lives as long as its process.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/scratch.h"

enum { PATH = 200 };

static void put_file(const char *folder, const char *name)
{
	char path[2 * PATH];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void scratch__comes_and_goes(void **state)
{
	char parent[] = "/tmp/unit_scratch.XXXXXX";
	struct sw_scratch a = {0}, b;
	char inner[PATH];
	struct stat st;

	assert_non_null(mkdtemp(parent));
	sw_scratch_close(&a);
	assert_int_equal(sw_scratch_open(&a, parent, "x"), 0);
	assert_int_equal(stat(a.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	put_file(a.path, "file");
	snprintf(inner, sizeof(inner), "%s/d", a.path);
	assert_int_equal(mkdir(inner, 0700), 0);
	put_file(inner, "file");
	/* the folder of a live process is kept */
	assert_int_equal(sw_scratch_open(&b, parent, "x"), 0);
	assert_int_equal(access(a.path, F_OK), 0);
	sw_scratch_close(&b);
	sw_scratch_close(&a);
	assert_int_equal(rmdir(parent), 0);
}

/* Leave behind a folder with files: make it in a child and kill the child. */
static void leave_one(const char *parent, char left[SW_SCRATCH_BYTES])
{
	struct sw_scratch s;
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		if (sw_scratch_open(&s, parent, "x"))
			_exit(1);
		put_file(s.path, "file");
		(void)!write(ends[1], s.path, sizeof(s.path));
		for (;;)
			pause();
	}
	assert_int_equal(
		read(ends[0], left, SW_SCRATCH_BYTES), SW_SCRATCH_BYTES);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ends[0]);
	close(ends[1]);
}

static void scratch__of_a_killed_process(void **state)
{
	char parent[] = "/tmp/unit_scratch.XXXXXX", left[SW_SCRATCH_BYTES];
	char other[PATH];
	struct sw_scratch s;

	assert_non_null(mkdtemp(parent));
	leave_one(parent, left);
	assert_int_equal(access(left, F_OK), 0);
	/* not a name that sw_scratch makes */
	snprintf(other, sizeof(other), "%s/x-7", parent);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(sw_scratch_open(&s, parent, "x"), 0);
	assert_int_equal(access(left, F_OK), -1);
	assert_int_equal(rmdir(other), 0);
	sw_scratch_close(&s);
	assert_int_equal(rmdir(parent), 0);
}

/* A symbolic link under such a name is not followed. */
static void scratch__symlink(void **state)
{
	char parent[] = "/tmp/unit_scratch.XXXXXX", path[PATH], to[PATH];
	struct sw_scratch s;

	assert_non_null(mkdtemp(parent));
	snprintf(to, sizeof(to), "%s/precious", parent);
	assert_int_equal(mkdir(to, 0700), 0);
	put_file(to, "file");
	snprintf(path, sizeof(path), "%s/x-123456", parent);
	assert_int_equal(symlink(to, path), 0);
	assert_int_equal(sw_scratch_open(&s, parent, "x"), 0);
	sw_scratch_close(&s);
	assert_int_equal(unlink(path), 0);
	strcat(to, "/file");
	assert_int_equal(unlink(to), 0);
	*strrchr(to, '/') = 0;
	assert_int_equal(rmdir(to), 0);
	assert_int_equal(rmdir(parent), 0);
}

static void scratch__where_it_cannot_be(void **state)
{
	struct sw_scratch s;
	char longest[SW_SCRATCH_BYTES];

	assert_int_equal(sw_scratch_open(&s, "/nonexistent", "x"), SW_EIO);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(sw_scratch_open(&s, longest, "x"), SW_EINVAL);
	sw_scratch_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scratch__comes_and_goes),
		cmocka_unit_test(scratch__of_a_killed_process),
		cmocka_unit_test(scratch__symlink),
		cmocka_unit_test(scratch__where_it_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
