/* clmul.h - which carry-less products this CPU supports; inside sum/ only.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The built-ins read values found before main(), so they cost one test; they
 * also check whether the operating system saves the registers.
 */
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
