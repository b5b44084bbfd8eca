/* unit_folder.c - the folder of sockets that have only a name.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmd/client/folder.h"

enum { NOBODY = 65534, PATH = 200 };

struct scene {
	char dir[32];
	char out[SW_FOLDER_BYTES], why[SW_FOLDER_WHY_BYTES];
};

/* Set up the home of an ordinary user without another folder. */
static struct scene begin(void)
{
	struct scene s = {.dir = "/tmp/unit_folder.XXXXXX"};

	assert_non_null(mkdtemp(s.dir));
	setenv("HOME", s.dir, 1);
	unsetenv("XDG_RUNTIME_DIR");
	return s;
}

static int entry_remove(
	const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

static void end(struct scene *s)
{
	nftw(s->dir, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static int make(struct scene *s)
{
	return sw_folder_make(s->out, s->why);
}

/* Does the system provide /run/user? If so, it has precedence over HOME. */
static bool has_run_user(void)
{
	char path[PATH];

	snprintf(path, sizeof(path), "/run/user/%u", geteuid());
	return !access(path, F_OK);
}

static void need_private(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, geteuid());
}

static void folder_make__runtime_dir(void **state)
{
	struct scene s = begin();
	char want[PATH];

	setenv("XDG_RUNTIME_DIR", s.dir, 1);
	snprintf(want, sizeof(want), "%s/sumwire", s.dir);
	for (int i = 0; i < 2; i++) { /* first made, then found */
		assert_int_equal(make(&s), 0);
		assert_string_equal(s.out, want);
	}
	need_private(want);
	end(&s);
}

/* The folder in HOME is private and named after the machine, because machines
 * may share a home. */
static void folder_make__home(void **state)
{
	struct scene s = begin();
	char host[65] = "", want[PATH];

	setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
	gethostname(host, sizeof(host) - 1);
	snprintf(want, sizeof(want), "%s/.sumwire-%s", s.dir, host);
	assert_int_equal(make(&s), 0);
	if (!has_run_user()) {
		assert_string_equal(s.out, want);
		need_private(want);
	}
	end(&s);
}

/* Where others can write they could create our folder first or replace it, so
 * it is not used. */
static void folder_make__where_others_write(void **state)
{
	struct scene s = begin();

	setenv("XDG_RUNTIME_DIR", "/tmp", 1);
	assert_int_equal(make(&s), 0);
	assert_int_not_equal(strncmp(s.out, "/tmp/sumwire", 12), 0);
	chmod(s.dir, 0777);
	if (!has_run_user()) {
		assert_int_equal(make(&s), SW_EIO);
		assert_contains(s.why, "set XDG_RUNTIME_DIR");
	}
	end(&s);
}

static void refused(struct scene *s)
{
	assert_int_equal(make(s), SW_EPERM);
	assert_contains(s->why, s->dir);
	assert_contains(s->why, "mode 0700");
}

static void folder_make__is_not_ours_alone(void **state)
{
	struct scene s = begin();
	char path[PATH];

	setenv("XDG_RUNTIME_DIR", s.dir, 1);
	snprintf(path, sizeof(path), "%s/sumwire", s.dir);
	assert_int_equal(symlink("/etc", path), 0);
	refused(&s);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0770), 0);
	refused(&s);
	end(&s);
}

static void folder_make__nowhere(void **state)
{
	struct scene s = begin();
	char longest[SW_FOLDER_BYTES];

	unsetenv("HOME");
	if (!has_run_user())
		assert_int_equal(make(&s), SW_EIO);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = 0;
	setenv("HOME", longest, 1);
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	if (!has_run_user())
		assert_int_equal(make(&s), SW_EIO);
	end(&s);
}

/* Return the folder that has the socket, otherwise the one where it will be
 * created. */
static void folder_seek__first_that_has_it(void **state)
{
	struct scene s = begin();
	char path[PATH], name[2 * SW_FOLDER_BYTES];

	setenv("XDG_RUNTIME_DIR", s.dir, 1);
	snprintf(path, sizeof(path), "%s/sumwire/x.sock", s.dir);
	assert_true(sw_folder_seek("x.sock", s.out));
	assert_string_equal(s.out, path);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(make(&s), 0);
	snprintf(path, sizeof(path), "%s/x.sock", s.out);
	fclose(fopen(path, "w"));
	setenv("XDG_RUNTIME_DIR", s.dir, 1);
	assert_true(sw_folder_seek("x.sock", s.out));
	assert_string_equal(s.out, path);
	unlink(path);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_false(sw_folder_seek(name, s.out)); /* the name is too long */
	assert_false(sw_folder_seek("", s.out));
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folder_make__runtime_dir),
		cmocka_unit_test(folder_make__home),
		cmocka_unit_test(folder_make__where_others_write),
		cmocka_unit_test(folder_make__is_not_ours_alone),
		cmocka_unit_test(folder_make__nowhere),
		cmocka_unit_test(folder_seek__first_that_has_it),
	};

	if (!getuid() && (setgid(NOBODY) || setuid(NOBODY)))
		return 1; /* root's folder belongs to the system */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
