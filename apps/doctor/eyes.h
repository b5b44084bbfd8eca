/* eyes.h - access of the checks to this machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_DOCTOR_EYES_H
#define SW_APPS_DOCTOR_EYES_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"

enum { SW_EYES_CPUS = 1024, SW_EYES_PATH = 512 };

/* The machine as the checks see it. doctor.c fills in the fields that do not
 * come from a file below @root, so a test may set them. */
struct sw_eyes {
	/* prefix of /proc, /sys and /dev; "" except in tests */
	const char *root;
	const struct sw_conf *conf; /* NULL: no configuration was given */
	const char *level;          /* level of the summation kernels */
	bool is_level_low;          /* this build has a faster level */
	int memfd_errno;            /* 0: shared memory works */
	bool has_quick; /* the module for PyTorch's small sums exists */
};

/* sw_eyes_read - read the first line of the file at @root + @path into @out,
 * without its newline.  Returns false if the file is missing or empty. */
bool sw_eyes_read(
	const struct sw_eyes *e, const char *path, char *out, uint32_t size);

/* sw_eyes_number - read a number from a file.  Returns @absent if there is
 * none. */
int64_t sw_eyes_number(
	const struct sw_eyes *e, const char *path, int64_t absent);

/* sw_eyes_field - find the line of @path that begins with @name, and copy the
 * rest of it without leading blanks.  Returns false if no line begins so. */
bool sw_eyes_field(const struct sw_eyes *e, const char *path, const char *name,
	char *out, uint32_t size);

/* sw_eyes_exists - return whether the file at @root + @path exists. */
bool sw_eyes_exists(const struct sw_eyes *e, const char *path);

/* sw_eyes_path - write @root and the formatted path to @out. */
void sw_eyes_path(const struct sw_eyes *e, char out[SW_EYES_PATH],
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* sw_eyes_cpus - read a list like "0-3,8" into @out.  Returns the number of
 * CPUs. */
uint32_t sw_eyes_cpus(const char *list, uint32_t out[SW_EYES_CPUS]);

/* sw_eyes_has - return whether @list, like "0-3,8", contains @cpu. */
bool sw_eyes_has(const char *list, uint32_t cpu);

/* sw_eyes_capability - return whether this process has capability @bit. */
bool sw_eyes_capability(const struct sw_eyes *e, uint32_t bit);

/* sw_eyes_own_cpus - write the CPUs that the configuration assigns to polling
 * cores to @out.  Returns their number; 0: they float, or there is no
 * configuration. */
uint32_t sw_eyes_own_cpus(
	const struct sw_eyes *e, uint32_t out[SW_CONF_CPUS_MAX]);

/* sw_eyes_has_port - return whether the configuration has a port of @type. */
bool sw_eyes_has_port(const struct sw_eyes *e, enum sw_conf_port_type type);

/* sw_eyes_device - name the interface of port @p: its device, or the interface
 * with its address.  Returns false if none is known. */
bool sw_eyes_device(const struct sw_conf_port *p, char *out, uint32_t size);

#endif
