/* unit_user.c - users by name and number, and the agents that clients trust.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sumwire/sumwire.h>
#include "pmd/client/user.h"

enum { NOBODY = 65534, OURS = 4242 };

/* Pretend that the connecting process has another user than the agent. */
static bool is_renamed;

__attribute__((visibility("default"))) uid_t geteuid(void)
{
	return is_renamed ? OURS : getuid();
}

static void user_find__names_and_numbers(void **state)
{
	uint32_t uid = 1;

	assert_true(sw_user_find("root", &uid));
	assert_int_equal(uid, 0);
	assert_true(sw_user_find("4294967294", &uid));
	assert_int_equal(uid, 4294967294u);
	assert_false(sw_user_find("4294967295", &uid));
	assert_false(sw_user_find("42949672950", &uid));
	assert_false(sw_user_find("", &uid));
	assert_false(sw_user_find("-1", &uid));
	assert_false(sw_user_find("nobody-of-that-name", &uid));
}

static void user_text__with_and_without_a_name(void **state)
{
	char out[SW_USER_BYTES];

	ASSERT_TEXT(sw_user_text(0, out), "root (0)");
	ASSERT_TEXT(sw_user_text(4123456789u, out), "4123456789");
}

static void user_is_trusted__whom(void **state)
{
	char why[SW_USER_WHY_BYTES];

	assert_true(sw_user_is_trusted(1000, 1000, NULL, why));
	assert_true(sw_user_is_trusted(0, 1000, "", why));
	assert_true(sw_user_is_trusted(1001, 1000, "1001", why));
	assert_true(sw_user_is_trusted(0, 1000, "1001", why));
	assert_false(sw_user_is_trusted(4123456789u, 0, NULL, why));
	assert_contains(why, "it runs as user 4123456789, and this process "
			     "(user root (0))");
	assert_contains(why, "SUMWIRE_AGENT_USER=4123456789");
	assert_false(sw_user_is_trusted(1002, 1000, "1001", why));
	assert_false(sw_user_is_trusted(1002, 1000, "no-such-one", why));
	assert_contains(why, "unknown user \"no-such-one\"");
}

/* --- libsumwire --- */

struct scene {
	char dir[32], path[64];
	pid_t pid;
};

/* Start an agent of another user; its exit status says whether it received
 * anything. */
static struct scene begin(void)
{
	struct scene s = {.dir = "/tmp/unit_user.XXXXXX"};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char heard;

	assert_non_null(mkdtemp(s.dir));
	snprintf(s.path, sizeof(s.path), "%s/agent.sock", s.dir);
	memcpy(a.sun_path, s.path, strlen(s.path));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	s.pid = fork();
	if (s.pid) {
		close(fd);
		return s;
	}
	alarm(20); /* end in any case */
	if ((!getuid() && setuid(NOBODY)) || listen(fd, 1))
		_exit(2);
	_exit(recv(accept(fd, NULL, NULL), &heard, 1, 0) > 0);
}

static void end(struct scene *s, bool was_received)
{
	int status;

	is_renamed = false;
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), was_received);
	unlink(s->path);
	rmdir(s->dir);
}

static int open_agent(const struct scene *s, const char *user)
{
	struct sw_client *c = NULL;
	struct sw_settings settings;

	is_renamed = true;
	sw_settings_init(&settings);
	settings.agent = s->path;
	settings.open_timeout_s = 10;
	if (user)
		settings.agent_user = user;
	return sw_open(&settings, &c);
}

/* Another user may have created the socket first; the client sends nothing to
 * it. */
static void open__agent_of_another_user(void **state)
{
	struct scene s = begin();
	char who[80];

	assert_int_equal(open_agent(&s, NULL), SW_EPERM);
	assert_contains(sw_last_error(NULL), s.path);
	snprintf(who, sizeof(who), "SUMWIRE_AGENT_USER=%u",
		getuid() ? getuid() : NOBODY);
	assert_contains(sw_last_error(NULL), who);
	assert_contains(sw_last_error(NULL), "4242");
	end(&s, false);
}

static void open__agent_of_a_user_who_is_named(void **state)
{
	struct scene s = begin();
	char user[16];

	snprintf(user, sizeof(user), "%u", getuid() ? getuid() : NOBODY);
	assert_int_equal(open_agent(&s, user), SW_ECLOSED);
	end(&s, true);
}

static void open__user_of_the_environment(void **state)
{
	struct scene s = begin();
	char user[16];

	snprintf(user, sizeof(user), "%u", getuid() ? getuid() : NOBODY);
	setenv("SUMWIRE_AGENT_USER", user, 1);
	assert_int_equal(open_agent(&s, NULL), SW_ECLOSED);
	unsetenv("SUMWIRE_AGENT_USER");
	end(&s, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_find__names_and_numbers),
		cmocka_unit_test(user_text__with_and_without_a_name),
		cmocka_unit_test(user_is_trusted__whom),
		cmocka_unit_test(open__agent_of_another_user),
		cmocka_unit_test(open__agent_of_a_user_who_is_named),
		cmocka_unit_test(open__user_of_the_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
