/* vec.inc.h - vectors of VB bytes: types, loads, stores, and the loop.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "sum/level.h"

#define INLINE static inline __attribute__((always_inline))

enum { LINE = 64 };

typedef float vf __attribute__((vector_size(VB)));
typedef double vd __attribute__((vector_size(VB)));
typedef uint8_t v8 __attribute__((vector_size(VB)));
typedef uint32_t v32 __attribute__((vector_size(VB)));
typedef uint64_t v64 __attribute__((vector_size(VB)));

/* Unaligned, and exempt from aliasing rules; one move instruction each. */
#define ACCESS(name, type)                           \
	INLINE type name##_load(const uint8_t *p)    \
	{                                            \
		type v;                              \
                                                     \
		memcpy(&v, p, VB);                   \
		return v;                            \
	}                                            \
	INLINE void name##_store(uint8_t *p, type v) \
	{                                            \
		memcpy(p, &v, VB);                   \
	}

ACCESS(f32, vf)
ACCESS(f64, vd)
ACCESS(i8, v8)
ACCESS(i32, v32)
ACCESS(i64, v64)

/* One step of a kernel: @dst and @src point at the step's elements; @arg is the
 * kernel's own. */
typedef void step_fn(uint8_t *dst, const uint8_t *src, const void *arg);

/* Handle the last @n elements, fewer than a step's, in buffers as long as a
 * step, because a kernel must not access memory outside the caller's
 * elements. */
INLINE void walk_rest(uint8_t *d, const uint8_t *s, size_t n, size_t dst_bytes,
	size_t src_bytes, step_fn *step, const void *arg)
{
	uint8_t d_rest[VB] = {0}, s_rest[2 * VB] = {0};

	memcpy(d_rest, d, n * dst_bytes);
	memcpy(s_rest, s, n * src_bytes);
	step(d_rest, s_rest, arg);
	memcpy(d, d_rest, n * dst_bytes);
}

/* walk - apply @step to @n elements, @lanes at a time. A step reads all its
 * input before it writes, and never beyond its elements. */
INLINE void walk(void *dst, const void *src, size_t n, size_t lanes,
	size_t dst_bytes, size_t src_bytes, step_fn *step, const void *arg)
{
	size_t d_step = lanes * dst_bytes, s_step = lanes * src_bytes;
	uint8_t *d = dst;
	const uint8_t *s = src;

	for (; n >= 4 * lanes; n -= 4 * lanes) {
		step(d, s, arg);
		step(d + d_step, s + s_step, arg);
		step(d + 2 * d_step, s + 2 * s_step, arg);
		step(d + 3 * d_step, s + 3 * s_step, arg);
		d += 4 * d_step;
		s += 4 * s_step;
	}
	for (; n >= lanes; n -= lanes) {
		step(d, s, arg);
		d += d_step;
		s += s_step;
	}
	if (n)
		walk_rest(d, s, n, dst_bytes, src_bytes, step, arg);
}

INLINE void copy_step(uint8_t *d, const uint8_t *s, const void *arg)
{
	i8_store(d, i8_load(s));
}

/* Return for each f32 the bits of its rounding to bf16; the only NaN is the
 * canonical one. */
INLINE v32 bf16_bits(vf v)
{
	v32 u = (v32)v;

	return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
