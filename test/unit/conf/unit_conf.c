/* unit_conf.c - load valid and invalid configuration files.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/conf/conf_files.h"

#include <glob.h>

#include "conf/options.h"
#include "conf/report.h"
#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const char *root; /* the root of the source tree */

static void conf_load__minimal(void **state)
{
	struct sw_conf conf;
	struct said said;

	assert_int_equal(load(GOOD, &conf, &said), 0);
	assert_string_equal(said.text, "");
	assert_int_equal(conf.node.role, SW_ROLE_AGENT);
	assert_string_equal(conf.node.name, "");
	assert_int_equal(conf.job.dead_after_ns, 10000000000);
	assert_int_equal(conf.job.payload_bytes, 0);
	assert_true(conf.job.crc);
	assert_int_equal(conf.agent.quota_bytes, UINT64_C(4) << 30);
	assert_int_equal(conf.n_ports, 1);
	assert_string_equal(conf.ports[0].label, "a");
	assert_int_equal((uint32_t)conf.ports[0].subnet.ip.low, 0x0a000002);
	assert_int_equal(conf.ports[0].subnet.bits, 24);
	assert_int_equal(conf.ports[0].ring_slots, 0);
	assert_int_equal(conf.n_servers, 1);
	assert_int_equal((uint32_t)conf.servers[0].ip.low, 0x0a000001);
	assert_int_equal(conf.servers[0].udp_port, 5700);
	assert_int_equal(conf.log.level, SW_LOG_INFO);
	assert_int_equal(conf.lcore.spin_ns, 20000);
}

static void conf_load__everything(void **state)
{
	struct sw_conf conf;
	struct said said;

	assert_int_equal(load("# comment\n; another\n\n"
			      " [node]  \n\trole=server ;c\nname = \"n1\" # c\n"
			      "runtime_dir = '/run/x'\r\n"
			      "[job]\ncrc = no\npayload=1344\nagents = 64\n"
			      "stall_limit = 2 min\n"
			      "[agent]\nusers = alice,1001\n"
			      "[port b]\nsocket = /b\nside = listen\n"
			      "ip = 10.1.0.1/16\nfault_loss = 0.5%\n"
			      "fault_seed = 18446744073709551615\nring=1024\n"
			      "[port a]\nsocket = /a\nside = listen\nid = 7\n"
			      "ip = 10.2.0.1/31\n"
			      "[serve]\nlcores = 3\n"
			      "[lcore]\ncpus = 2,4-5\nsleep = 0\n"
			      "[sum]\nlevel = avx2\n[log]\nlevel = debug",
				 &conf, &said),
		0);
	assert_int_equal(conf.node.role, SW_ROLE_SERVER);
	assert_string_equal(conf.node.name, "n1");
	assert_string_equal(conf.node.runtime_dir, "/run/x");
	assert_false(conf.job.crc);
	assert_int_equal(conf.job.payload_bytes, 1344);
	assert_int_equal(conf.job.stall_limit_ns, 120000000000);
	assert_string_equal(conf.agent.users, "alice,1001");
	assert_int_equal(conf.n_ports, 2);
	/* ports keep the order of the file */
	assert_string_equal(conf.ports[0].label, "b");
	assert_int_equal(conf.ports[0].fault_loss_ppm, 5000);
	assert_int_equal(conf.ports[0].fault_seed, UINT64_MAX);
	assert_int_equal(conf.ports[1].memif_id, 7);
	assert_int_equal(conf.ports[1].side, SW_SIDE_LISTEN);
	assert_string_equal(conf.lcore.cpus, "2,4-5");
	assert_int_equal(conf.lcore.sleep_ns, 0);
	assert_int_equal(conf.sum.level, SW_LEVEL_AVX2);
	assert_int_equal(conf.log.level, SW_LOG_DEBUG);
	assert_int_equal(sw_conf_port_find(&conf, "a"), 1);
	assert_int_equal(sw_conf_port_find(&conf, "c"), SW_ENOENT);
}

static void conf_load__bad_value(void **state)
{
	static const struct {
		const char *lines, *why;
	} rows[] = {
		{"[job]\nagents = 042\n", "11: [job] agents: \"042\" has a "
					  "leading zero"},
		{"[job]\nagents = 64k\n", "\"k\" follows it"},
		{"[job]\nagents = -1\n", "has a sign"},
		{"[job]\nagents = 65\n", "out of range: 1 to 64"},
		{"[job]\nagents = 0\n", "out of range: 1 to 64"},
		{"[job]\nagents = 2 3\n", "\"3\" follows it"},
		{"[job]\nagents = 0x2\n", "\"x2\" follows it"},
		{"[job]\nagents =\n", "is empty"},
		{"[job]\nagents = 99999999999999999999\n", "too large"},
		{"[job]\nagent = 1\n", "too large for 1 agents"},
		{"[job]\ndead_after = 10\n", "has no unit"},
		{"[job]\ndead_after = 10sec\n", "ns us ms s min"},
		{"[job]\ndead_after = 11min\n", "1s to 10min"},
		{"[job]\nstall_warn = 10min\n", "not below stall_limit"},
		{"[job]\ncrc = true\n", "neither yes nor no"},
		{"[job]\npayload = 8191\n", "multiple of 64 from 1152 to 8192"},
		{"[job]\npayload = 1088\n", "multiple of 64 from 1152 to 8192"},
		{"[job]\npayload = 8256\n", "8192"},
		{"[job]\nname = a b\n", "is not a name"},
		{"[job]\nname =\n", "is not a name"},
		{"[agent]\nquota = 64k\n", "unknown unit \"k\""},
		{"[agent]\nquota = 1B\n", "1MiB to 16384GiB"},
		{"[agent]\nsocket = x/y\n", "neither an absolute path"},
		{"[agent]\nsocket = ..\n", "nor a name alone"},
		{"[agent]\nsocket =\n", "neither an absolute path"},
		{"[stats]\nsocket = x/y\n", "nor a name alone"},
		{"[agent]\nsocket = /a b\n", "has a blank"},
		{"[agent]\nusers = a,,b\n", "alice,bob,1001"},
		{"[agent]\nusers = a,\n", "alice,bob,1001"},
		{"[serve]\njobs = a,,b\n", "list of jobs like llm,vision-*"},
		{"[serve]\njobs = a b\n", "list of jobs"},
		{"[serve]\njobs = a*b\n", "list of jobs"},
		{"[serve]\nfrom = 10.5.8.0/40\n", "networks like 10.5.8.0/24"},
		{"[serve]\nfrom = gpu0\n", "at most 16 networks"},
		{"[lcore]\ncpus = 5-3\n", "list of different CPUs"},
		{"[lcore]\ncpus = 1,1\n", "list of different CPUs"},
		{"[lcore]\ncpus = 1,\n", "list of different CPUs"},
		{"[lcore]\ncpus = 1024\n", "list of different CPUs"},
		{"[lcore]\ncpus = 0-200\n", "list of different CPUs"},
		{"[lcore]\ncpus = 2,4\n", "\"2,4\" has 2 CPUs for 1 lcores "
					  "([agent] lcores)"},
		{"[lcore]\nspin = 2s\n", "0 to 1s"},
		{"[sum]\nlevel = avx51\n", "did you mean avx512?"},
		{"[log]\nlevel = 2\n", "is none of error, warn, info, debug"},
	};
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text), GOOD "%s", rows[i].lines);
		refused(text, rows[i].why);
	}
}

static void conf_load__bad_role(void **state)
{
	refused("[node]\nrole = agnet\n" PORT SERVER, "did you mean agent?");
	refused("[node]\n" PORT SERVER, "1: [node] role: is missing");
	refused(PORT SERVER, "[node] role: is missing");
}

/* With role = both the agent is also a server, and finds its own entry in the
 * list. */
static void conf_load__both(void **state)
{
	static const char *const both =
		"[node]\nrole = both\n[job]\nagents = 2\n" PORT;
	static const struct {
		const char *lines, *why;
	} rows[] = {
		{"[server s]\nip = 10.0.0.2\nport = a\n",
			"1 [server NAME] for 2 agents"},
		{"[server s]\nip = 10.0.0.3\nport = a\n"
		 "[server t]\nip = 10.0.0.4\nport = a\n",
			"no [server NAME] is this node: with role = both "
			"number 1 of the list"},
		{"[server s]\nip = 10.0.0.1\nport = a\n"
		 "[server t]\nip = 10.0.0.2\nport = a\n",
			"[server t] ip: is this node and number 2 of the list, "
			"but agent 0 must be number 1"},
	};
	struct sw_conf conf;
	struct said said;
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text), "%s%s", both, rows[i].lines);
		refused(text, rows[i].why);
	}
	snprintf(text, sizeof(text),
		"%s[server c]\nip = 10.0.0.9\nport = a\n"
		"[server s]\nip = 10.0.0.2\nport = a\n"
		"[server t]\nip = 10.0.0.1\nport = a\n",
		both);
	assert_int_equal(load(text, &conf, &said), 0);
	assert_int_equal(conf.node.role, SW_ROLE_BOTH);
	assert_false(sw_conf_is_own(&conf, &conf.servers[0]));
	assert_true(sw_conf_is_own(&conf, &conf.servers[1]));
	strcat(text, "[serve]\nudp_port = 65535\n");
	assert_int_equal(load(text, &conf, &said), SW_ECONF);
	assert_non_null(strstr(
		said.text, "2 ports from there on are needed: 65534 at most"));
}

static void conf_load__bad_address(void **state)
{
	static const struct {
		const char *ip, *why;
	} rows[] = {
		{"10.0.0.2", "with a prefix length"},
		{"10.0.0/24", "not an IPv4 or IPv6 address"},
		{"10.0.0.256/24", "not an IPv4 or IPv6 address"},
		{"1000.1000.1000.1000/24", "not an IPv4 or IPv6 address"},
		{"fd00::2", "with a prefix length"},
		{"fd00:::2/64", "not an IPv4 or IPv6 address"},
		{"[fd00::2]/64", "not an IPv4 or IPv6 address"},
		{"fd00::2/128", "1 to 127"},
		{"fe80::2/64", "is link-local, so it means another host"},
		{"ff02::1/64", "is not a host address"},
		{"::/64", "is not a host address"},
		{"fd00::2/64", "10.0.0.1 is an IPv4 address, and [port a] has "
			       "an IPv6 one: one job uses one family"},
		{"10.0.0.2/", "is empty"},
		{"10.0.0.2/0", "1 to 31"},
		{"10.0.0.2/32", "1 to 31"},
		{"10.0.0.2/024", "leading zero"},
		{"224.0.0.1/24", "is not a host address"},
		{"0.0.0.1/24", "is not a host address"},
		{"10.0.0.0/24", "first address"},
		{"10.0.0.255/24", "broadcast"},
		{"10.0.0.1/24", "our own address"},
		{"10.0.1.1/24", "not in the network of [port a], 10.0.1.0/24"},
	};
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text),
			NODE "[port a]\nsocket = /x\n"
			     "side = listen\nip = %s\n" SERVER,
			rows[i].ip);
		refused(text, rows[i].why);
	}
}

static void conf_load__bad_server(void **state)
{
	struct sw_conf conf;
	struct said said;

	refused(NODE PORT, "there is no [server NAME]");
	refused(NODE PORT "[server s]\nip = 10.0.0.1\nport = b\n",
		"9: [server s] port: there is no [port b]; did you mean a?");
	refused(NODE PORT "[server s]\nport = a\n", "ip: is missing");
	refused(GOOD "[server t]\nip = 10.0.0.1\nport = a\n",
		"[server s] has the same address and UDP port");
	/* each of the two server lcores uses a UDP port */
	refused(GOOD "[server t]\nip = 10.0.0.1\nudp_port = 5701\nport = a\n"
		     "[job]\nserver_lcores = 2\n",
		"[server s] has the same address and UDP port 5701: each needs "
		"2 from its udp_port on");
	refused(GOOD "[server t]\nip = 10.0.0.1\nudp_port = 5699\nport = a\n"
		     "[job]\nserver_lcores = 2\n",
		"[server s] has the same address and UDP port 5700");
	assert_int_equal(load(GOOD "[server t]\nip = 10.0.0.1\n"
				   "udp_port = 5702\nport = a\n"
				   "[job]\nserver_lcores = 2\n",
				 &conf, &said),
		0);
}

static void conf_load__no_port(void **state)
{
	refused("[node]\nrole = server\n", "at least one is needed");
}

static void conf_load__bad_name(void **state)
{
	static const struct {
		const char *lines, *why;
	} rows[] = {
		{"[node]\n", "10: [node]: is given twice, first on line 1"},
		{"[ node ]\n", "10: [node]: is given twice, first on line 1"},
		{"[ ]\n", "is not a section name"},
		{"[jobb]\n", "did you mean [job]?"},
		{"[zzzzzzzz]\n", "unknown section"},
		{"[job x]\n", "takes no name"},
		{"[port]\n", "needs a name"},
		{"[port a]\n", "given twice, first on line 3"},
		{"[port A]\n", "lower case"},
		{"[port a:b]\n", "is not a section name"},
		{"[port aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n", "1 to 31"},
		{"[]\n", "is not a section name"},
		{"[job\n", "is not a section"},
		{"[job] x\n", "is not a section"},
		{"[job]\nagnets = 2\n", "11: [job] agnets: unknown "
					"key; did you mean agents?"},
		{"[job]\nworkers = 2\n",
			"11: [job] workers: unknown key; use agents"},
		{"[job]\nrank = 0\n", "11: [job] rank: unknown key; use agent"},
		{"[job]\nzzzzzzzz = 2\n", "--explain job"},
		{"[job]\nAgents = 2\n", "did you mean agents?"},
		{"[job]\nagents = 1\nagents = 1\n",
			"12: [job] agents: is "
			"given twice, first on line 11"},
		{"[job]\nage:nts = 2\n", "is not a key"},
		{"[job]\n= 2\n", "is not a key"},
		{"[job]\nagents\n", "neither [SECTION] nor KEY = VALUE"},
		{"[job]\nagents = 1 \\\n",
			"continuation lines are not supported"},
		{"; joined \\\n", "continuation lines are not supported"},
		{"[job]\nname = \"x\n", "quote"},
		{"[job]\nname = \"x\" y\n", "quote"},
		{"[job]\nname = x#y\n", "\"x#y\" has '#'"},
		{"[job]\nname = x y;z\n", "a blank before a comment"},
		{"[job]\nname = ' x'\n", "[job] name:"},
	};
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text), GOOD "%s", rows[i].lines);
		refused(text, rows[i].why);
	}
	refused("role = agent\n" GOOD, "1: role: precedes the first");
	refused("\xef\xbb\xbf" GOOD, "1: the file starts with a byte order");
}

static void conf_load__all_errors(void **state)
{
	struct sw_conf conf;
	struct said said;

	/* The lines of a refused section are ignored; they belong to no other
	 * section. */
	assert_int_equal(
		load(GOOD "[job\n= x\nserver_lcores = 2\n", &conf, &said),
		SW_ECONF);
	assert_int_equal(said.n_lines, 1);
	/* A malformed line does not hide errors in values. */
	assert_int_equal(load(GOOD "[job]\nnonsense\nagents = 0\n"
				   "crc = 1\nrnak = 3\n[log]\nlevel = x\n",
				 &conf, &said),
		SW_ECONF);
	assert_int_equal(said.n_lines, 5);
}

static void conf_load__very_many_errors(void **state)
{
	char *text = calloc(1, 65536);
	struct sw_conf conf;
	struct said said;

	for (int i = 0; i < 3000; i++)
		strcat(text, "x\n");
	assert_int_equal(load(text, &conf, &said), SW_ECONF);
	assert_int_equal(said.n_lines, SW_REPORT_MAX + 1);
	assert_non_null(strstr(said.text, "more errors are not shown"));
	free(text);
}

static void conf_load__long_line(void **state)
{
	char text[8192];

	snprintf(text, sizeof(text), GOOD "[agent]\nusers = %0*d\n", 993, 1);
	refused(text, "11: the line is longer than 1000 bytes");
	snprintf(text, sizeof(text), GOOD "[agent]\nusers = %0*d\n", 992, 1);
	/* the line is not too long: only the value is wrong */
	refused(text, "11: [agent] users:");
	snprintf(text, sizeof(text), GOOD ";%0*d\n", 5000, 1);
	refused(text, "longer than 1000 bytes");
	snprintf(text, sizeof(text), GOOD "[agent]\nsocket = /%0*d\n", 107, 1);
	refused(text, "longer than 107 bytes");
}

static void conf_load__too_large(void **state)
{
	size_t n = 300000;
	char *text = malloc(n + 1);

	memset(text, ' ', n);
	text[n] = '\0';
	refused(text, "is larger than 256 KiB");
	memset(text, '\n', n);
	text[5000] = '\0';
	refused(text, "more than 4096 lines");
	free(text);
}

static void conf_load__not_text(void **state)
{
	static const char nul[] = NODE "\0" PORT SERVER;
	unsigned char garbage[4096];
	struct sw_conf conf;
	struct said said;

	assert_int_equal(
		load_bytes(nul, sizeof(nul) - 1, &conf, &said), SW_ECONF);
	assert_non_null(strstr(said.text, ":3: byte 0x00 is not text"));
	for (size_t i = 0; i < 3; i++) {
		static const char *const bad[] = {"# \x9b"
						  "2J\n" NODE PORT SERVER,
			"# \xc2\x9b"
			"2J\n" NODE PORT SERVER,
			"# \xe2\x80\xae\n" NODE PORT SERVER};

		assert_int_equal(
			load_bytes(bad[i], strlen(bad[i]), &conf, &said),
			SW_ECONF);
		assert_non_null(strstr(said.text, ":1: byte 0x"));
		assert_int_equal(said.n_lines, 1);
	}
	srand(1);
	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (unsigned char)rand();
	assert_int_equal(
		load_bytes(garbage, sizeof(garbage), &conf, &said), SW_ECONF);
	assert_int_equal(said.n_lines, 1);
}

static void conf_load__not_a_file(void **state)
{
	struct sw_conf conf;
	struct said said;

	assert_int_equal(load_path("/nonexistent/x", &conf, &said), SW_ENOENT);
	assert_non_null(strstr(said.text, "/nonexistent/x: cannot be read"));
	assert_int_equal(load_path("/tmp", &conf, &said), SW_EIO);
	assert_non_null(strstr(said.text, "is a directory"));
	assert_int_equal(load_path("/dev/zero", &conf, &said), SW_EIO);
	assert_int_equal(sw_conf_load("/tmp", &conf, NULL), SW_EIO);
}

static void conf_load__empty_file(void **state)
{
	struct sw_conf conf;
	struct said said;

	assert_int_equal(load("", &conf, &said), SW_ECONF);
	assert_int_equal(said.n_lines, 1);
	assert_non_null(strstr(said.text, "[node] role: is missing"));
}

/* Check that all sockets are in private folders, where no other user can create
 * them first. */
static void need_safe_sockets(const struct sw_conf *conf, const char *path)
{
	if (strchr(conf->agent.socket, '/') || *conf->stats.socket)
		fail_msg("%s: %s", path, conf->agent.socket);
	for (uint32_t i = 0; i < conf->n_ports; i++)
		if (strchr(conf->ports[i].socket_path, '/'))
			fail_msg("%s: %s", path, conf->ports[i].socket_path);
}

static void conf_load__ready_files(void **state)
{
	char pattern[1024];
	struct sw_conf conf;
	struct said said;
	glob_t files;

	snprintf(pattern, sizeof(pattern), "%s/conf/*.ini", root);
	assert_int_equal(glob(pattern, 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 9);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		if (load_path(files.gl_pathv[i], &conf, &said) != 0)
			fail_msg("%s", said.text);
		need_safe_sockets(&conf, files.gl_pathv[i]);
	}
	globfree(&files);
}

static bool is_given(const struct sw_option *o, const struct sw_conf *conf,
	const struct sw_conf_origins *origins)
{
	const struct sw_section *s = sw_section_find(o->section);
	const char *field = (const char *)conf + s->offset + o->offset;
	uint32_t n = s->is_many ? SW_CONF_MANY_MAX : 1;

	for (; n--; field += s->bytes)
		if (sw_conf_origin(origins, conf, field))
			return true;
	return false;
}

static void conf_load__commented_has_every_key(void **state)
{
	static struct sw_conf_origins origins;
	static struct sw_conf conf;
	char path[1024];

	snprintf(path, sizeof(path), "%s/conf/commented.ini", root);
	assert_int_equal(sw_conf_load_origins(path, &conf, &origins, NULL), 0);
	for (uint32_t i = 0; i < sw_n_options; i++) {
		const struct sw_option *o = &sw_options[i];

		if (strncmp(o->key, "fault_", 6) != 0 &&
			!is_given(o, &conf, &origins))
			fail_msg("[%s] %s is missing", o->section, o->key);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf_load__minimal),
		cmocka_unit_test(conf_load__everything),
		cmocka_unit_test(conf_load__bad_value),
		cmocka_unit_test(conf_load__bad_role),
		cmocka_unit_test(conf_load__both),
		cmocka_unit_test(conf_load__bad_address),
		cmocka_unit_test(conf_load__bad_server),
		cmocka_unit_test(conf_load__no_port),
		cmocka_unit_test(conf_load__bad_name),
		cmocka_unit_test(conf_load__all_errors),
		cmocka_unit_test(conf_load__very_many_errors),
		cmocka_unit_test(conf_load__long_line),
		cmocka_unit_test(conf_load__too_large),
		cmocka_unit_test(conf_load__not_text),
		cmocka_unit_test(conf_load__not_a_file),
		cmocka_unit_test(conf_load__empty_file),
		cmocka_unit_test(conf_load__ready_files),
		cmocka_unit_test(conf_load__commented_has_every_key),
	};

	root = argc > 1 ? argv[1] : ".";
	return cmocka_run_group_tests_name("conf", tests, NULL, NULL);
}
