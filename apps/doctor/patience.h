/* patience.h - run checks with a time limit, in case the kernel blocks.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_DOCTOR_PATIENCE_H
#define SW_APPS_DOCTOR_PATIENCE_H

#include "apps/doctor/checks.h"

/* sw_doctor_run - run the checks of one table.  A check that takes longer than
 * @limit_ms counts as wrong.  Errors: SW_ENOMEM, SW_EIO. */
int sw_doctor_run(const struct sw_doctor_check *rows, const struct sw_eyes *e,
	struct sw_doctor_report *r, uint32_t limit_ms);

#endif
