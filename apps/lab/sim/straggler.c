/* straggler.c - read a distribution of times, and draw from it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/straggler.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "conf/value.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/random.h"

enum kind {
	CONSTANT,
	UNIFORM,
	EXPONENTIAL,
	NORMAL,
	LOGNORMAL,
	PARETO,
	FROM_FILE,
	N_KINDS
};

enum { NO_SECOND, SECOND_TIME, SECOND_REAL };

static const struct {
	const char *name, *means;
	uint8_t second;
} kinds[N_KINDS] = {
	[CONSTANT] = {"constant", "constant TIME", NO_SECOND},
	[UNIFORM] = {"uniform", "uniform LEAST MOST, two times", SECOND_TIME},
	[EXPONENTIAL] = {"exponential", "exponential MEAN, a time", NO_SECOND},
	[NORMAL] = {"normal", "normal MEAN DEVIATION, two times", SECOND_TIME},
	[LOGNORMAL] = {"lognormal",
		"lognormal MEDIAN SIGMA, a time and a number from 0.01 to 10",
		SECOND_REAL},
	[PARETO] = {"pareto",
		"pareto LEAST SHAPE, a time and a number from 0.01 to 10",
		SECOND_REAL},
	[FROM_FILE] = {"file", "file NAME", NO_SECOND},
};

enum { WORD = 256, VALUES = 1000000 };

static const uint64_t ONE = 1ULL << 32; /* 1 in fixed point with 32 bits */
static const double REAL_LEAST = 0.01, REAL_MOST = 10;

/* --- fixed-point arithmetic with 32 fractional bits --- */

static uint64_t root(unsigned __int128 x)
{
	uint64_t r = 0;

	for (uint64_t bit = 1ULL << 63; bit; bit >>= 1)
		if ((unsigned __int128)(r | bit) * (r | bit) <= x)
			r |= bit;
	return r;
}

/* Return the logarithm to base 2 of @x > 0, both in fixed point. */
static int64_t log_2(uint64_t x)
{
	int whole = 63 - __builtin_clzll(x);
	uint64_t m = whole > 32 ? x >> (whole - 32) : x << (32 - whole);
	int64_t out = (int64_t)(whole - 32) * (int64_t)ONE;

	for (uint64_t bit = ONE >> 1; bit; bit >>= 1) {
		m = (uint64_t)((unsigned __int128)m * m >> 32);
		if (m < 2 * ONE)
			continue;
		m >>= 1;
		out += (int64_t)bit;
	}
	return out;
}

/* Return @ns times 2 to the power of @x (fixed point), at most an hour.
 */
static uint64_t times_power(uint64_t ns, __int128 x)
{
	__int128 whole = x >> 32;
	uint64_t part = (uint64_t)x & (ONE - 1), m = 1ULL << 62;
	/* 2, 2^(1/2), 2^(1/4), ... with 62 fractional bits */
	uint64_t two = 1ULL << 63;
	unsigned __int128 out;

	for (uint64_t bit = ONE >> 1; bit; bit >>= 1) {
		two = root((unsigned __int128)two << 62);
		if (part & bit)
			m = (uint64_t)((unsigned __int128)m * two >> 62);
	}
	if (whole >= 62)
		return ns ? SW_SIM_STRAGGLER_MOST_NS : 0;
	if (whole < -62)
		return 0;
	out = (unsigned __int128)ns * m;
	whole -= 62;
	if (whole <= 0)
		out >>= -whole;
	return out < SW_SIM_STRAGGLER_MOST_NS ? (uint64_t)out
					      : SW_SIM_STRAGGLER_MOST_NS;
}

static const uint64_t LN_2 = 2977044472;    /* ln 2 */
static const uint64_t LOG_2_E = 6196328019; /* 1 / ln 2 */

/* Draw uniformly from (0, 1], in fixed point. */
static uint64_t fraction(uint64_t *rng)
{
	return (sw_random_next(rng) >> 32) + 1;
}

/* Draw from the standard normal distribution by Marsaglia's polar method. */
static int64_t normal(uint64_t *rng)
{
	int64_t x, y, s;
	uint64_t log, z;

	do {
		x = (int64_t)(sw_random_next(rng) >> 31) - (int64_t)ONE;
		y = (int64_t)(sw_random_next(rng) >> 31) - (int64_t)ONE;
		s = (int64_t)(((__int128)x * x + (__int128)y * y) >> 32);
	} while (s >= (int64_t)ONE || s < 1);
	log = (uint64_t)((unsigned __int128)-log_2((uint64_t)s) * LN_2 >> 32);
	z = root(((unsigned __int128)(2 * log) << 64) / (uint64_t)s);
	return (int64_t)((__int128)x * z >> 32);
}

/* --- drawing a time --- */

static uint64_t at_least_0(__int128 ns)
{
	if (ns < 0)
		return 0;
	return ns < (__int128)SW_SIM_STRAGGLER_MOST_NS
		       ? (uint64_t)ns
		       : SW_SIM_STRAGGLER_MOST_NS;
}

uint64_t sw_sim_straggler_draw(const struct sw_sim_straggler *s, uint64_t *rng)
{
	__int128 x;

	switch ((enum kind)s->kind) {
	case CONSTANT:
		return s->a_ns;
	case UNIFORM:
		return s->a_ns + sw_random_next(rng) % (s->b - s->a_ns + 1);
	case EXPONENTIAL:
		x = -(__int128)log_2(fraction(rng)) * (int64_t)LN_2 >> 32;
		return at_least_0((__int128)s->a_ns * x >> 32);
	case NORMAL:
		x = (__int128)s->b * normal(rng) >> 32;
		return at_least_0((__int128)s->a_ns + x);
	case LOGNORMAL:
		x = (__int128)s->b * normal(rng) >> 32;
		return times_power(s->a_ns, x * (int64_t)LOG_2_E >> 32);
	case PARETO:
		x = -(__int128)log_2(fraction(rng)) * (int64_t)ONE;
		return times_power(s->a_ns, x / (__int128)s->b);
	case FROM_FILE:
		return s->values[sw_random_next(rng) % s->n_values];
	case N_KINDS:
		break;
	}
	return 0;
}

/* --- parsing a distribution --- */

static bool take_time(const char *word, uint64_t *ns, char *why, size_t why_len)
{
	if (sw_value_parse(word, SW_UNIT_TIME, ns, why, why_len))
		return false;
	if (*ns <= SW_SIM_STRAGGLER_MOST_NS)
		return true;
	snprintf(why, why_len, "is more than 60min");
	return false;
}

static int take_line(struct sw_sim_straggler *s, char *line)
{
	char what[WORD];

	line += strspn(line, " \t");
	line[strcspn(line, " \t\r\n#")] = '\0';
	if (!*line)
		return 0;
	if (s->n_values == VALUES ||
		!take_time(line, &s->values[s->n_values], what, sizeof(what)))
		return SW_ECONF;
	s->n_values++;
	return 0;
}

static int read_file(
	struct sw_sim_straggler *s, const char *name, char *why, size_t why_len)
{
	char line[WORD];
	FILE *f = fopen(name, "r");
	int err = 0;

	if (!f) {
		snprintf(why, why_len, "%s: %s", name, strerror(errno));
		return SW_ENOENT;
	}
	s->values = sw_lab_array(VALUES, sizeof(*s->values));
	for (uint32_t n = 1; !err && fgets(line, sizeof(line), f); n++) {
		err = take_line(s, line);
		if (err)
			snprintf(why, why_len,
				"%s:%u: \"%.40s\" is no time up to 60min, like "
				"1.5ms; one a line, at most %d",
				name, n, line, VALUES);
	}
	fclose(f);
	if (err || s->n_values)
		return err;
	snprintf(why, why_len, "%s: has no times", name);
	return SW_ECONF;
}

static bool take_second(struct sw_sim_straggler *s, const char *word)
{
	char why[WORD];
	double real;

	switch (kinds[s->kind].second) {
	case SECOND_TIME:
		return take_time(word, &s->b, why, sizeof(why));
	case SECOND_REAL:
		if (sw_value_real_parse(word, &real, why, sizeof(why)) ||
			real < REAL_LEAST || real > REAL_MOST)
			return false;
		s->b = (uint64_t)(real * (double)ONE + 0.5);
		return true;
	default:
		return !*word;
	}
}

int sw_sim_straggler_open(
	struct sw_sim_straggler *s, const char *text, char *why, size_t why_len)
{
	char words[4][WORD] = {"", "", "", ""}, reason[WORD];
	bool is_good;

	*s = (struct sw_sim_straggler){0};
	sscanf(text, "%255s %255s %255s %255s", words[0], words[1], words[2],
		words[3]);
	while (s->kind < N_KINDS && strcmp(words[0], kinds[s->kind].name) != 0)
		s->kind++;
	if (s->kind == N_KINDS) {
		snprintf(why, why_len,
			"\"%.40s\" is no distribution: constant, uniform, "
			"exponential, normal, lognormal, pareto or file",
			words[0]);
		return SW_ECONF;
	}
	if (s->kind == FROM_FILE && *words[1] && !*words[2])
		return read_file(s, words[1], why, why_len);
	is_good = s->kind != FROM_FILE && !*words[3] &&
		  take_time(words[1], &s->a_ns, reason, sizeof(reason)) &&
		  take_second(s, words[2]);
	if (is_good && s->kind == UNIFORM && s->b < s->a_ns)
		is_good = false;
	if (is_good)
		return 0;
	snprintf(why, why_len, "\"%.60s\": give %s; times are at most 60min",
		text, kinds[s->kind].means);
	return SW_ECONF;
}

void sw_sim_straggler_close(struct sw_sim_straggler *s)
{
	free(s->values);
	s->values = NULL;
}
