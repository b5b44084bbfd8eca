/* text.h - validate and clean text from outside.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Names and reasons come from other machines, other processes and files, and
 * end up in logs that people read in terminals.  Valid text is UTF-8 that
 * prints: no control characters (C0, DEL, C1), no line or paragraph separators,
 * and no characters that change the direction of writing, since a reader would
 * see other words than the bytes say. */
#ifndef SW_ENGINE_BASE_TEXT_H
#define SW_ENGINE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* sw_text_decode - decode the UTF-8 character at @s; reads at most @n bytes.
 * Sets @code and returns its bytes; 0: invalid. */
size_t sw_text_decode(const char *s, size_t n, uint32_t *code);

/* sw_text_prints - return whether a character prints, as defined above. */
bool sw_text_prints(uint32_t code);

/* sw_text_is_good - return whether @s is valid text: not empty, all of it
 * prints, and it ends within @size bytes. */
bool sw_text_is_good(const char *s, size_t size);

/* sw_text_clean - make @text valid: terminate it within @size bytes, and
 * replace each byte that does not print by '?'. */
void sw_text_clean(char *text, size_t size);

/* sw_text_add - append to the text in @size bytes; cut the result to fit. */
void sw_text_add(char *text, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* sw_text_runs - write the numbers in @set below @n, as "1, 4-7", into @size
 * bytes; "..." replaces numbers that do not fit.  Returns how many numbers @set
 * has. */
uint32_t sw_text_runs(char *out, size_t size, const uint64_t *set, uint32_t n);

/* sw_text_list - parse a list like "2,4-6" of distinct numbers below @limit (at
 * most 2^28), in its order, into @out, which has room for @room.  Returns how
 * many numbers; 0: invalid or too long. */
uint32_t sw_text_list(
	const char *s, uint32_t limit, uint32_t *out, uint32_t room);

#endif
