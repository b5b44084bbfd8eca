/* fuzz_ini.c - the readers of configuration files and machine descriptions.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: the file. Accepted input is printed and must read the same again; a
 * consistent machine has a plan with finite times.
 */
#include <assert.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/topo/topo.h"
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

static void check_plan(const struct sw_machine *m)
{
	struct sw_topo_plan p = {.m_bytes = 1e9, .nic_bytes = 1e9};

	assert(!sw_topo_use(&p, m, NULL, 0));
	sw_topo_make_plan(&p, m);
	assert(p.n_choices > 0 && p.s_n + p.s_g > 0 &&
		p.s_n + p.s_g <= m->n_gpus);
	for (uint32_t i = 0; i < p.n_choices; i++)
		assert(isfinite(p.choices[i].time_s) &&
			p.choices[i].time_s > 0);
}

/* Read the file alone, or as changes to a machine with a switch and a GPU. */
static void check_machine(bool is_alone)
{
	static struct sw_machine m;
	uint32_t n_lines = 0;
	struct sw_log log = {count_line, &n_lines, SW_LOG_DEBUG};
	double cross;
	char why[256];
	int err;

	m = (struct sw_machine){.n_numa_nodes = !is_alone,
		.n_switches = !is_alone,
		.n_gpus = !is_alone};
	err = sw_topo_describe(&m, &cross, files[0].path, &log);
	assert(!err || err == SW_ECONF);
	assert(!err == !n_lines);
	if (!err && !sw_topo_check(&m, why, sizeof(why)) && m.n_gpus)
		check_plan(&m);
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
	/* Every error logs a line, and only an error does. */
	assert(!err || err == SW_ECONF);
	assert(!err == !n_lines);
	if (!err)
		check_printed(&conf);
	check_machine(true);
	check_machine(false);
	return 0;
}
