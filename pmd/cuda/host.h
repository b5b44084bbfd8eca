/* host.h - a device that is none: threads and memcpy in place of a GPU.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The back end "host", for tests and for measuring the pipeline where there is
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
#ifndef SW_PMD_CUDA_HOST_H
#define SW_PMD_CUDA_HOST_H

#include "pmd/cuda/back.h"

struct sw_host_stream;

/* sw_host_stream_open - NULL: out of memory. */
struct sw_host_stream *sw_host_stream_open(struct sw_back *b);

/* sw_host_stream_close - waits for all that it has to do. */
void sw_host_stream_close(struct sw_host_stream *s);

/* sw_host_stream_run - call @fn(@arg) in its turn. */
void sw_host_stream_run(
	struct sw_host_stream *s, void (*fn)(void *arg), void *arg);

/* sw_host_stream_wait - until it has done all. */
void sw_host_stream_wait(struct sw_host_stream *s);

/* sw_host_copies - how many copies of that way have begun so far. */
uint64_t sw_host_copies(const struct sw_back *b, enum sw_back_way way);

#endif
