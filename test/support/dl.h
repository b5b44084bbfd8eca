/* dl.h - libraries that are missing, or lack a function.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_DL_H
#define SW_TEST_DL_H

#include <stdbool.h>

extern bool dl_is_missing;    /* dlopen finds nothing */
extern const char *dl_lacked; /* dlsym does not find this one; or NULL */

#endif
