/* fuzz_trace.c - the reader of recorded traces: join, JSON and report.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: the file.
 */
#include <assert.h>
#include <stdio.h>

#include "apps/trace/load.h"
#include "test/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sw_trace_data t = {0};
	static FILE *nowhere;
	FILE *f;
	int err;

	if (!nowhere)
		nowhere = stderr = fopen("/dev/null", "w");
	if (!nowhere)
		abort();
	f = n ? fmemopen((void *)data, n, "r") : NULL;
	if (!f)
		return 0;
	err = sw_trace_load(&t, f, "it");
	fclose(f);
	assert(!err || err == 1);
	if (t.n_daemons) {
		err = sw_trace_join(&t);
		assert(!err);
		sw_trace_print(&t, nowhere);
		err = sw_trace_chrome(&t, nowhere, "it");
		assert(!err);
		err = sw_trace_report(&t, nowhere);
		assert(!err || err == 1);
	}
	sw_trace_free(&t);
	return 0;
}
