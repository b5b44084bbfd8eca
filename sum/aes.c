/* aes.c - the table of AES's kernels, and the choice of one.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sum/aes.h"

#if SW_AES_HAS_VAES256
#include <cpuid.h>
#endif

#if SW_AES_HAS_AESNI
static bool has_aesni(void)
{
	return __builtin_cpu_supports("avx") && __builtin_cpu_supports("aes");
}
#endif

#if SW_AES_HAS_VAES256
/* clang's built-in does not support VAES. */
static bool has_vaes(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & bit_VAES;
}

static bool has_vaes256(void)
{
	return has_aesni() && __builtin_cpu_supports("avx2") && has_vaes();
}
#endif

#if SW_AES_HAS_VAES512
static bool has_vaes512(void)
{
	return has_vaes256() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw");
}
#endif

/* A new kernel is one file and one row; the widest last. */
static const struct {
	const struct sw_aes *aes;
	bool (*runs)(void);
} rows[] = {
#if SW_AES_HAS_AESNI
	{&sw_aes_aesni, has_aesni},
#endif
#if SW_AES_HAS_VAES256
	{&sw_aes_vaes256, has_vaes256},
#endif
#if SW_AES_HAS_VAES512
	{&sw_aes_vaes512, has_vaes512},
#endif
	{NULL, NULL},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) }; /* the empty row included */

const struct sw_aes *sw_aes_row(uint32_t i, bool *runs)
{
	if (i >= N_ROWS || !rows[i].aes)
		return NULL;
	if (runs)
		*runs = rows[i].runs();
	return rows[i].aes;
}

const struct sw_aes *sw_aes_best(void)
{
	for (uint32_t i = N_ROWS; i--;)
		if (rows[i].aes && rows[i].runs())
			return rows[i].aes;
	return NULL;
}

void sw_aes_prepare(struct sw_aes_key *key, const uint8_t *bytes)
{
#if SW_AES_HAS_AESNI
	sw_aes_prepare_aesni(key, bytes);
#else
	(void)key;
	(void)bytes;
#endif
}
