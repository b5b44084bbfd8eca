/* ticks.h - TSC ticks per stage of the packet path, in a profiling build.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * With -Dprofile=true, SW_TIMED adds the ticks of a statement to a counter of
 * stats.def.  Without, SW_TIMED is only the statement, and the counters do not
 * exist.  The counter of an outer stage includes its inner stages. */
#ifndef SW_ENGINE_BASE_TICKS_H
#define SW_ENGINE_BASE_TICKS_H

#include "engine/base/stats.h"

#if SW_PROFILE
#define SW_TIMED(counter, statement)                                       \
	do {                                                               \
		uint64_t ticks_from = __builtin_ia32_rdtsc();              \
		statement;                                                 \
		sw_count(&(counter), __builtin_ia32_rdtsc() - ticks_from); \
	} while (0)
#else
#define SW_TIMED(counter, statement) \
	do {                         \
		statement;           \
	} while (0)
#endif

#endif
