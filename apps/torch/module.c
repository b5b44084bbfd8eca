/* module.c - the module "quick": small collectives of PyTorch in C.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * It uses the stable interface of Python 3.9, and no interface of PyTorch's.
 */
#include "entry.h"
#include "quick.h"

static int add(PyObject *module, const char *name, PyObject *type)
{
	if (type && !PyModule_AddObject(module, name, type))
		return 0;
	Py_DecRef(type);
	return -1;
}

static int add_types(PyObject *module)
{
	int err = add(module, "Quick", sw_quick_type());

	return err ? err : add(module, "Entry", sw_entry_type());
}

static const PyModuleDef_Slot parts[] = {
	{Py_mod_exec, add_types},
	{0},
};

/* not const: Python writes it */
static PyModuleDef module = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "quick",
	.m_slots = (PyModuleDef_Slot *)parts,
};

PyMODINIT_FUNC PyInit_quick(void); /* Python calls it by this name */

PyMODINIT_FUNC PyInit_quick(void)
{
	return PyModuleDef_Init(&module);
}
