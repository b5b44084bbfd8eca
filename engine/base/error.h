/* error.h - the table of all errors.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_ERROR_H
#define SW_ENGINE_BASE_ERROR_H

/* A function returns 0 or a negative enum sw_error.  The function that detects
 * an error logs it once, with names and values; its callers only return it. */
enum sw_error {
#define SW_ERROR(name, value, text) SW_##name = value,
#include "errors.def"
#undef SW_ERROR
};

/* The way in which the calls of two ranks contradict each other. */
enum sw_conflict {
	SW_CONFLICT_NONE,
	SW_CONFLICT_DECLARED, /* size, dtype or priority of a tensor */
	SW_CONFLICT_ROUND,    /* push_pull or broadcast, or the root */
	SW_CONFLICT_STEP,     /* the step of a push_pull or broadcast */
	SW_CONFLICT_CALL,     /* a group's collective */
};

#ifdef __cplusplus
extern "C" {
#endif

/* sw_error_text - return the static text of @err; "success" for 0. */
const char *sw_error_text(int err);

/* sw_error_name - return "SW_EINVAL", …; "SW_OK" for 0.  Static text. */
const char *sw_error_name(int err);

#ifdef __cplusplus
}
#endif

#endif
