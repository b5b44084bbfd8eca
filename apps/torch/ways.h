/* ways.h - reach attributes and methods of Python's objects without a lookup.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A lookup costs more instructions than most of the functions that it finds.
 * The stable interface exposes the functions of a type written in C, and the
 * place of a type's __slots__. A way remembers them for one type; for objects
 * of other types it looks up the name.
 */
#ifndef SW_APPS_TORCH_WAYS_H
#define SW_APPS_TORCH_WAYS_H

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

struct sw_way {
	PyObject *name;
	void *type; /* the type of the fields below; NULL: none */
	getter get; /* getter of an attribute */
	void *closure;
	PyCFunction call; /* a method */
	int flags;        /* its METH_ flags */
	Py_ssize_t slot;  /* offset of an attribute; 0: none */
};

/* sw_way_open - name a way.  Returns false with an error set. */
bool sw_way_open(struct sw_way *w, const char *name);

void sw_way_close(struct sw_way *w);

/* sw_way_find - find in @type the meaning of w->name for its objects. A way
 * that finds nothing still works, by lookups. */
void sw_way_find(struct sw_way *w, PyObject *type);

/* sw_way_get - return an attribute, NULL with an error set.
 * sw_way_set - set it, and release @value, which may be NULL with an error set.
 * Return false with an error set on failure.
 * sw_way_call - call a method with @argument; NULL: without arguments. */
PyObject *sw_way_get(const struct sw_way *w, PyObject *o);
bool sw_way_set(const struct sw_way *w, PyObject *o, PyObject *value);
PyObject *sw_way_call(const struct sw_way *w, PyObject *o, PyObject *argument);

#endif
