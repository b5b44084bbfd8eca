/* unit_device.c - sw_device_* over the back end "fake" and a toy agent.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_rig.h"

#include <string.h>
#include <sys/wait.h>

#include "pmd/cuda/device_int.h"
#include "test/support/unit.h"

enum { KIB = 1024, MIB = 1024 * KIB };

struct scene {
	struct rig *r;
	struct sw_client *c;
	struct sw_device *d;
	char line[640]; /* the last line of the log */
	uint32_t n_lines;
};

static void keep_line(void *ctx, const char *line)
{
	struct scene *s = ctx;

	if (!strstr(line, "fake device"))
		return; /* a line of the agent */
	snprintf(s->line, sizeof(s->line), "%s", line);
	s->n_lines++;
}

static int open_with(void **state, bool is_mute)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct sw_settings settings;

	s->r = rig_open(&(struct rig_how){
		.quota_bytes = 1ULL << 30, .is_mute = is_mute});
	settings = rig_settings(s->r);
	settings.log = keep_line;
	settings.log_ctx = s;
	assert_int_equal(sw_open(&settings, &s->c), 0);
	*state = s;
	return 0;
}

static int scene_open(void **state)
{
	return open_with(state, false);
}

/* Open a scene whose agent completes no push_pull. */
static int scene_open_mute(void **state)
{
	return open_with(state, true);
}

static int scene_close(void **state)
{
	struct scene *s = *state;

	sw_device_close(&s->d);
	sw_close(&s->c);
	rig_close(s->r);
	free(s);
	return 0;
}

static void open_device(
	struct scene *s, const char *backend, uint64_t piece_bytes)
{
	struct sw_device_settings d = SW_DEVICE_SETTINGS_INIT;

	d.backend = backend;
	d.piece_bytes = piece_bytes;
	d.number = 0;
	if (sw_device_open(s->c, &d, &s->d))
		fail_msg("sw_device_open: %s", sw_last_error(s->c));
}

static struct sw_device_tensor *declare(
	struct scene *s, const char *name, uint64_t n)
{
	struct sw_tensor_desc d = RIG_DESC(name, n, SW_F32, 0);
	struct sw_device_tensor *t;

	if (sw_device_declare(s->d, &d, 1, &t))
		fail_msg("sw_device_declare: %s", sw_last_error(s->c));
	return t;
}

static int push(struct sw_device_tensor *t, float *from, float *to)
{
	struct sw_device_call call = SW_DEVICE_CALL_INIT;

	call.from = from;
	call.to = to;
	return sw_push_pull_device(t, &call);
}

static void sum_and_check(
	struct scene *s, struct sw_device_tensor *t, uint64_t n)
{
	float *from = malloc(n * sizeof(*from)), *to = calloc(n, sizeof(*to));

	for (uint64_t i = 0; i < n; i++)
		from[i] = (float)(i % 5003);
	assert_int_equal(push(t, from, to), 0);
	if (sw_device_wait(t))
		fail_msg("sw_device_wait: %s", sw_last_error(s->c));
	for (uint64_t i = 0; i < n; i++) {
		if (to[i] != 2 * (float)(i % 5003))
			fail_msg("element %llu is %f", (unsigned long long)i,
				(double)to[i]);
		if (from[i] != (float)(i % 5003))
			fail_msg("the tensor was written");
	}
	free(from);
	free(to);
}

/* Sizes around a multiple of the piece, for two piece sizes and the default
 * one. */
static void push_pull__is_exact(void **state)
{
	static const uint64_t pieces[] = {0, 4096, 64 * KIB};
	struct scene *s = *state;

	for (uint32_t i = 0; i < 3; i++) {
		char name[32];

		open_device(s, "fake:gbit=100", pieces[i]);
		for (uint32_t k = 0; k < 3; k++) {
			uint64_t n = 256 * KIB / 4 * 2 + k - 1;
			struct sw_device_tensor *t;

			snprintf(name, sizeof(name), "t%u.%u", i, k);
			t = declare(s, name, n);
			sum_and_check(s, t, n);
			sum_and_check(s, t, n);
		}
		sw_device_close(&s->d);
	}
	assert_int_equal(s->n_lines, 0);
}

/* A tensor of any size is declared once, under its own name. */
static void declare__keeps_names(void **state)
{
	struct scene *s = *state;
	struct sw_tensor_desc d = RIG_DESC("large", 4, SW_F32, 0);
	struct sw_tensor *t;

	open_device(s, "fake", 4096);
	declare(s, "large", 5 * MIB);
	assert_int_not_equal(sw_declare(s->c, &d, 1, &t), 0);
	d.name = "large#0";
	assert_int_equal(sw_declare(s->c, &d, 1, &t), 0);
}

enum { MANY = 200 };

static void declare_many(struct scene *s, const char *name)
{
	char full[32];
	struct sw_tensor_desc d = RIG_DESC(full, 1, SW_F32, SW_PRIORITY_BY_USE);
	struct sw_device_tensor *t;

	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(full, sizeof(full), "%s%u", name, i);
		assert_int_equal(sw_device_declare(s->d, &d, 1, &t), 0);
	}
}

static void *declare_others(void *arg)
{
	declare_many(arg, "other");
	return NULL;
}

/* Concurrent declarations give each tensor a priority of its own; all are found
 * at the end. */
static void declare__of_two_threads(void **state)
{
	struct scene *s = *state;
	bool is_seen[2 * MANY] = {false};
	pthread_t thread;
	uint32_t n = 0;

	open_device(s, "fake:no_pin", 0);
	pthread_create(&thread, NULL, declare_others, s);
	declare_many(s, "one");
	pthread_join(thread, NULL);
	for (const struct sw_device_batch *b = s->d->batches; b; b = b->next) {
		assert_in_range(b->tensors[0].t.priority, 0, 2 * MANY - 1);
		is_seen[b->tensors[0].t.priority] = true;
	}
	while (n < 2 * MANY && is_seen[n])
		n++;
	assert_int_equal(n, 2 * MANY);
	/* the warning that memory is not pinned */
	assert_int_equal(s->n_lines, 1);
}

static void check_refused(
	struct scene *s, struct sw_tensor_desc d, const char *text)
{
	struct sw_device_tensor *t;

	assert_int_equal(sw_device_declare(s->d, &d, 1, &t), SW_EINVAL);
	assert_contains(sw_last_error(s->c), text);
}

static void declare__refuses(void **state)
{
	struct scene *s = *state;
	struct sw_device_tensor *t;
	struct sw_tensor_desc d = RIG_DESC("a", 1, SW_F32, 0), bad = d;
	char name[200];

	open_device(s, "fake", 4096);
	memset(name, 'x', sizeof(name));
	name[128] = 0;
	bad.name = name;
	check_refused(s, bad, "1 to 127");
	bad.name = NULL;
	check_refused(s, bad, "1 to 127");
	bad = d;
	bad.is_async = 1;
	check_refused(s, bad, "is_async is 0");
	bad = d;
	bad.dtype = 99;
	check_refused(s, bad, "unknown dtype code 99");
	bad = d;
	bad.n_elems = 0;
	check_refused(s, bad, "elements");
	bad.n_elems = UINT64_MAX;
	check_refused(s, bad, "elements");
	bad = d;
	bad.size = 3;
	check_refused(s, bad, "size");
	assert_int_equal(sw_device_declare(s->d, &d, 0, &t), SW_EINVAL);
	declare(s, "a", 1); /* none of the refused declarations left anything */
}

static void open__refuses(void **state)
{
	struct scene *s = *state;
	struct sw_device_settings d = SW_DEVICE_SETTINGS_INIT;

	d.backend = "rocm";
	assert_int_equal(sw_device_open(s->c, &d, &s->d), SW_EINVAL);
	assert_contains(sw_last_error(s->c), "'cuda' or 'fake'");
	d.backend = "fake:gbit=fast";
	assert_int_equal(sw_device_open(s->c, &d, &s->d), SW_EINVAL);
	assert_contains(sw_last_error(s->c), "no option 'gbit=fast'");
	d.backend = "cuda:fast";
	assert_int_equal(sw_device_open(s->c, &d, &s->d), SW_EINVAL);
	d.backend = "fake";
	d.piece_bytes = 5000;
	assert_int_equal(sw_device_open(s->c, &d, &s->d), SW_EINVAL);
	assert_contains(sw_last_error(s->c), "multiple of 4,096");
	setenv("SUMWIRE_DEVICE", "fake:no_such", 1);
	assert_int_equal(sw_device_open(s->c, NULL, &s->d), SW_EINVAL);
	assert_contains(sw_last_error(s->c), "no_such");
	setenv("SUMWIRE_DEVICE", "fake", 1);
	assert_int_equal(sw_device_open(s->c, NULL, &s->d), 0);
	unsetenv("SUMWIRE_DEVICE");
	assert_null(strstr(s->line, "pinned"));
}

static void call__refuses(void **state)
{
	struct scene *s = *state;
	struct sw_device_call call = SW_DEVICE_CALL_INIT;
	struct sw_device_tensor *t;
	float x[4] = {1, 2, 3, 4};

	open_device(s, "fake", 0);
	t = declare(s, "t", 4);
	assert_int_equal(sw_device_wait(t), 0);
	assert_int_equal(sw_push_pull_device(t, &call), SW_EINVAL);
	assert_int_equal(push(t, NULL, x), SW_EINVAL);
	call.to = x;
	call.root = RIG_SIZE;
	assert_int_equal(sw_broadcast_device(t, &call), SW_EINVAL);
	assert_contains(sw_last_error(s->c), "ranks are 0 to 3");
	call.root = RIG_RANK;
	assert_int_equal(sw_broadcast_device(t, &call), SW_EINVAL);
	assert_contains(sw_last_error(s->c), "nothing to broadcast");
	call.size = 8;
	assert_int_equal(sw_push_pull_device(t, &call), SW_EINVAL);
	sum_and_check(s, t, 4);
}

/* Copies also work without pinned memory; one line is logged. */
static void device__is_not_pinned(void **state)
{
	struct scene *s = *state;

	open_device(s, "fake:no_pin", 64 * KIB);
	sum_and_check(s, declare(s, "a", MIB / 4), MIB / 4);
	sum_and_check(s, declare(s, "b", MIB / 4), MIB / 4);
	assert_int_equal(s->n_lines, 1);
	assert_contains(s->line, "rank 3: fake device 0: shared memory cannot "
				 "be pinned (pinning is switched off)");
}

/* The agent, and through it the job's other ranks, learns why the client
 * ended. */
static void device__lost(void **state)
{
	struct scene *s = *state;
	struct sw_device_tensor *t;
	float *x = calloc(MIB / 4, sizeof(*x));
	uint64_t h;

	open_device(s, "fake:lost_after=5", 64 * KIB);
	t = declare(s, "t", MIB / 4);
	assert_int_equal(push(t, x, x), 0);
	assert_int_equal(sw_device_wait(t), SW_EDEVICE);
	assert_contains(sw_last_error(s->c), "rank 3: fake device 0: ");
	rig_await(s->r, 1, SW_HOST_DIED,
		"fake device 0: device lost by option lost_after");
	/* all other calls of this client fail with the same error */
	assert_int_equal(push(t, x, x), SW_EDEVICE);
	assert_int_equal(sw_push_pull(s->c, NULL, 0, &h), SW_EDEVICE);
	assert_contains(sw_last_error(s->c), "rank 3: fake device 0: ");
	sw_device_close(&s->d);
	free(x);
}

/* The agent ends while calls are open. */
static void agent__goes(void **state)
{
	struct scene *s = *state;
	struct sw_device_tensor *t;
	float *x = calloc(MIB / 4, sizeof(*x));

	open_device(s, "fake", 64 * KIB);
	t = declare(s, "t", MIB / 4);
	assert_int_equal(push(t, x, x), 0);
	assert_int_equal(sw_device_poll(t), SW_EAGAIN);
	assert_int_equal(push(t, x, x), SW_EBUSY);
	atomic_store(&s->r->end_err, SW_ESERVER);
	assert_int_equal(sw_device_wait(t), SW_ESERVER);
	assert_contains(sw_last_error(s->c), "server 2 is silent");
	assert_int_equal(push(t, x, x), SW_ESERVER);
	sw_device_close(&s->d);
	free(x);
}

static void ended_well(pid_t pid)
{
	int code;

	assert_int_equal(waitpid(pid, &code, 0), pid);
	assert_int_equal(code, 0);
}

/* A forked child has no device and gets an error. */
static void child__has_none(void **state)
{
	struct scene *s = *state;
	struct sw_device_tensor *t;
	float x[4] = {0};
	bool is_closed;
	pid_t pid;

	open_device(s, "fake", 0);
	t = declare(s, "t", 4);
	pid = fork();
	if (!pid) {
		is_closed = push(t, x, x) == SW_ECLOSED;
		sw_device_close(&s->d);
		_exit(is_closed && !s->d ? 0 : 1);
	}
	ended_well(pid);
	sum_and_check(s, t, 4);
}

/* A forked child ends the calls that were open at the fork, without waiting. */
static void child__waits_for_nothing(void **state)
{
	struct scene *s = *state;
	struct sw_device_tensor *t;
	static float x[4]; /* the device reads it even after the test */
	pid_t pid;

	open_device(s, "fake", 0);
	t = declare(s, "t", 4);
	assert_int_equal(push(t, x, x), 0);
	pid = fork();
	if (!pid)
		_exit(sw_device_poll(t) == SW_ECLOSED &&
					sw_device_wait(t) == SW_ECLOSED &&
					sw_device_hold(t, NULL) == SW_ECLOSED
				? 0
				: 1);
	ended_well(pid);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, scene_open, scene_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(push_pull__is_exact),
		CASE(declare__keeps_names),
		CASE(declare__of_two_threads),
		CASE(declare__refuses),
		CASE(open__refuses),
		CASE(call__refuses),
		CASE(device__is_not_pinned),
		CASE(device__lost),
		cmocka_unit_test_setup_teardown(
			agent__goes, scene_open_mute, scene_close),
		CASE(child__has_none),
		cmocka_unit_test_setup_teardown(
			child__waits_for_nothing, scene_open_mute, scene_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
