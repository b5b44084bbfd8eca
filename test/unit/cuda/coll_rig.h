/* coll_rig.h - a client of the toy agent: a device, and a group of all ranks.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_CUDA_COLL_RIG_H
#define SW_TEST_UNIT_CUDA_COLL_RIG_H

#include "test/unit/host/host_rig.h"

#include <string.h>
#include <time.h>

#include "pmd/cuda/device_int.h"
#include "pmd/cuda/fake.h"
#include "test/support/unit.h"

enum { COLL_BYTES = 12 << 20 }; /* bytes of each buffer */

struct scene {
	struct rig *r;
	struct sw_client *c;
	struct sw_device *d;
	struct sw_group *g;
	char *send, *recv; /* both are device memory */
	char line[640];    /* the last line of the log */
	uint32_t n_lines;
	_Atomic bool is_made;    /* a stream has computed the tensor */
	bool is_mute_until_said; /* the agent is mute until a line is logged */
};

static inline void keep_line(void *ctx, const char *line)
{
	struct scene *s = ctx;

	if (!strstr(line, " device"))
		return; /* a line of the agent */
	snprintf(s->line, sizeof(s->line), "%s", line);
	s->n_lines++;
	if (s->is_mute_until_said) {
		atomic_store(&s->r->is_mute, false);
		rig_kick(s->r);
	}
}

static inline int scene_open(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct sw_settings settings;

	s->r = rig_open(&(struct rig_how){.quota_bytes = 1ULL << 30});
	settings = rig_settings(s->r);
	settings.log = keep_line;
	settings.log_ctx = s;
	assert_int_equal(sw_open(&settings, &s->c), 0);
	assert_int_equal(sw_group_open(s->c, "all", NULL, 0, &s->g), 0);
	s->send = malloc(COLL_BYTES);
	s->recv = malloc(COLL_BYTES);
	*state = s;
	return 0;
}

static inline int scene_close(void **state)
{
	struct scene *s = *state;

	sw_device_close(&s->d);
	sw_close(&s->c);
	rig_close(s->r);
	free(s->send);
	free(s->recv);
	free(s);
	return 0;
}

static inline void open_device_with(
	struct scene *s, const char *backend, uint64_t piece_bytes)
{
	struct sw_device_settings d = SW_DEVICE_SETTINGS_INIT;

	d.backend = backend;
	d.piece_bytes = piece_bytes;
	d.number = 0;
	if (sw_device_open(s->c, &d, &s->d))
		fail_msg("sw_device_open: %s", sw_last_error(s->c));
}

static inline void open_device(struct scene *s, const char *backend)
{
	open_device_with(s, backend, 0);
}

static inline struct sw_coll_args args_of(
	const struct scene *s, enum sw_coll_kind kind, uint64_t count)
{
	struct sw_coll_args a = SW_COLL_ARGS_INIT;

	a.kind = kind;
	a.count = count;
	a.root = RIG_RANK;
	a.send = s->send;
	a.recv = s->recv;
	return a;
}

static inline uint64_t bytes_in(const struct sw_coll_args *a)
{
	return a->count * sw_dtype_bytes(a->dtype) *
	       (a->kind == SW_REDUCE_SCATTER ? RIG_SIZE : 1);
}

static inline uint64_t bytes_out(const struct sw_coll_args *a)
{
	return a->count * sw_dtype_bytes(a->dtype) *
	       (a->kind == SW_ALL_GATHER ? RIG_SIZE : 1);
}

static inline char given(uint64_t i, uint32_t salt)
{
	return (char)(i * 7 + i / 4099 + salt);
}

/* Fill the buffers; 64 bytes after the result must stay unchanged. */
static inline void coll_fill(
	struct scene *s, const struct sw_coll_args *a, uint32_t salt)
{
	assert_in_range(bytes_in(a), 1, COLL_BYTES);
	assert_in_range(bytes_out(a), 1, COLL_BYTES - 64);
	for (uint64_t i = 0; i < bytes_in(a); i++)
		s->send[i] = given(i, salt);
	memset(s->recv, 0x55, bytes_out(a) + 64);
}

/* Check the result that the toy agent computes. */
static inline void coll_check(
	const struct scene *s, const struct sw_coll_args *a, uint32_t salt)
{
	uint64_t part = a->count * sw_dtype_bytes(a->dtype);
	uint64_t from = a->kind == SW_REDUCE_SCATTER ? RIG_RANK * part : 0;

	for (uint64_t i = 0; i < bytes_out(a) + 64; i++) {
		char want =
			i < bytes_out(a) ? given(from + i % part, salt) : 0x55;

		if (s->recv[i] != want)
			fail_msg("%s of %llu elements of %s: byte %llu is %d, "
				 "not %d",
				sw_coll_name(a->kind),
				(unsigned long long)a->count,
				sw_dtype_name(a->dtype), (unsigned long long)i,
				s->recv[i], want);
	}
}

static inline uint64_t coll_start(
	struct scene *s, const struct sw_coll_args *a, void *stream)
{
	uint64_t h = 0;

	if (sw_coll_device(s->d, s->g, a, stream, &h))
		fail_msg("sw_coll_device: %s", sw_last_error(s->c));
	return h;
}

static inline void coll_wait(struct scene *s, uint64_t h)
{
	if (sw_wait(s->c, h))
		fail_msg("sw_wait: %s", sw_last_error(s->c));
}

static inline void coll_run(
	struct scene *s, const struct sw_coll_args *a, uint32_t salt)
{
	coll_fill(s, a, salt);
	coll_wait(s, coll_start(s, a, NULL));
	coll_check(s, a, salt);
}

#endif
