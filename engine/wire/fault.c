/* fault.c - turn faults into sentences; no other file does.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/wire/fault.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/wire/coll.h"
#include "engine/wire/wire.h"

_Static_assert(sizeof(struct sw_fault_call) == 24, "no holes");
_Static_assert(sizeof(struct sw_fault) == 264, "no holes");

bool sw_fault_read(struct sw_fault *out, const uint8_t *payload)
{
	memcpy(out, payload, sizeof(*out));
	sw_text_clean(out->text, sizeof(out->text));
	sw_text_clean(out->node, sizeof(out->node));
	return out->kind < SW_N_FAULT_KINDS;
}

struct sw_fault sw_fault_said(int err, const char *text)
{
	struct sw_fault f = {.err = (int16_t)err, .key = SW_KEY_NONE};

	snprintf(f.text, sizeof(f.text), "%.*s", SW_TEXT_MAX - 1, text);
	return f;
}

void sw_fault_at(struct sw_fault *f, const char *name)
{
	snprintf(f->node, sizeof(f->node), "%s", name);
}

enum sw_fault_kind sw_fault_rounds(
	const struct sw_fault_call *a, const struct sw_fault_call *b)
{
	return a->op == b->op && (a->op != SW_ROUND_COPY || a->root == b->root)
		       ? SW_FAULT_STEPS
		       : SW_FAULT_ROUND;
}

enum sw_conflict sw_fault_conflict(const struct sw_fault *f)
{
	static const enum sw_conflict of[SW_N_FAULT_KINDS] = {
		[SW_FAULT_DECLARED] = SW_CONFLICT_DECLARED,
		[SW_FAULT_ROUND] = SW_CONFLICT_ROUND,
		[SW_FAULT_STEPS] = SW_CONFLICT_STEP,
		[SW_FAULT_CALLED] = SW_CONFLICT_CALL,
		[SW_FAULT_KINDS] = SW_CONFLICT_CALL};

	return of[f->kind];
}

int sw_fault_death(int err)
{
	return err == SW_EABORTED || err == SW_EREFUSED || err == SW_EPEER ||
			       err == SW_ESTALL || err == SW_EEXPIRED
		       ? err
		       : SW_EMISMATCH;
}

static void say_declared(const struct sw_fault_call *a,
	const struct sw_fault_call *b, const char *what, char *out)
{
	static const char *const manners[] = {"", ", async", ", of a device"};

	snprintf(out, SW_TEXT_MAX,
		"%s: rank %u declares %llu x %s, priority %u%s; rank %u "
		"declared %llu x %s, priority %u%s",
		what, a->rank, (unsigned long long)a->n_elems,
		sw_dtype_name(a->dtype), a->number, manners[a->op % 3], b->rank,
		(unsigned long long)b->n_elems, sw_dtype_name(b->dtype),
		b->number, manners[b->op % 3]);
}

static void say_opened(const struct sw_fault_call *a,
	const struct sw_fault_call *b, const char *what, char *out)
{
	snprintf(out, SW_TEXT_MAX,
		"%s: the ranks, their order, the window or the priority that "
		"rank %u opens it with are not those of rank %u",
		what, a->rank, b->rank);
}

static void say_round(const struct sw_fault_call *a,
	const struct sw_fault_call *b, const char *what, char *out)
{
	static const char *const ops[] = {"a sum", "a broadcast"};

	if (a->op != b->op)
		snprintf(out, SW_TEXT_MAX,
			"%s: rank %u takes part in %s, rank %u in %s", what,
			a->rank, ops[a->op % 2], b->rank, ops[b->op % 2]);
	else
		snprintf(out, SW_TEXT_MAX,
			"%s: rank %u broadcasts from rank %u, rank %u from "
			"rank %u",
			what, a->rank, a->root, b->rank, b->root);
}

/* Describe op and dtype, as "all_reduce of max f32" or "all_gather of u8". */
static const char *call_text(const struct sw_fault_call *c, char out[32])
{
	enum sw_coll_kind kind = sw_coll_kind_of(c->op);
	bool is_sum = sw_coll_is_sum(kind);

	snprintf(out, 32, "%s of %s%s%s", sw_coll_name(kind),
		is_sum ? sw_reduce_op_name(sw_coll_op_of(c->op)) : "",
		is_sum ? " " : "", sw_dtype_name(c->dtype));
	return out;
}

/* Describe calls that differ in count or root.  Members compare both by one
 * tag, so it may be unknown which of the two differs. */
static void say_called(const struct sw_fault_call *a,
	const struct sw_fault_call *b, const char *what, char *out)
{
	const char *kind = sw_coll_name(sw_coll_kind_of(a->op));
	const char *other = a->n_elems ? "root" : "count or root";
	char ours[32], theirs[32];

	if (a->number != b->number)
		snprintf(out, SW_TEXT_MAX,
			"%s: rank %u calls %s as collective %u, rank %u as %u",
			what, a->rank, kind, a->number, b->rank, b->number);
	else if (a->op != b->op || a->dtype != b->dtype)
		snprintf(out, SW_TEXT_MAX,
			"%s: rank %u calls %s, rank %u %s (collective %u)",
			what, a->rank, call_text(a, ours), b->rank,
			call_text(b, theirs), b->number);
	else if (a->root != b->root)
		snprintf(out, SW_TEXT_MAX,
			"%s: rank %u calls %s with a root of rank %u's node, "
			"rank %u with one of rank %u's (collective %u)",
			what, a->rank, kind, a->root, b->rank, b->root,
			b->number);
	else
		snprintf(out, SW_TEXT_MAX,
			"%s: rank %u calls %s with another %s than rank %u "
			"(collective %u)",
			what, a->rank, kind,
			a->n_elems == b->n_elems ? other : "count", b->rank,
			b->number);
}

static void say_kinds(const struct sw_fault *f, const char *what, char *out)
{
	snprintf(out, SW_TEXT_MAX,
		"%s: rank %u calls %.32s, rank %u %s (collective %u)", what,
		f->one.rank, f->text, f->other.rank,
		sw_coll_name(sw_coll_kind_of(f->other.op)), f->other.number);
}

/* Describe ranks one to other and their node. */
static const char *ranks_text(const struct sw_fault *f, char out[80])
{
	uint32_t first = f->one.rank, last = f->other.rank;
	int n = snprintf(
		out, 80, last > first ? "ranks %u-%u" : "rank %u", first, last);

	if (f->node[0])
		snprintf(out + n, 80 - (size_t)n, " (node %s)", f->node);
	return out;
}

static void say_gone(const struct sw_fault *f, const char *what, char *out)
{
	static const char *const ways[] = {"is gone", "left", "died"};
	char who[80], round[24] = "";

	if (f->one.number)
		snprintf(round, sizeof(round), "round %u of ", f->one.number);
	snprintf(out, SW_TEXT_MAX, "%s %s; %s%s cannot complete",
		ranks_text(f, who), ways[f->one.op % 3], round, what);
}

const char *sw_silence_text(enum sw_silence how)
{
	return how == SW_ACKS_NOTHING ? "acknowledging nothing" : "silent";
}

static void say_silent(const struct sw_fault *f, char *out)
{
	char who[80];

	snprintf(out, SW_TEXT_MAX, "%s %s for %u s", ranks_text(f, who),
		sw_silence_text(f->one.op), f->one.number);
}

static void say_died(const struct sw_fault *f, char *out)
{
	const struct sw_fault_call *a = &f->one;
	char local[32] = "";
	int n;

	if (a->step)
		snprintf(local, sizeof(local), ", local rank %u", a->step - 1u);
	n = snprintf(out, SW_TEXT_MAX,
		"rank %u (node %s)%s: training process %u: ", a->rank, f->node,
		local, a->number);
	snprintf(out + n, SW_TEXT_MAX - (size_t)n, "%s", f->text);
}

const char *sw_fault_text(const struct sw_fault *f, bool is_stream,
	const char *name, char out[SW_TEXT_MAX])
{
	const struct sw_fault_call *a = &f->one, *b = &f->other;
	char what[48] = "the job";

	if (name)
		snprintf(what, sizeof(what), "%s %.*s",
			is_stream ? "group" : "tensor",
			is_stream ? (int)sw_min64(40, sw_coll_group_bytes(name))
				  : 40,
			name);
	switch (f->kind) {
	case SW_FAULT_DECLARED:
		say_declared(a, b, what, out);
		break;
	case SW_FAULT_OPENED:
		say_opened(a, b, what, out);
		break;
	case SW_FAULT_ROUND:
		say_round(a, b, what, out);
		break;
	case SW_FAULT_STEPS:
		snprintf(out, SW_TEXT_MAX,
			"%s: rank %u pushes step %u, rank %u pushes step %u",
			what, a->rank, a->step, b->rank, b->step);
		break;
	case SW_FAULT_CALLED:
		say_called(a, b, what, out);
		break;
	case SW_FAULT_KINDS:
		say_kinds(f, what, out);
		break;
	case SW_FAULT_CLOSED:
		snprintf(out, SW_TEXT_MAX,
			"%s: rank %u waits for rank %u, which has "
			"closed the group",
			what, a->rank, b->rank);
		break;
	case SW_FAULT_UNDONE:
		snprintf(out, SW_TEXT_MAX,
			"%s: rank %u closed the group with work open", what,
			a->rank);
		break;
	case SW_FAULT_GONE:
		say_gone(f, what, out);
		break;
	case SW_FAULT_SILENT:
		say_silent(f, out);
		break;
	case SW_FAULT_DIED:
		say_died(f, out);
		break;
	case SW_FAULT_WAITED:
		snprintf(out, SW_TEXT_MAX, "waited %u s for %.100s%s%s",
			a->number, f->text, name ? ", " : "", name ? what : "");
		break;
	default:
		snprintf(out, SW_TEXT_MAX, "%s", f->text);
	}
	return out;
}
