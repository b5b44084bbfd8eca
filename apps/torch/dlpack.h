/* dlpack.h - tensors as described by DLPack's functions in C.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * DLPack is an interface for tensors between frameworks. A class of tensors has
 * a capsule with the functions, __dlpack_c_exchange_api__ (DLPack 1.3; PyTorch
 * 2.10). These are the parts of its structs that sumwire uses.
 */
#ifndef SW_APPS_TORCH_DLPACK_H
#define SW_APPS_TORCH_DLPACK_H

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

enum { SW_DL_MAJOR = 1, SW_DL_CPU = 1, SW_DL_COMPLEX = 5 };

/* DLTensor */
struct sw_dltensor {
	void *data;
	int32_t device, device_i; /* SW_DL_CPU, … */
	int32_t n_dims;
	uint8_t code, bits; /* the elements' type: SW_DL_COMPLEX, … */
	uint16_t lanes;
	const int64_t *shape, *strides; /* in elements */
	uint64_t offset;                /* bytes before the first element */
};

/* Describe a tensor of the class. The tensor owns shape and strides. Return -1
 * with an error set on failure. */
typedef int sw_dltensor_fn(void *tensor, struct sw_dltensor *out);

/* DLPackExchangeAPI */
struct sw_dlpack {
	uint32_t major, minor;
	void *older;
	void *unused[3];
	sw_dltensor_fn *describe;
};

/* sw_dlpack_open - return the function of a capsule; NULL with an error set. */
static inline sw_dltensor_fn *sw_dlpack_open(PyObject *capsule)
{
	const struct sw_dlpack *d =
		PyCapsule_GetPointer(capsule, "dlpack_exchange_api");

	if (d && d->major == SW_DL_MAJOR)
		return d->describe;
	if (d)
		PyErr_Format(PyExc_ImportError, "DLPack %u.%u, not %d",
			(unsigned)d->major, (unsigned)d->minor, SW_DL_MAJOR);
	return NULL;
}

/* sw_dltensor_count - return the number of elements of a tensor that is
 * contiguous in memory, at most @max. Return 0 if it is not contiguous, empty,
 * or larger. */
static inline uint64_t sw_dltensor_count(
	const struct sw_dltensor *d, uint64_t max)
{
	uint64_t n = 1;

	for (int32_t i = d->n_dims - 1; i >= 0; i--) {
		uint64_t rows = (uint64_t)d->shape[i];

		if (rows == 1) /* one row: its stride does not matter */
			continue;
		if (!rows || rows > max / n ||
			(d->strides && (uint64_t)d->strides[i] != n))
			return 0;
		n *= rows;
	}
	return n;
}

#endif
