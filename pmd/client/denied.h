/* denied.h - system calls that a filter denies, such as a container's.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_DENIED_H
#define SW_PMD_CLIENT_DENIED_H

#include <errno.h>
#include <stdbool.h>

/* sw_is_denied - return whether @err means that the kernel lacks a system call
 * or an advice, or that a filter denies it, so that another way may work. */
static inline bool sw_is_denied(int err)
{
	return err == EINVAL || err == ENOSYS || err == EPERM || err == EACCES;
}

/* sw_denied_text - return a question to print after @err's text; "": no filter
 * causes @err. */
static inline const char *sw_denied_text(int err)
{
	return err == EPERM || err == ENOSYS
		       ? "; does a seccomp filter deny it?"
		       : "";
}

#endif
