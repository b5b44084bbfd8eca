/* conf.h - the configuration of a daemon: load, check, print, explain.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Every option is a row of options.def.  Its third column is the field here, as
 * in conf.job.dead_after_ns, conf.ports[0].ring_slots and conf.servers[0].ip.
 */
#ifndef SW_CONF_CONF_H
#define SW_CONF_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/ip.h"
#include "engine/base/log.h"

enum {
	SW_CONF_NAME_BYTES = 32,  /* with the NUL, like the sizes below */
	SW_CONF_PATH_BYTES = 108, /* size of a Unix socket's address */
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
/* enum sw_steering, with AUTO in place of SW_STEER_ONE. */
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
/* From SCALAR on: enum sw_sum_level + 1. */
enum sw_conf_level {
	SW_LEVEL_AUTO,
	SW_LEVEL_SCALAR,
	SW_LEVEL_AVX2,
	SW_LEVEL_AVX512
};

struct sw_conf_subnet {
	struct sw_ip ip; /* our address */
	/* length of the prefix: from 1 to less than the address's length */
	uint32_t bits;
	uint32_t unused; /* 0, because configurations are compared as bytes */
};

/* The C type of each type in options.def.  CHOICE holds one of the enums above;
 * log.level an enum sw_log_level; PERCENT parts per million.  Text ends with a
 * NUL. */
#define SW_CONF_U32(field)      uint32_t field;
#define SW_CONF_U64(field)      uint64_t field;
#define SW_CONF_BYTES(field)    uint64_t field;
#define SW_CONF_RATE(field)     uint64_t field; /* bits per second */
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

/* struct sw_conf_node, sw_conf_job, … A repeated section also has its NAME, as
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

/* One member per section: conf.node, conf.job, … A repeated section is an array
 * in the order of the file: conf.ports[0 … conf.n_ports - 1]. */
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

/* The source of a value.  Defaults have no row. */
struct sw_conf_origin {
	uint32_t offset; /* offset of the field in struct sw_conf */
	uint32_t line;   /* line of the file; 0: not from the file */
	/* environment variable, static; NULL: not from one */
	const char *variable;
	/* launcher that set the variable; NULL: the user set it */
	const char *launcher;
};

struct sw_conf_origins {
	uint32_t n;
	struct sw_conf_origin rows[SW_CONF_ORIGINS_MAX];
};

/* sw_conf_defaults - fill @out with the defaults, without ports and servers. */
void sw_conf_defaults(struct sw_conf *out);

/* sw_conf_load - read, parse and check the file at @path.  Variables of
 * launchers (launch.h) supply options that the file does not set, and must not
 * contradict it.
 * @out      written only on success; plain data, nothing to free
 * @log      gets a line for every error, "FILE:LINE: [SECTION] KEY: …";
 *           NULL: none
 * Errors: SW_ECONF the file has an error; SW_ENOENT it does not exist; SW_EIO
 * it cannot be read; SW_ENOMEM.  Thread: one at a time (iniparser). */
int sw_conf_load(
	const char *path, struct sw_conf *out, const struct sw_log *log);

/* sw_conf_load_origins - load like sw_conf_load, and tell the source of each
 * value. */
int sw_conf_load_origins(const char *path, struct sw_conf *out,
	struct sw_conf_origins *origins, const struct sw_log *log);

/* sw_conf_origin - return the origin of the field at @field in @conf; NULL: it
 * has its default. */
const struct sw_conf_origin *sw_conf_origin(
	const struct sw_conf_origins *origins, const struct sw_conf *conf,
	const void *field);

/* sw_conf_print - write every option of @conf, as a file from which
 * sw_conf_load reads the same configuration.
 * @origins  if not NULL, a comment at each line tells the source of the
 * value */
void sw_conf_print(const struct sw_conf *conf,
	const struct sw_conf_origins *origins, FILE *f);

/* sw_conf_explain - explain @key: "ring", "port.ring", or a section, "port".
 * If several sections have the key, explain it in all of them.
 * Errors: SW_ENOENT unknown key; @near (borrowed, may be NULL) is set to the
 * nearest name or to NULL. */
int sw_conf_explain(const char *key, FILE *f, const char **near);

/* sw_conf_reference - write the page doc/configuration.md. */
void sw_conf_reference(FILE *f);

/* sw_conf_man - write the manual page sumwire.conf(5) of @version. */
void sw_conf_man(const char *version, FILE *f);

/* sw_conf_port_find - return the index of the port labelled @label, or
 * SW_ENOENT. */
int sw_conf_port_find(const struct sw_conf *conf, const char *label);

/* sw_conf_n_ways - return the number of UDP ports of each endpoint
 * (engine/loop/port.h): an agent has several to choose from. */
uint32_t sw_conf_n_ways(const struct sw_conf *conf);

/* sw_conf_n_udp - return the number of endpoints: UDP ports of this process
 * from [serve] udp_port on, one for each serving lcore, then one for each of
 * the agent's lcores. */
uint32_t sw_conf_n_udp(const struct sw_conf *conf);

/* sw_conf_n_lcores - return the number of polling lcores of this process.  A
 * lcore may serve and work for an agent. */
uint32_t sw_conf_n_lcores(const struct sw_conf *conf);

/* sw_conf_is_own - return whether @s is this process.  With role = both, one
 * server of the list has our address and UDP port. */
bool sw_conf_is_own(const struct sw_conf *conf, const struct sw_conf_server *s);

/* sw_conf_cpus_list - write the CPUs of "2,4-5" in that order to @cpus (room
 * for SW_CONF_CPUS_MAX).  Returns their number, 0 for "auto", or SW_EINVAL.  A
 * text that sw_conf_load has accepted is always valid. */
int sw_conf_cpus_list(const char *text, uint32_t *cpus);

/* sw_conf_networks_list - read "10.5.8.0/24,fd00::/64" into @nets (room for
 * SW_CONF_NETWORKS_MAX).  An address alone is a network of one address.
 * Returns their number, or SW_EINVAL. */
int sw_conf_networks_list(const char *text, struct sw_conf_subnet *nets);

#endif
