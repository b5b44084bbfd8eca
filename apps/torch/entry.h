/* entry.h - functions in C that a program calls in place of a group's methods.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_TORCH_ENTRY_H
#define SW_APPS_TORCH_ENTRY_H

#include "ways.h"

/* sw_entry_type - make the type; NULL with an error set. Entry(quick,
 * is_broadcast, rest, held) is called with tensors and options. It returns None
 * if the collective has ended and the set @held is empty. Otherwise it returns
 * rest(result of the Quick, tensors, options). */
PyObject *sw_entry_type(void);

#endif
