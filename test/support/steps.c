/* steps.c - count the instructions that a piece of code executes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/steps.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

#ifndef __has_feature /* clang defines it */
#define __has_feature(x) 0
#endif

#ifdef __x86_64__
enum {
	TRAP_FLAG = 1 << 8,
	IS_SANITIZED = __has_feature(address_sanitizer) ||
		       __has_feature(thread_sanitizer)
};

static volatile uint64_t n_steps, limit;
static volatile greg_t last;

static void on_step(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signo;
	(void)info;
	n_steps += regs[REG_RIP] != last;
	last = regs[REG_RIP];
	if (n_steps > limit)
		regs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

void steps_begin(uint64_t most)
{
	struct sigaction act = {
		.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

	n_steps = IS_SANITIZED;
	if (IS_SANITIZED)
		return;
	sigaction(SIGTRAP, &act, NULL);
	limit = most;
	last = 0;
	/* move past the red zone */
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "orq $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
				 : "memory", "cc");
}

uint64_t steps_end(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "andq $~0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
				 : "memory", "cc");
	return n_steps;
}
#else /* the processor has no trap flag that a program may set */
void steps_begin(uint64_t most)
{
	(void)most;
}

uint64_t steps_end(void)
{
	return 1;
}
#endif
