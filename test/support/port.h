/* port.h - a port whose two ends are in the test's hands.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_PORT_H
#define SW_TEST_SUPPORT_PORT_H

#include "engine/loop/port.h"

enum { PORT_INBOX = 512 };

struct test_port {
	struct sw_port port; /* first: it is cast back */
	uint32_t n_inbox;    /* frames that wait to be received */
	uint32_t n_held;     /* received, not released yet */
	uint32_t room;       /* what tx_room says */
	uint16_t endpoint;   /* the frames' receiver */
	uint32_t n_rx, n_tx, n_flushes, n_releases; /* calls */
	struct sw_tx_frame last;
};

/* port_init - an idle port with room for ever. */
void port_init(struct test_port *p);

#endif
