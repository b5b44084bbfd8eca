/* environ.h - options from launchers, and the source of each value.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_CONF_ENVIRON_H
#define SW_CONF_ENVIRON_H

#include "conf/conf.h"
#include "conf/launch.h"
#include "conf/report.h"
#include "conf/scan.h"

/* sw_environ_apply - take from @launch the options of @conf that the file @scan
 * does not set.  Reports to @r values that the option cannot have, and values
 * that contradict the file. */
void sw_environ_apply(const struct sw_launch *launch, struct sw_conf *conf,
	const struct sw_scan *scan, struct sw_report *r,
	struct sw_conf_origins *origins);

/* sw_environ_key_file - use the key file at @path, from SUMWIRE_KEY_FILE, if
 * the file @scan has no key_file for this role.  @path may be NULL. */
void sw_environ_key_file(const char *path, struct sw_conf *conf,
	const struct sw_scan *scan, struct sw_report *r,
	struct sw_conf_origins *origins);

/* sw_environ_encrypt - use @value of SUMWIRE_ENCRYPT likewise, as encrypt of an
 * agent's [job]. */
void sw_environ_encrypt(const char *value, struct sw_conf *conf,
	const struct sw_scan *scan, struct sw_report *r,
	struct sw_conf_origins *origins);

/* sw_environ_note - for a file with errors, log which values come from the
 * environment instead of the file. */
void sw_environ_note(
	const struct sw_conf_origins *origins, const struct sw_report *r);

/* sw_origin_add - note that @field comes from line @line, or from @value. */
void sw_origin_add(struct sw_conf_origins *origins, const struct sw_conf *conf,
	const void *field, uint32_t line, const struct sw_launch_value *value);

#endif
