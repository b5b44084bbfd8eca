/* fake.h - a fake device: threads and memcpy in place of a GPU.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The back end "fake", for tests and for measuring the pipeline where there is
 * no GPU. Any memory serves as its memory. Each direction has a thread that
 * copies, at the bandwidth and with the latency that its options set:
 *
 *   gbit=N        bandwidth of each direction, in Gb/s; 0: memcpy's
 *   mbit=N        the same in Mb/s; both add up
 *   latency_us=N  latency of each copy
 *   lost_after=N  the device fails at the copy after the first N
 *   no_pin, no_hold  pin, hold return an error
 *   node=N        NUMA node near the device
 *   check         a call ends with SW_ECORRUPT if its buffers are written, or
 *                 freed by sw_device_free, before it ends; slow
 *
 * A program's streams are also threads, each with a queue of jobs.
 */
#ifndef SW_PMD_CUDA_FAKE_H
#define SW_PMD_CUDA_FAKE_H

#include "pmd/cuda/back.h"

struct sw_fake_stream;

/* sw_fake_stream_open - open a stream; NULL: out of memory. */
struct sw_fake_stream *sw_fake_stream_open(struct sw_back *b);

/* sw_fake_stream_close - finish all jobs and free the stream. */
void sw_fake_stream_close(struct sw_fake_stream *s);

/* sw_fake_stream_run - queue a call of @fn(@arg). */
void sw_fake_stream_run(
	struct sw_fake_stream *s, void (*fn)(void *arg), void *arg);

/* sw_fake_stream_wait - wait until the stream has done all jobs. */
void sw_fake_stream_wait(struct sw_fake_stream *s);

/* sw_fake_copies - return how many copies in direction @way have begun. */
uint64_t sw_fake_copies(const struct sw_back *b, enum sw_back_way way);

#endif
