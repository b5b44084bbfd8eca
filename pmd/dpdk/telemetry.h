/* telemetry.h - our telemetry commands, for dpdk-telemetry.py.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_TELEMETRY_H
#define SW_PMD_DPDK_TELEMETRY_H

#include <stdint.h>

struct sw_dpdk_telemetry;

/* Put a number into the answer; a character that DPDK refuses in names becomes
 * '/'. Ignored if the answer is full. */
typedef void (*sw_dpdk_put_fn)(void *out, const char *name, uint64_t value);

/* Answer command @i of the list with @params ("" if there are none). Returns 0
 * or an error. Thread: a DPDK thread; one call at a time. */
typedef int (*sw_dpdk_answer_fn)(void *ctx, uint32_t i, const char *params,
	sw_dpdk_put_fn put, void *out);

/* A command, such as "/sumwire/counters", and its help. */
struct sw_dpdk_command {
	const char *name, *help;
};

/* sw_dpdk_telemetry_open - register @n commands, which must be static, and
 * answer them by @answer. DPDK must have been opened with has_telemetry; it
 * keeps the commands until the process ends.
 * Errors: SW_ENOMEM; SW_EBUSY it was called before.
 * sw_dpdk_telemetry_close - stop calling @answer; waits for a call in progress.
 * *@t may be NULL. */
int sw_dpdk_telemetry_open(const struct sw_dpdk_command *commands, uint32_t n,
	sw_dpdk_answer_fn answer, void *ctx, struct sw_dpdk_telemetry **t);
void sw_dpdk_telemetry_close(struct sw_dpdk_telemetry **t);

#endif
