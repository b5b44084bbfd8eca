/* unit_conf_text.c - default values, and options explained to people.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/conf/conf_files.h"

#include "conf/options.h"
#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const char *root; /* the root of the source tree */

static void conf_defaults__all_parse(void **state)
{
	char field[SW_CONF_USERS_BYTES], why[SW_WHY_BYTES];

	for (uint32_t i = 0; i < sw_n_options; i++) {
		const struct sw_option *o = &sw_options[i];

		if (o->def && sw_option_parse(o, o->def, field, why) < 0)
			fail_msg("[%s] %s: %s", o->section, o->key, why);
	}
}

static void conf_print__reads_back(void **state)
{
	static const char *const texts[] = {GOOD,
		GOOD "[job]\ncrc = no\nstall_warn = 1.5s\n[agent]\n"
		     "users = a,b\nquota = 5000000KB\nlocal_ranks = 2\n"
		     "[lcore]\ncpus = 1\n[sum]\nlevel = scalar\n"
		     "[port b]\nsocket = /y\nside = listen\nip = 10.9.0.1/30\n"
		     "fault_reorder = 12.3456%\n"};
	struct sw_conf conf, again;
	struct said said;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char *text;
		size_t n;
		FILE *f = open_memstream(&text, &n);

		assert_int_equal(load(texts[i], &conf, &said), 0);
		sw_conf_print(&conf, NULL, f);
		fclose(f);
		assert_int_equal(load(text, &again, &said), 0);
		assert_memory_equal(&conf, &again, sizeof(conf));
		free(text);
	}
}

static void conf_explain__key(void **state)
{
	const char *near = NULL;
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_int_equal(sw_conf_explain("port.ring", f, &near), 0);
	assert_null(near);
	assert_int_equal(sw_conf_explain("job.ring", f, &near), SW_ENOENT);
	assert_int_equal(sw_conf_explain("rnig", f, &near), SW_ENOENT);
	assert_string_equal(near, "ring");
	fclose(f);
	assert_non_null(strstr(text, "[port NAME] ring\n"));
	assert_non_null(strstr(text, "default: 0\n"));
	free(text);
}

/* Every key and section has an explanation. */
static void conf_explain__all(void **state)
{
	char key[128], *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	for (uint32_t i = 0; i < sw_n_options; i++) {
		const struct sw_option *o = &sw_options[i];

		snprintf(key, sizeof(key), "%s.%s", o->section, o->key);
		assert_int_equal(sw_conf_explain(key, f, NULL), 0);
		assert_true(strlen(o->text) > 10);
	}
	for (uint32_t i = 0; i < sw_n_sections; i++)
		assert_int_equal(
			sw_conf_explain(sw_sections[i].name, f, NULL), 0);
	fclose(f);
	free(text);
}

static void conf_reference__page_is_current(void **state)
{
	char path[1024], *text, *page;
	size_t n, n_page;
	FILE *f = open_memstream(&text, &n);

	sw_conf_reference(f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/doc/configuration.md", root);
	f = fopen(path, "r");
	assert_non_null(f);
	page = calloc(1, n + 2);
	n_page = fread(page, 1, n + 1, f);
	fclose(f);
	if (n_page != n || memcmp(page, text, n))
		fail_msg("write it again: sumwire conf --reference > "
			 "doc/configuration.md");
	free(page);
	free(text);
}

/* The manual page contains every option and no line that troff could take for
 * another macro. */
static void conf_man__every_option(void **state)
{
	static const char *const macros[] = {".\\\"", ".B ", ".BR ", ".PP",
		".SH ", ".SS ", ".TH ", ".TP", ".br"};
	char heading[80], *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	sw_conf_man("1.2.3", f);
	fclose(f);
	assert_non_null(strstr(text, "\"sumwire 1.2.3\""));
	for (uint32_t i = 0; i < sw_n_options; i++) {
		snprintf(heading, sizeof(heading), ".TP\n.B %s\n",
			sw_options[i].key);
		assert_non_null(strstr(text, heading));
	}
	for (const char *line = strtok(text, "\n"); line;
		line = strtok(NULL, "\n")) {
		bool is_known = *line != '.' && *line != '\'';

		for (size_t i = 0; i < sizeof(macros) / sizeof(*macros); i++)
			is_known |=
				!strncmp(line, macros[i], strlen(macros[i]));
		if (!is_known)
			fail_msg("unknown macro: %s", line);
	}
	free(text);
}

static void conf_cpus_list__ranges(void **state)
{
	uint32_t cpus[SW_CONF_CPUS_MAX];

	assert_int_equal(sw_conf_cpus_list("auto", cpus), 0);
	assert_int_equal(sw_conf_cpus_list("7,2-4", cpus), 4);
	assert_int_equal(cpus[0], 7);
	assert_int_equal(cpus[3], 4);
	assert_int_equal(sw_conf_cpus_list("0-127", cpus), 128);
	assert_int_equal(sw_conf_cpus_list("0-128", cpus), SW_EINVAL);
	assert_int_equal(sw_conf_cpus_list("", cpus), SW_EINVAL);
	assert_int_equal(sw_conf_cpus_list("1 ", cpus), SW_EINVAL);
	assert_int_equal(sw_conf_cpus_list("01", cpus), SW_EINVAL);
	assert_int_equal(sw_conf_cpus_list("1-", cpus), SW_EINVAL);
}

static void conf_networks_list__both_families(void **state)
{
	static const char *const wrong[] = {"10.5.8.0/33", "10.5.8.0/0",
		"10.5.8.0/", "10.5.8/24", "10.5.8.0/24,", ",10.5.8.0/24",
		"fd00::/129", "10.5.8.0/2x", "10.5.8.0 /24", "gpu0",
		"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
	struct sw_conf_subnet nets[SW_CONF_NETWORKS_MAX];
	char many[SW_CONF_NETWORKS_MAX * 8 + 16] = "10.0.0.1";

	assert_int_equal(sw_conf_networks_list("", nets), 0);
	assert_int_equal(
		sw_conf_networks_list("10.5.8.0/24,fd00:5::/64,10.0.0.7", nets),
		3);
	assert_true(sw_ip_is_same(nets[0].ip, sw_ip_v4(0x0a050800)));
	assert_int_equal(nets[0].bits, 24);
	assert_int_equal(nets[1].bits, 64);
	assert_int_equal(nets[1].ip.high >> 48, 0xfd00);
	assert_int_equal(nets[2].bits, 32);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(
			sw_conf_networks_list(wrong[i], nets), SW_EINVAL);
	for (int i = 1; i < SW_CONF_NETWORKS_MAX; i++)
		strcat(many, ",1.1.1.1");
	assert_int_equal(
		sw_conf_networks_list(many, nets), SW_CONF_NETWORKS_MAX);
	strcat(many, ",1.1.1.1");
	assert_int_equal(sw_conf_networks_list(many, nets), SW_EINVAL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf_defaults__all_parse),
		cmocka_unit_test(conf_print__reads_back),
		cmocka_unit_test(conf_explain__key),
		cmocka_unit_test(conf_explain__all),
		cmocka_unit_test(conf_reference__page_is_current),
		cmocka_unit_test(conf_man__every_option),
		cmocka_unit_test(conf_cpus_list__ranges),
		cmocka_unit_test(conf_networks_list__both_families),
	};

	root = argc > 1 ? argv[1] : ".";
	return cmocka_run_group_tests_name("conf_text", tests, NULL, NULL);
}
