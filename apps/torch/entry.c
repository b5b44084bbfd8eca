/* entry.c - functions in C that a program calls in place of a group's methods.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A method of methods.py calls a Quick and does the remaining work. An Entry
 * calls the Quick itself, and calls Python only if work remains. A group keeps
 * its entries as attributes until it is closed, so that Python's collector need
 * not see the reference cycle.
 */
#include "entry.h"

#include "quick.h"

struct entry {
	PyObject_HEAD PyObject *quick;
	PyObject *rest; /* (result of run, the arguments): do the remaining work
			 */
	PyObject *held; /* set: if it is not empty, call rest */
	int is_broadcast;
};

/* Entry(quick, is_broadcast, rest, held) */
static int init_entry(PyObject *self, PyObject *arguments, PyObject *unused)
{
	struct entry *e = (struct entry *)self;

	if (!PyArg_ParseTuple(arguments, "OpOO", &e->quick, &e->is_broadcast,
		    &e->rest, &e->held)) {
		e->quick = e->rest = e->held = NULL;
		return -1;
	}
	Py_IncRef(e->quick);
	Py_IncRef(e->rest);
	Py_IncRef(e->held);
	return 0;
}

static void drop_entry(PyObject *self)
{
	struct entry *e = (struct entry *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc give_back = (freefunc)PyType_GetSlot(type, Py_tp_free);

	Py_DecRef(e->quick);
	Py_DecRef(e->rest);
	Py_DecRef(e->held);
	give_back(self);
	Py_DecRef((PyObject *)type);
}

static PyObject *do_rest(const struct entry *e, PyObject *begun,
	PyObject *arguments, PyObject *more)
{
	PyObject *first = PyTuple_Pack(1, begun);
	PyObject *all = first ? PySequence_Concat(first, arguments) : NULL;
	PyObject *result = all ? PyObject_Call(e->rest, all, more) : NULL;

	Py_DecRef(first);
	Py_DecRef(all);
	return result;
}

static PyObject *enter(PyObject *self, PyObject *arguments, PyObject *more)
{
	const struct entry *e = (struct entry *)self;
	PyObject *begun, *result;

	if (!more && PyTuple_Size(arguments) == 2) {
		begun = sw_quick_run(e->quick, PyTuple_GetItem(arguments, 0),
			PyTuple_GetItem(arguments, 1), e->is_broadcast);
	} else {
		begun = Py_NotImplemented;
		Py_IncRef(begun);
	}
	if (begun == Py_None && !PySet_Size(e->held))
		return begun;
	result = do_rest(e, begun, arguments, more);
	Py_DecRef(begun);
	return result;
}

static const PyType_Slot slots[] = {
	{Py_tp_init, init_entry},
	{Py_tp_dealloc, drop_entry},
	{Py_tp_call, enter},
	{0},
};

PyObject *sw_entry_type(void)
{
	PyType_Spec spec = {.name = "sumwire.quick.Entry",
		.basicsize = sizeof(struct entry),
		.flags = Py_TPFLAGS_DEFAULT,
		.slots = (PyType_Slot *)slots};

	return PyType_FromSpec(&spec);
}
