/* text.h - which text from outside may be kept and shown.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Names and reasons come from other machines, other processes and files, and
 * end in logs that people read in terminals.  Text is UTF-8 that prints: no
 * control characters (C0, DEL, C1), no line or paragraph separators, and
 * nothing that turns the direction of writing, since that shows a reader other
 * words than there are.
 */
#ifndef SW_ENGINE_BASE_TEXT_H
#define SW_ENGINE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* sw_text_decode - decode the UTF-8 character at @s, of which @n bytes may be
 * read. Sets @code and returns its bytes; 0: invalid. */
size_t sw_text_decode(const char *s, size_t n, uint32_t *code);

/* sw_text_prints - return whether a character prints, as text.h defines. */
bool sw_text_prints(uint32_t code);

/* sw_text_is_good - return whether @s is valid text: not empty, all of it
 * prints, and it ends within @size bytes. */
bool sw_text_is_good(const char *s, size_t size);

/* sw_text_clean - make @text valid: terminate it within @size bytes, and
 * replace each byte that does not print by '?'. */
void sw_text_clean(char *text, size_t size);

/* sw_text_add - append to the text in @size bytes, and cut it to fit. */
void sw_text_add(char *text, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* sw_text_runs - write the numbers in @set below @n, as "1, 4-7", into @size
 * bytes; "..." replaces numbers that do not fit. Returns how many numbers there
 * are. */
uint32_t sw_text_runs(char *out, size_t size, const uint64_t *set, uint32_t n);

/* sw_text_list - read a list like "2,4-6" of different numbers below @limit (at
 * most 2^28), in its order, into @out with room for @room. Returns how many
 * they are; 0: invalid or too long. */
uint32_t sw_text_list(
	const char *s, uint32_t limit, uint32_t *out, uint32_t room);

#endif
