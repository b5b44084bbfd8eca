/* launch.c - rank, size, role and addresses from launchers.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/launch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define LAUNCHER(id, word, mark, is_wrapped, name) L_##id,
#define VARIABLE(launcher, variable, key, conversion)
enum launcher_id {
#include "conf/launch.def"
	N_LAUNCHERS
};
#undef LAUNCHER
#undef VARIABLE

static const struct launcher {
	const char *word, *mark, *name;
	bool is_wrapped;
} launchers[] = {
#define LAUNCHER(id, word, mark, is_wrapped, name) \
	[L_##id] = {word, mark, name, is_wrapped},
#define VARIABLE(launcher, variable, key, conversion)
#include "conf/launch.def"
#undef LAUNCHER
#undef VARIABLE
};

/* State of a reading. */
struct reading {
	char *(*get)(const char *name);
	struct sw_launch *out;
	char *why;
	const struct launcher *inner; /* first launcher found */
};

/* Return whether @text is a decimal number by the rules of sw_value_parse,
 * which libsumwire does not contain. */
static bool is_number(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n && !text[n] && (n == 1 || *text != '0') &&
	       (n < 10 || (n == 10 && strcmp(text, "2147483647") <= 0));
}

static int number_convert(
	const struct reading *r, const char *text, char *to, const char *name)
{
	if (!is_number(text))
		return snprintf(r->why, SW_LAUNCH_WHY_BYTES,
			"%s=%.60s is not a whole number", name, text);
	snprintf(to, SW_LAUNCH_TEXT_BYTES, "%s", text);
	return 0;
}

static int name_convert(
	const struct reading *r, const char *text, char *to, const char *name)
{
	if (strlen(text) >= SW_LAUNCH_TEXT_BYTES)
		return snprintf(r->why, SW_LAUNCH_WHY_BYTES,
			"%s=%.60s is too long", name, text);
	snprintf(to, SW_LAUNCH_TEXT_BYTES, "%s", text);
	return 0;
}

static int role_convert(
	const struct reading *r, const char *text, char *to, const char *name)
{
	static const char *const roles[][2] = {
		{"worker", "agent"}, {"server", "server"}, {"joint", "both"}};

	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		if (!strcmp(text, roles[i][0])) {
			strcpy(to, roles[i][1]);
			return 0;
		}
	return snprintf(r->why, SW_LAUNCH_WHY_BYTES,
		"%s=%.60s is not one of worker, server, joint%s", name, text,
		strcmp(text, "scheduler") ? ""
					  : ": there is no scheduler, the "
					    "first server does its work");
}

/* Convert BytePS's switch. */
static int mode_convert(
	const struct reading *r, const char *text, char *to, const char *name)
{
	if (strcmp(text, "0") && strcmp(text, "1"))
		return snprintf(r->why, SW_LAUNCH_WHY_BYTES,
			"%s=%.60s is neither 0 nor 1", name, text);
	strcpy(to, *text == '1' ? "asynchronous" : "synchronous");
	return 0;
}

/* Pick this node's number from "2(x3),1": three nodes with two tasks each, one
 * with one.  SLURM_NODEID is the node's index. */
static int per_node_convert(
	const struct reading *r, const char *text, char *to, const char *name)
{
	const char *id = r->get("SLURM_NODEID"), *s = text;
	unsigned long node = id ? strtoul(id, NULL, 10) : 0;

	while (*s >= '1' && *s <= '9') {
		char *end;
		unsigned long tasks = strtoul(s, &end, 10), times = 1;

		if (!strncmp(end, "(x", 2)) {
			times = strtoul(end + 2, &end, 10);
			end += *end == ')';
		}
		if (node < times && tasks < 1000000) {
			snprintf(to, SW_LAUNCH_TEXT_BYTES, "%lu", tasks);
			return 0;
		}
		node -= times;
		s = end + (*end == ',');
	}
	return snprintf(r->why, SW_LAUNCH_WHY_BYTES,
		"%s=%.60s has no number of tasks for SLURM_NODEID=%.20s", name,
		text, id ? id : "");
}

static const struct variable {
	enum launcher_id launcher;
	const char *name;
	enum sw_launch_key key;
	/* Returns 0, or not 0 after refusing the value and writing the
	 * reason. */
	int (*convert)(const struct reading *r, const char *text, char *to,
		const char *name);
} variables[] = {
#define CONVERT_NUMBER   number_convert
#define CONVERT_NAME     name_convert
#define CONVERT_ROLE     role_convert
#define CONVERT_MODE     mode_convert
#define CONVERT_PER_NODE per_node_convert
#define LAUNCHER(id, word, mark, is_wrapped, name)
#define VARIABLE(launcher, variable, key, conversion) \
	{L_##launcher, variable, SW_LAUNCH_##key, CONVERT_##conversion},
#include "conf/launch.def"
#undef LAUNCHER
#undef VARIABLE
};

/* Return the value of a variable; NULL if it is unset or empty. */
static const char *given(const struct reading *r, const char *name)
{
	const char *text = r->get(name);

	return text && *text ? text : NULL;
}

static int launcher_take(
	const struct reading *r, enum launcher_id id, struct sw_launch *to)
{
	*to = (struct sw_launch){0};
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const struct variable *v = &variables[i];
		const char *text = given(r, v->name);
		struct sw_launch_value *value = &to->values[v->key];

		if (v->launcher != id || !text)
			continue;
		if (v->convert(r, text, value->text, v->name))
			return SW_ECONF;
		snprintf(value->said, sizeof(value->said), "%s", text);
		value->variable = v->name;
		value->launcher = launchers[id].name;
	}
	return 0;
}

int64_t sw_launch_number(const struct sw_launch *l, enum sw_launch_key key)
{
	const struct sw_launch_value *v = &l->values[key];

	return v->variable ? strtoll(v->text, NULL, 10) : -1;
}

/* Return whether a task of @outer, such as srun, has started the launcher of
 * @r->out, such as torchrun.  Then the outer rank is the machine's rank. */
static bool is_nested(const struct reading *r, const struct sw_launch *outer)
{
	const struct sw_launch *inner = r->out;
	int64_t size = sw_launch_number(outer, SW_LAUNCH_SIZE);
	int64_t nodes = sw_launch_number(inner, SW_LAUNCH_NODES);

	if (size < 0)
		return false;
	if (nodes >= 0)
		return nodes == size &&
		       sw_launch_number(inner, SW_LAUNCH_NODE_RANK) ==
			       sw_launch_number(outer, SW_LAUNCH_RANK);
	/* mpirun lets srun start its daemons: one on each other machine. */
	return r->inner->is_wrapped &&
	       size < sw_launch_number(inner, SW_LAUNCH_SIZE);
}

static int contradict(const struct reading *r, const struct launcher *outer,
	const struct sw_launch_value *a, const struct sw_launch_value *b)
{
	snprintf(r->why, SW_LAUNCH_WHY_BYTES,
		"%s=%s (%s) contradicts %s=%s (%s): unset the wrong one, or "
		"choose with SUMWIRE_LAUNCHER=%s or %s",
		a->variable, a->said, a->launcher, b->variable, b->said,
		b->launcher, r->inner->word, outer->word);
	return SW_ECONF;
}

static int merge(const struct reading *r, const struct launcher *outer,
	const struct sw_launch *more)
{
	if (is_nested(r, more))
		return 0;
	for (int k = 0; k < SW_LAUNCH_KEYS; k++) {
		struct sw_launch_value *a = &r->out->values[k];
		const struct sw_launch_value *b = &more->values[k];

		if (a->variable && b->variable && strcmp(a->text, b->text) != 0)
			return contradict(r, outer, a, b);
		if (!a->variable)
			*a = *b;
	}
	return 0;
}

/* Choose the launchers that count, one bit each: all whose mark is set, or the
 * launcher that the user names. */
static int choose(const struct reading *r, uint32_t *bits)
{
	const char *word = given(r, "SUMWIRE_LAUNCHER");
	size_t at;

	*bits = 0;
	for (int i = 0; i < N_LAUNCHERS; i++)
		if (word ? !strcmp(word, launchers[i].word)
			 : given(r, launchers[i].mark) != NULL)
			*bits |= UINT32_C(1) << i;
	if (!word || *bits || !strcmp(word, "none"))
		return 0;
	at = (size_t)snprintf(r->why, SW_LAUNCH_WHY_BYTES,
		"SUMWIRE_LAUNCHER=%.40s is not one of none", word);
	for (int i = 0; i < N_LAUNCHERS; i++)
		at += (size_t)snprintf(r->why + at, SW_LAUNCH_WHY_BYTES - at,
			", %s", launchers[i].word);
	return SW_ECONF;
}

int sw_launch_read(
	struct sw_launch *out, char *(*get)(const char *name), char *why)
{
	struct reading r = {.get = get, .out = out, .why = why};
	uint32_t bits;
	int err = choose(&r, &bits);

	*out = (struct sw_launch){0};
	for (int i = 0; i < N_LAUNCHERS && !err; i++) {
		struct sw_launch more;

		if (!(bits >> i & 1))
			continue;
		if (!r.inner)
			r.inner = &launchers[i];
		err = launcher_take(&r, (enum launcher_id)i, &more);
		if (!err)
			err = merge(&r, &launchers[i], &more);
	}
	return err;
}
