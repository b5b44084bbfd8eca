/* ways.c - reach attributes and methods of Python's objects without a lookup.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "ways.h"

#include <structmember.h>

#include <string.h>

bool sw_way_open(struct sw_way *w, const char *name)
{
	w->name = PyUnicode_InternFromString(name);
	return w->name;
}

void sw_way_close(struct sw_way *w)
{
	Py_DecRef(w->name);
	Py_DecRef(w->type);
}

/* Return a new reference to the type that defines the name; NULL: none does, or
 * none written in C. */
static PyObject *definer(const struct sw_way *w, PyObject *type)
{
	/* Intern the name: Python's lookup cache keeps other names alive. */
	PyObject *name = PyUnicode_InternFromString("__objclass__");
	PyObject *found = name ? PyObject_GetAttr(type, w->name) : NULL;
	PyObject *owner = found ? PyObject_GetAttr(found, name) : NULL;

	Py_DecRef(name);
	Py_DecRef(found);
	if (owner && PyType_Check(owner))
		return owner;
	Py_DecRef(owner);
	return NULL;
}

static bool find_attribute(struct sw_way *w, const char *name,
	const PyGetSetDef *attributes, const PyMemberDef *members)
{
	for (; attributes && attributes->name; attributes++)
		if (!strcmp(attributes->name, name) && attributes->get) {
			w->get = attributes->get;
			w->closure = attributes->closure;
			return true;
		}
	for (; members && members->name; members++)
		if (!strcmp(members->name, name) &&
			members->type == T_OBJECT_EX && !members->flags) {
			w->slot = members->offset;
			return true;
		}
	return false;
}

static bool find_method(
	struct sw_way *w, const char *name, const PyMethodDef *methods)
{
	for (; methods && methods->ml_name; methods++)
		if (!strcmp(methods->ml_name, name)) {
			w->call = methods->ml_meth;
			w->flags = methods->ml_flags;
			return w->flags == METH_NOARGS || w->flags == METH_O ||
			       w->flags == (METH_VARARGS | METH_KEYWORDS);
		}
	return false;
}

void sw_way_find(struct sw_way *w, PyObject *type)
{
	PyObject *owner = definer(w, type);
	PyTypeObject *t = (PyTypeObject *)owner;
	PyObject *bytes = owner ? PyUnicode_AsUTF8String(w->name) : NULL;
	const char *name = bytes ? PyBytes_AsString(bytes) : NULL;

	/* Before Python 3.10, PyType_GetSlot fails for static types. */
	if (name && (find_attribute(w, name, PyType_GetSlot(t, Py_tp_getset),
			     PyType_GetSlot(t, Py_tp_members)) ||
			    find_method(w, name,
				    PyType_GetSlot(t, Py_tp_methods)))) {
		Py_IncRef(type);
		w->type = type;
	}
	Py_DecRef(bytes);
	Py_DecRef(owner);
	PyErr_Clear();
}

static bool is_known(const struct sw_way *w, PyObject *o)
{
	return (void *)Py_TYPE(o) == w->type;
}

static PyObject **slot_of(const struct sw_way *w, PyObject *o)
{
	return (PyObject **)((char *)o + w->slot);
}

PyObject *sw_way_get(const struct sw_way *w, PyObject *o)
{
	if (is_known(w, o) && w->get)
		return w->get(o, w->closure);
	if (is_known(w, o) && w->slot && *slot_of(w, o)) {
		Py_IncRef(*slot_of(w, o));
		return *slot_of(w, o);
	}
	return PyObject_GetAttr(o, w->name);
}

bool sw_way_set(const struct sw_way *w, PyObject *o, PyObject *value)
{
	PyObject *old;
	int err;

	if (value && is_known(w, o) && w->slot) {
		old = *slot_of(w, o);
		*slot_of(w, o) = value;
		Py_DecRef(old);
		return true;
	}
	err = value ? PyObject_SetAttr(o, w->name, value) : -1;
	Py_DecRef(value);
	return !err;
}

static PyObject *look_up_and_call(
	const struct sw_way *w, PyObject *o, PyObject *argument)
{
	PyObject *method = PyObject_GetAttr(o, w->name);
	PyObject *result =
		method ? PyObject_CallFunctionObjArgs(method, argument, NULL)
		       : NULL;

	Py_DecRef(method);
	return result;
}

static PyObject *call_with_tuple(
	const struct sw_way *w, PyObject *o, PyObject *argument)
{
	PyObject *arguments =
		argument ? PyTuple_Pack(1, argument) : PyTuple_New(0);
	PyCFunctionWithKeywords call =
		(PyCFunctionWithKeywords)(void (*)(void))w->call;
	PyObject *result = arguments ? call(o, arguments, NULL) : NULL;

	Py_DecRef(arguments);
	return result;
}

PyObject *sw_way_call(const struct sw_way *w, PyObject *o, PyObject *argument)
{
	if (!is_known(w, o) || !w->call)
		return look_up_and_call(w, o, argument);
	if (w->flags & METH_VARARGS)
		return call_with_tuple(w, o, argument);
	return w->call(o, argument);
}
