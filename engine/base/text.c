/* text.c - validate and clean text from outside.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t sw_text_decode(const char *s, size_t n, uint32_t *code)
{
	/* the least code that needs this many bytes; a smaller code is an
	 * overlong form */
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *u = (const unsigned char *)s;
	/* the first byte starts with as many ones as the character has bytes,
	 * or none */
	size_t ones = n ? (size_t)__builtin_clz(~((uint32_t)u[0] << 24)) : 1;
	size_t len = ones ? ones : 1;

	if (ones == 1 || ones > 4 || len > n)
		return 0;
	*code = u[0] & (0x7fu >> ones);
	for (size_t i = 1; i < len; i++) {
		if ((u[i] & 0xc0) != 0x80) /* also at the end of a string */
			return 0;
		*code = *code << 6 | (u[i] & 0x3f);
	}
	if (*code < least[len] || *code > 0x10ffff ||
		(*code >= 0xd800 && *code < 0xe000)) /* surrogates */
		return 0;
	return len;
}

bool sw_text_prints(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{0, 0x1f},        /* C0 */
		{0x7f, 0x9f},     /* DEL, C1 */
		{0x61c, 0x61c},   /* Arabic letter mark */
		{0x200e, 0x200f}, /* marks of direction */
		{0x2028, 0x202e}, /* separators; embedding and override */
		{0x2066, 0x2069}, /* isolates */
	};

	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (code >= hidden[i].first && code <= hidden[i].last)
			return false;
	return true;
}

/* Return the bytes of the character at @s, or 0 if it does not print. */
static size_t step(const char *s, size_t n)
{
	uint32_t code;
	size_t len = sw_text_decode(s, n, &code);

	return len && sw_text_prints(code) ? len : 0;
}

bool sw_text_is_good(const char *s, size_t size)
{
	size_t n = strnlen(s, size), len;

	if (n == 0 || n == size)
		return false;
	for (size_t at = 0; at < n; at += len) {
		len = step(s + at, n - at);
		if (!len)
			return false;
	}
	return true;
}

void sw_text_clean(char *text, size_t size)
{
	size_t n, len;

	text[size - 1] = 0;
	n = strlen(text);
	for (size_t at = 0; at < n; at += len ? len : 1) {
		len = step(text + at, n - at);
		if (!len)
			text[at] = '?';
	}
}

/* Return the first number from @i on that is in the set (@is_in), or is not;
 * @n: none below @n. */
static uint32_t next(const uint64_t *set, uint32_t n, uint32_t i, bool is_in)
{
	uint64_t rest = ~0ULL << i % 64, word;

	for (i -= i % 64; i < n; i += 64, rest = ~0ULL) {
		word = (is_in ? set[i / 64] : ~set[i / 64]) & rest;
		if (!word)
			continue;
		i += (uint32_t)__builtin_ctzll(word);
		break;
	}
	return i < n ? i : n;
}

static uint32_t count(const uint64_t *set, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n / 64; i++)
		sum += (uint32_t)__builtin_popcountll(set[i]);
	if (n % 64)
		sum += (uint32_t)__builtin_popcountll(
			set[n / 64] << (64 - n % 64));
	return sum;
}

uint32_t sw_text_runs(char *out, size_t size, const uint64_t *set, uint32_t n)
{
	enum { RUN_MAX = sizeof(", 65535-65535, ...") };
	uint32_t i = next(set, n, 0, true), end;
	size_t at = 0;

	out[0] = 0;
	for (; i < n && size - at >= RUN_MAX; i = next(set, n, end, true)) {
		end = next(set, n, i, false);
		at += (size_t)snprintf(
			out + at, size - at, "%s%u", at ? ", " : "", i);
		if (end - i > 1)
			at += (size_t)snprintf(out + at, size - at,
				end - i > 2 ? "-%u" : ", %u", end - 1);
	}
	if (i < n)
		snprintf(out + at, size - at, ", ...");
	return count(set, n);
}

void sw_text_add(char *text, size_t size, const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, size - n, fmt, ap);
	va_end(ap);
}

/* Parse one number without sign, blank or leading zero. */
static bool number_take(const char **s, uint32_t limit, uint32_t *number)
{
	const char *start = *s;

	*number = 0;
	while (**s >= '0' && **s <= '9' && *number < limit)
		*number = *number * 10 + (uint32_t)(*(*s)++ - '0');
	return *s != start && *number < limit &&
	       (*start != '0' || *s - start == 1);
}

static bool is_among(const uint32_t *list, uint32_t n, uint32_t number)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == number)
			return true;
	return false;
}

uint32_t sw_text_list(
	const char *s, uint32_t limit, uint32_t *out, uint32_t room)
{
	uint32_t n = 0, first, last;

	do {
		if (!number_take(&s, limit, &first))
			return 0;
		last = first;
		if (*s == '-' && (s++, !number_take(&s, limit, &last)))
			return 0;
		if (last < first)
			return 0;
		for (; first <= last; first++) {
			if (n == room || is_among(out, n, first))
				return 0;
			out[n++] = first;
		}
	} while (*s++ == ',');
	return s[-1] ? 0 : n;
}
