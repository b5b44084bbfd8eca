/* clmul.h - which carry-less products this CPU has; inside sum/ only.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The built-ins read what was found out before main(), and so cost a test; they
 * also ask whether the operating system keeps the registers. */
#ifndef SW_SUM_CLMUL_H
#define SW_SUM_CLMUL_H

#include <stdbool.h>

#if SW_CRC_HAS_CLMUL128
static inline bool sw_has_clmul128(void)
{
	return __builtin_cpu_supports("sse4.2") &&
	       __builtin_cpu_supports("pclmul") &&
	       __builtin_cpu_supports("avx");
}
#endif

#if SW_CRC_HAS_CLMUL256
static inline bool sw_has_clmul256(void)
{
	return __builtin_cpu_supports("sse4.2") &&
	       __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("pclmul") &&
	       __builtin_cpu_supports("vpclmulqdq");
}
#endif

#if SW_CRC_HAS_CLMUL512
static inline bool sw_has_clmul512(void)
{
	return __builtin_cpu_supports("sse4.2") &&
	       __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("pclmul") &&
	       __builtin_cpu_supports("vpclmulqdq");
}
#endif

static inline bool sw_has_any(void)
{
	return true;
}

#endif
