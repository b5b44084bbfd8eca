/* unit_coll_args.c - libsumwire: invalid arguments of groups and collectives.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_rig.h"

#include <string.h>

#include <sumwire/coll.h>

#include "engine/wire/coll.h"

/* The toy agent makes this process rank 3 of 4. */
enum { RANKS = 4, BYTES = 4096 };

struct scene {
	struct rig *r;
	struct sw_client *c;
	struct sw_group *g; /* the group of all ranks */
	char *mem;          /* BYTES of memory */
};

static int scene_open(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	void *mem;

	s->r = rig_open(&(struct rig_how){.quota_bytes = 32 << 20});
	s->c = rig_client(s->r);
	assert_int_equal(sw_alloc(s->c, BYTES, &mem), 0);
	s->mem = mem;
	assert_int_equal(sw_group_open(s->c, "all", NULL, 0, &s->g), 0);
	*state = s;
	return 0;
}

static int scene_close(void **state)
{
	struct scene *s = *state;

	sw_close(&s->c);
	rig_await(s->r, 1, SW_HOST_CLOSED, "");
	rig_close(s->r);
	free(s);
	return 0;
}

static void fails(const struct scene *s, int err, int want, const char *text)
{
	assert_int_equal(err, want);
	if (!strstr(sw_last_error(s->c), text))
		fail_msg("last error: %s", sw_last_error(s->c));
}

/* --- memory --- */

static void alloc__zeroed_and_aligned(void **state)
{
	struct scene *s = *state;
	static const size_t sizes[] = {1, 63, 64, 65, 100000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *p;
		char *bytes;

		assert_int_equal(sw_alloc(s->c, sizes[i], &p), 0);
		assert_int_equal((uintptr_t)p % 64, 0);
		bytes = p;
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(bytes[k], 0);
		memset(bytes, 1, sizes[i]);
	}
}

static void alloc__bad_sizes(void **state)
{
	struct scene *s = *state;
	void *p = s;

	fails(s, sw_alloc(s->c, 0, &p), SW_EINVAL, "sw_alloc of 0 bytes");
	fails(s, sw_alloc(s->c, (64ULL << 30) + 1, &p), SW_EINVAL,
		"1 byte to 64 GiB");
	fails(s, sw_alloc(s->c, SIZE_MAX, &p), SW_EINVAL, "1 byte to 64 GiB");
	fails(s, sw_alloc(s->c, 64 << 20, &p), SW_ENOMEM, "quota");
	assert_ptr_equal(p, s);
}

/* --- groups --- */

static void group__bad_names(void **state)
{
	struct scene *s = *state;
	struct sw_group *g = NULL;
	char name[102];

	memset(name, 'x', sizeof(name));
	name[101] = 0;
	fails(s, sw_group_open(s->c, NULL, NULL, 0, &g), SW_EINVAL,
		"1 to 100 bytes");
	fails(s, sw_group_open(s->c, "", NULL, 0, &g), SW_EINVAL,
		"1 to 100 bytes");
	fails(s, sw_group_open(s->c, name, NULL, 0, &g), SW_EINVAL,
		"1 to 100 bytes");
	assert_null(g);
	name[100] = 0;
	assert_int_equal(sw_group_open(s->c, name, NULL, 0, &g), 0);
}

static void group__bad_ranks(void **state)
{
	static const struct {
		uint32_t ranks[3], n;
		const char *text;
	} cases[] = {
		{{0, 1, 4}, 3, "rank 4 of the group is not one of the job"},
		{{UINT32_MAX}, 1, "rank 4294967295"},
		{{1, 1, 3}, 3, "rank 1 is in the group twice"},
		{{3, 0, 3}, 3, "rank 3 is in the group twice"},
		{{3}, 65473, "a group has at most 65472 ranks, not 65473"},
		{{0, 1, 2}, 3, "rank 3 is not in the group that it opens"},
		{{3}, 0, "rank 3 is not in the group that it opens"},
	};
	struct scene *s = *state;
	struct sw_group *g = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		fails(s,
			sw_group_open(
				s->c, "some", cases[i].ranks, cases[i].n, &g),
			SW_EINVAL, cases[i].text);
	assert_null(g);
}

/* --- collectives --- */

static struct sw_coll_args args_of(const struct scene *s)
{
	return (struct sw_coll_args){.size = sizeof(struct sw_coll_args),
		.kind = SW_ALL_REDUCE,
		.dtype = SW_F32,
		.count = BYTES / 4,
		.send = s->mem,
		.recv = s->mem};
}

static void refused(
	const struct scene *s, struct sw_coll_args a, const char *text)
{
	uint64_t h = 7;

	fails(s, sw_coll(s->g, &a, &h), SW_EINVAL, text);
	assert_int_equal(h, 7);
}

static void ends_well(
	const struct scene *s, struct sw_group *g, const struct sw_coll_args *a)
{
	uint64_t h;

	assert_int_equal(sw_coll(g, a, &h), 0);
	assert_int_equal(sw_wait(s->c, h), 0);
}

static void coll__bad_arguments(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s);

	a.kind = SW_COLL_NONE;
	refused(s, a, "group 'all': unknown collective 0");
	a.kind = SW_N_COLL_KINDS;
	refused(s, a, "unknown collective");
	a.kind = (enum sw_coll_kind)UINT32_MAX;
	refused(s, a, "unknown collective");
	a = args_of(s);
	a.dtype = (enum sw_dtype)100;
	refused(s, a, "dtype 100");
	a = args_of(s);
	a.count = 0;
	refused(s, a, "1 element to 64 GiB");
	a.count = (16ULL << 30) + 1;
	refused(s, a, "1 element to 64 GiB");
	a.count = 1ULL << 62;
	refused(s, a, "1 element to 64 GiB");
	a = args_of(s);
	a.root = RANKS; /* ignored, since an all_reduce has no root */
	a.kind = SW_BCAST;
	refused(s, a, "rank 4, the root, is not in it");
	a.kind = SW_REDUCE;
	a.root = UINT32_MAX;
	refused(s, a, "the root, is not in it");
}

/* This is rank 3 of 4. Buffers that are not in place must not overlap. */
static void coll__buffers_overlap(void **state)
{
	static const struct {
		enum sw_coll_kind kind;
		uint32_t send, recv; /* offsets in units of 4 elements */
		bool is_good;
	} cases[] = {{SW_ALL_REDUCE, 0, 0, true}, {SW_ALL_REDUCE, 1, 2, true},
		{SW_ALL_REDUCE, 2, 1, true}, {SW_ALL_GATHER, 3, 0, true},
		{SW_ALL_GATHER, 4, 0, true}, {SW_ALL_GATHER, 0, 1, true},
		{SW_ALL_GATHER, 0, 0, false}, {SW_ALL_GATHER, 2, 0, false},
		{SW_REDUCE_SCATTER, 0, 3, true},
		{SW_REDUCE_SCATTER, 0, 4, true},
		{SW_REDUCE_SCATTER, 0, 0, false},
		{SW_REDUCE_SCATTER, 0, 2, false}};
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s);

	a.count = 4;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		a.kind = cases[i].kind;
		a.send = s->mem + 16 * cases[i].send;
		a.recv = s->mem + 16 * cases[i].recv;
		if (cases[i].is_good)
			ends_well(s, s->g, &a);
		else
			refused(s, a, "overlap: they may be apart, or ");
	}
	a = args_of(s);
	a.count = 4;
	a.recv = s->mem + 4;
	refused(s, a,
		"group 'all': the buffers of all_reduce overlap: they may be "
		"apart, or the same");
	a.kind = SW_BCAST;
	a.root = 1; /* rank 3 is not the root, so its send buffer is unused */
	ends_well(s, s->g, &a);
}

/* libsumwire accepts the same operations for each type as the engine. */
static void coll__operations(void **state)
{
	const struct sw_sum *sum = sw_sum_best(SW_SUM_AVX512);
	struct scene *s = *state;

	for (uint32_t kind = SW_ALL_REDUCE; kind < SW_BARRIER; kind++)
		for (uint32_t op = 0; op <= SW_N_REDUCE_OPS; op++)
			for (uint32_t d = 0; d < SW_N_DTYPES; d++) {
				struct sw_coll_args a = args_of(s);
				bool has = sw_coll_has(sum, kind, op, d);
				uint64_t h;

				a.kind = (enum sw_coll_kind)kind;
				a.op = (enum sw_reduce_op)op;
				a.dtype = (enum sw_dtype)d;
				a.count = 1;
				if (kind == SW_ALL_GATHER ||
					kind == SW_REDUCE_SCATTER)
					a.recv = s->mem + BYTES / 2;
				if (!has) {
					refused(s, a, "group 'all': ");
					continue;
				}
				assert_int_equal(sw_coll(s->g, &a, &h), 0);
				assert_int_equal(sw_wait(s->c, h), 0);
			}
}

static void coll__no_such_operation(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s);

	a.op = SW_BOR;
	refused(s, a, "group 'all': all_reduce does not support bor of f32");
	a.op = SW_AVG;
	a.dtype = SW_BOOL;
	refused(s, a, "all_reduce does not support avg of bool");
	a.kind = SW_BCAST;
	refused(s, a, "broadcast does not support avg of bool");
}

/* The operation and its factor reach the agent. */
static void coll__factor(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s);

	a.op = SW_PREMUL_SUM;
	a.scale = -0.25;
	ends_well(s, s->g, &a);
	assert_int_equal(s->r->coll.op, SW_PREMUL_SUM);
	assert_true(s->r->coll.scale == -0.25);
}

static void coll__root_of_another_group(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s);
	uint32_t ranks[] = {1, 3};
	struct sw_group *g;
	uint64_t h;

	assert_int_equal(sw_group_open(s->c, "two", ranks, 2, &g), 0);
	a.kind = SW_BCAST;
	a.root = 2;
	fails(s, sw_coll(g, &a, &h), SW_EINVAL,
		"group 'two': rank 2, the root, is not in it");
	a.root = 1;
	ends_well(s, g, &a);
}

static void coll__no_memory(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s);

	a.send = NULL;
	refused(s, a, "group 'all': send is NULL");
	a = args_of(s);
	a.recv = NULL;
	refused(s, a, "group 'all': recv is NULL");
	a.kind = SW_REDUCE;
	a.root = 3;
	refused(s, a, "recv is NULL");
	a = args_of(s);
	a.kind = SW_BCAST;
	a.root = 3;
	a.send = NULL;
	refused(s, a, "send is NULL");
}

/* This is rank 3 of 4. */
static void coll__bad_parts(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s);
	char *m = s->mem;
	void *parts[RANKS] = {m, m + 32, m + 64, m + 96};

	a.count = 4;
	a.parts = parts;
	refused(s, a, "parts replace send of reduce_scatter or recv");
	a.kind = SW_ALL_GATHER;
	refused(s, a, "parts replace send of reduce_scatter or recv");
	a.recv = NULL;
	refused(s, a, "the buffers of all_gather overlap");
	a.send = m + 96; /* the rank's own part */
	ends_well(s, s->g, &a);
	a.send = m + 92;
	refused(s, a, "the buffers of all_gather overlap");
	a.send = m + 112;
	ends_well(s, s->g, &a);
	a.kind = SW_REDUCE_SCATTER;
	refused(s, a, "parts replace send of reduce_scatter or recv");
	a.send = NULL;
	a.recv = m + 20;
	refused(s, a, "the buffers of reduce_scatter overlap");
	a.recv = m + 96;
	ends_well(s, s->g, &a);
	parts[2] = NULL;
	refused(s, a, "group 'all': parts[2] is NULL");
	/* the size that an older program passes */
	a.size = offsetof(struct sw_coll_args, parts);
	refused(s, a, "send is NULL");
}

/* A rank that only sends or only receives needs no other buffer. */
static void coll__half(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s);

	a.kind = SW_REDUCE;
	a.recv = NULL;
	ends_well(s, s->g, &a);
	a = args_of(s);
	a.kind = SW_BCAST;
	a.send = NULL;
	ends_well(s, s->g, &a);
}

/* A handle can be waited for once, and returns the agent's result. */
static void coll__handles(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s);
	uint64_t h[3];

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(sw_coll(s->g, &a, &h[i]), 0);
	assert_true(h[0] != h[1] && h[1] != h[2]);
	for (uint32_t i = 3; i-- > 0;)
		assert_int_equal(sw_wait(s->c, h[i]), 0);
	assert_int_equal(sw_wait(s->c, h[0]), SW_EINVAL);
	assert_int_equal(sw_wait(s->c, h[2] ^ 1ULL << 40), SW_EINVAL);
	assert_int_equal(sw_wait(s->c, UINT64_MAX), SW_EINVAL);
}

/* Run a collective that the agent ends with @status. */
static void check_end(int status, const char *why)
{
	struct rig *r = rig_open(&(struct rig_how){.status = status});
	struct scene s = {.r = r, .c = rig_client(r)};
	struct sw_coll_args a;
	uint64_t h;
	void *mem;

	assert_int_equal(sw_alloc(s.c, BYTES, &mem), 0);
	assert_int_equal(sw_group_open(s.c, "all", NULL, 0, &s.g), 0);
	s.mem = mem;
	a = args_of(&s);
	assert_int_equal(sw_coll(s.g, &a, &h), 0);
	fails(&s, sw_wait(s.c, h), status, why);
	sw_close(&s.c);
	rig_close(r);
}

static void coll__members_differ(void **state)
{
	check_end(SW_EMISMATCH, "they differ");
}

/* The job has ended, and the agent's hang-up with the reason has not arrived
 * yet. */
static void coll__job_ended(void **state)
{
	check_end(SW_EPEER, "another member of the job");
}

static void coll__too_many(void **state)
{
	struct rig *r = rig_open(&(struct rig_how){.is_mute = true});
	struct scene s = {.r = r, .c = rig_client(r)};
	struct sw_coll_args a;
	uint64_t h;
	void *mem;

	assert_int_equal(sw_alloc(s.c, BYTES, &mem), 0);
	assert_int_equal(sw_group_open(s.c, "all", NULL, 0, &s.g), 0);
	s.mem = mem;
	a = args_of(&s);
	for (uint32_t i = 0; i < 1024; i++)
		assert_int_equal(sw_coll(s.g, &a, &h), 0);
	fails(&s, sw_coll(s.g, &a, &h), SW_EBUSY, "1024 collectives are open");
	sw_close(&s.c);
	rig_close(r);
}

/* After the agent has hung up, calls fail. */
static void coll__after_the_end(void **state)
{
	struct rig *r = rig_open(NULL);
	struct scene s = {.r = r, .c = rig_client(r)};
	struct sw_coll_args a;
	uint64_t h = 0;
	void *mem;

	assert_int_equal(sw_alloc(s.c, BYTES, &mem), 0);
	assert_int_equal(sw_group_open(s.c, "all", NULL, 0, &s.g), 0);
	s.mem = mem;
	a = args_of(&s);
	assert_int_equal(sw_coll(s.g, &a, &h), 0);
	assert_int_equal(sw_wait(s.c, h), 0);
	atomic_store(&r->end_err, SW_EPEER);
	while (!sw_coll(s.g, &a, &h))
		if (sw_wait(s.c, h))
			break;
	fails(&s, sw_coll(s.g, &a, &h), SW_EPEER, "server 2 is silent");
	fails(&s, sw_alloc(s.c, 1, &mem), SW_EPEER, "server 2 is silent");
	fails(&s, sw_group_open(s.c, "more", NULL, 0, &s.g), SW_EPEER,
		"server 2 is silent");
	sw_close(&s.c);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alloc__zeroed_and_aligned),
		cmocka_unit_test(alloc__bad_sizes),
		cmocka_unit_test(group__bad_names),
		cmocka_unit_test(group__bad_ranks),
		cmocka_unit_test(coll__bad_arguments),
		cmocka_unit_test(coll__buffers_overlap),
		cmocka_unit_test(coll__operations),
		cmocka_unit_test(coll__no_such_operation),
		cmocka_unit_test(coll__factor),
		cmocka_unit_test(coll__root_of_another_group),
		cmocka_unit_test(coll__no_memory),
		cmocka_unit_test(coll__bad_parts),
		cmocka_unit_test(coll__half),
		cmocka_unit_test(coll__handles),
		cmocka_unit_test(coll__members_differ),
		cmocka_unit_test(coll__job_ended),
		cmocka_unit_test(coll__too_many),
		cmocka_unit_test(coll__after_the_end),
	};

	return cmocka_run_group_tests(tests, scene_open, scene_close);
}
