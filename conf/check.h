/* check.h - check the keys of a configuration against each other.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_CONF_CHECK_H
#define SW_CONF_CHECK_H

#include "conf/conf.h"
#include "conf/report.h"
#include "conf/scan.h"

/* sw_check_run - report every contradiction in @conf to @r.  @scan tells the
 * lines; it may be NULL. */
void sw_check_run(const struct sw_conf *conf, const struct sw_scan *scan,
	struct sw_report *r);

#endif
