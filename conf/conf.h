/* conf.h - the configuration of a daemon: load, check, print, explain.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Every option is a row of options.def; its third column is the field here, so
 * conf.job.dead_after_ns, conf.ports[0].ring_slots, conf.servers[0].ip and so
 * on.
 */
#ifndef SW_CONF_CONF_H
#define SW_CONF_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/ip.h"
#include "engine/base/log.h"

enum {
	SW_CONF_NAME_BYTES = 32,  /* with the NUL, as all of these */
	SW_CONF_PATH_BYTES = 108, /* room of a Unix socket's address */
	SW_CONF_USERS_BYTES = 256,
	SW_CONF_ARGS_BYTES = 128,
	SW_CONF_CPUS_BYTES = 128,
	SW_CONF_MANY_MAX = 32, /* ports, and servers */
	SW_CONF_CPUS_MAX = 128,
	SW_CONF_NETWORKS_MAX = 16,
	SW_CONF_ENDPOINTS_MAX = 128, /* servers times their lcores */
	SW_CONF_ORIGINS_MAX = 4096,  /* lines of a file */
};

/* Values of the CHOICE fields, in the order of the words in options.def. */
enum sw_conf_role { SW_ROLE_SERVER, SW_ROLE_AGENT, SW_ROLE_BOTH };
enum sw_conf_port_type {
	SW_PORT_MEMIF,
	SW_PORT_AF_PACKET,
	SW_PORT_AF_XDP,
	SW_PORT_PCI,
	SW_PORT_VDEV,
	SW_PORT_UDP
};
/* As enum sw_steering, with auto for SW_STEER_ONE. */
enum sw_conf_steering {
	SW_STEERING_AUTO,
	SW_STEERING_RULES,
	SW_STEERING_RSS,
	SW_STEERING_HANDOFF
};
enum sw_conf_encrypt {
	SW_ENCRYPT_ALLOW,
	SW_ENCRYPT_REQUIRE,
	SW_ENCRYPT_REFUSE
};
enum sw_conf_side { SW_SIDE_NONE, SW_SIDE_LISTEN, SW_SIDE_CONNECT };
/* Above auto: enum sw_sum_level + 1. */
enum sw_conf_level {
	SW_LEVEL_AUTO,
	SW_LEVEL_SCALAR,
	SW_LEVEL_AVX2,
	SW_LEVEL_AVX512
};

struct sw_conf_subnet {
	struct sw_ip ip; /* ours */
	uint32_t bits;   /* length of the prefix: at least 1, and less than the
			    address has */
	uint32_t unused; /* 0, since configurations are compared as bytes */
};

/* The C type of each type in options.def. CHOICE holds one of the enums above,
 * log.level an enum sw_log_level; PERCENT is
 * in parts per million; text ends in a NUL. */
#define SW_CONF_U32(field)      uint32_t field;
#define SW_CONF_U64(field)      uint64_t field;
#define SW_CONF_BYTES(field)    uint64_t field;
#define SW_CONF_RATE(field)     uint64_t field; /* bits a second */
#define SW_CONF_TIME(field)     uint64_t field;
#define SW_CONF_PERCENT(field)  uint32_t field;
#define SW_CONF_CHOICE(field)   uint32_t field;
#define SW_CONF_IP(field)       struct sw_ip field;
#define SW_CONF_BOOL(field)     bool field;
#define SW_CONF_SUBNET(field)   struct sw_conf_subnet field;
#define SW_CONF_NAME(field)     char field[SW_CONF_NAME_BYTES];
#define SW_CONF_DEVICE(field)   char field[SW_CONF_NAME_BYTES];
#define SW_CONF_PATH(field)     char field[SW_CONF_PATH_BYTES];
#define SW_CONF_SOCKET(field)   char field[SW_CONF_PATH_BYTES];
#define SW_CONF_ARGS(field)     char field[SW_CONF_ARGS_BYTES];
#define SW_CONF_USERS(field)    char field[SW_CONF_USERS_BYTES];
#define SW_CONF_CPUS(field)     char field[SW_CONF_CPUS_BYTES];
#define SW_CONF_JOBS(field)     char field[SW_CONF_USERS_BYTES];
#define SW_CONF_NETWORKS(field) char field[SW_CONF_USERS_BYTES];

/* struct sw_conf_node, sw_conf_job, …; a repeated section has its NAME too, as
 * label. */
#define SW_CONF_HEAD_ONE
#define SW_CONF_HEAD_MANY char label[SW_CONF_NAME_BYTES];
/* clang-format off */
#define SECTION(section, kind, text) struct sw_conf_##section { \
	SW_CONF_HEAD_##kind
#define OPTION(section, key, field, type, def, min, max, unit, text) \
	SW_CONF_##type(field)
#define SECTION_END(section) };
/* clang-format on */
#include "conf/options.def"
#undef SECTION
#undef OPTION
#undef SECTION_END

/* One member per section: conf.node, conf.job, …; a repeated one is an array in
 * the order of the file: conf.ports[0 … conf.n_ports - 1]. */
#define SW_CONF_MEMBER_ONE(section) struct sw_conf_##section section;
#define SW_CONF_MEMBER_MANY(section)                           \
	struct sw_conf_##section section##s[SW_CONF_MANY_MAX]; \
	uint32_t n_##section##s;
#define SECTION(section, kind, text) SW_CONF_MEMBER_##kind(section)
#define OPTION(section, key, field, type, def, min, max, unit, text)
#define SECTION_END(section)
struct sw_conf {
#include "conf/options.def"
};
#undef SECTION
#undef OPTION
#undef SECTION_END

/* Where a value has come from; one that is by default has none. */
struct sw_conf_origin {
	uint32_t offset;      /* offset of the field in struct sw_conf */
	uint32_t line;        /* line of the file; 0: not from there */
	const char *variable; /* environment variable, static; NULL: as above */
	const char *launcher; /* launcher that has set it; NULL: the user */
};

struct sw_conf_origins {
	uint32_t n;
	struct sw_conf_origin rows[SW_CONF_ORIGINS_MAX];
};

/* sw_conf_defaults - fill @out with the defaults; no ports, no servers. */
void sw_conf_defaults(struct sw_conf *out);

/* sw_conf_load - read, parse and check the file at @path. Variables that
 * launchers set (launch.h) fill gaps of the file and must not contradict it.
 * @out      written only on success; plain data, nothing to free
 * @log      gets one line per error, "FILE:LINE: [SECTION] KEY: …", all of
 *           them, not only the first; NULL: none
 * Errors: SW_ECONF something is wrong in the file; SW_ENOENT it does not exist;
 * SW_EIO it cannot be read; SW_ENOMEM. Thread: one at a time (iniparser). */
int sw_conf_load(
	const char *path, struct sw_conf *out, const struct sw_log *log);

/* sw_conf_load_origins - as above, and tell where each value came from. */
int sw_conf_load_origins(const char *path, struct sw_conf *out,
	struct sw_conf_origins *origins, const struct sw_log *log);

/* sw_conf_origin - the origin of the field at @field, which is in @conf; NULL:
 * by default. */
const struct sw_conf_origin *sw_conf_origin(
	const struct sw_conf_origins *origins, const struct sw_conf *conf,
	const void *field);

/* sw_conf_print - write every option of @conf as a file that sw_conf_load
 * reads back to the same.
 * @origins  each line ends with a comment that says where the value came from;
 *           NULL: without */
void sw_conf_print(const struct sw_conf *conf,
	const struct sw_conf_origins *origins, FILE *f);

/* sw_conf_explain - write what is known of @key: "ring", "port.ring", or a
 * section, "port".  A key of several sections: all of them.
 * Errors: SW_ENOENT no such key; @near (borrowed, may be NULL) is set to the
 * nearest name or to NULL. */
int sw_conf_explain(const char *key, FILE *f, const char **near);

/* sw_conf_reference - write the page doc/configuration.md. */
void sw_conf_reference(FILE *f);

/* sw_conf_man - write the manual page sumwire.conf(5) of @version. */
void sw_conf_man(const char *version, FILE *f);

/* sw_conf_port_find - index of the port labelled @label, or SW_ENOENT. */
int sw_conf_port_find(const struct sw_conf *conf, const char *label);

/* sw_conf_n_ways - UDP ports of each endpoint (engine/loop/port.h): an agent
 * has some to try. */
uint32_t sw_conf_n_ways(const struct sw_conf *conf);

/* sw_conf_n_udp - endpoints: UDP ports of this process, from [serve] udp_port
 * on: one for each lcore that serves, then one for each of the agent's. */
uint32_t sw_conf_n_udp(const struct sw_conf *conf);

/* sw_conf_n_lcores - return this process's number of polling lcores: a server's
 * and an agent's share may be one. */
uint32_t sw_conf_n_lcores(const struct sw_conf *conf);

/* sw_conf_is_own - is @s this process itself?  With role = both one of the
 * list is: that with our address and UDP port. */
bool sw_conf_is_own(const struct sw_conf *conf, const struct sw_conf_server *s);

/* sw_conf_cpus_list - the CPUs of "2,4-5", in that order, into @cpus (room for
 * SW_CONF_CPUS_MAX).  Returns how many, 0 for "auto", or SW_EINVAL (never for
 * a text that sw_conf_load has let through). */
int sw_conf_cpus_list(const char *text, uint32_t *cpus);

/* sw_conf_networks_list - read "10.5.8.0/24,fd00::/64" into @nets (room for
 * SW_CONF_NETWORKS_MAX); an address alone is a network of one. Returns how
 * many, or SW_EINVAL. */
int sw_conf_networks_list(const char *text, struct sw_conf_subnet *nets);

#endif
