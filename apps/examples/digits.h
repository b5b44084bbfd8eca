/* digits.h - the UCI handwritten digits: strict CSV reader and fixed split.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_EXAMPLES_DIGITS_H
#define SW_APPS_EXAMPLES_DIGITS_H

#include <stddef.h>
#include <stdint.h>

enum {
	SW_DIGIT_PIXELS = 64,
	SW_DIGIT_CLASSES = 10,
	SW_DIGITS_MAX = 1000000,         /* images in one file */
	SW_DIGITS_MAX_BYTES = 256 << 20, /* size of one file */
	SW_DIGITS_HOLDOUT = 5, /* images 4, 9, 14, … are kept for testing */
};

/* @n images in file order.  The caller owns them and frees them by
 * sw_digits_fini. */
struct sw_digits {
	uint32_t n;
	float *pixels;   /* [n][SW_DIGIT_PIXELS], 0 … 1 in sixteenths */
	uint8_t *labels; /* [n], 0 … 9 */
};

/* The place and reason of a failure to read: "FILE:LINE: …", one sentence. */
struct sw_digits_error {
	char text[256];
};

/* sw_digits_parse - read @len bytes of CSV at @text into @out.  A line has 64
 * pixels 0 … 16 and a digit 0 … 9, in plain decimal, separated by single commas
 * and ended by a newline, which the last line may lack.
 * @name  name of the text in errors; read only during the call
 * Errors: SW_ECONF with @e filled, SW_ENOMEM.  @out is set only on success. */
int sw_digits_parse(const char *name, const char *text, size_t len,
	struct sw_digits *out, struct sw_digits_error *e);

/* sw_digits_load - read the file @path like sw_digits_parse.  Returns SW_EIO if
 * it cannot be read.  @path NULL: the copy compiled into the command. */
int sw_digits_load(
	const char *path, struct sw_digits *out, struct sw_digits_error *e);

/* sw_digits_split - copy the training part and the held-out part of @all.  The
 * split depends only on the order in the file.
 * Errors: SW_ENOMEM; then neither part is set. */
int sw_digits_split(const struct sw_digits *all, struct sw_digits *train,
	struct sw_digits *test);

/* sw_digits_fini - free the images; @d may be all zero. */
void sw_digits_fini(struct sw_digits *d);

#endif
