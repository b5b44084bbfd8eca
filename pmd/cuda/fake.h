/* fake.h - a fake device: threads and memcpy in place of a GPU.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The back end "fake", for tests and for measuring the pipeline where there is
 * no GPU.  Its memory is any memory.  Each way has a thread that copies, at the
 * bandwidth and with the latency that its options set:
 *
 *   gbit=N        bandwidth of each way, in Gb/s; 0: that of memcpy
 *   mbit=N        the same in Mb/s; both add up
 *   latency_us=N  of each copy
 *   lost_after=N  the device fails with the copy after N
 *   no_pin, no_hold  pin, hold refuse
 *   node=N        it is near this NUMA node
 *   check         a tensor, or what a collective sends, that is written, or
 *                 freed by sw_device_free, while it is under way ends with
 *                 SW_ECORRUPT; takes time
 *
 * A program's streams are threads, too, with a queue of what they are to do.
 */
#ifndef SW_PMD_CUDA_FAKE_H
#define SW_PMD_CUDA_FAKE_H

#include "pmd/cuda/back.h"

struct sw_fake_stream;

/* sw_fake_stream_open - NULL: out of memory. */
struct sw_fake_stream *sw_fake_stream_open(struct sw_back *b);

/* sw_fake_stream_close - waits for all that it has to do. */
void sw_fake_stream_close(struct sw_fake_stream *s);

/* sw_fake_stream_run - call @fn(@arg) in its turn. */
void sw_fake_stream_run(
	struct sw_fake_stream *s, void (*fn)(void *arg), void *arg);

/* sw_fake_stream_wait - until it has done all. */
void sw_fake_stream_wait(struct sw_fake_stream *s);

/* sw_fake_copies - how many copies of that way have begun so far. */
uint64_t sw_fake_copies(const struct sw_back *b, enum sw_back_way way);

#endif
