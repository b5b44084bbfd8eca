/* scan.c - the lines of a configuration file: numbers, syntax, duplicates.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iniparser/iniparser.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

/* State of a walk over the text. */
struct walk {
	struct sw_report *report;
	struct sw_scan *scan;
	/* NULL before the first header, "" after a bad one */
	const char *section;
	uint32_t line;
	char *good; /* the correct lines */
	size_t n_good;
};

static int open_failed(struct sw_report *r)
{
	int err = errno;

	sw_report_error(r, 0, NULL, NULL, "cannot be read: %s", strerror(err));
	return err == ENOENT ? SW_ENOENT : SW_EIO;
}

/* Check the type of the file: opening a directory succeeds, and opening a pipe
 * may hang. */
static int file_check(struct sw_report *r)
{
	struct stat st;

	if (stat(r->path, &st) < 0)
		return open_failed(r);
	if (S_ISREG(st.st_mode))
		return 0;
	sw_report_error(r, 0, NULL, NULL, "is %s, a regular file is expected",
		S_ISDIR(st.st_mode) ? "a directory"
				    : "a device, pipe or "
				      "socket");
	return SW_EIO;
}

static int file_read(struct sw_report *r, char *text, size_t *n)
{
	FILE *f = fopen(r->path, "r");
	int err = 0;

	if (!f)
		return open_failed(r);
	*n = fread(text, 1, SW_SCAN_FILE_BYTES + 1, f);
	if (ferror(f))
		err = open_failed(r);
	fclose(f);
	if (!err && *n > SW_SCAN_FILE_BYTES) {
		sw_report_error(r, 0, NULL, NULL, "is larger than %d KiB",
			SW_SCAN_FILE_BYTES / 1024);
		err = SW_ECONF;
	}
	return err;
}

/* Check that the file is text.  Reports only the first unprintable
 * character. */
static int text_check(struct sw_report *r, const char *text, size_t n)
{
	uint32_t line = 1, code;

	for (size_t i = 0, len; i < n; i += len) {
		len = sw_text_decode(text + i, n - i, &code);
		if (!len || (!sw_text_prints(code) && code != '\t' &&
				    code != '\r' && code != '\n')) {
			sw_report_error(r, line, NULL, NULL,
				"byte 0x%02x is not text: a configuration file "
				"must be printable UTF-8",
				(unsigned char)text[i]);
			return SW_ECONF;
		}
		line += code == '\n';
	}
	if (line <= SW_SCAN_LINES)
		return 0;
	sw_report_error(
		r, 0, NULL, NULL, "has more than %d lines", SW_SCAN_LINES);
	return SW_ECONF;
}

/* Cut blanks off both ends of @s, in place. */
static char *trim(char *s)
{
	char *end;

	s += strspn(s, " \t\r");
	for (end = s + strlen(s); end > s && strchr(" \t\r", end[-1]); end--)
		;
	*end = '\0';
	return s;
}

static const struct sw_scan_entry *entry_find(
	const struct sw_scan *scan, const char *section, const char *key)
{
	for (uint32_t i = 0; i < scan->n_entries; i++) {
		const struct sw_scan_entry *e = &scan->entries[i];

		if (!strcmp(e->section, section) && !e->key == !key &&
			(!key || !strcmp(e->key, key)))
			return e;
	}
	return NULL;
}

static void entry_add(struct walk *w, const char *key)
{
	const struct sw_scan_entry *first =
		entry_find(w->scan, w->section, key);

	if (first) {
		sw_report_error(w->report, w->line, w->section, key,
			"is given twice, first on line %u", first->line);
		return;
	}
	w->scan->entries[w->scan->n_entries++] =
		(struct sw_scan_entry){w->section, key, NULL, w->line};
}

static void header_take(struct walk *w, char *s)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz0123456789_-. ";
	char *end = strchr(s, ']'), *name;

	w->section = "";
	if (!end || end[1]) {
		sw_report_error(w->report, w->line, NULL, NULL,
			"\"%.60s\" is "
			"not a section: only [NAME], without anything behind "
			"it",
			s);
		return;
	}
	*end = '\0';
	name = trim(s + 1); /* as iniparser does */
	if (!*name || name[strspn(name, chars)]) {
		sw_report_error(w->report, w->line, NULL, NULL,
			"[%.60s] is not a section name: use lower case "
			"letters, digits, '_', '-' and '.'",
			name);
		return;
	}
	w->section = name;
	entry_add(w, NULL);
}

/* Return whether a value that begins with a quote also ends with it, apart from
 * a comment. */
static bool quotes_match(const char *s)
{
	const char *end;

	s += strspn(s, " \t");
	if (*s != '"' && *s != '\'')
		return true;
	end = strchr(s + 1, *s);
	if (!end)
		return false;
	end += 1 + strspn(end + 1, " \t");
	return !*end || *end == ';' || *end == '#';
}

/* Return whether a comment follows a value without a blank. iniparser would
 * drop the end of "gpu#0", which may be meant as a part of the value. */
static bool comment_touches(const char *s)
{
	const char *at = strpbrk(s, ";#"), *begin = s + strspn(s, " \t");

	return at > begin && *begin != '"' && *begin != '\'' && at[-1] != ' ' &&
	       at[-1] != '\t';
}

static void key_take(struct walk *w, char *s)
{
	char *value = strchr(s, '='), *key;

	if (!value) {
		sw_report_error(w->report, w->line, NULL, NULL,
			"\"%.60s\" is "
			"neither [SECTION] nor KEY = VALUE nor a comment",
			s);
		return;
	}
	*value++ = '\0';
	key = trim(s);
	if (!w->section) {
		sw_report_error(w->report, w->line, NULL, key,
			"precedes the first [SECTION]");
		return;
	}
	if (!*w->section) /* the section was refused */
		return;
	if (!*key || strpbrk(key, ": \t;#\"'[]")) {
		sw_report_error(w->report, w->line, w->section, NULL,
			"\"%.60s\" is not a key: a key has no blank, ':', "
			"quote, bracket, ';' or '#'",
			key);
		return;
	}
	if (!quotes_match(value))
		sw_report_error(w->report, w->line, w->section, key,
			"has a quote that does not end the value");
	else if (comment_touches(value))
		sw_report_error(w->report, w->line, w->section, key,
			"\"%.60s\" has '#' or ';' in a value: put the value "
			"in quotes, or a blank before a comment",
			trim(value));
	else
		entry_add(w, key);
}

static void line_take(struct walk *w, char *s)
{
	if (strlen(s) > SW_SCAN_LINE_BYTES) {
		sw_report_error(w->report, w->line, NULL, NULL,
			"the line is longer than %d bytes", SW_SCAN_LINE_BYTES);
		return;
	}
	s = trim(s);
	if (!*s)
		return;
	/* iniparser would append the next line to this one, even a comment. */
	if (s[strlen(s) - 1] == '\\')
		sw_report_error(w->report, w->line, NULL, NULL,
			"the line ends in '\\', but continuation lines are not "
			"supported");
	else if (*s == '[')
		header_take(w, s);
	else if (*s != ';' && *s != '#')
		key_take(w, s);
}

static void lines_take(struct walk *w)
{
	char *s = w->scan->text, *end;

	if (!strncmp(s, "\xef\xbb\xbf", 3)) {
		sw_report_error(w->report, 1, NULL, NULL,
			"the file starts "
			"with a byte order mark: save it without");
		s += 3;
	}
	for (; s; s = end ? end + 1 : NULL) {
		uint32_t n_errors = w->report->n_errors;
		size_t len = strcspn(s, "\n");

		w->line++;
		end = s[len] ? s + len : NULL;
		s[len] = '\0';
		memcpy(w->good + w->n_good, s, len);
		line_take(w, s);
		/* Lines of a refused section are dropped. */
		if (w->report->n_errors > n_errors ||
			(w->section && !*w->section))
			continue;
		w->n_good += len;
		w->good[w->n_good++] = '\n';
	}
}

/* --- values --- */

/* Let iniparser read @n bytes of @text.  It opens files by name, so put the
 * text into a memory file. */
static dictionary *values_read(const char *text, size_t n)
{
	int fd = memfd_create("configuration", MFD_CLOEXEC);
	dictionary *values = NULL;
	char path[32];

	if (fd < 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, text, n) == (ssize_t)n)
		values = iniparser_load(path);
	close(fd);
	return values;
}

static int values_take(struct walk *w)
{
	struct sw_scan *scan = w->scan;
	char name[2 * SW_SCAN_LINE_BYTES + 2];

	scan->values = values_read(w->good, w->n_good);
	if (!scan->values) {
		sw_report_error(w->report, 0, NULL, NULL,
			"no memory file for its values: %s (it needs "
			"memfd_create, which a seccomp filter may deny, and "
			"/proc)",
			strerror(errno));
		return SW_ENOMEM;
	}
	for (uint32_t i = 0; i < scan->n_entries; i++) {
		struct sw_scan_entry *e = &scan->entries[i];

		if (!e->key)
			continue;
		snprintf(name, sizeof(name), "%s:%s", e->section, e->key);
		e->value = iniparser_getstring(scan->values, name, "");
	}
	return 0;
}

int sw_scan_open(struct sw_report *r, struct sw_scan *out)
{
	struct sw_scan scan = {0};
	struct walk w = {.report = r, .scan = &scan};
	size_t n = 0;
	int err = file_check(r);

	if (err < 0)
		return err;
	scan.text = malloc(SW_SCAN_FILE_BYTES + 2);
	scan.entries = calloc(SW_SCAN_LINES, sizeof(*scan.entries));
	w.good = malloc(SW_SCAN_FILE_BYTES + 2);
	if (!scan.text || !scan.entries || !w.good) {
		sw_report_error(r, 0, NULL, NULL, "no memory to read it");
		err = SW_ENOMEM;
	}
	if (!err)
		err = file_read(r, scan.text, &n);
	if (!err)
		err = text_check(r, scan.text, n);
	if (!err) {
		scan.text[n] = '\0';
		lines_take(&w);
		err = values_take(&w);
	}
	free(w.good);
	if (err < 0)
		sw_scan_close(&scan);
	else
		*out = scan;
	return err;
}

void sw_scan_close(struct sw_scan *scan)
{
	if (scan->values)
		iniparser_freedict(scan->values);
	free(scan->text);
	free(scan->entries);
	*scan = (struct sw_scan){0};
}

uint32_t sw_scan_line(
	const struct sw_scan *scan, const char *section, const char *key)
{
	const struct sw_scan_entry *e = NULL;

	if (scan && key)
		e = entry_find(scan, section, key);
	if (scan && !e)
		e = entry_find(scan, section, NULL);
	return e ? e->line : 0;
}

bool sw_scan_has(
	const struct sw_scan *scan, const char *section, const char *key)
{
	return entry_find(scan, section, key) != NULL;
}
