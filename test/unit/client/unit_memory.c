/* unit_memory.c - libsumwire: memory of sw_alloc that is freed.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_rig.h"

#include <string.h>
#include <sys/wait.h>

#include "test/support/unit.h"
#include <sumwire/coll.h>

enum {
	MIB = 1 << 20,
	QUOTA = 40 * MIB, /* other memory of a client takes some 2 MiB */
	LARGE = 20 * MIB,
};

struct scene {
	struct rig *r;
	struct sw_client *c;
	struct sw_group *g;
};

static int scene_open(void **state)
{
	static struct scene s;

	s = (struct scene){
		.r = rig_open(&(struct rig_how){.quota_bytes = QUOTA})};
	s.c = rig_client(s.r);
	assert_int_equal(sw_group_open(s.c, "dp", NULL, 0, &s.g), 0);
	*state = &s;
	return 0;
}

static int scene_close(void **state)
{
	struct scene *s = *state;

	sw_close(&s->c);
	rig_close(s->r);
	return 0;
}

static char *alloc(struct scene *s, size_t bytes)
{
	void *p;

	if (sw_alloc(s->c, bytes, &p))
		fail_msg("sw_alloc: %s", sw_last_error(s->c));
	return p;
}

static void fails(struct scene *s, void *p, int err, const char *why)
{
	assert_int_equal(sw_free(s->c, p), err);
	assert_contains(sw_last_error(s->c), why);
}

static int call(
	struct scene *s, void *send, void *recv, uint64_t count, uint64_t *h)
{
	struct sw_coll_args a = SW_COLL_ARGS_INIT;

	a.kind = SW_ALL_REDUCE;
	a.dtype = SW_U8;
	a.count = count;
	a.send = send;
	a.recv = recv;
	return sw_coll(s->g, &a, h);
}

/* Return the number of mappings of such memory; this process also runs the
 * agent, so its mappings count. */
static uint32_t n_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	uint32_t n = 0;

	while (fgets(line, sizeof(line), f))
		n += strstr(line, "sumwire-data") != NULL;
	fclose(f);
	return n;
}

static void free__at_both_ends(void **state)
{
	struct scene *s = *state;
	uint32_t n = n_mapped();
	char *p = alloc(s, LARGE);

	assert_int_equal(n_mapped(), n + 2);
	p[0] = p[LARGE - 1] = 1;
	assert_int_equal(sw_free(s->c, p), 0);
	assert_int_equal(n_mapped(), n);
	assert_int_equal(sw_free(s->c, NULL), 0);
}

/* A client that frees its memory can allocate far more in total than its
 * quota. */
static void free__for_ever(void **state)
{
	struct scene *s = *state;
	char *kept = alloc(s, MIB);

	memset(kept, 7, MIB);
	for (uint32_t i = 0; i < 5000; i++) {
		size_t bytes = i % 50 ? 100 + i : LARGE;
		char *p = alloc(s, bytes);

		assert_int_equal(p[0] | p[bytes / 2] | p[bytes - 1], 0);
		memset(p, 1, 100);
		assert_int_equal(sw_free(s->c, p), 0);
	}
	for (uint32_t i = 0; i < MIB; i++)
		assert_int_equal(kept[i], 7);
	assert_int_equal(sw_free(s->c, kept), 0);
}

/* Memory freed in the middle is reused. */
static void free__some_of_many(void **state)
{
	struct scene *s = *state;
	char *p[64];
	uint64_t h;

	for (uint32_t i = 0; i < 64; i++)
		p[i] = alloc(s, 1000 + i);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = round; i < 64; i += 3)
			assert_int_equal(sw_free(s->c, p[i]), 0);
		for (uint32_t i = round; i < 64; i += 3)
			p[i] = alloc(s, 2000 + i);
	}
	for (uint32_t i = 0; i < 64; i++)
		memset(p[i], (int)i, 1000);
	for (uint32_t i = 0; i < 63; i++) {
		assert_int_equal(call(s, p[i], p[i + 1], 1000, &h), 0);
		assert_int_equal(sw_wait(s->c, h), 0);
		assert_int_equal(p[i + 1][999], 0);
	}
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(sw_free(s->c, p[i]), 0);
}

static void free__while_a_collective_uses_it(void **state)
{
	struct scene *s = *state;
	char *p = alloc(s, 4 * MIB), *q = alloc(s, 4 * MIB);
	uint64_t h;

	rig_mute(s->r, true);
	assert_int_equal(call(s, p, q, 4 * MIB, &h), 0);
	fails(s, p, SW_EBUSY, "all_reduce 1 of group 'dp'");
	fails(s, q, SW_EBUSY, "all_reduce 1 of group 'dp'");
	rig_mute(s->r, false);
	assert_int_equal(sw_wait(s->c, h), 0);
	assert_int_equal(sw_free(s->c, p), 0);
	assert_int_equal(sw_free(s->c, q), 0);
}

static void free__what_is_none(void **state)
{
	struct scene *s = *state;
	struct sw_tensor *t = rig_tensor(s->c, "w", 5);
	char own[64], *p = alloc(s, 100);

	fails(s, sw_tensor_data(t), SW_EBUSY, "that of tensor 'w'");
	fails(s, p + 64, SW_EINVAL, "64 bytes behind the beginning");
	fails(s, own, SW_EINVAL, "there is no memory of sw_alloc at");
	assert_int_equal(sw_free(s->c, p), 0);
	fails(s, p, SW_EINVAL, "or it was freed");
}

static void free__not_by_a_child(void **state)
{
	struct scene *s = *state;
	char *p = alloc(s, 100);
	int status;
	pid_t pid = rig_fork(s->r);

	if (!pid)
		_exit(sw_free(s->c, p) == SW_ECLOSED ? 0 : 1);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(sw_free(s->c, p), 0);
}

/* When a client closes or dies, the agent takes back all of its memory. */
static void free__and_die_in_between(void **state)
{
	struct scene *s = *state;
	struct sw_client *other;
	uint32_t n = n_mapped();
	void *p[3];

	other = rig_client(s->r);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(sw_alloc(other, MIB, &p[i]), 0);
	assert_int_equal(sw_free(other, p[1]), 0);
	sw_close(&other);
	rig_await(s->r, 1, SW_HOST_CLOSED, "");
	assert_int_equal(n_mapped(), n);
	assert_int_equal(sw_free(s->c, alloc(s, LARGE)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			free__at_both_ends, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			free__for_ever, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			free__some_of_many, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			free__while_a_collective_uses_it, scene_open,
			scene_close),
		cmocka_unit_test_setup_teardown(
			free__what_is_none, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			free__not_by_a_child, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			free__and_die_in_between, scene_open, scene_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
