/* hello.h - check that a sumwire server answers.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_DOCTOR_HELLO_H
#define SW_APPS_DOCTOR_HELLO_H

#include <stdbool.h>
#include <stdint.h>

/* sw_hello_send - send a HELLO (PROTOCOL.md 2.1) with @nonce over connected
 * socket @fd.  The server keeps no state for it.  Returns 0, or errno. */
int sw_hello_send(int fd, uint64_t nonce);

/* sw_hello_is_answer - return whether the datagram is a COOKIE with @nonce, or
 * an ERROR. */
bool sw_hello_is_answer(const void *datagram, uint32_t n, uint64_t nonce);

#endif
