/* quick.c - a small collective of PyTorch from its arguments to its end.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * This module for Python uses the stable interface of Python 3.9, and none of
 * PyTorch's.  sumwire/distributed/quick.py makes a Quick for each group and
 * gives it PyTorch's types and the addresses of libsumwire's functions.
 *
 * Results of a method of Quick:
 *   None            The collective has ended.
 *   NotImplemented  Nothing has begun: methods.py does the call, and finds the
 *                   errors in its arguments.
 *   a tuple         The collective has begun, and methods.py waits for its end.
 *
 * Thread: the interpreter's lock is held, except while the caller waits.
 * References: by Python's functions, because its macros are those of the
 * version that compiles this file, and later versions count None differently.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <sumwire/coll.h>

enum {
	SLICE_MS = 1000,        /* then methods.py looks after signals */
	QUICK_BYTES = 64 << 10, /* sw_coll copies them at once */
	N_OPERATIONS = 16,
	CALLERS_MAX = 64,
	ENTRY_DEPTH = 6, /* our functions on the stack, and torch's between */
};

/* Attributes of Python's objects that this file asks for or sets. */
enum name {
#define NAME(name) NAME_##name,
#include "quick.def"
#undef NAME
	N_NAMES
};

struct quick {
	PyObject_HEAD
#define GIVEN(name) PyObject *name;
#include "quick.def"
#undef GIVEN
		PyObject *names[N_NAMES];
	int (*coll)(struct sw_group *, const struct sw_coll_args *, uint64_t *);
	int (*wait_for)(struct sw_client *, uint64_t, uint32_t);
	struct sw_client *c;
	struct sw_group *g;
	/* By the hash of torch's operation: enum sw_reduce_op, or -1. */
	int operations[N_OPERATIONS];
	uint32_t *ranks; /* the members' ranks in the job */
	long n_ranks;
	long depth; /* callers to record */
	/* The call of the next collective, or NULL. */
	PyObject *call;
	uint64_t *handle; /* the call's */
	bool is_busy;     /* another thread uses the call */
	bool has_reduce,
		has_broadcast; /* a collective of the kind was called */
};

/* One collective. */
struct task {
	enum name kind;
	PyObject *tensors; /* borrowed */
	PyObject *tensor, *dtype;
	struct sw_coll_args args;
};

static PyObject *kept(PyObject *o)
{
	Py_IncRef(o);
	return o;
}

/* --- questions to objects: the answer, or -1 with an error set --- */

static PyObject *attribute(struct quick *q, PyObject *o, enum name name)
{
	return PyObject_GetAttr(o, q->names[name]);
}

static PyObject *method(struct quick *q, PyObject *o, enum name name)
{
	return PyObject_CallMethodObjArgs(o, q->names[name], NULL);
}

static int truth(PyObject *answer)
{
	int is_true = answer ? PyObject_IsTrue(answer) : -1;

	Py_DecRef(answer);
	return is_true;
}

static long long number(PyObject *answer)
{
	long long n = answer ? PyLong_AsLongLong(answer) : -1;

	Py_DecRef(answer);
	return n;
}

/* Is the attribute this very object? */
static bool is_same(struct quick *q, PyObject *o, enum name name, PyObject *is)
{
	PyObject *found = attribute(q, o, name);

	Py_DecRef(found);
	return found == is;
}

/* --- the arguments --- */

/* layout.is_usual() of layout.py, and at least one element. */
static bool is_usual(struct quick *q, PyObject *t)
{
	return truth(attribute(q, t, NAME_is_cpu)) == 1 &&
	       is_same(q, t, NAME_layout, q->strided) &&
	       truth(method(q, t, NAME_is_contiguous)) == 1 &&
	       truth(method(q, t, NAME_is_neg)) == 0 &&
	       truth(method(q, t, NAME_is_conj)) == 0 &&
	       truth(method(q, t, NAME__is_zerotensor)) == 0 &&
	       truth(attribute(q, t, NAME_is_nested)) == 0 &&
	       truth(attribute(q, t, NAME_is_quantized)) == 0;
}

/* Does the tensor's storage hold all of it, and is it small? */
static bool has_memory(
	struct quick *q, PyObject *t, long long count, long long each)
{
	PyObject *storage;
	long long bytes, offset;

	if (count < 1 || each < 1 || count > QUICK_BYTES / each)
		return false;
	storage = method(q, t, NAME_untyped_storage);
	bytes = storage ? number(method(q, storage, NAME_nbytes)) : -1;
	Py_DecRef(storage);
	if (bytes < 0)
		return false;
	offset = number(method(q, t, NAME_storage_offset));
	return offset >= 0 && bytes / each - offset >= count;
}

/* Describe the tensor in k->args.  Returns false for a tensor that is not as
 * most are. */
static bool read_tensor(struct quick *q, struct task *k)
{
	PyObject *t = k->tensor, *code, *place;
	long long count, each;

	if ((void *)Py_TYPE(t) != (void *)q->tensor_type || !is_usual(q, t))
		return false;
	count = number(method(q, t, NAME_numel));
	each = count > 0 ? number(method(q, t, NAME_element_size)) : -1;
	if (!has_memory(q, t, count, each))
		return false;
	k->dtype = attribute(q, t, NAME_dtype);
	code = k->dtype ? PyDict_GetItemWithError(q->dtypes, k->dtype) : NULL;
	if (!code && (k->kind != NAME_broadcast || PyErr_Occurred()))
		return false;
	/* A broadcast only moves data, so it takes every type. */
	k->args.count = (uint64_t)(code ? count : count * each);
	k->args.dtype = code ? (enum sw_dtype)PyLong_AsLong(code) : SW_U8;
	place = method(q, t, NAME_data_ptr);
	k->args.send = k->args.recv = place ? PyLong_AsVoidPtr(place) : NULL;
	Py_DecRef(place);
	return k->args.send != NULL;
}

/* A call waits at most as long as its group, and nothing watches it. */
static bool is_plain(struct quick *q, PyObject *opts)
{
	PyObject *timeout;
	int is_unset;

	if (truth(attribute(q, opts, NAME_asyncOp)) != 0 ||
		truth(attribute(q, q->profiler, NAME__is_profiler_enabled)) ||
		!is_same(q, q->client, NAME_timeline, Py_None))
		return false;
	timeout = attribute(q, opts, NAME_timeout);
	is_unset = timeout ? PyObject_RichCompareBool(timeout, q->unset, Py_EQ)
			   : -1;
	Py_DecRef(timeout);
	return is_unset == 1;
}

static bool read_operation(struct quick *q, struct task *k, PyObject *opts)
{
	PyObject *op = attribute(q, opts, NAME_reduceOp);
	Py_hash_t hash = op ? PyObject_Hash(op) : -1;
	PyObject *pair;
	int has;

	Py_DecRef(op);
	if (hash < 0 || hash >= N_OPERATIONS || q->operations[hash] < 0)
		return false;
	pair = Py_BuildValue("(nO)", (Py_ssize_t)hash, k->dtype);
	has = pair ? PySet_Contains(q->pairs, pair) : -1;
	Py_DecRef(pair);
	k->args.op = (enum sw_reduce_op)q->operations[hash];
	return has == 1;
}

static bool read_root(struct quick *q, struct task *k, PyObject *opts)
{
	long long root = number(attribute(q, opts, NAME_rootRank));

	if (root < 0 || root >= q->n_ranks)
		return false;
	k->args.root = q->ranks[root];
	return true;
}

static bool read_arguments(struct quick *q, struct task *k, PyObject *opts)
{
	if (!PyList_CheckExact(k->tensors) || PyList_Size(k->tensors) != 1)
		return false;
	k->tensor = kept(PyList_GetItem(k->tensors, 0));
	if (!is_plain(q, opts) || !read_tensor(q, k))
		return false;
	return k->kind == NAME_broadcast ? read_root(q, k, opts)
					 : read_operation(q, k, opts);
}

/* --- the flight recorder --- */

/* Set an attribute of a record, and give up the value.  Returns false with an
 * error set. */
static bool set(struct quick *q, PyObject *o, enum name name, PyObject *value)
{
	int err = value ? PyObject_SetAttr(o, q->names[name], value) : -1;

	Py_DecRef(value);
	return !err;
}

static PyObject *now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return PyLong_FromLongLong(t.tv_sec * 1000000000LL + t.tv_nsec);
}

/* Return a new reference to the frame that called this one, NULL if none. */
static PyObject *above(struct quick *q, PyObject *frame)
{
	PyObject *back = attribute(q, frame, NAME_f_back);

	if (back != Py_None)
		return back;
	Py_DecRef(back);
	return NULL;
}

/* Return a new reference to the frame that called the group's method, NULL if
 * it is not near. */
static PyObject *caller(struct quick *q)
{
	PyObject *frame = (PyObject *)PyEval_GetFrame();
	bool is_entry = false;

	Py_IncRef(frame);
	for (int i = 0; frame && !is_entry && i < ENTRY_DEPTH; i++) {
		PyObject *next = above(q, frame);

		is_entry = is_same(q, frame, NAME_f_code, q->entry);
		Py_DecRef(frame);
		frame = next;
	}
	if (is_entry)
		return frame;
	Py_DecRef(frame);
	return NULL;
}

/* Return code and offset of the functions that called the group's method, as
 * flight.callers() of flight.py does. */
static PyObject *callers(struct quick *q)
{
	PyObject *frame = caller(q), *found[2 * CALLERS_MAX], *all;
	Py_ssize_t n = 0;

	while (frame && n < 2 * q->depth) {
		PyObject *next = above(q, frame);

		found[n] = attribute(q, frame, NAME_f_code);
		found[n + 1] = attribute(q, frame, NAME_f_lasti);
		Py_DecRef(frame);
		frame = next;
		if (!found[n] || !found[n + 1]) {
			Py_DecRef(found[n]);
			Py_DecRef(found[n + 1]);
			break;
		}
		n += 2;
	}
	Py_DecRef(frame);
	all = PyTuple_New(n);
	for (Py_ssize_t i = 0; i < n; i++) {
		if (all)
			PyTuple_SetItem(all, i, found[i]);
		else
			Py_DecRef(found[i]);
	}
	return all;
}

/* Count the call in its group, and return its number. */
static PyObject *count(struct quick *q, PyObject *owner, enum name name)
{
	long long n = number(attribute(q, owner, name));
	PyObject *next = PyLong_FromLongLong(n + 1);

	if (next)
		PyObject_SetAttr(owner, q->names[name], next);
	return next;
}

static bool fill_record(
	struct quick *q, PyObject *r, const struct task *k, PyObject *seq)
{
	PyObject *shape = attribute(q, k->tensor, NAME_shape);
	PyObject *sent = shape ? Py_BuildValue("(NO)", shape, k->dtype) : NULL;

	return sent && set(q, r, NAME_sent, kept(sent)) &&
	       set(q, r, NAME_received, sent) &&
	       set(q, r, NAME_number, PyIter_Next(q->numbers)) &&
	       set(q, r, NAME_group, kept(q->name)) &&
	       set(q, r, NAME_seq, kept(seq)) &&
	       set(q, r, NAME_kind, kept(q->names[k->kind])) &&
	       set(q, r, NAME_limit_s, kept(q->limit_s)) &&
	       set(q, r, NAME_callers, callers(q)) &&
	       set(q, r, NAME_created, now()) &&
	       set(q, r, NAME_completed, kept(Py_None)) &&
	       set(q, r, NAME_is_late, kept(Py_False));
}

/* flight.begin() of flight.py.  Return the record, or None without one. */
static PyObject *record(struct quick *q, PyObject *owner, const struct task *k)
{
	PyObject *seq = count(q, owner, NAME_n_parts), *r = NULL, *added;

	Py_DecRef(count(q, owner, NAME_n_calls));
	if (seq && q->record_type != Py_None)
		r = PyObject_CallObject(q->record_type, NULL);
	if (r && fill_record(q, r, k, seq)) {
		added = PyObject_CallMethodObjArgs(
			q->records, q->names[NAME_append], r, NULL);
		Py_DecRef(added);
	}
	Py_DecRef(seq);
	PyErr_Clear(); /* without memory there is no record */
	return r ? r : kept(Py_None);
}

/* --- the collective --- */

/* Have a call ready that no collective uses. */
static bool has_call(struct quick *q)
{
	PyObject *made, *address;

	if (q->call)
		return true;
	made = PyObject_CallObject(q->new_call, NULL);
	if (!made)
		return false;
	q->call = kept(PyTuple_GetItem(made, 0));
	address = PyTuple_GetItem(made, 1);
	q->handle = PyLong_AsVoidPtr(address);
	Py_DecRef(made);
	return true;
}

/* Begin the collective, if no other thread uses the group. */
static bool begin(struct quick *q, const struct task *k)
{
	int has_lock = truth(PyObject_CallMethodObjArgs(
		q->lock, q->names[NAME_acquire], Py_False, NULL));
	bool has_begun = false;

	if (has_lock != 1)
		return false;
	*q->handle = 0;
	if (!is_same(q, q->group, NAME_pointer, Py_None))
		has_begun = !q->coll(q->g, &k->args, q->handle);
	/* Another thread may see the end, but needs the interpreter's lock to
	 * look for the call. */
	if (has_begun)
		PySet_Add(q->starting, q->call);
	Py_DecRef(method(q, q->lock, NAME_release));
	return has_begun;
}

/* Leave the call to methods.py: (code of the wait, call). */
static PyObject *pass_on(
	struct quick *q, const struct task *k, int code, PyObject *r)
{
	PyObject *call = q->call;

	q->call = NULL;
	set(q, call, NAME_kept, kept(k->tensor));
	set(q, call, NAME_record, kept(r));
	set(q, call, NAME_kind, kept(q->names[k->kind]));
	PyErr_Clear();
	return Py_BuildValue("(iN)", code, call);
}

static PyObject *begin_and_wait(
	struct quick *q, PyObject *owner, const struct task *k)
{
	PyThreadState *thread;
	PyObject *r, *result;
	int code;

	if (!has_call(q) || !begin(q, k))
		return NULL;
	r = record(q, owner, k); /* while the collective is under way */
	thread = PyEval_SaveThread();
	code = q->wait_for(q->c, *q->handle, SLICE_MS);
	PyEval_RestoreThread(thread);
	if (code) {
		result = pass_on(q, k, code, r);
	} else {
		PySet_Discard(q->starting, q->call);
		if (r != Py_None)
			set(q, r, NAME_completed, now());
		result = kept(Py_None);
	}
	Py_DecRef(r);
	return result;
}

/* The first collective of a kind opens its stream, which may take long: leave
 * it to methods.py, which waits without the interpreter's lock. */
static bool has_stream(struct quick *q, enum name kind)
{
	bool *has = kind == NAME_broadcast ? &q->has_broadcast : &q->has_reduce;
	bool had = *has;

	*has = true;
	return had;
}

static PyObject *run(PyObject *self, PyObject *arguments, enum name kind)
{
	struct quick *q = (struct quick *)self;
	struct task k = {.kind = kind, .args = SW_COLL_ARGS_INIT};
	PyObject *owner, *opts, *result = NULL;

	k.args.kind = kind == NAME_broadcast ? SW_BCAST : SW_ALL_REDUCE;
	if (!PyArg_ParseTuple(arguments, "OOO", &owner, &k.tensors, &opts))
		return NULL;
	/* PyTorch's methods let other threads run: look at is_busy after them.
	 */
	if (read_arguments(q, &k, opts) && has_stream(q, kind) && !q->is_busy) {
		q->is_busy = true;
		result = begin_and_wait(q, owner, &k);
		q->is_busy = false;
	}
	Py_DecRef(k.dtype);
	Py_DecRef(k.tensor);
	PyErr_Clear(); /* methods.py finds the error, too */
	return result ? result : kept(Py_NotImplemented);
}

static PyObject *all_reduce(PyObject *self, PyObject *arguments)
{
	return run(self, arguments, NAME_all_reduce);
}

static PyObject *broadcast(PyObject *self, PyObject *arguments)
{
	return run(self, arguments, NAME_broadcast);
}

/* --- the type --- */

static bool take_names(struct quick *q)
{
	static const char *const names[] = {
#define NAME(name) #name,
#include "quick.def"
#undef NAME
	};

	for (int i = 0; i < N_NAMES; i++) {
		q->names[i] = PyUnicode_InternFromString(names[i]);
		if (!q->names[i])
			return false;
	}
	return true;
}

/* @ranks      list of the members' ranks in the job
 * @operations list: by the hash of torch's operation, enum sw_reduce_op or -1
 */
static bool take_lists(struct quick *q, PyObject *ranks, PyObject *operations)
{
	q->n_ranks = (long)PyList_Size(ranks);
	q->ranks = PyMem_Malloc((size_t)(q->n_ranks + 1) * sizeof(*q->ranks));
	if (!q->ranks || PyList_Size(operations) != N_OPERATIONS)
		return false;
	for (long i = 0; i < q->n_ranks; i++)
		q->ranks[i] = (uint32_t)PyLong_AsUnsignedLong(
			PyList_GetItem(ranks, i));
	for (int i = 0; i < N_OPERATIONS; i++)
		q->operations[i] =
			(int)PyLong_AsLong(PyList_GetItem(operations, i));
	return !PyErr_Occurred();
}

/* Quick(given, addresses, ranks, operations, depth): GIVEN as a dict; the
 * addresses of sw_coll, sw_wait_for, the client and the group. */
static int init(PyObject *self, PyObject *arguments, PyObject *unused)
{
	static const char *const given[] = {
#define GIVEN(name) #name,
#include "quick.def"
#undef GIVEN
	};
	struct quick *q = (struct quick *)self;
	PyObject **to[] = {
#define GIVEN(name) &q->name,
#include "quick.def"
#undef GIVEN
	};
	PyObject *dict, *ranks, *operations;
	unsigned long long coll, wait_for, c, g;

	if (!PyArg_ParseTuple(arguments, "O!(KKKK)O!O!l", &PyDict_Type, &dict,
		    &coll, &wait_for, &c, &g, &PyList_Type, &ranks,
		    &PyList_Type, &operations, &q->depth) ||
		!take_names(q) || !take_lists(q, ranks, operations))
		return -1;
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		*to[i] = PyDict_GetItemString(dict, given[i]);
		if (!*to[i]) {
			PyErr_SetString(PyExc_KeyError, given[i]);
			return -1;
		}
		Py_IncRef(*to[i]);
	}
	if (q->depth > CALLERS_MAX)
		q->depth = CALLERS_MAX;
	memcpy(&q->coll, &coll, sizeof(q->coll));
	memcpy(&q->wait_for, &wait_for, sizeof(q->wait_for));
	memcpy(&q->c, &c, sizeof(q->c));
	memcpy(&q->g, &g, sizeof(q->g));
	return 0;
}

static void drop(PyObject *self)
{
	struct quick *q = (struct quick *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc give_back = (freefunc)PyType_GetSlot(type, Py_tp_free);

#define GIVEN(name) Py_DecRef(q->name);
#include "quick.def"
#undef GIVEN
	for (int i = 0; i < N_NAMES; i++)
		Py_DecRef(q->names[i]);
	Py_DecRef(q->call);
	PyMem_Free(q->ranks);
	give_back(self);
	Py_DecRef((PyObject *)type);
}

static const PyMethodDef methods[] = {
	{"all_reduce", all_reduce, METH_VARARGS,
		"all_reduce(owner, tensors, opts)"},
	{"broadcast", broadcast, METH_VARARGS,
		"broadcast(owner, tensors, opts)"},
	{NULL},
};

static const PyMemberDef members[] = {
	{"limit_s", T_OBJECT, offsetof(struct quick, limit_s), 0,
		"timeout of the group in seconds"},
	{NULL},
};

static const PyType_Slot slots[] = {
	{Py_tp_init, init},
	{Py_tp_dealloc, drop},
	{Py_tp_methods, (void *)methods},
	{Py_tp_members, (void *)members},
	{0},
};

static int add_type(PyObject *module)
{
	PyType_Spec spec = {.name = "sumwire.quick.Quick",
		.basicsize = sizeof(struct quick),
		.flags = Py_TPFLAGS_DEFAULT,
		.slots = (PyType_Slot *)slots};
	PyObject *type = PyType_FromSpec(&spec);

	if (type && !PyModule_AddObject(module, "Quick", type))
		return 0;
	Py_DecRef((PyObject *)type);
	return -1;
}

static const PyModuleDef_Slot parts[] = {
	{Py_mod_exec, add_type},
	{0},
};

/* Python writes it. */
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
