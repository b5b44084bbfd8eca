/* key_file.c - read and write the file of a job's secret.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * stdio would leave copies of the secret in its buffers.  Therefore the whole
 * file passes through one buffer here, which is wiped.
 */
#include "conf/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"

enum { DIGITS = 2 * SW_KEY_FILE_SECRET };

static const char made_by[] = "make one with \"sumwire key FILE\"";

/* A file that is being read. */
struct reading {
	const char *path;
	uint32_t own; /* accepted owner besides root */
	char *why;
	struct stat st;
	char text[SW_KEY_FILE_MAX + 1];
	size_t n;
};

#define REFUSE(r, ...) refuse(r, SW_ECONF, __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static int refuse(
	const struct reading *r, int err, const char *fmt, ...)
{
	int n = snprintf(
		r->why, SW_KEY_FILE_WHY_BYTES, "key file %.200s ", r->path);
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->why + n, (size_t)(SW_KEY_FILE_WHY_BYTES - n), fmt, args);
	va_end(args);
	return err;
}

/* --- the file --- */

static int cannot_open(const struct reading *r)
{
	if (errno == ENOENT)
		return refuse(r, SW_ENOENT, "does not exist: %s", made_by);
	if (errno == ELOOP)
		return REFUSE(r, "is a symbolic link: name the file itself, "
				 "because whoever changes a link changes the "
				 "key");
	return REFUSE(r, "cannot be opened by user %u: %s", geteuid(),
		strerror(errno));
}

static int rights_check(const struct reading *r)
{
	const struct stat *st = &r->st;
	uint32_t mode = st->st_mode & 07777;

	if (!S_ISREG(st->st_mode))
		return REFUSE(r, "is a %s: a regular file is needed",
			S_ISDIR(st->st_mode)    ? "folder"
			: S_ISFIFO(st->st_mode) ? "pipe"
						: "device");
	if (st->st_uid && st->st_uid != r->own)
		return REFUSE(r,
			"belongs to user %u: it must belong to user %u, who "
			"runs this process, or to root",
			st->st_uid, r->own);
	if (mode != 0600 && mode != 0400)
		return REFUSE(r,
			"has mode %04o: it must be 0600 or 0400, so that its "
			"owner alone can use it (chmod 600, and a new key if "
			"others could read this one)",
			mode);
	if (st->st_size > SW_KEY_FILE_MAX)
		return REFUSE(r,
			"has %lld bytes: a key file has one line of %d "
			"hexadecimal digits; %s",
			(long long)st->st_size, DIGITS, made_by);
	return 0;
}

/* Read the whole file.  A concurrent change shows in its size or times. */
static int content_read(struct reading *r, int fd)
{
	struct stat after;
	ssize_t n;

	while (r->n < sizeof(r->text)) {
		n = pread(fd, r->text + r->n, sizeof(r->text) - r->n,
			(off_t)r->n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return REFUSE(r, "cannot be read: %s", strerror(errno));
		if (!n)
			break;
		r->n += (size_t)n;
	}
	if (fstat(fd, &after) || after.st_size != r->st.st_size ||
		r->n != (size_t)r->st.st_size ||
		after.st_mtim.tv_sec != r->st.st_mtim.tv_sec ||
		after.st_mtim.tv_nsec != r->st.st_mtim.tv_nsec)
		return REFUSE(r, "changed while it was read: write a new file "
				 "and rename it");
	return 0;
}

/* --- its lines --- */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode the @n digits at @s, from line @number of the file. */
static int digits_take(const struct reading *r, const char *s, size_t n,
	uint32_t number, uint8_t *secret)
{
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++)
		if (digit_of(s[i]) < 0)
			return REFUSE(r,
				"is no key file: line %u, column %zu is no "
				"hexadecimal digit; %s",
				number, i + 1, made_by);
	if (n != DIGITS)
		return REFUSE(r,
			"has %zu hexadecimal digits in line %u: a key has %d; "
			"%s",
			n, number, DIGITS, made_by);
	for (size_t i = 0; i < SW_KEY_FILE_SECRET; i++) {
		secret[i] = (uint8_t)(digit_of(s[2 * i]) << 4 |
				      digit_of(s[2 * i + 1]));
		any |= secret[i];
	}
	if (!any)
		return REFUSE(r,
			"has a key of zeros, which anybody guesses: "
			"%s",
			made_by);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static int lines_take(const struct reading *r, uint8_t *secret)
{
	const char *s = r->text, *end = r->text + r->n;
	uint32_t number = 0, n_keys = 0;
	int err = 0;

	while (s < end && !err) {
		const char *stop = memchr(s, '\n', (size_t)(end - s));
		const char *next = stop ? stop + 1 : end, *to;

		number++;
		for (to = stop ? stop : end; to > s && is_blank(to[-1]); to--)
			;
		while (s < to && is_blank(*s))
			s++;
		if (s < to && *s != '#') {
			if (n_keys++)
				return REFUSE(r,
					"has a second key in line %u: a key "
					"file has one",
					number);
			err = digits_take(
				r, s, (size_t)(to - s), number, secret);
		}
		s = next;
	}
	if (!err && !n_keys)
		return REFUSE(r, "has no key: %s", made_by);
	return err;
}

/* Open the file.  The name of an inherited descriptor is a link, so use the
 * descriptor itself.  It is closed in children. */
static int file_open(const char *path)
{
	static const char prefix[] = "/dev/fd/";
	const char *number = path + sizeof(prefix) - 1;
	int fd;

	/* A pipe or a terminal must not block a daemon. */
	if (strncmp(path, prefix, sizeof(prefix) - 1) != 0 || !*number ||
		number[strspn(number, "0123456789")] || strlen(number) > 6)
		return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC |
					  O_NONBLOCK | O_NOCTTY);
	fd = atoi(number);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

int sw_key_file_read(const char *path, uint32_t own, uint8_t *secret, char *why)
{
	struct reading r = {.path = path, .own = own, .why = why};
	int fd = file_open(path), err;

	if (fd < 0)
		err = cannot_open(&r);
	else if (fstat(fd, &r.st))
		err = REFUSE(&r, "cannot be read: %s", strerror(errno));
	else
		err = rights_check(&r);
	if (!err)
		err = content_read(&r, fd);
	if (!err)
		err = lines_take(&r, secret);
	if (err)
		explicit_bzero(secret, SW_KEY_FILE_SECRET);
	explicit_bzero(r.text, sizeof(r.text));
	if (fd >= 0)
		close(fd);
	return err;
}

/* --- a new file --- */

static bool all_written(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t done = write(fd, text, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		text += done;
		n -= (size_t)done;
	}
	return true;
}

int sw_key_file_write(
	const char *path, const uint8_t *secret, const char *comment, char *why)
{
	struct reading r = {.path = path, .why = why};
	int fd = open(path,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600),
	    n, err = 0;

	if (fd < 0 && errno == EEXIST)
		return refuse(&r, SW_EBUSY,
			"exists, and is not overwritten: name another file, or "
			"remove it if no job needs its key");
	if (fd < 0)
		return refuse(
			&r, SW_EIO, "cannot be made: %s", strerror(errno));
	n = snprintf(r.text, sizeof(r.text), "# %.200s\n", comment);
	for (size_t i = 0; i < SW_KEY_FILE_SECRET; i++)
		n += snprintf(r.text + n, sizeof(r.text) - (size_t)n, "%02x",
			secret[i]);
	r.text[n++] = '\n';
	/* The umask may have removed the owner's rights. */
	if (fchmod(fd, 0600) || !all_written(fd, r.text, (size_t)n) ||
		fsync(fd)) {
		err = refuse(
			&r, SW_EIO, "cannot be written: %s", strerror(errno));
		unlink(path);
	}
	explicit_bzero(r.text, sizeof(r.text));
	close(fd);
	return err;
}

const char *sw_key_id_text(const uint8_t id[8], char out[SW_KEY_ID_TEXT])
{
	for (uint32_t i = 0; i < SW_KEY_ID_TEXT / 2; i++)
		snprintf(out + 2 * i, 3, "%02x", id[i]);
	return out;
}
