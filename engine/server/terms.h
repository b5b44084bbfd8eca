/* terms.h - what all members of a job say the same of.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TERMS_H
#define SW_TERMS_H

#include <stdbool.h>

#include "engine/server/server.h"

/* sw_terms_differ - does @j say anything of its job otherwise than @job has it?
 * Then @text says what, with both values. */
bool sw_terms_differ(const struct sw_job *job, const struct sw_join *j,
	char text[SW_TEXT_MAX]);

#endif
