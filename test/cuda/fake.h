/* fake.h - a stand-in for the CUDA runtime: what a test sets, what was called.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Two libraries are built of fake.c, with the names of runtime 12 and 13.
 * Device memory is any memory; that of cudaMalloc is not where its address
 * says, so that a program which touches it faults.  A stream does what it was
 * given one by one: each question about an event of it that is not done does
 * one more; so whoever takes a copy for done too early has the wrong bytes.
 * While another thread captures a graph, calls that could join it fail and
 * spoil it, unless the calling thread has opted out. No page is pinned twice,
 * and no copy goes over the border of two pins.
 */
#ifndef SW_TEST_CUDA_FAKE_H
#define SW_TEST_CUDA_FAKE_H

#include <stdint.h>

enum {
	FAKE_INVALID = 1, /* cudaErrorInvalidValue */
	FAKE_MEMORY = 2,
	FAKE_OLD_DRIVER = 35,
	FAKE_BAD_HANDLE = 400,
	FAKE_NOT_READY = 600,
	FAKE_PINNED = 712,   /* cudaErrorHostMemoryAlreadyRegistered */
	FAKE_CAPTURE = 900,  /* cudaErrorStreamCaptureUnsupported */
	FAKE_LOST = 719,     /* cudaErrorLaunchFailure, which stays */
	FAKE_ROOM = 1 << 30, /* bytes of one cudaMalloc */
	FAKE_PINS = 256,
};

#define FAKE_BUS "0000:3B:00.0" /* of device 0 */

struct fake {
	/* set by a test */
	int driver, n_devices; /* of 12.9: 12090 */
	int pin_error, capture;
	int is_capturing_elsewhere;
	int is_capture_error; /* StreamIsCapturing returns 906 */
	uint32_t lost_after;  /* copies; 0: never */
	/* Called first of all by each function, in the thread that calls it. */
	void (*on_call)(void *arg);
	void *on_call_arg;
	int has_no_wait_value, has_no_bus;
	/* what was done */
	int current;                                      /* device */
	uint32_t n_streams, n_events, n_pinned, n_blocks; /* that there are */
	uint32_t n_copies[2]; /* to the device, to the host */
	uint32_t n_wide;      /* cudaMemcpy2DAsync's share */
	uint32_t n_waits, n_pins, n_cleared;
	uint32_t n_relaxed; /* threads that are so */
	uint32_t n_spoiled; /* graphs of others */
	uint32_t bad_calls; /* with what no test means */
	unsigned int pin_flags, wait_flags;
	uint64_t wait_at;
	uint32_t wait_value;
	int error, is_lost;
	/* pinned; a copy over the border of two is refused */
	struct fake_pin {
		const char *at;
		uint64_t bytes;
	} pins[FAKE_PINS];
};

/* fake_state - return the state of the library that has it; found by dlsym. */
struct fake *fake_state(void);

#endif
