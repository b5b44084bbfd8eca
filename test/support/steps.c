/* steps.c - how many instructions a piece of code executes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/steps.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

enum { TRAP_FLAG = 1 << 8 };

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

	sigaction(SIGTRAP, &act, NULL);
	limit = most;
	n_steps = 0;
	last = 0;
	/* past the red zone */
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
