/* chrome.c - write Chrome's trace JSON, which Perfetto opens.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/chrome.h"

#include <inttypes.h>

void sw_chrome_begin(struct sw_chrome *c)
{
	fprintf(c->to, "{\"displayTimeUnit\":\"ns\",\"otherData\":{");
}

void sw_chrome_events(struct sw_chrome *c)
{
	fprintf(c->to, "},\"traceEvents\":[");
}

void sw_chrome_end(struct sw_chrome *c)
{
	fprintf(c->to, "\n]}\n");
}

void sw_chrome_event(
	struct sw_chrome *c, const char *phase, uint32_t pid, uint32_t tid)
{
	fprintf(c->to, "%s{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u",
		c->has_one ? ",\n" : "\n", phase, pid, tid);
	c->has_one = true;
}

void sw_chrome_time(struct sw_chrome *c, const char *key, int64_t ns)
{
	ns = ns > 0 ? ns : 0;
	fprintf(c->to, ",\"%s\":%" PRId64 ".%03u", key, ns / 1000,
		(unsigned)(ns % 1000));
}

void sw_chrome_slice(struct sw_chrome *c, uint32_t pid, uint32_t tid,
	int64_t from_ns, int64_t to_ns)
{
	sw_chrome_event(c, "X", pid, tid);
	sw_chrome_time(c, "ts", from_ns - c->zero_ns);
	sw_chrome_time(c, "dur", to_ns - from_ns);
}

void sw_chrome_name(struct sw_chrome *c, uint32_t pid, uint32_t tid,
	const char *what, const char *name)
{
	sw_chrome_event(c, "M", pid, tid);
	fprintf(c->to, ",\"name\":\"%s\",\"args\":{\"name\":\"%s\"}}", what,
		name);
}

const char *sw_chrome_escape(const char *text, char *out, size_t size)
{
	size_t n = 0;

	for (; *text && n + 3 < size; text++) {
		if (*text == '"' || *text == '\\')
			out[n++] = '\\';
		out[n++] = *text & 0x80 ? '?' : *text;
	}
	out[n] = '\0';
	return out;
}
