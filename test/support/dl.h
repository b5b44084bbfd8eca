/* dl.h - dlopen finds another library, or none.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_DL_H
#define SW_TEST_SUPPORT_DL_H

extern const char
	*dl_instead;         /* library for the requested one; NULL: that one */
extern const char *dl_found; /* the same, of what is not loaded already */

#endif
