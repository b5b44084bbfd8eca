/* unit_sized.c - structs of callers that were built for another release.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_rig.h"

#include <string.h>

#include "pmd/client/sized.h"
#include <sumwire/coll.h>

/* A struct in its first and in later releases. */
struct first {
	size_t size;
	uint64_t a;
};

struct second {
	size_t size;
	uint64_t a, b;
};

static int take(struct second *to, const void *from, const char *text)
{
	char why[SW_SIZED_WHY_BYTES] = "";
	int err = sw_sized_take(
		to, sizeof(*to), from, sizeof(struct first), "x", why);

	if (!strstr(why, text))
		fail_msg("why: %s", why);
	return err;
}

static void take__older_caller(void **state)
{
	struct {
		struct first s;
		uint64_t behind;
	} own = {{sizeof(struct first), 7}, 9};
	struct second got = {1, 2, 3};

	assert_int_equal(take(&got, &own, ""), 0);
	assert_int_equal(got.a, 7);
	assert_int_equal(got.b, 0);
}

static void take__same(void **state)
{
	struct second own = {sizeof(own), 7, 8}, got;

	assert_int_equal(take(&got, &own, ""), 0);
	assert_memory_equal(&got, &own, sizeof(got));
}

static void take__newer_caller(void **state)
{
	struct {
		struct second s;
		uint8_t c[3];
	} own = {.s = {sizeof(own), 7, 8}};
	struct second got;

	assert_int_equal(take(&got, &own, ""), 0);
	assert_int_equal(got.b, 8);
	own.c[2] = 1;
	assert_int_equal(
		take(&got, &own, "struct x of size 32: it has "), SW_EINVAL);
}

static void take__no_size(void **state)
{
	static const size_t sizes[] = {
		0, 1, sizeof(struct first) - 1, 4097, SIZE_MAX};
	struct second own = {0, 7, 8}, got = {1, 2, 3};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		own.size = sizes[i];
		assert_int_equal(
			take(&got, &own, "set .size to its sizeof"), SW_EINVAL);
		assert_int_equal(got.a, 2);
	}
}

static void give__shorter_and_longer(void **state)
{
	struct second from = {sizeof(from), 7, 8}, to = {1, 2, 3};
	unsigned char more[sizeof(from) + 8];

	sw_sized_give(&to, sizeof(struct first), &from, sizeof(from));
	assert_int_equal(to.a, 7);
	assert_int_equal(to.b, 3); /* the caller's struct lacks b */
	memset(more, 0xff, sizeof(more));
	sw_sized_give(more, sizeof(more), &from, sizeof(from));
	assert_memory_equal(more, &from, sizeof(from));
	for (size_t i = sizeof(from); i < sizeof(more); i++)
		assert_int_equal(more[i], 0);
}

/* --- through the interface --- */

/* Structs of a later release. */
struct later_desc {
	struct sw_tensor_desc d;
	uint64_t more;
};

struct later_args {
	struct sw_coll_args a;
	uint64_t more;
};

struct later_settings {
	struct sw_settings s;
	uint64_t more;
};

static void fails(struct sw_client *c, int err, const char *text)
{
	assert_int_equal(err, SW_EINVAL);
	if (!strstr(sw_last_error(c), text))
		fail_msg("last error: %s", sw_last_error(c));
}

static void settings__of_another_release(void **state)
{
	struct later_settings s;
	struct sw_client *c = NULL;

	sw_settings_init_sized(&s.s, sizeof(s));
	assert_int_equal(s.s.size, sizeof(s));
	assert_int_equal(s.s.wait_timeout_s, 600);
	assert_int_equal(s.more, 0);
	s.s.agent = "/nowhere/agent.sock";
	s.s.open_timeout_s = 0;
	assert_int_equal(sw_open(&s.s, &c), SW_ECLOSED);
	s.more = 1;
	fails(NULL, sw_open(&s.s, &c), "struct sw_settings of size");
	s.s.size = 0;
	fails(NULL, sw_open(&s.s, &c), "set .size");
	assert_null(c);
}

static void declare__of_another_release(void **state)
{
	struct rig *r = rig_open(NULL);
	struct sw_client *c = rig_client(r);
	struct later_desc d[2] = {{RIG_DESC("w", 5, SW_F32, 0), 0},
		{RIG_DESC("b", 6, SW_F32, 1), 0}};
	struct sw_tensor *t[2];

	fails(c, sw_declare(c, &d[0].d, 2, t), "tensor 1: ");
	d[0].d.size = sizeof(d[0]);
	fails(c, sw_declare(c, &d[0].d, 2, t),
		"tensor 1: its description has size");
	d[1].d.size = sizeof(d[1]);
	d[1].more = 1;
	fails(c, sw_declare(c, &d[0].d, 2, t),
		"tensor 1: struct sw_tensor_desc of size");
	d[1].more = 0;
	assert_int_equal(sw_declare(c, &d[0].d, 2, t), 0);
	((float *)sw_tensor_data(t[1]))[5] = 1;
	d[0].d.size = 0;
	fails(c, sw_declare(c, &d[0].d, 1, t),
		"tensor 0: struct sw_tensor_desc");
	sw_close(&c);
	rig_close(r);
}

static void coll__of_another_release(void **state)
{
	struct rig *r = rig_open(NULL);
	struct sw_client *c = rig_client(r);
	struct later_args a = {.a = SW_COLL_ARGS_INIT};
	struct sw_group *g;
	uint64_t h;
	void *mem;

	assert_int_equal(sw_alloc(c, 4, &mem), 0);
	assert_int_equal(sw_group_open(c, "all", NULL, 0, &g), 0);
	a.a.size = sizeof(a);
	a.a.kind = SW_ALL_REDUCE;
	a.a.count = 1;
	a.a.send = a.a.recv = mem;
	assert_int_equal(sw_coll(g, &a.a, &h), 0);
	assert_int_equal(sw_wait(c, h), 0);
	a.more = 1;
	fails(c, sw_coll(g, &a.a, &h), "group 'all': struct sw_coll_args of");
	a.a.size = 0;
	fails(c, sw_coll(g, &a.a, &h), "set .size");
	sw_close(&c);
	rig_close(r);
}

static void tuning__of_another_release(void **state)
{
	struct rig *r = rig_open(NULL);
	struct sw_client *c = rig_client(r);
	struct sw_tuning now, old;

	sw_get_tuning(c, &now);
	memset(&old, 0x77, sizeof(old));
	sw_get_tuning_sized(c, &old, offsetof(struct sw_tuning, number));
	assert_memory_equal(&old, &now, offsetof(struct sw_tuning, number));
	assert_int_equal(old.number, 0x77777777);
	sw_close(&c);
	rig_close(r);
}

static void version__of_this_release(void **state)
{
	assert_int_equal(sw_version(), SW_VERSION_NUMBER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__older_caller),
		cmocka_unit_test(take__same),
		cmocka_unit_test(take__newer_caller),
		cmocka_unit_test(take__no_size),
		cmocka_unit_test(give__shorter_and_longer),
		cmocka_unit_test(settings__of_another_release),
		cmocka_unit_test(declare__of_another_release),
		cmocka_unit_test(coll__of_another_release),
		cmocka_unit_test(tuning__of_another_release),
		cmocka_unit_test(version__of_this_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
