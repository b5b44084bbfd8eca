/* unit_secrets.c - which secrets a daemon reads, and how long they are valid.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/node/secrets.h"
#include "conf/key_file.h"

#define GRACE_NS 1000

static char folder[] = "/tmp/unit_secrets_XXXXXX";
static const char *const names[] = {"a.key", "b.key", "job", "all", "note"};

static const char *at(const char *name)
{
	static char paths[8][64];
	static uint32_t i;
	char *path = paths[i++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

/* Replace the key file by one whose secret has the byte @byte everywhere. */
static void put(const char *name, uint8_t byte)
{
	uint8_t bytes[SW_KEY_FILE_SECRET];
	char why[SW_KEY_FILE_WHY_BYTES];

	memset(bytes, byte, sizeof(bytes));
	unlink(at(name));
	assert_int_equal(sw_key_file_write(at(name), bytes, "a test", why), 0);
}

static int files_make(void **state)
{
	if (!*folder || !mkdtemp(folder))
		return -1;
	return 0;
}

static int files_remove(void **state)
{
	for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++)
		unlink(at(names[i]));
	return rmdir(folder);
}

static struct sw_conf conf_of(enum sw_conf_role role)
{
	struct sw_conf c;

	sw_conf_defaults(&c);
	c.node.role = role;
	c.serve.key_grace_ns = GRACE_NS;
	return c;
}

static void add_line(void *ctx, enum sw_log_level level, const char *text)
{
	char *said = ctx;

	(void)level;
	snprintf(said + strlen(said), 2048 - strlen(said), "%s\n", text);
}

/* Is the secret with byte @byte valid for @job at @now_ns? */
static bool is_valid(const struct sw_secrets *s, uint8_t byte, const char *job,
	uint64_t now_ns)
{
	uint8_t bytes[SW_SECRET_BYTES];
	struct sw_secret secret;

	memset(bytes, byte, sizeof(bytes));
	assert_true(sw_secret_init(&secret, bytes));
	return sw_keyring_find(&s->serve, secret.id) &&
	       sw_keyring_has(&s->serve, &secret, job, now_ns);
}

static void secrets_open__none(void **state)
{
	struct sw_conf c = conf_of(SW_ROLE_BOTH);
	struct sw_secrets *s;

	assert_int_equal(sw_secrets_open(&s, &c, NULL, 1, NULL), 0);
	assert_int_equal(s->job.n, 0);
	assert_int_equal(s->serve.n, 0);
	assert_false(s->serve.is_required);
	sw_secrets_close(s);
}

static void secrets_open__server_has_many(void **state)
{
	struct sw_conf c = conf_of(SW_ROLE_SERVER);
	struct sw_secrets *s;
	char said[2048] = "";
	struct sw_log log = {add_line, said, SW_LOG_INFO};

	put("a.key", 1);
	put("b.key", 2);
	put("all", 3);
	put("note", 4); /* not a key file by its name */
	strcpy(c.serve.key_dir, folder);
	strcpy(c.serve.key_file, at("all"));
	strcpy(c.job.key_file, "/nowhere"); /* ignored by a server */
	c.serve.require_key = true;
	assert_int_equal(sw_secrets_open(&s, &c, NULL, 1, NULL), 0);
	assert_int_equal(s->job.n, 0);
	assert_int_equal(s->serve.n, 3);
	assert_true(s->serve.is_required);
	assert_true(is_valid(s, 1, "a", 1));
	assert_false(is_valid(s, 1, "b", 1));
	assert_true(is_valid(s, 2, "b", 1));
	assert_false(is_valid(s, 3, "b", 1)); /* job b has its own secret */
	assert_true(is_valid(s, 3, "c", 1));
	assert_false(is_valid(s, 4, "note", 1));
	sw_secrets_log(s, &c, &log);
	assert_contains(said, "for job b\n");
	assert_contains(said, "for every job\n");
	assert_contains(said, "without a key are refused");
	assert_null(strstr(said, "0101"));
	sw_secrets_close(s);
}

/* If a job gets its own secret, the secret of all jobs stays valid for it for a
 * while. */
static void secrets_open__gives_a_job_its_own(void **state)
{
	struct sw_conf c = conf_of(SW_ROLE_SERVER);
	struct sw_secrets *old, *s;

	unlink(at("a.key"));
	unlink(at("b.key"));
	put("all", 3);
	strcpy(c.serve.key_dir, folder);
	strcpy(c.serve.key_file, at("all"));
	assert_int_equal(sw_secrets_open(&old, &c, NULL, 100, NULL), 0);
	assert_true(is_valid(old, 3, "a", 100));
	put("a.key", 1);
	assert_int_equal(sw_secrets_open(&s, &c, old, 200, NULL), 0);
	sw_secrets_close(old);
	assert_true(is_valid(s, 1, "a", UINT64_MAX));
	assert_true(is_valid(s, 3, "a", 200 + GRACE_NS - 1));
	assert_false(is_valid(s, 3, "a", 200 + GRACE_NS));
	assert_true(is_valid(s, 3, "b", UINT64_MAX));
	sw_secrets_close(s);
}

/* An agent reads only its own secret, even beside an invalid [serve]. */
static void secrets_open__agent_has_one(void **state)
{
	struct sw_conf c = conf_of(SW_ROLE_AGENT);
	struct sw_secrets *s;

	put("job", 5);
	strcpy(c.job.key_file, at("job"));
	strcpy(c.serve.key_dir, "/nowhere");
	assert_int_equal(sw_secrets_open(&s, &c, NULL, 1, NULL), 0);
	assert_int_equal(s->job.n, 1);
	assert_int_equal(s->serve.n, 0);
	assert_int_equal(s->job.entries[0].secret.bytes[7], 5);
	sw_secrets_close(s);
}

static void secrets_open__both_share_the_jobs(void **state)
{
	struct sw_conf c = conf_of(SW_ROLE_BOTH);
	struct sw_secrets *s;

	put("job", 5);
	put("all", 3);
	strcpy(c.job.key_file, at("job"));
	strcpy(c.serve.key_file, at("all"));
	assert_int_equal(sw_secrets_open(&s, &c, NULL, 1, NULL), 0);
	assert_int_equal(s->job.n, 1);
	assert_int_equal(s->job.entries[0].secret.bytes[0], 5);
	assert_true(is_valid(s, 5, "job", 1));
	assert_false(is_valid(s, 5, "other", 1));
	assert_true(is_valid(s, 3, "other", 1));
	sw_secrets_close(s);
}

static void secrets_open__replaces(void **state)
{
	struct sw_conf c = conf_of(SW_ROLE_SERVER);
	struct sw_secrets *old, *s, *next;

	put("a.key", 1);
	put("b.key", 2);
	strcpy(c.serve.key_dir, folder);
	assert_int_equal(sw_secrets_open(&old, &c, NULL, 100, NULL), 0);
	put("a.key", 11);
	unlink(at("b.key"));
	assert_int_equal(sw_secrets_open(&s, &c, old, 200, NULL), 0);
	/* the old set has not changed */
	assert_true(is_valid(old, 1, "a", 200));
	sw_secrets_close(old);
	assert_true(is_valid(s, 11, "a", UINT64_MAX));
	assert_true(is_valid(s, 1, "a", 200 + GRACE_NS - 1));
	assert_false(is_valid(s, 1, "a", 200 + GRACE_NS));
	assert_false(is_valid(s, 2, "b", 200)); /* the file of b was removed */

	/* Another change does not extend the life of the first secret. */
	put("a.key", 12);
	assert_int_equal(sw_secrets_open(&next, &c, s, 300, NULL), 0);
	sw_secrets_close(s);
	assert_true(is_valid(next, 1, "a", 200 + GRACE_NS - 1));
	assert_false(is_valid(next, 1, "a", 200 + GRACE_NS));
	assert_true(is_valid(next, 11, "a", 300 + GRACE_NS - 1));

	/* Return to the first secret, which becomes the current one. */
	put("a.key", 1);
	assert_int_equal(sw_secrets_open(&s, &c, next, 400, NULL), 0);
	sw_secrets_close(next);
	assert_true(is_valid(s, 1, "a", UINT64_MAX));
	assert_true(is_valid(s, 12, "a", 400 + GRACE_NS - 1));
	assert_int_equal(s->serve.n, 3);

	/* After the grace period, and with a period of 0. */
	c.serve.key_grace_ns = 0;
	put("a.key", 13);
	assert_int_equal(sw_secrets_open(&next, &c, s, 5000, NULL), 0);
	sw_secrets_close(s);
	assert_int_equal(next->serve.n, 1);
	sw_secrets_close(next);
}

/* Every invalid file is an error, and the set in use stays. */
static void secrets_open__refuses(void **state)
{
	struct sw_conf c = conf_of(SW_ROLE_SERVER);
	struct sw_secrets *s = NULL;
	char said[2048] = "";
	struct sw_log log = {add_line, said, SW_LOG_INFO};

	put("a.key", 1);
	strcpy(c.serve.key_dir, folder);
	chmod(at("a.key"), 0644);
	assert_int_equal(sw_secrets_open(&s, &c, NULL, 1, &log), SW_ECONF);
	assert_contains(said, "a.key has mode 0644");
	chmod(at("a.key"), 0600);
	chmod(folder, 0770);
	assert_int_equal(sw_secrets_open(&s, &c, NULL, 1, &log), SW_ECONF);
	assert_contains(said, "has mode 0770");
	chmod(folder, 0700);
	strcpy(c.serve.key_dir, "/nowhere");
	assert_int_equal(sw_secrets_open(&s, &c, NULL, 1, &log), SW_ECONF);
	assert_contains(said, "key_dir /nowhere: No such file");
	strcpy(c.serve.key_dir, "");
	strcpy(c.serve.key_file, "/nowhere");
	assert_int_equal(sw_secrets_open(&s, &c, NULL, 1, &log), SW_ECONF);
	assert_contains(said, "key file /nowhere does not exist");
	assert_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_open__none),
		cmocka_unit_test(secrets_open__server_has_many),
		cmocka_unit_test(secrets_open__gives_a_job_its_own),
		cmocka_unit_test(secrets_open__agent_has_one),
		cmocka_unit_test(secrets_open__both_share_the_jobs),
		cmocka_unit_test(secrets_open__replaces),
		cmocka_unit_test(secrets_open__refuses),
	};

	return cmocka_run_group_tests(tests, files_make, files_remove);
}
