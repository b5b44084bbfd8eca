/* digits.c - the UCI handwritten digits: strict CSV reader and fixed split.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/examples/digits.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"

/* digits_csv.S */
extern const char sw_digits_csv[];
extern const char sw_digits_csv_end[];

struct cursor {
	const char *name;
	const char *p;
	const char *end;
	uint32_t line; /* counts from 1 */
	struct sw_digits_error *error;
};

__attribute__((format(printf, 2, 3))) static int bad(
	struct cursor *c, const char *fmt, ...)
{
	char *text = c->error->text;
	size_t room = sizeof(c->error->text);
	int at = snprintf(text, room, "%.120s:%u: ", c->name, c->line);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + at, room - (size_t)at, fmt, args);
	va_end(args);
	return SW_ECONF;
}

/* Return the text at the cursor, for an error. */
static const char *found(const struct cursor *c, char *room, size_t bytes)
{
	if (c->p == c->end)
		return "the end of the file";
	if (*c->p == '\n')
		return "the end of the line";
	if (*c->p > ' ' && *c->p < 127)
		snprintf(room, bytes, "'%c'", *c->p);
	else
		snprintf(room, bytes, "byte 0x%02x", (unsigned char)*c->p);
	return room;
}

/* Read column @col (from 1), which must be a plain decimal number of at most
 * @max. */
static int number(struct cursor *c, uint32_t col, uint32_t max, uint32_t *out)
{
	const char *start = c->p;
	uint32_t v = 0;
	char room[16];

	while (c->p < c->end && *c->p >= '0' && *c->p <= '9' && v <= max)
		v = v * 10 + (uint32_t)(*c->p++ - '0');
	if (c->p == start)
		return bad(c, "column %u: expected a number 0 to %u, found %s",
			col, max, found(c, room, sizeof(room)));
	if (v > max)
		return bad(c, "column %u: number above %u", col, max);
	*out = v;
	return 0;
}

static int comma(struct cursor *c, uint32_t col)
{
	char room[16];

	if (c->p < c->end && *c->p == ',') {
		c->p++;
		return 0;
	}
	return bad(c,
		"column %u: expected a comma, found %s; a line has %d "
		"pixels and a digit",
		col, found(c, room, sizeof(room)), SW_DIGIT_PIXELS);
}

static int line_end(struct cursor *c)
{
	char room[16];

	if (c->p < c->end && *c->p != '\n')
		return bad(c,
			"expected the end of the line after %d numbers, "
			"found %s",
			SW_DIGIT_PIXELS + 1, found(c, room, sizeof(room)));
	if (c->p < c->end)
		c->p++;
	c->line++;
	return 0;
}

static int image(struct cursor *c, float *pixels, uint8_t *label)
{
	uint32_t v;
	int err;

	for (uint32_t i = 0; i < SW_DIGIT_PIXELS; i++) {
		err = number(c, i + 1, 16, &v);
		if (!err)
			err = comma(c, i + 1);
		if (err)
			return err;
		pixels[i] = (float)v / 16;
	}
	err = number(c, SW_DIGIT_PIXELS + 1, SW_DIGIT_CLASSES - 1, &v);
	if (err)
		return err;
	*label = (uint8_t)v;
	return line_end(c);
}

static int reserve(struct sw_digits *d, uint32_t n)
{
	d->n = n;
	d->pixels = calloc(n, SW_DIGIT_PIXELS * sizeof(float));
	d->labels = calloc(n, 1);
	if (n && (!d->pixels || !d->labels)) {
		sw_digits_fini(d);
		return SW_ENOMEM;
	}
	return 0;
}

static uint32_t count_lines(const char *text, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len && n <= SW_DIGITS_MAX; i++)
		n += text[i] == '\n' || i + 1 == len;
	return n;
}

int sw_digits_parse(const char *name, const char *text, size_t len,
	struct sw_digits *out, struct sw_digits_error *e)
{
	struct cursor c = {name, text, text + len, 1, e};
	uint32_t n = count_lines(text, len);
	struct sw_digits d;
	int err;

	if (!n || n > SW_DIGITS_MAX)
		return bad(&c,
			n ? "more than %d images"
			  : "empty; expected "
			    "1 to %d images",
			SW_DIGITS_MAX);
	err = reserve(&d, n);
	for (uint32_t i = 0; i < n && !err; i++)
		err = image(&c, d.pixels + (size_t)i * SW_DIGIT_PIXELS,
			d.labels + i);
	if (err == SW_ECONF)
		sw_digits_fini(&d);
	if (err == SW_ENOMEM)
		snprintf(e->text, sizeof(e->text), "%.120s: %s", name,
			sw_error_text(err));
	if (!err)
		*out = d;
	return err;
}

static int io_error(
	const char *path, const char *what, struct sw_digits_error *e)
{
	snprintf(e->text, sizeof(e->text), "%.120s: cannot %s: %s", path, what,
		strerror(errno));
	return SW_EIO;
}

/* Read all of @f into memory that the caller frees. */
static int read_all(const char *path, FILE *f, char **out, size_t *len,
	struct sw_digits_error *e)
{
	size_t room = 1 << 20, n = 0;
	char *text = malloc(room);

	while (text) {
		n += fread(text + n, 1, room - n, f);
		if (n < room || room > SW_DIGITS_MAX_BYTES)
			break;
		char *more = realloc(text, room *= 2);

		if (!more)
			free(text);
		text = more;
	}
	if (!text)
		errno = ENOMEM;
	else if (n > SW_DIGITS_MAX_BYTES)
		errno = EFBIG;
	if (!text || n > SW_DIGITS_MAX_BYTES || ferror(f)) {
		free(text);
		return io_error(path, "read", e);
	}
	*out = text;
	*len = n;
	return 0;
}

int sw_digits_load(
	const char *path, struct sw_digits *out, struct sw_digits_error *e)
{
	char *text;
	size_t len;
	FILE *f;
	int err;

	if (!path)
		return sw_digits_parse("built-in digits.csv", sw_digits_csv,
			(size_t)(sw_digits_csv_end - sw_digits_csv), out, e);
	f = fopen(path, "r");
	if (!f)
		return io_error(path, "open", e);
	err = read_all(path, f, &text, &len, e);
	fclose(f);
	if (err)
		return err;
	err = sw_digits_parse(path, text, len, out, e);
	free(text);
	return err;
}

static void copy_image(struct sw_digits *to, uint32_t to_i,
	const struct sw_digits *from, uint32_t from_i)
{
	memcpy(to->pixels + (size_t)to_i * SW_DIGIT_PIXELS,
		from->pixels + (size_t)from_i * SW_DIGIT_PIXELS,
		SW_DIGIT_PIXELS * sizeof(float));
	to->labels[to_i] = from->labels[from_i];
}

int sw_digits_split(const struct sw_digits *all, struct sw_digits *train,
	struct sw_digits *test)
{
	uint32_t n_test = all->n / SW_DIGITS_HOLDOUT;
	struct sw_digits a, b;

	if (reserve(&a, all->n - n_test))
		return SW_ENOMEM;
	if (reserve(&b, n_test)) {
		sw_digits_fini(&a);
		return SW_ENOMEM;
	}
	for (uint32_t i = 0; i < all->n; i++) {
		uint32_t block = i / SW_DIGITS_HOLDOUT;

		if (i % SW_DIGITS_HOLDOUT == SW_DIGITS_HOLDOUT - 1)
			copy_image(&b, block, all, i);
		else
			copy_image(&a, i - block, all, i);
	}
	*train = a;
	*test = b;
	return 0;
}

void sw_digits_fini(struct sw_digits *d)
{
	free(d->pixels);
	free(d->labels);
	*d = (struct sw_digits){0};
}
