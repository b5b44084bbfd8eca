/* unit_model.c - model files: built-in ones, and ones that are refused.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/lab/model.h"
#include "engine/base/error.h"
#include "test/support/env.h"

#define HEAD   "model M\nsource a book\nlayers 2\nparameters 30\n"
#define LAYER0 "layer 0 a forward 1ms backward 2ms\ntensor a.w 4x5\n"
#define LAYER1 "layer 1 b forward 3us backward 6us\ntensor b.w 10\n"

static int parse(const char *text, struct sw_model *m, char why[256])
{
	why[0] = '\0';
	return sw_model_parse(m, "f", text, strlen(text), why, 256);
}

/* Numbers as published by torchvision, fairseq's log and Hugging Face. */
static void builtin__parameters_as_published(void **state)
{
	static const struct {
		const char *name;
		uint64_t n_params;
		uint32_t n_tensors;
		uint64_t iteration_us;
	} rows[] = {{"vgg16", 138357544, 32, 222222},
		{"ResNet50", 25557032, 161, 164103},
		{"transformer", 210808832, 149, 335298},
		{"BERT-large", 335141888, 391, 925926}};

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		struct sw_model m;
		char why[256];
		uint64_t n = 0, us;

		assert_int_equal(
			sw_model_open(&m, rows[i].name, why, sizeof(why)), 0);
		for (uint32_t t = 0; t < m.n_tensors; t++)
			n += m.tensors[t].n_elems;
		assert_int_equal(n, rows[i].n_params);
		assert_int_equal(m.bytes, 4 * n);
		assert_int_equal(m.n_tensors, rows[i].n_tensors);
		us = (m.forward_ns + m.backward_ns) / 1000;
		assert_in_range(
			us, rows[i].iteration_us - 1, rows[i].iteration_us + 1);
		assert_in_range(m.backward_ns, 2 * m.forward_ns - m.n_layers,
			2 * m.forward_ns + m.n_layers);
		sw_model_close(&m);
	}
	assert_null(sw_model_builtin(4));
}

/* The largest tensor of VGG16, above 400 MB according to the paper. */
static void builtin__shapes_of_vgg16(void **state)
{
	struct sw_model m;
	char why[256];

	assert_int_equal(sw_model_open(&m, "vgg16", why, sizeof(why)), 0);
	assert_string_equal(m.tensors[26].name, "fc6.weight");
	assert_int_equal(m.tensors[26].n_elems, 4096 * 25088);
	assert_int_equal(m.tensors[26].layer, 13);
	assert_int_equal(m.layers[13].bytes, 4 * (4096 * 25088 + 4096));
	sw_model_close(&m);
}

static void parse__good(void **state)
{
	struct sw_model m;
	char why[256];

	assert_int_equal(
		parse("# a comment\n\n" HEAD LAYER0 LAYER1, &m, why), 0);
	assert_string_equal(m.name, "M");
	assert_string_equal(m.source, "a book");
	assert_int_equal(m.n_layers, 2);
	assert_int_equal(m.layers[1].forward_ns, 3000);
	assert_int_equal(m.layers[1].first, 1);
	assert_int_equal(m.bytes, 120);
	sw_model_close(&m);
}

static void parse__refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{HEAD LAYER1, "f:5: layer 0 is missing"},
		{HEAD LAYER0, "f: layer 1 of 2 is missing"},
		{HEAD LAYER0 LAYER0, "f:7: layer 1 is missing: this is layer "
				     "0"},
		{HEAD LAYER0 LAYER1 "layer 2 c forward 1us backward 2us\n",
			"f:9: layer 2 is one more than the 2"},
		{HEAD "layer 0 a forward -1ms backward 2ms\n",
			"f:5: the forward time is -1ms; it cannot be negative"},
		{HEAD "layer 0 a forward 1ms backward -2ms\n", "f:5: the back"},
		{HEAD "layer 0 a forward 1 backward 2ms\n",
			"f:5: the forward time: "},
		{HEAD "layer 0 a forward 2000000s backward 2ms\n",
			"f:5: the forward time is 2000000s; it goes from"},
		{HEAD "layer 0 a forward 1ms\n", "f:5: a layer is written"},
		{LAYER0, "f:1: \"layers N\" and"},
		{HEAD "tensor a.w 4\n", "f:5: a tensor belongs to"},
		{HEAD LAYER0 "tensor a.w 4\n",
			"f:7: tensor a.w is given twice"},
		{HEAD LAYER0 "tensor c 4x0\n", "f:7: a dimension is 0"},
		{HEAD LAYER0 "tensor c 4xx2\n", "f:7: a dimension"},
		{HEAD LAYER0 "tensor c 4x-2\n", "it cannot be negative"},
		{HEAD LAYER0 "tensor c 4000000000x4000000000\n",
			"f:7: a tensor has at most 64 GiB"},
		{HEAD LAYER0 LAYER1 "tensor c 1\n",
			"f: the tensors have 31 parameters, not 30"},
		{HEAD "layers 3\n", "f:5: layers is given twice"},
		{"layers 0\n", "f:1: layers is 0"},
		{"layers 99999\n", "f:1: layers is 99999; it goes from"},
		{"nonsense\n", "f:1: \"nonsense\": a line begins with"},
		{"", "f: \"model NAME\" is missing"},
	};

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		struct sw_model m;
		char why[256];

		assert_int_equal(parse(rows[i].text, &m, why), SW_ECONF);
		if (!strstr(why, rows[i].why))
			fail_msg("\"%s\" is not in \"%s\"", rows[i].why, why);
		assert_null(m.layers);
	}
}

/* Every prefix of a valid file is refused, without a read beyond it. */
static void parse__cut_anywhere(void **state)
{
	const char *text = HEAD LAYER0 LAYER1;

	for (size_t n = 0; n + 3 < strlen(text); n++) {
		struct sw_model m;
		char why[256];

		assert_int_equal(
			sw_model_parse(&m, "f", text, n, why, sizeof(why)),
			SW_ECONF);
	}
}

static void open__names_what_is_there(void **state)
{
	struct sw_model m;
	char why[256];

	assert_int_equal(
		sw_model_open(&m, "vgg61", why, sizeof(why)), SW_ENOENT);
	assert_non_null(strstr(why, "did you mean vgg16?"));
	assert_int_equal(
		sw_model_open(&m, "/nowhere/x", why, sizeof(why)), SW_ENOENT);
	assert_non_null(strstr(why, "/nowhere/x: No such file"));
	assert_true(sw_model_open(&m, "/", why, sizeof(why)) < 0);
}

static void open__file(void **state)
{
	char path[] = "/tmp/unit-model-XXXXXX", why[256];
	const char *text = HEAD LAYER0 LAYER1;
	struct sw_model m;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(sw_model_open(&m, path, why, sizeof(why)), 0);
	assert_int_equal(m.n_tensors, 2);
	sw_model_close(&m);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builtin__parameters_as_published),
		cmocka_unit_test(builtin__shapes_of_vgg16),
		cmocka_unit_test(parse__good),
		cmocka_unit_test(parse__refused_with_its_line),
		cmocka_unit_test(parse__cut_anywhere),
		cmocka_unit_test(open__names_what_is_there),
		cmocka_unit_test(open__file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
