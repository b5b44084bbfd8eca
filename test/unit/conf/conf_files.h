/* conf_files.h - load configuration files in tests and keep the messages.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_CONF_CONF_FILES_H
#define SW_TEST_UNIT_CONF_CONF_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "conf/conf.h"
#include "engine/base/error.h"

/* The parts of a valid agent's file; a test changes one of them. */
#define NODE "[node]\nrole = agent\n"
#define XDP  "[port a]\ntype = af_xdp\ndevice = eth0\nip = 10.0.0.2/24\n"
#define NIC(address) \
	"[port a]\ntype = pci\nip = 10.0.0.2/24\ndevice = " address "\n"
#define KERNEL "[port a]\ntype = af_packet\ndevice = eth0\nip = 10.0.0.2/24\n"
#define PORT   "[port a]\nsocket = /x\nside = connect\nip = 10.0.0.2/24\n"
#define UDP    "[port a]\ntype = udp\nip = 10.0.0.2/24\n"
#define SERVER "[server s]\nip = 10.0.0.1\nport = a\n"
#define GOOD   NODE PORT SERVER

/* The messages of a load. */
struct said {
	char text[32768];
	uint32_t n_lines;
};

static inline void said_add(
	void *ctx, enum sw_log_level level, const char *text)
{
	struct said *said = ctx;
	size_t at = strlen(said->text);

	assert_int_equal(level, SW_LOG_ERROR);
	snprintf(said->text + at, sizeof(said->text) - at, "%s\n", text);
	said->n_lines++;
}

static inline int load_path(
	const char *path, struct sw_conf *conf, struct said *said)
{
	struct sw_log log = {said_add, said, SW_LOG_DEBUG};

	said->text[0] = '\0';
	said->n_lines = 0;
	return sw_conf_load(path, conf, &log);
}

/* Load @n bytes as a file. */
static inline int load_bytes(
	const void *bytes, size_t n, struct sw_conf *conf, struct said *said)
{
	char path[] = "/tmp/unit_conf_XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	err = load_path(path, conf, said);
	unlink(path);
	return err;
}

static inline int load(
	const char *text, struct sw_conf *conf, struct said *said)
{
	return load_bytes(text, strlen(text), conf, said);
}

/* Check that @text is refused with exactly one error that contains @why. */
static inline void refused(const char *text, const char *why)
{
	struct sw_conf conf;
	struct said said;

	memset(&conf, 0x5a, sizeof(conf));
	assert_int_equal(load(text, &conf, &said), SW_ECONF);
	if (said.n_lines != 1 || !strstr(said.text, why))
		fail_msg("\"%s\" should only say \"%s\":\n%s", text, why,
			said.text);
	/* the result was not written */
	assert_int_equal(conf.job.agents, 0x5a5a5a5a);
}

#endif
