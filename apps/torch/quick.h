/* quick.h - a small collective of PyTorch from its arguments to its end.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_TORCH_QUICK_H
#define SW_APPS_TORCH_QUICK_H

#include "ways.h"

/* sw_quick_type - make the type; NULL with an error set. */
PyObject *sw_quick_type(void);

/* sw_quick_run - call a Quick on behalf of the Python function that is
 * running. */
PyObject *sw_quick_run(
	PyObject *quick, PyObject *tensors, PyObject *opts, bool is_broadcast);

#endif
