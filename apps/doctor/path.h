/* path.h - checks of the path to another machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_DOCTOR_PATH_H
#define SW_APPS_DOCTOR_PATH_H

#include "apps/doctor/echo.h"
#include "apps/doctor/report.h"

/* sw_doctor_path - measure the path to @peer at @to, and add the findings to
 * @r.  Takes less than 15 seconds. */
void sw_doctor_path(struct sw_doctor_report *r, const char *peer,
	const union sw_echo_address *to);

#endif
