/* unit_device_memory.c - device memory, and shared memory near a device.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/numa_rig.h"
#include "test/unit/cuda/coll_rig.h"
#include "test/unit/cuda/fake_rig.h"

enum { MIB = 1 << 20, ELEMS = MIB / 4 };

static struct sw_device_tensor *declare(struct scene *s, const char *name)
{
	struct sw_tensor_desc desc = RIG_DESC(name, ELEMS, SW_F32, 0);
	struct sw_device_tensor *t;

	if (sw_device_declare(s->d, &desc, 1, &t))
		fail_msg("sw_device_declare: %s", sw_last_error(s->c));
	return t;
}

/* Copy values to device memory, sum them there (the rig doubles), and copy them
 * back. */
static void sum_there(struct scene *s, const char *name)
{
	struct sw_device_tensor *t = declare(s, name);
	struct sw_device_call call = SW_DEVICE_CALL_INIT;
	float *here = (float *)s->send;
	void *there, *beside;

	for (uint32_t i = 0; i < ELEMS; i++)
		here[i] = (float)i;
	assert_int_equal(sw_device_alloc(s->d, MIB, &there), 0);
	assert_int_equal(sw_device_alloc(s->d, MIB, &beside), 0);
	assert_int_equal((uintptr_t)there % 256, 0);
	assert_int_equal(sw_device_copy(s->d, there, here, MIB), 0);
	assert_int_equal(sw_device_copy(s->d, beside, there, MIB), 0);
	call.from = call.to = beside;
	assert_int_equal(sw_push_pull_device(t, &call), 0);
	assert_int_equal(sw_device_wait(t), 0);
	memset(here, 0, MIB);
	assert_int_equal(sw_device_copy(s->d, here, beside, MIB), 0);
	for (uint32_t i = 0; i < ELEMS; i++)
		if (here[i] != 2 * (float)i)
			fail_msg("element %u is %f", i, (double)here[i]);
	sw_device_free(s->d, there);
	sw_device_free(s->d, beside);
	sw_device_free(s->d, NULL);
}

static void memory__of_the_host(void **state)
{
	struct scene *s = *state;
	void *p;

	open_device(s, "fake:check");
	sum_there(s, "a");
	sum_there(s, "b");
	assert_int_equal(sw_device_alloc(s->d, 0, &p), SW_EINVAL);
	assert_contains(sw_last_error(s->c), "no memory was asked for");
	assert_int_equal(sw_device_alloc(s->d, UINT64_MAX, &p), SW_ENOMEM);
}

/* No pointer of this process reaches cudaMalloc's memory, even with another
 * current device. */
static void memory__of_cuda(void **state)
{
	struct scene *s = *state;
	char here[8] = "12345678";
	struct fake *f;
	void *library = fake_load(13, &f), *p;

	open_device(s, "cuda");
	sum_there(s, "a");
	assert_int_equal(
		sw_device_alloc(s->d, FAKE_ROOM + 1ULL, &p), SW_ENOMEM);
	assert_contains(sw_last_error(s->c),
		"rank 3: cuda device 0: cudaMalloc: out of memory (2)");
	assert_int_equal(sw_device_alloc(s->d, 8, &p), 0);
	assert_int_equal(sw_device_copy(s->d, NULL, p, 8), SW_EINVAL);
	assert_contains(sw_last_error(s->c), "cudaMemcpy: an error (1)");
	assert_int_equal(f->error, 0);
	f->current = 1; /* the caller's current device */
	assert_int_equal(sw_device_copy(s->d, p, here, 8), 0);
	assert_int_equal(f->current, 1);
	f->current = 0;
	sw_device_free(s->d, p);
	f->is_lost = 1;
	assert_int_equal(sw_device_alloc(s->d, 8, &p), SW_EDEVICE);
	assert_int_equal(sw_device_copy(s->d, here, here, 8), SW_EDEVICE);
	f->is_lost = 0;
	sw_device_close(&s->d);
	fake_unload(library, f);
}

/* Tensors and memory are on the device's node, or on the default one if that
 * node does not exist. */
static void memory__near_the_device(void **state)
{
	static const struct {
		const char *device;
		unsigned long nodes;
	} rows[] = {{"fake:node=0", 1}, {"fake:node=61", 0}, {"fake", 0}};
	struct scene *s = *state;

	rig_skip_if_forbidden();
	for (uint32_t i = 0; i < 3; i++) {
		struct sw_tensor_desc desc = RIG_DESC("", 1000, SW_F32, 0);
		char name[] = {(char)('a' + i), 0};
		struct sw_tensor *t;
		void *p;

		desc.name = name;
		open_device(s, rows[i].device);
		assert_int_equal(sw_declare(s->c, &desc, 1, &t), 0);
		assert_int_equal(sw_alloc(s->c, MIB, &p), 0);
		assert_int_equal(
			rig_nodes_of(sw_tensor_data(t)), rows[i].nodes);
		assert_int_equal(rig_nodes_of(p), rows[i].nodes);
		sw_device_close(&s->d);
	}
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, scene_open, scene_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(memory__of_the_host),
		CASE(memory__of_cuda),
		CASE(memory__near_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
