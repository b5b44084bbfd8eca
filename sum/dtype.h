/* dtype.h - element types, with BytePS's codes.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SW_SUM_DTYPE_H
#define SW_SUM_DTYPE_H

#include <stdint.h>

/* The codes are part of the wire format and of the client interface. 0-6 are
 * BytePS's (mshadow's order), 9 and 10 those of its later internal version. */
enum sw_dtype {
	SW_F32 = 0,
	SW_F64 = 1,
	SW_F16 = 2,
	SW_U8 = 3,
	SW_I32 = 4,
	SW_I8 = 5,
	SW_I64 = 6,
	SW_BOOL = 9, /* one byte; its sum is a logical or */
	SW_BF16 = 10,
	SW_N_DTYPES = 11, /* size of a table indexed by dtype; 7 and 8 unused */
};

/* sw_dtype_bytes - return the bytes of an element, 0 for an unused code. */
static inline uint32_t sw_dtype_bytes(uint32_t dtype)
{
	static const uint8_t bytes[SW_N_DTYPES] = {
		4, 8, 2, 1, 4, 1, 8, 0, 0, 1, 2};

	return dtype < SW_N_DTYPES ? bytes[dtype] : 0;
}

/* sw_dtype_name - return "f32", "bf16", …, or "?" for an unused code. Static
 * text. */
static inline const char *sw_dtype_name(uint32_t dtype)
{
	static const char *const names[SW_N_DTYPES] = {"f32", "f64", "f16",
		"u8", "i32", "i8", "i64", 0, 0, "bool", "bf16"};

	return dtype < SW_N_DTYPES && names[dtype] ? names[dtype] : "?";
}

#endif
