/* port.h - ports over DPDK: open, close, link, counters.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames go through engine/loop/port.h. */
#ifndef SW_PMD_DPDK_PORT_H
#define SW_PMD_DPDK_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/log.h"
#include "engine/loop/port.h"

enum {
	SW_DPDK_QUEUES = 16,
	SW_DPDK_ENDPOINTS = 2 * SW_DPDK_QUEUES,
};

enum sw_dpdk_type {
	SW_DPDK_MEMIF,     /* shared memory with one other process */
	SW_DPDK_AF_PACKET, /* an interface of the kernel, by its sockets */
	SW_DPDK_AF_XDP,    /* the same, all of its frames, by XDP */
	SW_DPDK_PCI,       /* a NIC, by its address */
	SW_DPDK_VDEV,      /* a software driver of DPDK's, by its name */
	SW_DPDK_UDP,       /* the kernel's datagram sockets */
	SW_DPDK_N_TYPES,
};

/* sw_dpdk_type_find - the type of that name, as in [port] type.
 * Errors: SW_ENOENT.  Thread: any. */
int sw_dpdk_type_find(const char *name);

enum sw_dpdk_side { SW_DPDK_NO_SIDE, SW_DPDK_LISTEN, SW_DPDK_CONNECT };

struct sw_dpdk_port_params {
	const char
		*name; /* of the port, unique; 1 to 31 letters, digits, - _ . */
	enum sw_dpdk_type type;
	uint32_t ip;       /* our address, host order */
	uint16_t udp;      /* our first UDP port, host order */
	uint16_t n_udp;    /* so many from there on are ours: endpoints */
	uint16_t n_ways;   /* UDP ports of each endpoint (engine/loop/port.h) */
	uint16_t n_queues; /* queue pairs wanted, one for each of so many
			      lcores; 1 … SW_DPDK_QUEUES */
	/* By endpoint: the lcore that has it, whose queue, if it has one, its
	 * frames are steered to. */
	uint8_t owners[SW_DPDK_ENDPOINTS];
	enum sw_steering steering; /* of several; SW_STEER_ONE: the best that
				      there is */
	uint32_t payload_bytes;    /* largest payload class: 1344, 3328 or 8192;
				      the MTU may make it smaller */
	uint32_t ring_slots;       /* of the driver, each way; a power of two,
				      16 … 16384; 0: by type */
	uint32_t queue_bytes; /* udp: of payload that a socket's receive buffer
				 should hold; 0: the ring */
	uint32_t burst; /* frames per driver call, at most SW_RX_BURST; 0: by
			   type */
	uint64_t rate_bit_s; /* of payload, its queue pairs together; 0: any */
	/* For tests, in parts per million: received frames that are dropped,
	 * that come twice, that come later; by 1 to 32 frames. */
	uint32_t fault_loss_ppm, fault_dup_ppm, fault_reorder_ppm;
	uint64_t fault_seed; /* the same one: the same choices */
	/* memif: */
	const char *socket_path; /* in a directory that both processes write */
	uint32_t memif_id;       /* tells links over one socket apart */
	enum sw_dpdk_side side;  /* one end listens, the other connects */
	uint16_t n_link_queues;  /* queue pairs, as at the other end; at most
				    n_queues */
	uint32_t trusted_uid;    /* who may listen where we connect, beside our
				    own user and root; the same of all ports of
				    a process; UINT32_MAX: nobody */
	/* all others: */
	const char *device;   /* name of the interface, PCI address; udp: may
				 be NULL, the one that has the address */
	const char *args;     /* pci, vdev: the driver's; NULL: none */
	uint32_t mtu;         /* pci, vdev: of the network; 0: the device's */
	uint32_t prefix_bits; /* of our network, 1 … 31 */
	uint32_t gateway;     /* to other networks, host order; 0: none */
	uint16_t vlan;        /* 1 … 4094; 0: frames have no tag */
};

/* Counters since open.  Bytes are those of Ethernet frames. */
struct sw_dpdk_port_stats {
#define SW_DPDK_COUNTER(name, text) uint64_t name;
#include "pmd/dpdk/counters.def"
#undef SW_DPDK_COUNTER
};

/* sw_dpdk_port_params_init - fill @p with defaults: memif, listener, one
 * UDP port, one queue pair, payload
 * 8192, ring and burst by type, no faults, prefix 24; name, ip, and socket_path
 * or device stay to be set.
 * Thread: any. */
void sw_dpdk_port_params_init(struct sw_dpdk_port_params *p);

/* sw_dpdk_port_bytes - DPDK memory that this port's buffers take. */
uint64_t sw_dpdk_port_bytes(const struct sw_dpdk_port_params *p);

/* sw_dpdk_port_payload - the largest payload class that fits an MTU; 0: none.
 */
uint32_t sw_dpdk_port_payload(uint32_t mtu);

/* sw_dpdk_port_open - make a port.  The link comes up when the other end is
 * there, and again after it went or the interface was made anew, without
 * further calls.  What happens to it is logged from a thread of DPDK's.
 * @p        read only during the call
 * @index    goes into sw_path.port_i of its frames
 * @log      kept
 * @out      set on success to the first queue pair; owned by the caller until
 *           sw_dpdk_port_close
 * Thread: control.  The ops of a queue pair then belong to one lcore.
 * Errors: SW_ECONF a parameter; SW_EBUSY another process listens there;
 * SW_ENOMEM; SW_EIO the driver refuses. */
int sw_dpdk_port_open(const struct sw_dpdk_port_params *p, uint16_t index,
	const struct sw_log *log, struct sw_port **out);

/* sw_dpdk_port_queue - queue pair @i of the port whose first one is @first;
 * NULL: the device has not so many, and the lcores from @i on reach it through
 * others. */
struct sw_port *sw_dpdk_port_queue(const struct sw_port *first, uint32_t i);

/* sw_dpdk_port_set_rate - set the rate of the port whose first queue pair is
 * @first to @bit_s of payload, all queue pairs together; 0: no limit.  Each
 * queue pair gets an equal part, which its lcore's loop takes over by
 * sw_dpdk_port_rate.  Thread: one at a time.
 * sw_dpdk_port_rate - the part of one queue pair; 0: no limit, or @p is NULL
 * (an lcore without a queue pair is paced by the one that sends for it).
 * Thread: any. */
void sw_dpdk_port_set_rate(struct sw_port *first, uint64_t bit_s);
uint64_t sw_dpdk_port_rate(const struct sw_port *p);

/* sw_dpdk_port_close - give everything back, by its first queue pair; its
 * lcores have left it.  Sets *@p to NULL; *@p may be NULL.  Thread: control. */
void sw_dpdk_port_close(struct sw_port **p);

/* sw_dpdk_port_is_up - is the other end there?  Thread: any. */
bool sw_dpdk_port_is_up(const struct sw_port *p);

/* sw_dpdk_port_wake_fds - descriptors, the port's, of which one is readable
 * while frames wait at this queue pair, for an lcore that would sleep: into
 * @fds, at most @max.  Returns how many there are; 0: none now (only af_packet
 * and udp have any), so it has to look by itself.  They may be closed at any
 * time, when the interface vanishes.  Thread: the owning lcore. */
uint32_t sw_dpdk_port_wake_fds(
	const struct sw_port *p, int fds[], uint32_t max);

/* sw_dpdk_port_slots - of its driver's rings, each way, all queue pairs. */
uint32_t sw_dpdk_port_slots(const struct sw_port *p);

/* sw_dpdk_port_holds - bytes of payload that each receive buffer of a port of
 * the kernel's sockets holds, as the kernel counts memory; 0: of other ports.
 */
uint32_t sw_dpdk_port_holds(const struct sw_port *p);

/* sw_dpdk_port_is_drained - does no driver refer to a stable payload sent on
 * this queue pair any more?
 * Then their memory may be unmapped.  Ask again after tx_flush while false.
 * Thread: the owning lcore. */
bool sw_dpdk_port_is_drained(struct sw_port *p);

/* sw_dpdk_port_mark - mark the frames that were sent on this queue pair so far,
 * for sw_dpdk_port_release.  Thread: the owning lcore. */
uint32_t sw_dpdk_port_mark(const struct sw_port *p);

/* sw_dpdk_port_release - return whether the driver has released every stable
 * payload that was sent before @mark, so that its memory may be unmapped. Looks
 * once, so ask again while false.  Frames sent since then do not delay it, and
 * frames that the driver has not taken are dropped once, as the other end may
 * never read again.  Thread: the owning lcore. */
bool sw_dpdk_port_release(struct sw_port *p, uint32_t mark);

/* sw_dpdk_port_stats_get - copy the counters.  Thread: any. */
void sw_dpdk_port_stats_get(
	const struct sw_port *p, struct sw_dpdk_port_stats *out);

/* sw_dpdk_port_xstats - what the device and its driver count, such as
 * rx_missed_errors (ethdev's imissed) and rx_mbuf_allocation_errors
 * (rx_nombuf), by ethdev's names: put(out, name, value) of each.  Nothing for a
 * port of the kernel's sockets, or while the device is away.
 * @p  the port's first queue pair
 * Thread: control; @put must not call the port. */
void sw_dpdk_port_xstats(const struct sw_port *p,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

/* Text of the counters, in the order of struct sw_dpdk_port_stats, which is an
 * array of SW_DPDK_N_COUNTERS numbers. */
enum {
#define SW_DPDK_COUNTER(name, text) SW_DPDK_I_##name,
#include "pmd/dpdk/counters.def"
#undef SW_DPDK_COUNTER
	SW_DPDK_N_COUNTERS
};
extern const struct sw_dpdk_counter {
	const char *name, *text;
} sw_dpdk_counters[SW_DPDK_N_COUNTERS];

#endif
