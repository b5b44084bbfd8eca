/* quick.c - a small collective of PyTorch from its arguments to its end.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * sumwire/distributed/quick.py makes a Quick for each group and gives it
 * PyTorch's types and the addresses of libsumwire's functions.
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
#include "quick.h"

#include "dlpack.h"
#include "ways.h"

#include <structmember.h>

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <sumwire/coll.h>

enum {
	SLICE_MS = 1000, /* after this wait, methods.py checks for signals */
	QUICK_BYTES = 64 << 10, /* sw_coll copies this many bytes at once */
	N_OPERATIONS = 16,
	CALLERS_MAX = 64,
	ENTRY_DEPTH = 6, /* most frames of ours on the stack, and of torch's
			    between */
	HOOK_FRAMES = 2, /* our frames between begin() and torch's */
	FASTCALL = 0x80, /* METH_FASTCALL: part of the stable interface
			    since 3.10, unchanged before */
};

/* Attributes of Python's objects that this file reads or sets. */
enum name {
#define NAME(name) NAME_##name,
#include "quick.def"
#undef NAME
	N_NAMES
};

/* Where C++ keeps the fields of an options object, if quick.py has found
 * them. */
struct fields {
	void *type; /* the object's type; NULL: not found */
	Py_ssize_t what, is_async, timeout; /* offsets in the C++ object */
	long long unset;                    /* value that means no timeout */
};

struct counts {
	uint64_t calls, parts;
};

struct quick {
	PyObject_HEAD
#define GIVEN(name) PyObject *name;
#include "quick.def"
#undef GIVEN
		struct sw_way ways[N_NAMES];
	int (*coll)(struct sw_group *, const struct sw_coll_args *, uint64_t *);
	int (*wait_for)(struct sw_client *, uint64_t, uint32_t);
	sw_dltensor_fn *describe; /* describes a tensor */
	struct sw_client *c;
	struct sw_group *g;
	struct counts *n; /* the fields of counts */
	struct fields all_reduce, broadcast;
	/* By the hash of torch's operation: enum sw_reduce_op, or -1; and the
	 * set of types for which the library supports it. */
	int operations[N_OPERATIONS];
	uint64_t has[N_OPERATIONS];
	uint32_t *ranks; /* the members' ranks in the job */
	long n_ranks;
	long depth; /* number of callers to record */
	/* The call for the next collective, or NULL. */
	PyObject *call;
	uint64_t *handle; /* where the call keeps its handle */
	bool is_busy;     /* another thread uses the call */
	bool has_reduce,
		has_broadcast; /* a collective of this kind was called before */
};

/* One collective. */
struct task {
	enum name kind;
	bool is_entry;     /* the program called an Entry, or begin() */
	int n_hidden;      /* our frames that the record leaves out */
	PyObject *tensors; /* borrowed */
	PyObject *tensor, *dtype;
	struct sw_coll_args args;
};

static PyObject *kept(PyObject *o)
{
	Py_IncRef(o);
	return o;
}

/* --- queries of objects: return the answer, or -1 with an error set --- */

static PyObject *attribute(struct quick *q, PyObject *o, enum name name)
{
	return sw_way_get(&q->ways[name], o);
}

static PyObject *method(struct quick *q, PyObject *o, enum name name)
{
	return sw_way_call(&q->ways[name], o, NULL);
}

/* Return an item of a dict, borrowed. */
static PyObject *item(struct quick *q, PyObject *dict, enum name name)
{
	return PyDict_GetItemWithError(dict, q->ways[name].name);
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

/* Is the attribute the object @is itself? */
static bool is_same(struct quick *q, PyObject *o, enum name name, PyObject *is)
{
	PyObject *found = attribute(q, o, name);

	Py_DecRef(found);
	return found == is;
}

/* --- the arguments --- */

/* Is the tensor usual? As layout.is_usual() of layout.py, for a dense tensor
 * that DLPack describes. */
static bool is_usual(struct quick *q, PyObject *t, const struct sw_dltensor *d)
{
	return d->device == SW_DL_CPU && d->lanes == 1 && d->bits % 8 == 0 &&
	       truth(method(q, t, NAME_is_neg)) == 0 &&
	       (d->code != SW_DL_COMPLEX ||
		       truth(method(q, t, NAME_is_conj)) == 0);
}

/* Does the tensor's storage hold all elements? The storage may have shrunk. */
static bool has_memory(
	struct quick *q, PyObject *t, uint64_t count, uint64_t each)
{
	PyObject *storage = method(q, t, NAME_untyped_storage);
	long long bytes, offset;

	bytes = storage ? number(method(q, storage, NAME_nbytes)) : -1;
	Py_DecRef(storage);
	if (bytes < 0)
		return false;
	offset = number(method(q, t, NAME_storage_offset));
	return offset >= 0 &&
	       bytes / (long long)each - offset >= (long long)count;
}

/* Describe the tensor in k->args. Return false for an unusual tensor. */
static bool read_tensor(struct quick *q, struct task *k)
{
	PyObject *t = k->tensor, *code;
	struct sw_dltensor d;
	uint64_t count, each;

	if ((void *)Py_TYPE(t) != (void *)q->tensor_type || q->describe(t, &d))
		return false;
	each = d.bits / 8;
	count = each ? sw_dltensor_count(&d, QUICK_BYTES / each) : 0;
	if (!count || !d.data || !is_usual(q, t, &d) ||
		!has_memory(q, t, count, each))
		return false;
	k->dtype = attribute(q, t, NAME_dtype);
	code = k->dtype ? PyDict_GetItemWithError(q->dtypes, k->dtype) : NULL;
	if (!code && (k->kind != NAME_broadcast || PyErr_Occurred()))
		return false;
	/* A broadcast only moves data, so it accepts every type. */
	k->args.count = code ? count : count * each;
	k->args.dtype = code ? (enum sw_dtype)PyLong_AsLong(code) : SW_U8;
	k->args.send = k->args.recv = (char *)d.data + d.offset;
	return true;
}

/* Return the C++ object of options with known fields, or NULL. */
static const char *object_of(const struct fields *f, PyObject *opts)
{
	const char *o;

	if ((void *)Py_TYPE(opts) != f->type)
		return NULL;
	memcpy(&o, (const char *)opts + sizeof(PyObject), sizeof(o));
	return o;
}

/* Does the caller wait, without a timeout of its own? */
static bool does_wait(
	struct quick *q, const struct fields *f, const char *o, PyObject *opts)
{
	PyObject *timeout;
	int64_t ms;
	int is_unset;

	if (o) {
		memcpy(&ms, o + f->timeout, sizeof(ms));
		return !o[f->is_async] && ms == f->unset;
	}
	if (truth(attribute(q, opts, NAME_asyncOp)) != 0)
		return false;
	timeout = attribute(q, opts, NAME_timeout);
	is_unset = timeout ? PyObject_RichCompareBool(timeout, q->unset, Py_EQ)
			   : -1;
	Py_DecRef(timeout);
	return is_unset == 1;
}

static bool is_watched(struct quick *q)
{
	return item(q, q->profiler, NAME__is_profiler_enabled) != Py_False ||
	       item(q, q->client, NAME_timeline) != Py_None;
}

static bool read_operation(
	struct quick *q, struct task *k, const char *o, PyObject *opts)
{
	Py_hash_t hash;
	PyObject *op;

	if (o) {
		hash = (uint8_t)o[q->all_reduce.what];
	} else {
		op = attribute(q, opts, NAME_reduceOp);
		hash = op ? PyObject_Hash(op) : -1;
		Py_DecRef(op);
	}
	if (hash < 0 || hash >= N_OPERATIONS || q->operations[hash] < 0)
		return false;
	k->args.op = (enum sw_reduce_op)q->operations[hash];
	return q->has[hash] >> k->args.dtype & 1;
}

static bool read_root(
	struct quick *q, struct task *k, const char *o, PyObject *opts)
{
	int64_t root;

	if (o)
		memcpy(&root, o + q->broadcast.what, sizeof(root));
	else
		root = number(attribute(q, opts, NAME_rootRank));
	if (root < 0 || root >= q->n_ranks)
		return false;
	k->args.root = q->ranks[root];
	return true;
}

static bool read_arguments(struct quick *q, struct task *k, PyObject *opts)
{
	const struct fields *f =
		k->kind == NAME_broadcast ? &q->broadcast : &q->all_reduce;
	const char *o = object_of(f, opts);

	if (!PyList_CheckExact(k->tensors) || PyList_Size(k->tensors) != 1)
		return false;
	k->tensor = kept(PyList_GetItem(k->tensors, 0));
	if (!does_wait(q, f, o, opts) || is_watched(q) || !read_tensor(q, k))
		return false;
	return k->kind == NAME_broadcast ? read_root(q, k, o, opts)
					 : read_operation(q, k, o, opts);
}

/* --- the flight recorder --- */

/* Set an attribute of a record, and release the value. Return false with an
 * error set on failure. */
static bool set(struct quick *q, PyObject *o, enum name name, PyObject *value)
{
	return sw_way_set(&q->ways[name], o, value);
}

static PyObject *now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return PyLong_FromLongLong(t.tv_sec * 1000000000LL + t.tv_nsec);
}

/* Exchange a reference to @frame for one to the frame that called it, NULL if
 * none did. */
static PyObject *up(struct quick *q, PyObject *frame)
{
	PyObject *back = attribute(q, frame, NAME_f_back);

	Py_DecRef(frame);
	if (back != Py_None)
		return back;
	Py_DecRef(back);
	return NULL;
}

/* Return a new reference to the frame that called the group's method, or NULL
 * if it is not within ENTRY_DEPTH. */
static PyObject *caller(struct quick *q, const struct task *k)
{
	PyObject *frame = (PyObject *)PyEval_GetFrame();
	bool is_found = k->is_entry;

	Py_IncRef(frame);
	for (int i = 0; frame && !is_found && i < ENTRY_DEPTH; i++) {
		is_found = is_same(q, frame, NAME_f_code, q->entry);
		frame = up(q, frame);
	}
	for (int i = 0; frame && i < k->n_hidden; i++)
		frame = up(q, frame);
	if (is_found)
		return frame;
	Py_DecRef(frame);
	return NULL;
}

/* Return code and offset of the functions that called the group's method, like
 * flight.callers() of flight.py. */
static PyObject *callers(struct quick *q, const struct task *k)
{
	PyObject *frame = caller(q, k), *found[2 * CALLERS_MAX], *all;
	Py_ssize_t n = 0;

	while (frame && n < 2 * q->depth) {
		found[n] = attribute(q, frame, NAME_f_code);
		found[n + 1] = attribute(q, frame, NAME_f_lasti);
		frame = up(q, frame);
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

/* Return (shape, dtype). */
static PyObject *form_of(struct quick *q, const struct task *k)
{
	PyObject *shape = attribute(q, k->tensor, NAME_shape);
	PyObject *form = shape ? PyTuple_Pack(2, shape, k->dtype) : NULL;

	Py_DecRef(shape);
	return form;
}

static bool fill_record(struct quick *q, PyObject *r, const struct task *k)
{
	PyObject *sent = form_of(q, k);

	return sent && set(q, r, NAME_sent, kept(sent)) &&
	       set(q, r, NAME_received, sent) &&
	       set(q, r, NAME_number, PyIter_Next(q->numbers)) &&
	       set(q, r, NAME_group, kept(q->name)) &&
	       set(q, r, NAME_seq, PyLong_FromUnsignedLongLong(q->n->parts)) &&
	       set(q, r, NAME_kind, kept(q->ways[k->kind].name)) &&
	       set(q, r, NAME_limit_s, kept(q->limit_s)) &&
	       set(q, r, NAME_callers, callers(q, k)) &&
	       set(q, r, NAME_created, now()) &&
	       set(q, r, NAME_completed, kept(Py_None)) &&
	       set(q, r, NAME_is_late, kept(Py_False));
}

/* Begin a record as flight.begin() of flight.py does. Return the record, or
 * None without one. */
static PyObject *record(struct quick *q, const struct task *k)
{
	PyObject *r = NULL, *added;

	q->n->calls++;
	q->n->parts++;
	if (q->record_type != Py_None)
		r = PyType_GenericAlloc((PyTypeObject *)q->record_type, 0);
	if (r && fill_record(q, r, k)) {
		added = sw_way_call(&q->ways[NAME_append], q->records, r);
		Py_DecRef(added);
	}
	PyErr_Clear(); /* out of memory: no record */
	return r ? r : kept(Py_None);
}

/* --- the collective --- */

/* Make sure that a call is available that no collective uses. */
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

/* Begin the collective if no other thread uses the group. The holder of its
 * lock may be waiting for the interpreter's lock, but has not begun then. */
static bool begin(struct quick *q, const struct task *k)
{
	bool has_begun;

	if (truth(method(q, q->lock, NAME_locked)) != 0 ||
		is_same(q, q->group, NAME_pointer, Py_None))
		return false;
	*q->handle = 0;
	has_begun = !q->coll(q->g, &k->args, q->handle);
	/* Another thread may see the end, but it needs the interpreter's lock
	 * to find the call. */
	if (has_begun)
		PySet_Add(q->starting, q->call);
	return has_begun;
}

/* Hand the call to Python, which ends it.  Returns the call. */
static PyObject *give_to_python(
	struct quick *q, const struct task *k, PyObject *r)
{
	PyObject *call = q->call;

	q->call = NULL;
	set(q, call, NAME_kept, kept(k->tensor));
	set(q, call, NAME_record, kept(r));
	set(q, call, NAME_kind, kept(q->ways[k->kind].name));
	PyErr_Clear();
	return call;
}

/* Note the end of a call that no other thread has seen, in its record. */
static void note_end(struct quick *q, PyObject *call, PyObject *r)
{
	PySet_Discard(q->starting, call);
	if (r != Py_None)
		set(q, r, NAME_completed, now());
}

static PyObject *begin_and_wait(struct quick *q, const struct task *k)
{
	PyThreadState *thread;
	PyObject *r, *result;
	int code;

	if (!has_call(q) || !begin(q, k))
		return NULL;
	r = record(q, k); /* while the collective is running */
	thread = PyEval_SaveThread();
	code = q->wait_for(q->c, *q->handle, SLICE_MS);
	PyEval_RestoreThread(thread);
	if (code) {
		result = Py_BuildValue("(iN)", code, give_to_python(q, k, r));
	} else {
		note_end(q, q->call, r);
		result = kept(Py_None);
	}
	Py_DecRef(r);
	return result;
}

/* The first collective of a kind opens its stream, which may take long. So
 * leave it to methods.py, which waits without the interpreter's lock. */
static bool has_stream(struct quick *q, enum name kind)
{
	bool *has = kind == NAME_broadcast ? &q->has_broadcast : &q->has_reduce;
	bool had = *has;

	*has = true;
	return had;
}

static PyObject *run(struct quick *q, PyObject *tensors, PyObject *opts,
	enum name kind, bool is_entry)
{
	struct task k = {.kind = kind,
		.is_entry = is_entry,
		.tensors = tensors,
		.args = SW_COLL_ARGS_INIT};
	PyObject *result = NULL;

	k.args.kind = kind == NAME_broadcast ? SW_BCAST : SW_ALL_REDUCE;
	/* PyTorch's methods let other threads run, so test is_busy after
	 * them. */
	if (read_arguments(q, &k, opts) && has_stream(q, kind) && !q->is_busy) {
		q->is_busy = true;
		result = begin_and_wait(q, &k);
		q->is_busy = false;
	}
	Py_DecRef(k.dtype);
	Py_DecRef(k.tensor);
	PyErr_Clear(); /* methods.py will find the error as well */
	return result ? result : kept(Py_NotImplemented);
}

PyObject *sw_quick_run(
	PyObject *quick, PyObject *tensors, PyObject *opts, bool is_broadcast)
{
	return run((struct quick *)quick, tensors, opts,
		is_broadcast ? NAME_broadcast : NAME_all_reduce, true);
}

static PyObject *run_method(PyObject *self, PyObject *const *arguments,
	Py_ssize_t n, enum name kind)
{
	if (n == 2)
		return run((struct quick *)self, arguments[0], arguments[1],
			kind, false);
	PyErr_SetString(PyExc_TypeError,
		"expected two arguments: the list of tensors, and opts");
	return NULL;
}

static PyObject *all_reduce(
	PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
	return run_method(self, arguments, n, NAME_all_reduce);
}

static PyObject *broadcast(
	PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
	return run_method(self, arguments, n, NAME_broadcast);
}

/* --- the hook of DDP, which begins and waits apart --- */

/* begin(tensor, address, count, dtype, op) - begin an all_reduce in place of a
 * tensor that was checked before, by enum sw_dtype and enum sw_reduce_op.
 * Returns (call, address of its handle) for wait(), or NotImplemented. */
static PyObject *begin_known(
	PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
	struct quick *q = (struct quick *)self;
	struct task k = {.kind = NAME_all_reduce,
		.is_entry = true,
		.n_hidden = HOOK_FRAMES,
		.args = SW_COLL_ARGS_INIT};
	PyObject *result = NULL, *r, *call;
	uint64_t *handle;

	if (n != 5) {
		PyErr_SetString(PyExc_TypeError, "expected five arguments");
		return NULL;
	}
	k.tensor = arguments[0];
	k.args.kind = SW_ALL_REDUCE;
	k.args.send = k.args.recv = PyLong_AsVoidPtr(arguments[1]);
	k.args.count = PyLong_AsUnsignedLongLong(arguments[2]);
	k.args.dtype = (enum sw_dtype)PyLong_AsLong(arguments[3]);
	k.args.op = (enum sw_reduce_op)PyLong_AsLong(arguments[4]);
	if (PyErr_Occurred())
		return NULL;
	k.dtype = attribute(q, k.tensor, NAME_dtype);
	if (k.dtype && !is_watched(q) && has_stream(q, k.kind) && !q->is_busy &&
		has_call(q) && begin(q, &k)) {
		handle = q->handle;
		r = record(q, &k);
		call = give_to_python(q, &k, r);
		Py_DecRef(r);
		result =
			Py_BuildValue("(NN)", call, PyLong_FromVoidPtr(handle));
	}
	Py_DecRef(k.dtype);
	PyErr_Clear(); /* methods.py will find the error as well */
	return result ? result : kept(Py_NotImplemented);
}

/* wait(call, address of its handle) - wait for begin()'s call.  Returns 0 after
 * its end, otherwise the code of the wait: methods.py waits for the end. */
static PyObject *wait_known(
	PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
	struct quick *q = (struct quick *)self;
	const uint64_t *handle;
	PyThreadState *thread;
	PyObject *r;
	int code;

	if (n != 2) {
		PyErr_SetString(PyExc_TypeError, "expected two arguments");
		return NULL;
	}
	handle = PyLong_AsVoidPtr(arguments[1]);
	if (!handle)
		return NULL;
	thread = PyEval_SaveThread();
	code = q->wait_for(q->c, *handle, SLICE_MS);
	PyEval_RestoreThread(thread);
	r = code ? NULL : attribute(q, arguments[0], NAME_record);
	if (r)
		note_end(q, arguments[0], r);
	Py_DecRef(r);
	PyErr_Clear();
	return PyLong_FromLong(code);
}

/* --- the type --- */

/* Find the ways to all names, using objects or types that have them. */
static bool take_names(struct quick *q)
{
	const struct {
		const char *name;
		PyObject *of;
	} names[] = {
#define NAME(name)   {#name, NULL},
#define OF(name, of) {#name, q->of},
#include "quick.def"
#undef OF
#undef NAME
	};

	for (int i = 0; i < N_NAMES; i++) {
		PyObject *of = names[i].of;

		if (!sw_way_open(&q->ways[i], names[i].name))
			return false;
		if (of)
			sw_way_find(&q->ways[i],
				PyType_Check(of) ? of
						 : (PyObject *)Py_TYPE(of));
	}
	return true;
}

/* @ranks      list of the members' ranks in the job
 * @operations list: enum sw_reduce_op, or -1, by the hash of torch's operation
 * @has        list: the set of supported enum sw_dtype, by the same hash */
static bool take_lists(
	struct quick *q, PyObject *ranks, PyObject *operations, PyObject *has)
{
	q->n_ranks = (long)PyList_Size(ranks);
	q->ranks = PyMem_Malloc((size_t)(q->n_ranks + 1) * sizeof(*q->ranks));
	if (!q->ranks || PyList_Size(operations) != N_OPERATIONS ||
		PyList_Size(has) != N_OPERATIONS)
		return false;
	for (long i = 0; i < q->n_ranks; i++)
		q->ranks[i] = (uint32_t)PyLong_AsUnsignedLong(
			PyList_GetItem(ranks, i));
	for (int i = 0; i < N_OPERATIONS; i++) {
		q->operations[i] =
			(int)PyLong_AsLong(PyList_GetItem(operations, i));
		q->has[i] = PyLong_AsUnsignedLongLong(PyList_GetItem(has, i));
	}
	return !PyErr_Occurred();
}

/* Read (type, offsets of what, asyncOp and timeout, value of no timeout), or
 * None. */
static bool take_fields(struct fields *f, PyObject *from)
{
	PyObject *type;

	if (from == Py_None)
		return true;
	if (!PyArg_ParseTuple(from, "OnnnL", &type, &f->what, &f->is_async,
		    &f->timeout, &f->unset))
		return false;
	f->type = kept(type);
	return true;
}

/* Read GIVEN from a dict. */
static bool take_given(struct quick *q, PyObject *dict)
{
	static const char *const names[] = {
#define GIVEN(name) #name,
#include "quick.def"
#undef GIVEN
	};
	PyObject **to[] = {
#define GIVEN(name) &q->name,
#include "quick.def"
#undef GIVEN
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		*to[i] = PyDict_GetItemString(dict, names[i]);
		if (!*to[i]) {
			PyErr_SetString(PyExc_KeyError, names[i]);
			return false;
		}
		Py_IncRef(*to[i]);
	}
	return true;
}

/* Quick(given, addresses, lists, fields, depth): GIVEN as a dict; the addresses
 * of sw_coll, sw_wait_for, the client, the group and the counts; ranks,
 * operations and types (take_lists); the fields of both kinds of options
 * (take_fields). */
static int init(PyObject *self, PyObject *arguments, PyObject *unused)
{
	struct quick *q = (struct quick *)self;
	PyObject *dict, *ranks, *operations, *has, *reduce, *broadcast;
	unsigned long long coll, wait_for, c, g, n;

	if (!PyArg_ParseTuple(arguments, "O!(KKKKK)(O!O!O!)(OO)l", &PyDict_Type,
		    &dict, &coll, &wait_for, &c, &g, &n, &PyList_Type, &ranks,
		    &PyList_Type, &operations, &PyList_Type, &has, &reduce,
		    &broadcast, &q->depth) ||
		!take_given(q, dict) || !take_names(q) ||
		!(q->describe = sw_dlpack_open(q->dlpack)) ||
		!take_lists(q, ranks, operations, has) ||
		!take_fields(&q->all_reduce, reduce) ||
		!take_fields(&q->broadcast, broadcast))
		return -1;
	if (q->depth > CALLERS_MAX)
		q->depth = CALLERS_MAX;
	memcpy(&q->coll, &coll, sizeof(q->coll));
	memcpy(&q->wait_for, &wait_for, sizeof(q->wait_for));
	memcpy(&q->c, &c, sizeof(q->c));
	memcpy(&q->g, &g, sizeof(q->g));
	memcpy(&q->n, &n, sizeof(q->n));
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
		sw_way_close(&q->ways[i]);
	Py_DecRef(q->all_reduce.type);
	Py_DecRef(q->broadcast.type);
	Py_DecRef(q->call);
	PyMem_Free(q->ranks);
	give_back(self);
	Py_DecRef((PyObject *)type);
}

static const PyMethodDef methods[] = {
	{"all_reduce", (PyCFunction)(void (*)(void))all_reduce, FASTCALL,
		"all_reduce(tensors, opts)"},
	{"broadcast", (PyCFunction)(void (*)(void))broadcast, FASTCALL,
		"broadcast(tensors, opts)"},
	{"begin", (PyCFunction)(void (*)(void))begin_known, FASTCALL,
		"begin(tensor, address, count, dtype, op)"},
	{"wait", (PyCFunction)(void (*)(void))wait_known, FASTCALL,
		"wait(call, address)"},
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

PyObject *sw_quick_type(void)
{
	PyType_Spec spec = {.name = "sumwire.quick.Quick",
		.basicsize = sizeof(struct quick),
		.flags = Py_TPFLAGS_DEFAULT,
		.slots = (PyType_Slot *)slots};

	return PyType_FromSpec(&spec);
}
