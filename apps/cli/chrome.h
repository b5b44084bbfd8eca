/* chrome.h - write Chrome's trace JSON, which Perfetto opens.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Processes (pid) have tracks (tid).  Slices of a track must not overlap, and
 * must come in the order of their begin.
 */
#ifndef SW_APPS_CLI_CHROME_H
#define SW_APPS_CLI_CHROME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The caller sets @to and @zero_ns, and zeroes the other fields.  Thread: one
 * at a time. */
struct sw_chrome {
	FILE *to;        /* borrowed */
	int64_t zero_ns; /* the time that becomes 0 */
	bool has_one;
};

/* sw_chrome_begin - begin the document; the caller writes the members of
 * "otherData" up to sw_chrome_events.
 * sw_chrome_end - end it. */
void sw_chrome_begin(struct sw_chrome *c);
void sw_chrome_events(struct sw_chrome *c);
void sw_chrome_end(struct sw_chrome *c);

/* sw_chrome_event - begin an event; the caller adds members, each behind a
 * comma, and '}'.
 * sw_chrome_time - add a time, not below zero, in microseconds.
 * sw_chrome_slice - begin a slice. */
void sw_chrome_event(
	struct sw_chrome *c, const char *phase, uint32_t pid, uint32_t tid);
void sw_chrome_time(struct sw_chrome *c, const char *key, int64_t ns);
void sw_chrome_slice(struct sw_chrome *c, uint32_t pid, uint32_t tid,
	int64_t from_ns, int64_t to_ns);

/* sw_chrome_name - name a process (@what "process_name") or a track (@what
 * "thread_name"). */
void sw_chrome_name(struct sw_chrome *c, uint32_t pid, uint32_t tid,
	const char *what, const char *name);

/* sw_chrome_escape - write @text as the inside of a JSON string.  Bytes that
 * are not ASCII become '?'. Text beyond @size is cut off. */
const char *sw_chrome_escape(const char *text, char *out, size_t size);

#endif
