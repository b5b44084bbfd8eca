/* unit_cuda.c - the back end "cuda" over a stand-in for the CUDA runtime.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The stand-ins have the names of runtime 12 and 13.
 */
#include "test/unit/cuda/fake_rig.h"
#include "test/unit/cuda/pipe_rig.h"

#include <sys/mman.h>

#include "pmd/cuda/runtime.h"
#include "test/support/dl.h"

enum { MIB = 1 << 20 };

struct scene {
	void *library[2]; /* runtimes 12 and 13 */
	struct fake *fake[2];
};

/* Load the runtimes in @which; bit 0: 12, bit 1: 13. */
static void load(struct scene *s, uint32_t which)
{
	for (uint32_t i = 0; i < 2; i++)
		if (which >> i & 1)
			s->library[i] = fake_load(12 + i, &s->fake[i]);
}

static int scene_open(void **state)
{
	*state = calloc(1, sizeof(struct scene));
	return 0;
}

static int scene_close(void **state)
{
	struct scene *s = *state;

	for (uint32_t i = 0; i < 2; i++)
		if (s->library[i])
			fake_unload(s->library[i], s->fake[i]);
	free(s);
	return 0;
}

static struct rig *open_rig(void)
{
	return rig_open_on(&sw_back_cuda, NULL, 64 << 10);
}

static void check_exact(struct rig *r)
{
	uint32_t a = rig_add(r, MIB + 8, 1), b = rig_add(r, MIB / 2, 0);

	for (uint64_t salt = 0; salt < 3; salt++) {
		rig_fill(r, a, salt);
		rig_fill(r, b, salt + 9);
		rig_submit(r, a);
		rig_submit(r, b);
		rig_wait(r, a);
		rig_wait(r, b);
		rig_check(r, a, salt);
		rig_check(r, b, salt + 9);
	}
}

static void cuda__is_exact(void **state)
{
	struct scene *s = *state;

	for (uint32_t i = 0; i < 2; i++) {
		struct rig *r;

		load(s, 1 << i);
		r = open_rig();
		check_exact(r);
		/* 3 times (33 + 16) slices in each direction */
		assert_int_equal(s->fake[i]->n_copies[0], 147);
		assert_int_equal(s->fake[i]->n_copies[1], 147);
		/* only the words are pinned */
		assert_int_equal(s->fake[i]->n_pins, 1);
		rig_close(r);
		assert_int_equal(scene_close(state), 0);
		scene_open(state);
		s = *state;
	}
}

static void copy_and_check(struct scene *s, char *far, uint64_t stride)
{
	char near[6] = "abcdef", back[7] = "";
	struct sw_rows out = {.to = far,
		.from = near,
		.bytes = 3,
		.n = 2,
		.to_stride = stride,
		.from_stride = 3};
	struct sw_rows in = {.to = back,
		.from = far,
		.bytes = 3,
		.n = 2,
		.to_stride = 3,
		.from_stride = stride};
	struct sw_back *b;
	void *event;
	char why[SW_BACK_WHY];

	assert_int_equal(sw_back_cuda.open(NULL, 0, &b, why), 0);
	assert_int_equal(sw_back_cuda.event_open(b, &event, why), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(
			sw_back_cuda.copy(b, i ? SW_BACK_IN : SW_BACK_OUT,
				i ? &in : &out, event, why),
			0);
		while (sw_back_cuda.poll(b, event, why))
			;
	}
	ASSERT_TEXT(back, "abcdef");
	assert_memory_equal(far + stride, "def", 3);
	sw_back_cuda.event_close(b, event);
	sw_back_cuda.close(b);
	assert_int_equal(s->fake[1]->n_copies[0], s->fake[1]->n_copies[1]);
}

/* One call copies all rows, unless they are more than 2 GiB apart. */
static void copy__of_rows(void **state)
{
	struct scene *s = *state;
	uint64_t most = (1ULL << 31) - 1;
	char *far = mmap(NULL, most + 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	load(s, 2);
	assert_true(far != MAP_FAILED);
	copy_and_check(s, far, 3);
	copy_and_check(s, far, 4096);
	copy_and_check(s, far, most);
	assert_int_equal(s->fake[1]->n_wide, 6);
	assert_int_equal(s->fake[1]->n_copies[0], 3);
	copy_and_check(s, far, most + 1);
	assert_int_equal(s->fake[1]->n_wide, 6);
	assert_int_equal(s->fake[1]->n_copies[0], 5);
	munmap(far, most + 4096);
}

static void check_no_device(const char *text)
{
	struct sw_back *b;
	char why[SW_BACK_WHY];

	assert_int_equal(sw_back_cuda.open(NULL, 0, &b, why), SW_EDEVICE);
	assert_contains(why, text);
}

static void runtime__is_missing(void **state)
{
	(void)state;
	dl_instead = "/nowhere/libcudart.so";
	check_no_device("neither libcudart.so.13 nor .12");
	dl_instead = NULL;
	setenv("SUMWIRE_CUDART", "/nowhere/libcudart.so", 1);
	check_no_device("SUMWIRE_CUDART: /nowhere/libcudart.so cannot");
	setenv("SUMWIRE_CUDART", "libm.so.6", 1);
	check_no_device("libm.so.6 lacks cudaGetDeviceCount");
	unsetenv("SUMWIRE_CUDART");
}

static void driver__is_missing_or_old(void **state)
{
	struct scene *s = *state;

	load(s, 2);
	s->fake[1]->driver = 0;
	setenv("SUMWIRE_CUDART", "libcudart.so.13", 1);
	check_no_device("libcudart.so.13 is installed, NVIDIA's driver is not");
	s->fake[1]->driver = 12040;
	check_no_device("is of CUDA 13.5, the driver of 12.4: CUDA driver");
	s->fake[1]->driver = 13050;
	s->fake[1]->n_devices = 0;
	check_no_device("libcudart.so.13 finds no device");
	unsetenv("SUMWIRE_CUDART");
}

/* Runtime 13 is used, unless the driver is too old for it. */
static void runtime__of_two(void **state)
{
	struct scene *s = *state;
	struct rig *r;

	load(s, 3);
	r = open_rig();
	check_exact(r);
	rig_close(r);
	assert_int_not_equal(s->fake[1]->n_copies[0], 0);
	assert_int_equal(s->fake[0]->n_copies[0], 0);
	s->fake[1]->driver = 12090;
	s->fake[1]->n_copies[0] = 0;
	r = open_rig();
	check_exact(r);
	rig_close(r);
	assert_int_equal(s->fake[1]->n_copies[0], 0);
	assert_int_not_equal(s->fake[0]->n_copies[0], 0);
}

/* A runtime that is already loaded, such as PyTorch's, is used even if the
 * linker would find a newer one. If none is loaded, the linker's is loaded. */
static void runtime__that_is_loaded(void **state)
{
	struct scene *s = *state;
	struct sw_back *b;
	char path[256], why[SW_BACK_WHY];

	snprintf(path, sizeof(path), "%s/cudart-fake-13.so",
		getenv("FAKE_CUDA"));
	dl_found = path;
	load(s, 1);
	assert_int_equal(sw_back_cuda.open(NULL, 0, &b, why), 0);
	assert_int_equal(s->fake[0]->n_streams, SW_BACK_WAYS);
	sw_back_cuda.close(b);
	assert_int_equal(scene_close(state), 0);
	scene_open(state);
	s = *state;
	assert_int_equal(sw_back_cuda.open(NULL, 0, &b, why), 0);
	dl_found = NULL;
	load(s, 2);
	assert_int_equal(s->fake[1]->n_streams, SW_BACK_WAYS);
	sw_back_cuda.close(b);
}

/* Opening a device does not change the current device of any thread. */
static void device__has_a_number(void **state)
{
	struct scene *s = *state;
	struct sw_back *b;
	char why[SW_BACK_WHY];

	load(s, 2);
	assert_int_equal(sw_back_cuda.open(NULL, 2, &b, why), SW_EINVAL);
	assert_contains(why, "device 2 does not exist: there are 2, 0 to 1");
	assert_int_equal(sw_back_cuda.open(NULL, 1, &b, why), 0);
	assert_int_equal(s->fake[1]->current, 0);
	sw_back_cuda.close(b);
	assert_int_equal(sw_back_cuda.open(NULL, -1, &b, why), 0);
	assert_int_equal(s->fake[1]->current, 0);
	assert_int_equal(sw_back_cuda.enter(b, why), 0);
	sw_back_cuda.close(b);
}

/* NULL is the device's default stream for any current device of the caller,
 * which stays unchanged. */
static void record__of_the_default_stream(void **state)
{
	struct scene *s = *state;
	struct sw_back *b;
	char why[SW_BACK_WHY];
	void *event;

	load(s, 2);
	assert_int_equal(sw_back_cuda.open(NULL, 1, &b, why), 0);
	assert_int_equal(sw_back_cuda.event_open(b, &event, why), 0);
	assert_int_equal(sw_back_cuda.record(b, event, NULL, why), 0);
	assert_int_equal(s->fake[1]->current, 0);
	sw_back_cuda.event_close(b, event);
	sw_back_cuda.close(b);
}

/* Make a /sys in which device 0 is near node 1. */
static void make_sys(char *sys)
{
	char command[256];

	snprintf(command, sizeof(command),
		"mkdir -p %s/bus/pci/devices/0000:3b:00.0 && "
		"echo 1 >%s/bus/pci/devices/0000:3b:00.0/numa_node",
		sys, sys);
	assert_int_equal(system(command), 0);
}

static void device__has_a_node(void **state)
{
	struct scene *s = *state;
	struct sw_cuda c;
	char sys[] = "/tmp/sw-unit-XXXXXX", path[64], why[SW_BACK_WHY];

	load(s, 2);
	assert_non_null(mkdtemp(sys));
	make_sys(sys);
	assert_int_equal(sw_cuda_load(&c, why), 0);
	assert_int_equal(sw_cuda_node(&c, 0, sys), 1);
	/* device 1 does not exist */
	assert_int_equal(sw_cuda_node(&c, 1, sys), -1);
	s->fake[1]->has_no_bus = 1;
	assert_int_equal(sw_cuda_node(&c, 0, sys), -1);
	assert_int_equal(s->fake[1]->error, 0);
	sw_cuda_unload(&c);
	snprintf(path, sizeof(path), "rm -r %s", sys);
	assert_int_equal(system(path), 0);
}

/* Results of two batches share a page. Each batch pins only pages that the
 * other has not pinned, and a copy across both is split into two. */
static void pin__of_pages_that_are_pinned(void **state)
{
	enum { PAGE = 4096 };
	struct scene *s = *state;
	char *at = aligned_alloc(PAGE, 6 * PAGE);
	char back[6 * PAGE] = {0};
	struct sw_rows in = {
		.to = back, .from = at, .bytes = sizeof(back), .n = 1};
	struct sw_back *b, *other;
	char why[SW_BACK_WHY];
	void *event;

	load(s, 2);
	for (uint32_t i = 0; i < sizeof(back); i++)
		at[i] = (char)(i * 7 + i / 251);
	assert_int_equal(sw_back_cuda.open(NULL, 0, &b, why), 0);
	assert_int_equal(sw_back_cuda.open(NULL, 1, &other, why), 0);
	assert_int_equal(sw_back_cuda.event_open(b, &event, why), 0);
	assert_int_equal(
		sw_back_cuda.pin(b, at + PAGE, 2 * PAGE, true, why), 0);
	assert_int_equal(sw_back_cuda.pin(b, at, 5 * PAGE, true, why), 0);
	assert_int_equal(
		sw_back_cuda.pin(b, at + 2 * PAGE, 3 * PAGE, true, why), 0);
	assert_int_equal(s->fake[1]->n_pinned, 3);
	/* pinned by another device of this process */
	assert_int_equal(
		sw_back_cuda.pin(other, at + PAGE, 2 * PAGE, true, why), 0);
	assert_int_equal(s->fake[1]->n_pinned, 3);
	assert_int_equal(sw_back_cuda.copy(b, SW_BACK_IN, &in, event, why), 0);
	while (sw_back_cuda.poll(b, event, why))
		;
	assert_memory_equal(back, at, sizeof(back));
	/* the last part is not pinned */
	assert_int_equal(s->fake[1]->n_copies[0], 4);
	sw_back_cuda.unpin(other, at + PAGE);
	assert_int_equal(s->fake[1]->n_pinned, 3);
	sw_back_cuda.unpin(b, at + PAGE);
	assert_int_equal(s->fake[1]->n_pinned, 2);
	sw_back_cuda.unpin(b, at);
	sw_back_cuda.unpin(b, at + 2 * PAGE);
	assert_int_equal(s->fake[1]->n_pinned, 0);
	sw_back_cuda.event_close(b, event);
	sw_back_cuda.close(other);
	sw_back_cuda.close(b);
	free(at);
}

static void pin__is_refused(void **state)
{
	struct scene *s = *state;
	struct sw_back *b;
	char why[SW_BACK_WHY];
	void *page = aligned_alloc(4096, 4096);

	load(s, 2);
	assert_int_equal(sw_back_cuda.open(NULL, 0, &b, why), 0);
	assert_int_equal(sw_back_cuda.pin(b, page, 4096, true, why), 0);
	assert_int_equal(s->fake[1]->pin_flags, 1 | 2 | 8);
	sw_back_cuda.unpin(b, page);
	s->fake[1]->pin_error = FAKE_MEMORY;
	assert_int_equal(
		sw_back_cuda.pin(b, page, 4096, false, why), SW_ENOMEM);
	ASSERT_TEXT(why, "cudaHostRegister: out of memory (2)");
	/* the program's own error is not cleared */
	assert_int_equal(s->fake[1]->error, 0);
	sw_back_cuda.close(b);
	free(page);
}

static void check_hold(struct scene *s, uint32_t n_waits, const char *why_not)
{
	struct rig *r = open_rig();
	struct fake *f = s->fake[1];
	uint32_t t = rig_add(r, MIB, 0);
	char why[SW_PIPELINE_WHY];

	r->is_stuck = n_waits > 0;
	r->is_stuck_until_said = !n_waits;
	rig_submit(r, t);
	assert_int_equal(
		sw_pipeline_hold(&r->l, &r->t[t], NULL, RIG_UNTIL, why), 0);
	r->is_stuck = false;
	rig_wait(r, t);
	assert_int_equal(f->n_waits, n_waits);
	if (n_waits) {
		assert_int_equal(f->wait_at, (uintptr_t)r->t[t].word);
		assert_int_equal(f->wait_value, 1);
		assert_int_equal(f->wait_flags, 0);
		assert_int_equal(r->n_lines, 0);
	} else {
		assert_contains(r->line, why_not);
	}
	rig_close(r);
}

static void hold__by_wait_value(void **state)
{
	struct scene *s = *state;

	load(s, 2);
	unsetenv("CUDA_MODULE_LOADING");
	check_hold(s, 0, "CUDA_MODULE_LOADING is not EAGER");
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	check_hold(s, 1, NULL);
	s->fake[1]->n_waits = 0;
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
	check_hold(s, 0, "CUDA_DEVICE_MAX_CONNECTIONS is 1");
	unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
	s->fake[1]->has_no_wait_value = 1;
	check_hold(s, 0, "the driver has no cuStreamWaitValue32");
	s->fake[1]->has_no_wait_value = 0;
	s->fake[1]->pin_error = FAKE_MEMORY;
	check_hold(s, 0, "not pinned");
}

/* Open a pipeline over runtime 13 with tensor @t. */
static struct rig *open_with_one(struct scene *s, uint32_t *t)
{
	struct rig *r;

	load(s, 2);
	r = open_rig();
	*t = rig_add(r, MIB, 0);
	return r;
}

/* A submit with a captured or an invalid stream fails without harm to the
 * device. */
static void submit__refuses(void **state)
{
	struct scene *s = *state;
	struct rig *r;
	uint32_t t;
	char why[SW_PIPELINE_WHY];

	r = open_with_one(s, &t);
	s->fake[1]->capture = 1;
	assert_int_equal(rig_submit_on(r, t, NULL, why), SW_EINVAL);
	assert_contains(why, "tensor 't0': its stream is being captured into a "
			     "CUDA graph");
	s->fake[1]->capture = 0;
	s->fake[1]->is_capture_error = 1;
	assert_int_equal(rig_submit_on(r, t, NULL, why), SW_EINVAL);
	assert_contains(why, "captured");
	s->fake[1]->is_capture_error = 0;
	assert_int_equal(rig_submit_on(r, t, (void *)1, why), SW_EINVAL);
	assert_contains(why, "cudaEventRecord: an error (400)");
	rig_fill(r, t, 4);
	rig_submit(r, t);
	rig_wait(r, t);
	rig_check(r, t, 4);
	assert_int_equal(r->n_given_up, 0);
	rig_close(r);
}

/* A captured graph would wait only once, at its capture. A graph may read a
 * tensor whose call has ended. */
static void hold__refuses_a_graph(void **state)
{
	struct scene *s = *state;
	struct rig *r;
	uint32_t t;
	char why[SW_PIPELINE_WHY];

	r = open_with_one(s, &t);
	r->is_stuck = true;
	rig_submit(r, t);
	s->fake[1]->capture = 1;
	assert_int_equal(
		sw_pipeline_hold(&r->l, &r->t[t], NULL, RIG_UNTIL, why),
		SW_EPERM);
	assert_contains(why, "tensor 't0': its stream is being captured into a "
			     "CUDA graph");
	r->is_stuck = false;
	rig_wait(r, t);
	assert_int_equal(
		sw_pipeline_hold(&r->l, &r->t[t], NULL, RIG_UNTIL, why), 0);
	assert_int_equal(s->fake[1]->n_waits, 0);
	assert_int_equal(r->n_lines, 0);
	rig_close(r);
}

/* While any thread captures a foreign graph, all calls continue to work and do
 * not spoil the graph. */
static void graph__of_others(void **state)
{
	struct scene *s = *state;
	struct fake *f;
	struct rig *r;
	void *p, *page = aligned_alloc(4096, 4096);
	char why[SW_PIPELINE_WHY];

	load(s, 2);
	f = s->fake[1];
	r = open_rig();
	f->is_capturing_elsewhere = 1;
	check_exact(r);
	assert_int_equal(sw_back_cuda.pin(r->back, page, 4096, true, why), 0);
	sw_back_cuda.unpin(r->back, page);
	assert_int_equal(sw_back_cuda.alloc(r->back, 4096, &p, why), 0);
	assert_int_equal(sw_back_cuda.move(r->back, p, page, 4096, why), 0);
	sw_back_cuda.release(r->back, p);
	assert_int_equal(rig_submit_on(r, 0, (void *)1, why), SW_EINVAL);
	/* the pipeline's thread is in relaxed mode */
	assert_int_equal(f->n_relaxed, 1);
	assert_int_equal(r->n_given_up, 0);
	rig_close(r);
	assert_int_equal(f->n_spoiled, 0);
	f->is_capturing_elsewhere = 0;
	free(page);
}

/* The loss is found by a copy or by a caller. */
static void device__is_lost(void **state)
{
	struct scene *s = *state;

	for (uint32_t i = 0; i < 2; i++) {
		struct rig *r;
		uint32_t t;
		char why[SW_PIPELINE_WHY];

		load(s, 2);
		s->fake[1]->lost_after = 5;
		r = open_rig();
		t = rig_add(r, MIB, 0);
		s->fake[1]->is_lost = i;
		if (i)
			assert_int_equal(
				rig_submit_on(r, t, NULL, why), SW_EDEVICE);
		else
			rig_submit(r, t);
		while (!rig_has_given_up(r))
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		assert_int_equal(rig_submit_on(r, t, NULL, why), SW_EDEVICE);
		assert_contains(why, "unspecified launch failure (719)");
		rig_stop(r);
		assert_int_equal(r->n_given_up, 1);
		rig_close(r);
		assert_int_equal(scene_close(state), 0);
		scene_open(state);
		s = *state;
	}
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, scene_open, scene_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(cuda__is_exact),
		CASE(copy__of_rows),
		CASE(runtime__is_missing),
		CASE(driver__is_missing_or_old),
		CASE(runtime__of_two),
		CASE(runtime__that_is_loaded),
		CASE(device__has_a_number),
		CASE(record__of_the_default_stream),
		CASE(device__has_a_node),
		CASE(pin__of_pages_that_are_pinned),
		CASE(pin__is_refused),
		CASE(hold__by_wait_value),
		CASE(submit__refuses),
		CASE(hold__refuses_a_graph),
		CASE(graph__of_others),
		CASE(device__is_lost),
	};

	/* otherwise no stream can wait */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);

	return cmocka_run_group_tests(tests, NULL, NULL);
}
