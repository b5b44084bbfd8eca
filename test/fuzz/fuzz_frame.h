/* fuzz_frame.h - the engine's part of fuzz_frame.c.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_FUZZ_FUZZ_FRAME_H
#define SW_TEST_FUZZ_FUZZ_FRAME_H

#include "engine/loop/port.h"

/* fuzz_frame_open - read our header, as it is and with mended checksums; a
 * header that decodes must encode to the same bytes. */
void fuzz_frame_open(const struct sw_rx_frame *rx);

#endif
