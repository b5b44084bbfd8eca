/* check.h - what holds across the keys of a configuration.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_CONF_CHECK_H
#define SW_CONF_CHECK_H

#include "conf/conf.h"
#include "conf/report.h"
#include "conf/scan.h"

/* sw_check_run - report to @r everything in @conf that does not fit together;
 * @scan (may be NULL) knows the lines. */
void sw_check_run(const struct sw_conf *conf, const struct sw_scan *scan,
	struct sw_report *r);

#endif
