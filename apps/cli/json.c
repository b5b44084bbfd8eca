/* json.c - a streaming JSON writer.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

void sw_json_init(struct sw_json *j, FILE *file)
{
	*j = (struct sw_json){.file = file};
}

int sw_json_fini(struct sw_json *j)
{
	if (j->is_misused || j->depth)
		return SW_EINVAL;
	return fflush(j->file) || ferror(j->file) ? SW_EIO : 0;
}

static void text_write(FILE *f, const char *s)
{
	uint32_t code;
	size_t n;

	fputc('"', f);
	for (; *s; s += n ? n : 1) {
		n = sw_text_decode(s, 4, &code);
		if (!n)
			fputs("\\ufffd", f);
		else if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if (!sw_text_prints(code))
			fprintf(f, "\\u%04x", code);
		else
			fwrite(s, 1, n, f);
	}
	fputc('"', f);
}

/* Write the comma and the key before an item. */
static void item_start(struct sw_json *j, const char *key)
{
	uint32_t bit = UINT32_C(1) << (j->depth ? j->depth - 1 : 0);
	bool needs_key = j->depth && !(j->is_array & bit);

	if (needs_key != (key != NULL))
		j->is_misused = true;
	if (j->depth && j->has_items & bit)
		fputs(", ", j->file);
	j->has_items |= bit;
	if (!key)
		return;
	text_write(j->file, key);
	fputs(": ", j->file);
}

/* End an item.  A newline follows the outermost one. */
static void item_end(struct sw_json *j)
{
	if (!j->depth)
		fputc('\n', j->file);
}

static void level_open(struct sw_json *j, const char *key, bool is_array)
{
	uint32_t bit;

	if (j->depth == SW_JSON_DEPTH_MAX) {
		j->is_misused = true;
		return;
	}
	item_start(j, key);
	fputc(is_array ? '[' : '{', j->file);
	bit = UINT32_C(1) << j->depth++;
	j->has_items &= ~bit;
	j->is_array = is_array ? j->is_array | bit : j->is_array & ~bit;
}

void sw_json_object_open(struct sw_json *j, const char *key)
{
	level_open(j, key, false);
}

void sw_json_array_open(struct sw_json *j, const char *key)
{
	level_open(j, key, true);
}

void sw_json_close(struct sw_json *j)
{
	if (!j->depth) {
		j->is_misused = true;
		return;
	}
	j->depth--;
	fputc(j->is_array >> j->depth & 1 ? ']' : '}', j->file);
	item_end(j);
}

void sw_json_text(struct sw_json *j, const char *key, const char *text)
{
	item_start(j, key);
	if (text)
		text_write(j->file, text);
	else
		fputs("null", j->file);
	item_end(j);
}

void sw_json_u64(struct sw_json *j, const char *key, uint64_t value)
{
	item_start(j, key);
	fprintf(j->file, "%" PRIu64, value);
	item_end(j);
}

void sw_json_double(struct sw_json *j, const char *key, double value)
{
	char text[32] = "null";

	/* Find the shortest form that reads back as the same number. */
	for (int digits = 15; isfinite(value) && digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	item_start(j, key);
	fputs(text, j->file);
	item_end(j);
}

void sw_json_bool(struct sw_json *j, const char *key, bool value)
{
	item_start(j, key);
	fputs(value ? "true" : "false", j->file);
	item_end(j);
}
