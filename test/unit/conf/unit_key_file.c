/* unit_key_file.c - key files: valid ones and every kind of invalid one.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/support/unit.h"

#include "conf/key_file.h"

#define HEX   "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static char folder[] = "/tmp/unit_key_file_XXXXXX";
static char path[64], other[64];

static int folder_make(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/key", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	return 0;
}

static int folder_remove(void **state)
{
	unlink(path);
	unlink(other);
	return rmdir(folder);
}

static void put_bytes(const char *at, const char *text, size_t n, mode_t mode)
{
	int fd;

	unlink(at);
	fd = open(at, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void put(const char *text)
{
	put_bytes(path, text, strlen(text), 0600);
}

static int read_it(uint8_t secret[SW_KEY_FILE_SECRET], char *why)
{
	memset(secret, 0x5a, SW_KEY_FILE_SECRET);
	why[0] = '\0';
	return sw_key_file_read(path, geteuid(), secret, why);
}

/* Check that the file is accepted and has the secret 0, 1, 2, … */
static void taken(void)
{
	uint8_t secret[SW_KEY_FILE_SECRET];
	char why[SW_KEY_FILE_WHY_BYTES];

	if (read_it(secret, why))
		fail_msg("%s", why);
	for (uint8_t i = 0; i < sizeof(secret); i++)
		assert_int_equal(secret[i], i);
}

/* Check that the file is refused with @part in the reason, that the reason has
 * no part of the key, and that the secret is wiped. */
static void refused(int err, const char *part)
{
	static const uint8_t zeros[SW_KEY_FILE_SECRET];
	uint8_t secret[SW_KEY_FILE_SECRET];
	char why[SW_KEY_FILE_WHY_BYTES];

	assert_int_equal(read_it(secret, why), err);
	assert_contains(why, part);
	assert_contains(why, path);
	assert_null(strstr(why, "0203"));
	assert_memory_equal(secret, zeros, sizeof(zeros));
}

static void key_file_read__takes_good_ones(void **state)
{
	static const char *const texts[] = {HEX, HEX "\n",
		"# a comment\n\n" HEX "\n# another\n", "  " HEX " \r\n\n",
		"\n\n\n#\n" HEX};

	for (size_t i = 0; i < SW_ARRAY_SIZE(texts); i++) {
		put(texts[i]);
		taken();
	}
	put_bytes(path, HEX, strlen(HEX), 0400);
	taken();
}

static void key_file_read__refuses_bad_text(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"", "has no key"},
		{"# only a comment\n\n", "has no key"},
		{"00", "2 hexadecimal digits in line 1"},
		{"#\n" HEX "a\n", "65 hexadecimal digits in line 2"},
		{"00010203\n", "8 hexadecimal digits"},
		{HEX "\n" HEX "\n", "second key in line 2"},
		{HEX HEX "\n", "128 hexadecimal digits"},
		{"0x" HEX "\n", "line 1, column 2"},
		{HEX " # comment\n", "line 1, column 65"},
		{"-----BEGIN PRIVATE KEY-----\n", "line 1, column 1"},
		{ZEROS "\n", "zeros"},
		{"key = " HEX "\n", "no hexadecimal digit"},
	};

	for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++) {
		put(bad[i].text);
		refused(SW_ECONF, bad[i].why);
	}
	put_bytes(path, HEX "\0\n", sizeof(HEX "\0\n") - 1, 0600);
	refused(SW_ECONF, "column 65");
}

static void key_file_read__refuses_large_ones(void **state)
{
	static char text[SW_KEY_FILE_MAX + 2];

	memset(text, '#', sizeof(text));
	memcpy(text, HEX "\n", strlen(HEX) + 1);
	put_bytes(path, text, SW_KEY_FILE_MAX, 0600);
	taken();
	put_bytes(path, text, SW_KEY_FILE_MAX + 1, 0600);
	refused(SW_ECONF, "4097 bytes");
}

static void key_file_read__refuses_open_rights(void **state)
{
	static const mode_t modes[] = {
		0644, 0640, 0660, 0604, 0602, 0700, 0500, 04600, 02600, 01600};
	char part[16];

	for (size_t i = 0; i < SW_ARRAY_SIZE(modes); i++) {
		put_bytes(path, HEX, strlen(HEX), modes[i]);
		snprintf(part, sizeof(part), "mode %04o", modes[i]);
		refused(SW_ECONF, part);
	}
}

/* Root can read files of any mode, so only the checks can refuse them. */
static void key_file_read__refuses_other_owners(void **state)
{
	put(HEX);
	if (geteuid()) {
		assert_int_equal(chmod(path, 0200), 0);
		refused(SW_ECONF, "cannot be opened");
		return;
	}
	assert_int_equal(chown(path, 12345, 0), 0);
	refused(SW_ECONF, "belongs to user 12345");
	assert_int_equal(chmod(folder, 0711), 0);
	assert_int_equal(seteuid(12345), 0);
	taken();
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chown(path, 0, 0), 0);
	taken();
}

static void key_file_read__refuses_what_is_no_file(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	unlink(path);
	refused(SW_ENOENT, "does not exist");
	put_bytes(other, HEX, strlen(HEX), 0600);
	assert_int_equal(symlink(other, path), 0);
	refused(SW_ECONF, "symbolic link");
	unlink(path);
	assert_int_equal(symlink("/nowhere", path), 0);
	refused(SW_ECONF, "symbolic link");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* a FIFO without a writer */
	refused(SW_ECONF, "pipe");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	refused(SW_ECONF, "folder");
	rmdir(path);
	strcpy(at.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	refused(SW_ECONF, "cannot be opened");
	close(fd);
	unlink(path);
}

/* A launcher may hand over a file that has no name. */
static void key_file_read__takes_a_descriptor(void **state)
{
	int fd = memfd_create("key", 0), ends[2];

	assert_int_equal(write(fd, HEX, strlen(HEX)), strlen(HEX));
	assert_int_equal(lseek(fd, 0, SEEK_CUR), strlen(HEX));
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	refused(SW_ECONF, "mode 0777");
	assert_int_equal(fchmod(fd, 0600), 0);
	taken();
	taken(); /* a second time: a descriptor may be read again */
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	refused(SW_ECONF, "cannot be opened");
	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	refused(SW_ECONF, "pipe");
	close(ends[0]);
	close(ends[1]);
	strcpy(path, "/dev/fd/");
	refused(SW_ECONF, "folder");
	strcpy(path, "/dev/fd/0x0");
	refused(SW_ENOENT, "does not exist");
	snprintf(path, sizeof(path), "%s/key", folder);
}

/* --- a file that changes while it is read --- */

static atomic_bool stop;

/* Replace the file by good and bad ones, and also write into the file
 * itself. */
static void *replace(void *ctx)
{
	char text[] = HEX "\n" HEX "\n";

	while (!atomic_load(&stop)) {
		int fd;

		put_bytes(other, text, strlen(HEX) + 1, 0600);
		rename(other, path);
		put_bytes(other, "00", 2, 0644);
		rename(other, path);
		unlink(path);
		assert_int_equal(symlink("/dev/zero", path), 0);
		put_bytes(other, text, strlen(HEX) + 1, 0600);
		rename(other, path);
		fd = open(path, O_WRONLY);
		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, 10), 0);
		assert_int_equal(pwrite(fd, text, strlen(text), 0),
			(ssize_t)strlen(text));
		close(fd);
	}
	return NULL;
}

/* Each read returns the whole key or a reason, never a mixed key. */
static void key_file_read__is_replaced_meanwhile(void **state)
{
	uint8_t secret[SW_KEY_FILE_SECRET];
	char why[SW_KEY_FILE_WHY_BYTES];
	uint32_t n_good = 0, n_bad = 0;
	pthread_t thread;

	put(HEX);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, replace, NULL), 0);
	for (uint32_t i = 0; i < 1000000 && (n_good < 500 || n_bad < 500);
		i++) {
		if (read_it(secret, why)) {
			assert_true(why[0]);
			n_bad++;
			continue;
		}
		for (uint8_t k = 0; k < sizeof(secret); k++)
			assert_int_equal(secret[k], k);
		n_good++;
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	assert_true(n_good >= 500);
	assert_true(n_bad >= 500);
}

/* --- new files --- */

static void key_file_write__makes_one(void **state)
{
	uint8_t secret[SW_KEY_FILE_SECRET];
	char why[SW_KEY_FILE_WHY_BYTES];
	mode_t mask = umask(0777);
	struct stat st;

	for (uint8_t i = 0; i < sizeof(secret); i++)
		secret[i] = i;
	unlink(path);
	assert_int_equal(sw_key_file_write(path, secret, "a key", why), 0);
	umask(mask);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	taken();
}

static void key_file_write__overwrites_nothing(void **state)
{
	static const uint8_t secret[SW_KEY_FILE_SECRET] = {1};
	char why[SW_KEY_FILE_WHY_BYTES];

	put(HEX);
	assert_int_equal(
		sw_key_file_write(path, secret, "a key", why), SW_EBUSY);
	assert_contains(why, "not overwritten");
	taken();
	unlink(path);
	assert_int_equal(symlink(other, path), 0);
	unlink(other);
	assert_int_equal(
		sw_key_file_write(path, secret, "a key", why), SW_EBUSY);
	assert_int_equal(access(other, F_OK), -1);
	unlink(path);
	assert_int_equal(
		sw_key_file_write("/nowhere/key", secret, "", why), SW_EIO);
	assert_contains(why, "/nowhere/key cannot be made");
	assert_int_equal(
		sw_key_file_write("/dev/full", secret, "", why), SW_EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_file_read__takes_good_ones),
		cmocka_unit_test(key_file_read__refuses_bad_text),
		cmocka_unit_test(key_file_read__refuses_large_ones),
		cmocka_unit_test(key_file_read__refuses_open_rights),
		cmocka_unit_test(key_file_read__refuses_other_owners),
		cmocka_unit_test(key_file_read__refuses_what_is_no_file),
		cmocka_unit_test(key_file_read__takes_a_descriptor),
		cmocka_unit_test(key_file_read__is_replaced_meanwhile),
		cmocka_unit_test(key_file_write__makes_one),
		cmocka_unit_test(key_file_write__overwrites_nothing),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
