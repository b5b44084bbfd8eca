/* unit_environ.c - options from the environment together with a file's.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/conf/conf_files.h"

#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Set the variables in "A=1 B=2", or unset them. */
static void environ_set(const char *text, bool is_set)
{
	char copy[512], *save, *word;

	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, " ", &save); word;
		word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		*value++ = '\0';
		if (is_set)
			setenv(word, value, 1);
		else
			unsetenv(word);
	}
}

static int load_in(const char *env, const char *text, struct sw_conf *conf,
	struct said *said)
{
	int err;

	environ_set(env, true);
	err = load(text, conf, said);
	environ_set(env, false);
	return err;
}

#define OMPI "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3"
#define DMLC                                                   \
	"DMLC_ROLE=worker DMLC_WORKER_ID=1 DMLC_NUM_WORKER=3 " \
	"DMLC_NUM_SERVER=1 DMLC_PS_ROOT_URI=10.0.0.1 DMLC_PS_ROOT_PORT=9000"
#define SERVE "[node]\nrole = server\n"

static void environ_apply__fills_in(void **state)
{
	static const struct {
		const char *env, *text;
		uint32_t rank, agents, udp_port, serve_port;
	} rows[] = {
		{OMPI, GOOD, 1, 3, 5700, 5700},
		{OMPI, GOOD "[job]\nagent = 1\n", 1, 3, 5700, 5700},
		{OMPI, GOOD "[job]\nagent = 1\nagents = 3\n", 1, 3, 5700, 5700},
		{OMPI, SERVE PORT, 0, 1, 0, 5700},
		{OMPI " SUMWIRE_LAUNCHER=none", GOOD, 0, 1, 5700, 5700},
		{DMLC, GOOD, 1, 3, 9000, 5700},
		{DMLC, PORT, 1, 3, 9000, 5700},
		{"DMLC_ROLE=server DMLC_NUM_WORKER=3 DMLC_PS_ROOT_PORT=9000",
			PORT, 0, 1, 0, 9000},
		{"DMLC_ROLE=server DMLC_NUM_SERVER=2 DMLC_PS_ROOT_PORT=9000",
			PORT, 0, 1, 0, 5700},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sw_conf conf;
		struct said said;

		if (load_in(rows[i].env, rows[i].text, &conf, &said))
			fail_msg("%s: %s", rows[i].env, said.text);
		assert_int_equal(conf.job.agent, rows[i].rank);
		assert_int_equal(conf.job.agents, rows[i].agents);
		assert_int_equal(conf.serve.udp_port, rows[i].serve_port);
		assert_int_equal(conf.n_servers, rows[i].udp_port != 0);
		assert_int_equal(conf.servers[0].udp_port, rows[i].udp_port);
	}
	(void)state;
}

static void environ_apply__server_of_dmlc(void **state)
{
	struct sw_conf conf;
	struct said said;

	assert_int_equal(load_in(DMLC, PORT, &conf, &said), 0);
	assert_int_equal(conf.node.role, SW_ROLE_AGENT);
	assert_int_equal(conf.n_servers, 1);
	assert_string_equal(conf.servers[0].label, "root");
	assert_string_equal(conf.servers[0].port, "a");
	assert_int_equal((uint32_t)conf.servers[0].ip.low, 0x0a000001);
	(void)state;
}

static void environ_key_file__fills_in(void **state)
{
	static const struct {
		const char *env, *text, *job, *serve;
	} rows[] = {
		{"SUMWIRE_KEY_FILE=/k", GOOD, "/k", ""},
		{"SUMWIRE_KEY_FILE=/k SUMWIRE_LAUNCHER=none", GOOD, "/k", ""},
		{"SUMWIRE_KEY_FILE=", GOOD, "", ""},
		{"SUMWIRE_KEY_FILE=/k", GOOD "[job]\nkey_file = /j\n", "/j",
			""},
		{"SUMWIRE_KEY_FILE=/k", GOOD "[job]\nkey_file =\n", "", ""},
		{"SUMWIRE_KEY_FILE=/k", SERVE PORT, "", "/k"},
		{"SUMWIRE_KEY_FILE=/k",
			SERVE PORT "[serve]\nrequire_key = yes\n", "", "/k"},
		{"SUMWIRE_KEY_FILE=/k", SERVE PORT "[serve]\nkey_file = /s\n",
			"", "/s"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sw_conf conf;
		struct said said;

		if (load_in(rows[i].env, rows[i].text, &conf, &said))
			fail_msg("%s: %s", rows[i].env, said.text);
		assert_string_equal(conf.job.key_file, rows[i].job);
		assert_string_equal(conf.serve.key_file, rows[i].serve);
	}
	(void)state;
}

static void environ_encrypt__agents(void **state)
{
	static const struct {
		const char *env, *text;
		bool encrypts;
	} rows[] = {
		{"SUMWIRE_KEY_FILE=/k SUMWIRE_ENCRYPT=yes", GOOD, true},
		{"SUMWIRE_KEY_FILE=/k SUMWIRE_ENCRYPT=no", GOOD, false},
		{"SUMWIRE_KEY_FILE=/k SUMWIRE_ENCRYPT=", GOOD, false},
		{"SUMWIRE_ENCRYPT=yes", GOOD "[job]\nencrypt = no\n", false},
		{"SUMWIRE_ENCRYPT=yes", SERVE PORT, false},
		{"SUMWIRE_KEY_FILE=/k", GOOD "[job]\nencrypt = yes\n", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sw_conf conf;
		struct said said;

		if (load_in(rows[i].env, rows[i].text, &conf, &said))
			fail_msg("%s: %s", rows[i].env, said.text);
		assert_int_equal(conf.job.encrypt, rows[i].encrypts);
	}
	(void)state;
}

static void environ_apply__refused(void **state)
{
	static const struct {
		const char *env, *text, *why;
	} rows[] = {
		{OMPI, GOOD "[job]\nagent = 0\n",
			":11: [job] agent: is 0, but in the environment "
			"OMPI_COMM_WORLD_RANK=1 (OpenMPI)"},
		{OMPI, GOOD "[job]\nagents = 4\n",
			":11: [job] agents: is 4, but in the environment "
			"OMPI_COMM_WORLD_SIZE=3 (OpenMPI)"},
		{OMPI " RANK=0 WORLD_SIZE=3", GOOD,
			"RANK=0 (torchrun) contradicts "
			"OMPI_COMM_WORLD_RANK=1"},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=65", GOOD,
			"OMPI_COMM_WORLD_SIZE=65 (OpenMPI): \"65\" is out of "
			"range: 1 to 64"},
		{"OMPI_COMM_WORLD_RANK=1", GOOD,
			"OMPI_COMM_WORLD_RANK of OpenMPI was taken from the "
			"environment"},
		{DMLC, SERVE PORT,
			"[node] role: is server, but in the environment "
			"DMLC_ROLE=worker"},
		{DMLC, NODE PORT "[server s]\nip = 10.0.0.9\nport = a\n",
			"[server s] ip: is 10.0.0.9, but in the environment "
			"DMLC_PS_ROOT_URI=10.0.0.1"},
		{DMLC, GOOD "udp_port = 5701\n",
			"[server s] udp_port: is 5701, but in the environment "
			"DMLC_PS_ROOT_PORT=9000"},
		{DMLC,
			PORT "[port b]\nsocket = /y\nside = connect\n"
			     "ip = 10.1.0.2/24\n",
			"which of the 2 ports leads there?"},
		{"DMLC_ROLE=worker DMLC_NUM_SERVER=2", GOOD,
			"has 1 of [server NAME], but in the environment "
			"DMLC_NUM_SERVER=2"},
		{"DMLC_ROLE=worker DMLC_PS_ROOT_URI=host", PORT,
			"DMLC_PS_ROOT_URI=host (DMLC): \"host\" is not an "
			"IPv4"},
		{"DMLC_ROLE=scheduler", GOOD, "there is no scheduler"},
		{"SUMWIRE_LAUNCHER=no", GOOD, "SUMWIRE_LAUNCHER=no is not one"},
		{"SUMWIRE_KEY_FILE=k", GOOD,
			"[job] key_file: in the environment SUMWIRE_KEY_FILE: "
			"\"k\" is not an absolute path"},
		{"SUMWIRE_KEY_FILE=/k",
			SERVE PORT "[serve]\nrequire_key = yes\nkey_file =\n",
			"[serve] require_key: refuses every job"},
		{"SUMWIRE_ENCRYPT=yes", GOOD,
			"[job] encrypt: needs the secret of the job"},
		{"SUMWIRE_ENCRYPT=maybe", GOOD,
			"[job] encrypt: in the environment SUMWIRE_ENCRYPT: "},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sw_conf conf;
		struct said said;

		assert_int_equal(
			load_in(rows[i].env, rows[i].text, &conf, &said),
			SW_ECONF);
		if (!strstr(said.text, rows[i].why))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].env,
				said.text, rows[i].why);
	}
	(void)state;
}

/* Each value in the printed file has its origin beside it, and the file loads
 * again. */
static void conf_print__origins(void **state)
{
	struct sw_conf_origins *origins = malloc(sizeof(*origins));
	char path[] = "/tmp/unit_environ_XXXXXX", *text;
	struct sw_conf conf, again;
	int fd = mkstemp(path);
	struct said said;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_int_equal(write(fd, GOOD, strlen(GOOD)), strlen(GOOD));
	close(fd);
	environ_set(OMPI " SUMWIRE_KEY_FILE=/k", true);
	assert_int_equal(sw_conf_load_origins(path, &conf, origins, NULL), 0);
	environ_set(OMPI " SUMWIRE_KEY_FILE=/k", false);
	unlink(path);
	sw_conf_print(&conf, origins, f);
	fclose(f);
	assert_non_null(strstr(text, "role = agent "));
	assert_non_null(strstr(text, "; line 2\n"));
	assert_non_null(strstr(text, "; OMPI_COMM_WORLD_RANK of OpenMPI\n"));
	assert_non_null(strstr(text, "; SUMWIRE_KEY_FILE\n"));
	assert_non_null(strstr(text, "; by default\n"));
	assert_int_equal(load(text, &again, &said), 0);
	assert_memory_equal(&conf, &again, sizeof(conf));
	free(text);
	free(origins);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(environ_apply__fills_in),
		cmocka_unit_test(environ_apply__server_of_dmlc),
		cmocka_unit_test(environ_key_file__fills_in),
		cmocka_unit_test(environ_encrypt__agents),
		cmocka_unit_test(environ_apply__refused),
		cmocka_unit_test(conf_print__origins),
	};

	return cmocka_run_group_tests_name("environ", tests, NULL, NULL);
}
