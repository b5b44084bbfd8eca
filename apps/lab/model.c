/* model.c - read a model file.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/value.h"
#include "engine/base/error.h"

enum { FILE_MAX = 4 << 20, LINE_WORDS = 8, F32 = 4 };

extern const char sw_model_vgg16[], sw_model_vgg16_end[];
extern const char sw_model_resnet50[], sw_model_resnet50_end[];
extern const char sw_model_transformer[], sw_model_transformer_end[];
extern const char sw_model_bert_large[], sw_model_bert_large_end[];

static const struct {
	const char *name, *text, *end;
} builtins[] = {
	{"vgg16", sw_model_vgg16, sw_model_vgg16_end},
	{"resnet50", sw_model_resnet50, sw_model_resnet50_end},
	{"transformer", sw_model_transformer, sw_model_transformer_end},
	{"bert-large", sw_model_bert_large, sw_model_bert_large_end},
};

enum { N_BUILTINS = sizeof(builtins) / sizeof(builtins[0]) };

/* State of a walk over the text. */
struct walk {
	struct sw_model *m;
	const char *file;
	uint32_t line;
	uint64_t n_layers, n_params; /* announced by the file; 0: not so far */
	char *why;
	size_t size;
};

static int fail(struct walk *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int fail(struct walk *w, const char *fmt, ...)
{
	int n = w->line ? snprintf(w->why, w->size, "%s:%u: ", w->file, w->line)
			: snprintf(w->why, w->size, "%s: ", w->file);
	va_list ap;

	va_start(ap, fmt);
	if (n >= 0 && (size_t)n < w->size)
		vsnprintf(w->why + n, w->size - (size_t)n, fmt, ap);
	va_end(ap);
	return SW_ECONF;
}

/* Read @text as a number of @unit from @min to @max. */
static int number(struct walk *w, const char *what, const char *text,
	enum sw_unit unit, uint64_t min, uint64_t max, uint64_t *out)
{
	char why[160], low[32], high[32];

	if (text[0] == '-')
		return fail(w, "%s is %s; it cannot be negative", what, text);
	if (sw_value_parse(text, unit, out, why, sizeof(why)))
		return fail(w, "%s: %s", what, why);
	if (*out < min || *out > max)
		return fail(w, "%s is %s; it goes from %s to %s", what, text,
			sw_value_format(min, unit, low, sizeof(low)),
			sw_value_format(max, unit, high, sizeof(high)));
	return 0;
}

static int text(struct walk *w, const char *what, const char *in, char *out,
	size_t size)
{
	if (!in[0] || strlen(in) >= size)
		return fail(w, "%s has 1 to %zu characters", what, size - 1);
	memcpy(out, in, strlen(in) + 1);
	return 0;
}

/* --- lines --- */

static int take_layer(struct walk *w, char **words, uint32_t n)
{
	struct sw_model *m = w->m;
	struct sw_model_layer *l = &m->layers[m->n_layers];
	const uint64_t day_ns = 86400ULL * 1000000000;
	uint64_t index;
	int err;

	if (n != 7 || strcmp(words[3], "forward") ||
		strcmp(words[5], "backward"))
		return fail(w, "a layer is written: layer NUMBER NAME forward "
			       "TIME backward TIME");
	if (!w->n_layers || !w->n_params)
		return fail(w, "\"layers N\" and \"parameters N\" come before "
			       "the first layer");
	err = number(w, "the number", words[1], SW_UNIT_NONE, 0,
		SW_MODEL_LAYERS - 1, &index);
	if (err)
		return err;
	if (index != m->n_layers)
		return fail(w, "layer %u is missing: this is layer %llu",
			m->n_layers, (unsigned long long)index);
	if (index >= w->n_layers)
		return fail(w, "layer %llu is one more than the %llu announced",
			(unsigned long long)index,
			(unsigned long long)w->n_layers);
	*l = (struct sw_model_layer){.first = m->n_tensors};
	err = text(w, "a layer's name", words[2], l->name, sizeof(l->name));
	if (!err)
		err = number(w, "the forward time", words[4], SW_UNIT_TIME, 0,
			day_ns, &l->forward_ns);
	if (!err)
		err = number(w, "the backward time", words[6], SW_UNIT_TIME, 0,
			day_ns, &l->backward_ns);
	m->n_layers += !err;
	m->forward_ns += l->forward_ns;
	m->backward_ns += l->backward_ns;
	return err;
}

/* Return the number of elements of a shape such as "64x3x3x3". */
static int take_shape(struct walk *w, char *shape, uint64_t *out)
{
	char *rest = shape, *word;

	*out = 1;
	while ((word = strsep(&rest, "x"))) {
		uint64_t d;
		int err = number(w, "a dimension", word, SW_UNIT_NONE, 1,
			UINT32_MAX, &d);

		if (err)
			return err;
		if (*out > (UINT64_C(1) << 34) / d)
			return fail(w, "a tensor has at most 64 GiB");
		*out *= d;
	}
	return 0;
}

static int take_tensor(struct walk *w, char **words, uint32_t n)
{
	struct sw_model *m = w->m;
	struct sw_model_tensor *t = &m->tensors[m->n_tensors];
	struct sw_model_layer *l;
	int err;

	if (n != 3)
		return fail(w, "a tensor is written: tensor NAME SHAPE, with a "
			       "shape like 64x3x3x3");
	if (!m->n_layers)
		return fail(w, "a tensor belongs to the layer above it, and "
			       "there is none");
	if (m->n_tensors == SW_MODEL_TENSORS)
		return fail(w, "more than %d tensors", SW_MODEL_TENSORS);
	err = text(w, "a tensor's name", words[1], t->name, sizeof(t->name));
	if (!err)
		err = take_shape(w, words[2], &t->n_elems);
	for (uint32_t i = 0; !err && i < m->n_tensors; i++)
		if (!strcmp(m->tensors[i].name, t->name))
			err = fail(w, "tensor %s is given twice", t->name);
	if (err)
		return err;
	l = &m->layers[m->n_layers - 1];
	t->layer = m->n_layers - 1;
	l->n_tensors++;
	l->bytes += F32 * t->n_elems;
	m->bytes += F32 * t->n_elems;
	m->n_tensors++;
	return 0;
}

static int take_count(struct walk *w, char **words, uint32_t n, uint64_t *out)
{
	if (n != 2)
		return fail(w, "%s is followed by one number", words[0]);
	if (*out)
		return fail(w, "%s is given twice", words[0]);
	return number(w, words[0], words[1], SW_UNIT_NONE, 1,
		out == &w->n_layers ? SW_MODEL_LAYERS : UINT64_C(1) << 40, out);
}

static int take_line(struct walk *w, char *line)
{
	char *words[LINE_WORDS], *rest = line, *word;
	uint32_t n = 0;

	line[strcspn(line, "#")] = '\0';
	line += strspn(line, " \t");
	if (!strncmp(line, "source ", 7))
		return text(w, "the source", line + 7, w->m->source,
			sizeof(w->m->source));
	rest = line;
	while ((word = strsep(&rest, " \t\r"))) {
		if (!*word)
			continue;
		if (n == LINE_WORDS)
			return fail(w, "too many words");
		words[n++] = word;
	}
	if (!n)
		return 0;
	if (!strcmp(words[0], "layer"))
		return take_layer(w, words, n);
	if (!strcmp(words[0], "tensor"))
		return take_tensor(w, words, n);
	if (!strcmp(words[0], "layers"))
		return take_count(w, words, n, &w->n_layers);
	if (!strcmp(words[0], "parameters"))
		return take_count(w, words, n, &w->n_params);
	if (!strcmp(words[0], "model") && n == 2)
		return text(w, "the name", words[1], w->m->name,
			sizeof(w->m->name));
	return fail(w,
		"\"%.40s\": a line begins with model, source, layers, "
		"parameters, layer or tensor",
		words[0]);
}

/* Check the rules that need the whole file. */
static int check_all(struct walk *w)
{
	const struct sw_model *m = w->m;

	w->line = 0;
	if (!m->name[0])
		return fail(w, "\"model NAME\" is missing");
	if (!m->source[0])
		return fail(w, "\"source TEXT\", where the times are from, is "
			       "missing");
	if (!m->n_layers || m->n_layers < w->n_layers)
		return fail(w, "layer %u of %llu is missing", m->n_layers,
			(unsigned long long)w->n_layers);
	if (m->bytes / F32 != w->n_params)
		return fail(w, "the tensors have %llu parameters, not %llu",
			(unsigned long long)(m->bytes / F32),
			(unsigned long long)w->n_params);
	if (!m->forward_ns || !m->backward_ns)
		return fail(w, "no layer takes any time");
	return 0;
}

int sw_model_parse(struct sw_model *m, const char *file, const char *in,
	size_t len, char *why, size_t size)
{
	struct walk w = {.m = m, .file = file, .why = why, .size = size};
	char *copy = malloc(len + 1), *rest = copy, *line;
	int err = 0;

	*m = (struct sw_model){0};
	m->layers = calloc(SW_MODEL_LAYERS, sizeof(*m->layers));
	m->tensors = calloc(SW_MODEL_TENSORS, sizeof(*m->tensors));
	if (!copy || !m->layers || !m->tensors) {
		snprintf(why, size, "%s: no memory", file);
		err = SW_ENOMEM;
	} else if (memchr(in, '\0', len)) {
		err = fail(&w, "this is no text");
	} else {
		memcpy(copy, in, len);
		copy[len] = '\0';
	}
	while (!err && (line = strsep(&rest, "\n"))) {
		w.line++;
		err = take_line(&w, line);
	}
	if (!err)
		err = check_all(&w);
	free(copy);
	if (err)
		sw_model_close(m);
	return err;
}

void sw_model_close(struct sw_model *m)
{
	free(m->layers);
	free(m->tensors);
	*m = (struct sw_model){0};
}

const char *sw_model_builtin(uint32_t i)
{
	return i < N_BUILTINS ? builtins[i].name : NULL;
}

/* --- sources of the text --- */

static int open_builtin(
	struct sw_model *m, const char *name, char *why, size_t size)
{
	struct sw_nearest near;
	int n;

	sw_nearest_init(&near, name);
	for (uint32_t i = 0; i < N_BUILTINS; i++) {
		if (!strcasecmp(builtins[i].name, name))
			return sw_model_parse(m, name, builtins[i].text,
				(size_t)(builtins[i].end - builtins[i].text),
				why, size);
		sw_nearest_add(&near, builtins[i].name);
	}
	n = snprintf(why, size, "unknown model \"%s\"", name);
	if (near.best && n > 0 && (size_t)n < size)
		snprintf(why + n, size - (size_t)n, "; did you mean %s?",
			near.best);
	else if (n > 0 && (size_t)n < size)
		snprintf(why + n, size - (size_t)n,
			"; there are vgg16, resnet50, transformer, bert-large, "
			"or the path of a file");
	return SW_ENOENT;
}

int sw_model_open(struct sw_model *m, const char *what, char *why, size_t size)
{
	char *in;
	FILE *f;
	size_t n;
	int err;

	*m = (struct sw_model){0};
	if (!strpbrk(what, "/."))
		return open_builtin(m, what, why, size);
	f = fopen(what, "r");
	in = f ? malloc(FILE_MAX + 1) : NULL;
	if (!in) {
		snprintf(why, size, "%s: %s", what, strerror(errno));
		err = errno == ENOENT ? SW_ENOENT : SW_EIO;
		if (f)
			fclose(f);
		return err;
	}
	n = fread(in, 1, FILE_MAX + 1, f);
	if (ferror(f) || n > FILE_MAX) {
		snprintf(why, size, "%s: %s", what,
			ferror(f) ? strerror(errno) : "larger than 4 MiB");
		err = SW_EIO;
	} else {
		err = sw_model_parse(m, what, in, n, why, size);
	}
	fclose(f);
	free(in);
	return err;
}
