/* port.h - ports over DPDK: open, close, link, counters.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames go through engine/loop/port.h.
 */
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
	SW_DPDK_AF_PACKET, /* a kernel interface, by packet sockets */
	SW_DPDK_AF_XDP,    /* a kernel interface by XDP, with all its frames */
	SW_DPDK_PCI,       /* a NIC, by its address */
	SW_DPDK_VDEV,      /* a DPDK software driver, by its name */
	SW_DPDK_UDP,       /* kernel datagram sockets */
	SW_DPDK_N_TYPES,
};

/* sw_dpdk_type_find - return the type called @name, as in [port] type. Errors:
 * SW_ENOENT. Thread: any. */
int sw_dpdk_type_find(const char *name);

enum sw_dpdk_side { SW_DPDK_NO_SIDE, SW_DPDK_LISTEN, SW_DPDK_CONNECT };

struct sw_dpdk_port_params {
	const char
		*name; /* port name, unique; 1 to 31 letters, digits, - _ . */
	enum sw_dpdk_type type;
	struct sw_ip ip;   /* our address */
	uint16_t udp;      /* our first UDP port, host order */
	uint16_t n_udp;    /* number of endpoints, each with n_ways UDP ports */
	uint16_t n_ways;   /* UDP ports per endpoint (engine/loop/port.h) */
	uint16_t n_queues; /* queue pairs wanted, one per lcore; 1 …
			      SW_DPDK_QUEUES */
	/* Owning lcore by endpoint. Frames are steered to that lcore's queue if
	 * it has one. */
	uint8_t owners[SW_DPDK_ENDPOINTS];
	enum sw_steering steering; /* for several queues; SW_STEER_ONE: the
				      best available */
	uint32_t payload_bytes;    /* largest payload, a multiple of 64;
				      the MTU may make it smaller */
	uint32_t ring_slots;       /* slots of the driver's rings, each way; a
				      power of two, 16 … 16384; 0: by type */
	uint32_t queue_bytes;      /* udp: payload bytes that a socket's receive
				      buffer should hold; 0: the ring */
	uint32_t burst; /* frames per driver call, at most SW_RX_BURST; 0: by
			   type */
	uint64_t rate_bit_s; /* payload rate of all queue pairs together; 0: no
				limit */
	/* For tests: received frames to drop, duplicate, or delay by 1 to 32
	 * frames, in parts per million. */
	uint32_t fault_loss_ppm, fault_dup_ppm, fault_reorder_ppm;
	uint64_t fault_seed; /* equal seeds repeat the choices */
	/* memif: */
	const char *socket_path; /* in a directory that both processes can
				    write */
	uint32_t memif_id;       /* distinguishes links over one socket */
	enum sw_dpdk_side side;  /* one end listens, the other connects */
	uint16_t n_link_queues;  /* queue pairs, the same at the other end; at
				    most n_queues */
	bool is_trusted;         /* frames need no keys: no attacker reaches
				    them */
	uint32_t trusted_uid; /* user, besides our own and root, that may listen
				 where we connect; the same for all ports of a
				 process; UINT32_MAX: none */
	/* all other types: */
	const char *device; /* name of the interface, or PCI address; udp:
			       may be NULL: the interface that has the
			       address */
	const char *args;   /* pci, vdev: driver arguments; NULL: none */
	uint32_t mtu;       /* pci, vdev: MTU of the network; 0: the device's */
	uint32_t prefix_bits; /* prefix of our network in bits: at least 1, less
				 than the address has */
	struct sw_ip gateway; /* gateway to other networks; none: zero */
	uint16_t vlan;        /* 1 … 4094; 0: frames have no tag */
};

/* Counters since open. Bytes count whole Ethernet frames. */
struct sw_dpdk_port_stats {
#define SW_DPDK_COUNTER(name, unit, text) uint64_t name;
#include "pmd/dpdk/counters.def"
#undef SW_DPDK_COUNTER
};

/* sw_dpdk_port_params_init - fill @p with defaults: memif, listener, one UDP
 * port, one queue pair, payload 8192, ring and burst by type, no faults, prefix
 * 24. The caller sets name, ip, and socket_path or device. Thread: any. */
void sw_dpdk_port_params_init(struct sw_dpdk_port_params *p);

/* sw_dpdk_port_bytes - return the DPDK memory that this port's buffers take. */
uint64_t sw_dpdk_port_bytes(const struct sw_dpdk_port_params *p);

/* sw_dpdk_port_payload - return the largest payload that fits @mtu in
 * frames from @ip; 0: none. */
uint32_t sw_dpdk_port_payload(uint32_t mtu, struct sw_ip ip);

/* sw_dpdk_port_open - open a port. The link comes up when the other end
 * appears, and again after it disappeared or the interface was re-created,
 * without further calls. A DPDK thread logs these events.
 * @p        read only during the call
 * @index    becomes sw_path.port_i of its frames
 * @log      kept
 * @out      set on success to the first queue pair; owned by the caller until
 *           sw_dpdk_port_close
 * Thread: control. The ops of a queue pair then belong to one lcore.
 * Errors: SW_ECONF an invalid parameter; SW_EBUSY another process listens
 * there; SW_ENOMEM; SW_EIO the driver refuses. */
int sw_dpdk_port_open(const struct sw_dpdk_port_params *p, uint16_t index,
	const struct sw_log *log, struct sw_port **out);

/* sw_dpdk_port_queue - return queue pair @i of the port whose first queue pair
 * is @first; NULL: the device has fewer, and lcores from @i on use other
 * lcores' queue pairs. */
struct sw_port *sw_dpdk_port_queue(const struct sw_port *first, uint32_t i);

/* sw_dpdk_port_set_rate - set the rate of the port whose first queue pair is
 * @first to @bit_s of payload, all queue pairs together; 0: no limit. Each
 * queue pair gets an equal part, which its lcore's loop reads by
 * sw_dpdk_port_rate. Thread: one at a time.
 * sw_dpdk_port_rate - return the part of one queue pair; 0: no limit, or @p is
 * NULL (an lcore without a queue pair is paced by the lcore that sends for it).
 * Thread: any. */
void sw_dpdk_port_set_rate(struct sw_port *first, uint64_t bit_s);
uint64_t sw_dpdk_port_rate(const struct sw_port *p);

/* sw_dpdk_port_close - close a port by its first queue pair and free
 * everything, after its lcores have left it. Sets *@p to NULL; *@p may be NULL.
 * Thread: control. */
void sw_dpdk_port_close(struct sw_port **p);

/* sw_dpdk_port_is_up - return whether the other end is up. Thread: any. */
bool sw_dpdk_port_is_up(const struct sw_port *p);

/* sw_dpdk_port_wake_fds - write into @fds at most @max descriptors, owned by
 * the port, of which one is readable while frames wait at this queue pair.
 * Returns how many there are; 0: none now (only af_packet and udp have any), so
 * the lcore must poll. They may be closed at any time, when the interface
 * vanishes. Thread: the owning lcore. */
uint32_t sw_dpdk_port_wake_fds(
	const struct sw_port *p, int fds[], uint32_t max);

/* sw_dpdk_port_slots - return the slots of the driver's rings, each way, over
 * all queue pairs. */
uint32_t sw_dpdk_port_slots(const struct sw_port *p);

/* sw_dpdk_port_holds - return the payload bytes that each receive buffer of a
 * kernel socket port holds, as the kernel counts memory; 0 for other ports. */
uint32_t sw_dpdk_port_holds(const struct sw_port *p);

/* sw_dpdk_port_is_drained - return whether the driver has released every stable
 * payload sent on this queue pair, so that the memory may be unmapped. Ask
 * again after tx_flush while false. Thread: the owning lcore. */
bool sw_dpdk_port_is_drained(struct sw_port *p);

/* sw_dpdk_port_mark - mark the frames that were sent on this queue pair so far,
 * for sw_dpdk_port_release.  Thread: the owning lcore. */
uint32_t sw_dpdk_port_mark(const struct sw_port *p);

/* sw_dpdk_port_release - return whether the driver has released every stable
 * payload that was sent before @mark, so that its memory may be unmapped. Looks
 * once, so ask again while false. Later frames do not delay it. Frames that the
 * driver has not accepted are dropped once, because the other end may never
 * read again. Thread: the owning lcore. */
bool sw_dpdk_port_release(struct sw_port *p, uint32_t mark);

/* sw_dpdk_port_stats_get - copy the counters.  Thread: any. */
void sw_dpdk_port_stats_get(
	const struct sw_port *p, struct sw_dpdk_port_stats *out);

/* sw_dpdk_port_xstats - report the counters of the device and its driver, such
 * as rx_missed_errors (ethdev's imissed) and rx_mbuf_allocation_errors
 * (rx_nombuf), by ethdev's names: calls put(out, name, value) for each. Reports
 * nothing for a kernel socket port, or while the device is away.
 * @p  the port's first queue pair
 * Thread: control; @put must not call the port. */
void sw_dpdk_port_xstats(const struct sw_port *p,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

/* Names and texts of the counters, in the order of struct sw_dpdk_port_stats,
 * which is an array of SW_DPDK_N_COUNTERS numbers. */
enum {
#define SW_DPDK_COUNTER(name, unit, text) SW_DPDK_I_##name,
#include "pmd/dpdk/counters.def"
#undef SW_DPDK_COUNTER
	SW_DPDK_N_COUNTERS
};
extern const struct sw_dpdk_counter {
	const char *name, *unit, *text;
} sw_dpdk_counters[SW_DPDK_N_COUNTERS];

#endif
