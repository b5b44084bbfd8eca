/* checks.h - the tables of checks of this machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_DOCTOR_CHECKS_H
#define SW_APPS_DOCTOR_CHECKS_H

#include "apps/doctor/eyes.h"
#include "apps/doctor/report.h"

/* A check. run adds at least one line to the report. */
struct sw_doctor_check {
	const char *name;
	void (*run)(const struct sw_eyes *e, const char *name,
		struct sw_doctor_report *r);
};

/* Each table ends with a row whose name is NULL. */
extern const struct sw_doctor_check sw_doctor_system[]; /* limits, rights */
extern const struct sw_doctor_check sw_doctor_cores[];
extern const struct sw_doctor_check sw_doctor_links[];

#endif
