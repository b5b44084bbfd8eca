/* dl.h - make dlopen load another library than the requested one.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_DL_H
#define SW_TEST_SUPPORT_DL_H

/* Library that dlopen opens instead; NULL: the requested one. */
extern const char *dl_instead;
extern const char *dl_found; /* the same, except for calls with RTLD_NOLOAD */

#endif
