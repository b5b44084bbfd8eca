/* process.c - the plugin's state in this process, and its log.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "pmd/nccl/plugin.h"

static struct sw_nccl_process process = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .wake_fd = -1};

/* Initialise the condition before any thread starts; its waits use the
 * monotonic clock. */
__attribute__((constructor)) static void init_changed(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&process.changed, &attr);
	pthread_condattr_destroy(&attr);
}

struct sw_nccl_process *sw_nccl_process(void)
{
	return &process;
}

static void say(bool is_warning, const char *fmt, va_list ap)
{
	nccl_log log = sw_nccl_process()->log;
	char line[512];

	if (!log)
		return;
	vsnprintf(line, sizeof(line), fmt, ap);
	log(is_warning ? NCCL_LOG_WARN : NCCL_LOG_INFO, NCCL_LOG_NET, "sumwire",
		0, "sumwire: %s", line);
}

void sw_nccl_say(bool is_warning, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(is_warning, fmt, ap);
	va_end(ap);
}

int sw_nccl_fail(int result, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(true, fmt, ap);
	va_end(ap);
	return result;
}

int sw_nccl_init(nccl_log log)
{
	sw_nccl_process()->log = log;
	return NCCL_OK;
}

int sw_nccl_random(struct sw_nccl_id *out)
{
	if (getrandom(out, sizeof(*out), 0) != sizeof(*out))
		return sw_nccl_fail(
			NCCL_SYSTEM, "no random numbers: %s", strerror(errno));
	return NCCL_OK;
}
