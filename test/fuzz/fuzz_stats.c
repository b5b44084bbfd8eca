/* fuzz_stats.c - the reader of a daemon's counters over a socket.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: the bytes that the daemon sends before it hangs up.
 */
#include <assert.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/host/stats_read.h"
#include "test/fuzz/fuzz.h"

static const uint8_t *sent;
static size_t n_sent;

int __wrap_connect(int sock, const struct sockaddr *a, socklen_t len);

/* Replace connect by the linker option --wrap: connect the reader to a socket
 * that holds the whole input and is closed. */
int __wrap_connect(int sock, const struct sockaddr *a, socklen_t len)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
		dup2(ends[0], sock) < 0 ||
		write(ends[1], sent, n_sent) != (ssize_t)n_sent)
		abort();
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static void each(void *ctx, const char *name, uint64_t value)
{
	assert(*name && !strpbrk(name, " \n") && strlen(name) < 256);
	++*(size_t *)ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t n_counters = 0;
	int err;

	sent = data;
	n_sent = n;
	err = sw_stats_read("/run/nobody.sock", each, &n_counters);
	assert(!err || err == SW_EPROTO);
	assert(n_counters * sizeof("a 1") <= n);
	return 0;
}
