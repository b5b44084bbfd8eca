/* port.h - a port whose frames and room a test sets.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_PORT_H
#define SW_TEST_SUPPORT_PORT_H

#include "engine/loop/port.h"

enum { PORT_INBOX = 512 };

struct test_port {
	struct sw_port port; /* must be first: test_port is cast from it */
	uint32_t n_inbox;    /* frames waiting to be received */
	uint32_t n_held;     /* frames received and not yet released */
	uint32_t room;       /* the value that tx_room returns */
	uint16_t endpoint;   /* endpoint of the received frames */
	uint32_t n_rx, n_tx, n_flushes, n_releases; /* numbers of calls */
	struct sw_tx_frame last;
};

/* port_init - set up an idle port with unlimited room. */
void port_init(struct test_port *p);

#endif
