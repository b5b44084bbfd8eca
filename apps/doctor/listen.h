/* listen.h - the answering end of a path.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_DOCTOR_LISTEN_H
#define SW_APPS_DOCTOR_LISTEN_H

#include <stdint.h>

/* sw_doctor_listen - answer the requests of other doctors at @address, like
 * "5700" or "10.0.0.1:5700", for @limit_ns or until SIGINT or SIGTERM.
 * Returns the exit code of the command. */
int sw_doctor_listen(const char *address, uint64_t limit_ns);

#endif
