/* json.h - a streaming JSON writer.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_JSON_H
#define SW_APPS_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { SW_JSON_DEPTH_MAX = 32 };

/* A writer of documents, one after another, to one file.  Inside an object
 * every item has a @key; inside an array, and for the outermost item, @key is
 * NULL.  Thread: one at a time. */
struct sw_json {
	FILE *file; /* borrowed */
	uint32_t depth;
	uint32_t has_items; /* bit per level: a comma is due */
	uint32_t is_array;  /* bit per level */
	bool is_misused;    /* nested too deeply, or closed too often */
};

/* sw_json_init - start to write to @file. */
void sw_json_init(struct sw_json *j, FILE *file);

/* sw_json_fini - end the last document and flush.  Returns 0; SW_EIO if the
 * file did not accept everything; SW_EINVAL if the caller did not close what it
 * opened. */
int sw_json_fini(struct sw_json *j);

/* sw_json_object_open, sw_json_array_open - open an object or array.
 * sw_json_close - close the innermost one.  A newline follows the outermost. */
void sw_json_object_open(struct sw_json *j, const char *key);
void sw_json_array_open(struct sw_json *j, const char *key);
void sw_json_close(struct sw_json *j);

/* Write a value.  Text is escaped, bytes that are not UTF-8 become U+FFFD, and
 * NULL becomes null.  A double that is not finite becomes null. */
void sw_json_text(struct sw_json *j, const char *key, const char *text);
void sw_json_u64(struct sw_json *j, const char *key, uint64_t value);
void sw_json_double(struct sw_json *j, const char *key, double value);
void sw_json_bool(struct sw_json *j, const char *key, bool value);

#endif
