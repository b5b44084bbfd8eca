/* unit_daemon.c - a daemon's state before it starts DPDK.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "apps/node/daemon.h"

enum { DRAWS = 64 };

static void write_config(const char *dir, char path[64])
{
	FILE *f;

	snprintf(path, 64, "%s/a.ini", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f,
		"[node]\nrole = server\nname = a\nruntime_dir = %s\n"
		"[job]\nagents = 1\n[log]\nlevel = error\n"
		"[port p]\ntype = memif\nside = listen\nsocket = m\n"
		"ip = 10.0.0.1/30\n",
		dir);
	fclose(f);
}

static void draw(const char *path, uint64_t values[DRAWS])
{
	struct sw_daemon *d = calloc(1, sizeof(*d));
	struct sw_daemon_options o = {.config = path};

	assert_non_null(d);
	assert_int_equal(sw_daemon_open(d, &o, SW_ROLE_SERVER), 0);
	for (uint32_t i = 0; i < DRAWS; i++)
		values[i] = d->env.random(d->env.ctx);
	sw_daemon_close(d);
	free(d);
}

/* Each daemon draws its own numbers, and every bit varies. */
static void random__is_not_guessed(void **state)
{
	char dir[] = "/tmp/sumwire-unit-XXXXXX", path[64];
	uint64_t v[2 * DRAWS], all = ~0ULL, any = 0;

	assert_non_null(mkdtemp(dir));
	write_config(dir, path);
	draw(path, v);
	draw(path, v + DRAWS);
	for (uint32_t i = 0; i < 2 * DRAWS; i++) {
		all &= v[i];
		any |= v[i];
		for (uint32_t k = 0; k < i; k++)
			assert_true(v[i] != v[k]);
	}
	assert_true(all == 0);
	assert_true(any == ~0ULL);
	unlink(path);
	rmdir(dir);
}

/* A server has no agent socket, so its folder's path may be too long for
 * one. */
static void open__server_in_a_long_folder(void **state)
{
	char dir[] = "/tmp/sumwire-unit-XXXXXX", path[64], folder[108];
	struct sw_daemon *d = calloc(1, sizeof(*d));
	struct sw_daemon_options o = {.config = path};
	FILE *f;

	assert_non_null(d);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.ini", dir);
	snprintf(folder, sizeof(folder), "%s/%075d", dir, 0);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f,
		"[node]\nrole = server\nruntime_dir = %s\n[log]\nlevel = "
		"error\n"
		"[stats]\nsocket = /s\n"
		"[port p]\ntype = memif\nside = listen\nsocket = /m\n"
		"ip = 10.0.0.1/30\n",
		folder);
	fclose(f);
	assert_int_equal(sw_daemon_open(d, &o, SW_ROLE_SERVER), 0);
	assert_string_equal(d->runtime_dir, folder);
	sw_daemon_close(d);
	free(d);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random__is_not_guessed),
		cmocka_unit_test(open__server_in_a_long_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
