/* fuzz_ini.c - the reader of configuration files.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: the file.  What is accepted is printed, and must read the same again.
 */
#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conf/conf.h"
#include "engine/base/error.h"
#include "test/fuzz/fuzz.h"

static struct {
	int fd;
	char path[32];
} files[2];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	for (int i = 0; i < 2; i++) {
		files[i].fd = memfd_create("ini", 0);
		snprintf(files[i].path, sizeof(files[i].path),
			"/proc/self/fd/%d", files[i].fd);
	}
	return 0;
}

static void write_file(int i, const void *data, size_t n)
{
	if (ftruncate(files[i].fd, 0) ||
		pwrite(files[i].fd, data, n, 0) != (ssize_t)n)
		abort();
}

static void count_line(void *ctx, enum sw_log_level level, const char *text)
{
	assert(level == SW_LOG_ERROR && *text);
	++*(uint32_t *)ctx;
}

static void check_printed(const struct sw_conf *conf)
{
	static struct sw_conf again;
	struct sw_conf_origins origins;
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	sw_conf_print(conf, NULL, f);
	fclose(f);
	write_file(1, text, n);
	free(text);
	memset(&again, 0, sizeof(again));
	assert(!sw_conf_load_origins(files[1].path, &again, &origins, NULL));
	assert(!memcmp(conf, &again, sizeof(again)));
	assert(sw_conf_n_lcores(conf) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct sw_conf conf;
	uint32_t n_lines = 0;
	struct sw_log log = {count_line, &n_lines, SW_LOG_DEBUG};
	int err;

	memset(&conf, 0, sizeof(conf));
	write_file(0, data, n);
	err = sw_conf_load(files[0].path, &conf, &log);
	/* An error without a line is as bad as a line without an error. */
	assert(!err || err == SW_ECONF);
	assert(!err == !n_lines);
	if (!err)
		check_printed(&conf);
	return 0;
}
