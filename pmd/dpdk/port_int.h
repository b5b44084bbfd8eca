/* port_int.h - the state of a port, private to pmd/dpdk.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_PORT_INT_H
#define SW_PMD_DPDK_PORT_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "pmd/dpdk/frame.h"
#include "pmd/dpdk/neigh.h"
#include "pmd/dpdk/port.h"

enum {
	/* Bytes before the payload of an untagged IPv4 frame. */
	FRAME_HEAD_BYTES = SW_OUTER_BYTES + SW_HEAD_BYTES,
	/* Authentication appends this many bytes to a payload. */
	TRAILER_BYTES = 16,
	/* Most bytes that a frame has besides its payload. */
	FRAME_REST_BYTES = SW_OUTER_MAX + SW_HEAD_BYTES + TRAILER_BYTES,
	/* The same for an IPv4 packet: bytes that count against an MTU. IPv6
	 * adds SW_V6_MORE. */
	PACKET_REST_BYTES = SW_INNER_BYTES + SW_HEAD_BYTES + TRAILER_BYTES,
	/* Buffers that an lcore caches. A burst and its release stay within the
	 * cache, so the same few buffers are reused and stay in L2, however
	 * large the pool is. */
	POOL_CACHE = 2 * SW_RX_BURST,
	SW_DPDK_SLOTS_MIN = 16, /* slots of a ring */
	/* Copy shorter payloads: cheaper than a second segment. */
	GATHER_MIN_BYTES = 256,
};

struct port;

/* packet_rest - return the most bytes besides the payload that count against
 * the MTU in packets from @ip. */
static inline uint32_t packet_rest(struct sw_ip ip)
{
	return PACKET_REST_BYTES + (sw_ip_is_v4(ip) ? 0 : SW_V6_MORE);
}

/* priv_bytes - return the private bytes before an mbuf's data that align the
 * payload of an untagged frame to a cache line. */
static inline uint32_t priv_bytes(struct sw_ip ip)
{
	uint32_t head = RTE_PKTMBUF_HEADROOM + FRAME_HEAD_BYTES +
			(sw_ip_is_v4(ip) ? 0 : SW_V6_MORE);

	return (64 - head % 64) % 64;
}

/* Properties of a driver that ethdev does not report. A row in sw_port_types.
 */
struct port_type {
	const char *name;
	const char *bus; /* bus of the device that the parameters name; NULL:
			    vdev net_NAME with the port's number */
	/* Write the arguments for rte_eal_hotplug_add. */
	int (*devargs)(const struct sw_dpdk_port_params *p, uint32_t payload,
		const struct sw_log *log, char *args, size_t size);
	/* Acquire and release resources outside DPDK, such as a socket's name;
	 * NULL: none. */
	int (*claim)(const struct sw_dpdk_port_params *p,
		const struct sw_log *log, int *fd_out);
	void (*unclaim)(const char *path, int fd);
	/* Clean up after the driver has removed the device, on the same thread;
	 * NULL: nothing to do. */
	void (*removed)(const char *path);
	/* Link: return the user at the other end if untrusted, else 0: before
	 * dialling by the owner of the socket, then by the connected peer.
	 * NULL: trust all. */
	uint32_t (*stranger)(const struct port *p, bool is_connected);
	/* Bytes that the driver needs in a receive buffer beyond a frame. */
	uint32_t rx_extra;
	uint32_t rx_unit; /* buffer sizes are a multiple; 0: any size */
	/* Defaults. Frames in the ring are beyond the scheduler's reach: this
	 * is the smallest ring with 0.95 of the best throughput, with a burst
	 * of a quarter of it (PERFORMANCE.md). */
	uint32_t ring_slots, burst;
	/* Receive buffers lent to the kernel, which reads and writes their
	 * whole pool. Each object is a page. Frames are also sent from this
	 * pool, because the driver would copy frames from another pool. 0:
	 * none. */
	uint32_t n_lent;
	uint32_t payload_max; /* largest payload that fits its buffers; 0: no
				 limit */
	uint16_t max_queues;  /* 0: as ethdev reports */
	/* Steer by means outside ethdev, once the device exists; set
	 * p->steering. NULL: use ethdev. */
	int (*steer)(struct port *p);
	/* Rings are locked memory, which is scarce for a user, so the queue
	 * pairs share it. */
	bool is_locked;
	bool is_sync; /* a frame is copied when tx_burst returns, so it may
			 refer to memory that changes afterwards */
	/* A link to one other process: it has no ARP, and the driver reports
	 * when the process connects and disconnects. */
	bool is_link;
	bool is_nic;    /* DPDK owns the device: ethdev reports MTU and link */
	bool is_dma;    /* reads frames only from memory that DPDK registered */
	bool is_kernel; /* no DPDK device: kernel sockets (udp.c) */
	/* Return DPDK's memory for a port; NULL: its buffers (pool.c). */
	uint64_t (*bytes)(const struct sw_dpdk_port_params *p);
	/* Describe what a refused device with @bytes of memory lacks; NULL:
	 * nothing to add. */
	void (*missing)(const struct sw_dpdk_port_params *p, uint64_t bytes,
		char *out, size_t size);
};

extern const struct port_type *const sw_port_types[SW_DPDK_N_TYPES];
extern const struct port_type sw_dpdk_memif, sw_dpdk_af_packet, sw_dpdk_af_xdp,
	sw_dpdk_pci, sw_dpdk_vdev, sw_dpdk_udp;

struct faults;

/* One queue pair of a port; one lcore owns it. */
struct queue {
	struct sw_port base; /* first member: a struct sw_port is cast to a
				queue */
	struct port *port;
	uint16_t index;
	struct rte_mempool *rx_pool, *head_pool, *copy_pool;
	struct sw_udp_queue *udp; /* NULL: backed by a DPDK device */
	struct faults *faults;
	const void *rx_callback;
	/* used by the lcore */
	_Alignas(64) struct rte_mbuf *rx_held[SW_RX_BURST];
	struct rte_mbuf *tx_held[SW_RX_BURST];
	uint16_t tx_bytes[SW_RX_BURST]; /* bytes of the frames in tx_held */
	uint32_t n_rx_held, n_tx_held;
	bool is_up; /* link state when the lcore last looked */
	/* The lcore may hold buffers of this device. Written by the lcore. */
	_Atomic bool is_in_use;
	/* References to stable payloads, counted per epoch of sending; 1 means
	 * none. Callers never ask about a single frame, only whether all frames
	 * of an epoch are done. The driver drops its reference when it frees
	 * the segment, at once or much later. The current epoch uses refs[epoch
	 * & 1]; of earlier epochs, only the latest can have references. */
	struct rte_mbuf_ext_shared_info refs[2];
	/* References to payloads that change after tx; always 1 (none) outside
	 * tx. */
	struct rte_mbuf_ext_shared_info passing;
	uint32_t epoch;
	_Atomic uint64_t counters[SW_DPDK_N_COUNTERS];
};

/* A device, with the state that its queue pairs share. */
struct port {
	/* set by open; read by lcores */
	const struct port_type *type;
	const struct sw_log *log;
	uint16_t eth_i;
	uint16_t index;
	uint16_t burst;
	uint16_t n_lcores; /* lcores to serve */
	uint16_t n_queues; /* most queue pairs */
	enum sw_steering steering;
	bool has_rss;
	struct rte_eth_conf conf; /* configuration of the device */
	uint16_t n_rx_slots, n_tx_slots;
	uint16_t mtu;        /* NIC's MTU */
	bool is_mtu_new;     /* set the MTU at start */
	bool can_gather;     /* the driver accepts frames of two segments */
	uint64_t tx_flags;   /* offloads that the driver does for each frame */
	uint32_t frame_max;  /* largest frame that we send */
	uint32_t head_bytes; /* bytes before the payload */
	bool must_sum;       /* we compute UDP checksums ourselves */
	struct sw_outer me;
	struct sw_neigh *neigh; /* NULL: a link, or kernel sockets */
	struct queue *queues[SW_DPDK_QUEUES];
	char *claim_path;
	int claim_fd;
	char *dev_name; /* NULL: no device now */
	/* Held while the device is made, started, stopped or removed, and while
	 * its own counters are read; no lcore takes it. */
	pthread_mutex_t device_lock;
	/* used by DPDK's interrupt thread, which dials and watches */
	_Alignas(64) struct sw_dpdk_port_params params; /* texts are copies */
	uint32_t if_index;
	struct mnl_socket *changes; /* interface changes; NULL: not watched */
	uint32_t n_alone;           /* watch periods without a link */
	uint32_t n_dial_ticks;      /* ticks until the next dial or reopening */
	uint32_t n_shy_ticks; /* ticks until a stranger is dialled again */
	uint32_t said_uid;    /* last stranger reported, 0: none */
	uint32_t said_mtu;    /* last MTU seen */
	bool is_started, was_connected;
	/* Descriptor by queue pair that is readable while frames wait; -1:
	 * none. */
	_Atomic int wake_fds[SW_DPDK_QUEUES];
	_Atomic bool is_linked; /* link state seen by the watch; unused for
				   links */
	const char *link_why; /* last reason logged; used by the watch alone */
	_Atomic bool is_removed;
	/* Kernel sockets: errno of the last refused send; 0: none since the
	 * watch last checked. */
	_Atomic int denied_errno;
	int said_errno;        /* last errno logged; used by the watch alone */
	uint32_t n_calm_ticks; /* ticks without a refused send; used by the
				  watch alone */
	bool has_said_short, has_said_overrun;
	/* Kernel sockets: payload that each receive buffer holds, and the
	 * net.core.rmem_max that would grant the full request. */
	uint32_t holds_bytes, rmem_bytes;
};

static inline struct queue *queue_of(struct sw_port *p)
{
	return (struct queue *)p;
}

static inline struct port *port_of(const struct sw_port *p)
{
	return ((const struct queue *)p)->port;
}

/* Return the references of the current epoch. */
static inline struct rte_mbuf_ext_shared_info *queue_refs(struct queue *q)
{
	return &q->refs[q->epoch & 1];
}

static inline void queue_refs_init(struct queue *q)
{
	rte_mbuf_ext_refcnt_set(&q->refs[0], 1);
	rte_mbuf_ext_refcnt_set(&q->refs[1], 1);
	rte_mbuf_ext_refcnt_set(&q->passing, 1);
}

/* Add to a counter; only the owning lcore writes it, so no locked instruction
 * is needed. */
static inline void count(struct queue *q, uint32_t i, uint64_t n)
{
	uint64_t v =
		atomic_load_explicit(&q->counters[i], memory_order_relaxed);

	atomic_store_explicit(&q->counters[i], v + n, memory_order_relaxed);
}

#define COUNT(q, name, n) count(q, SW_DPDK_I_##name, n)

static inline bool port_is_up(const struct port *p)
{
	struct rte_eth_link link;

	/* Reading the link may be a system call, so the watch thread does it.
	 */
	if (!p->type->is_link)
		return atomic_load_explicit(
			&p->is_linked, memory_order_acquire);
	return rte_eth_link_get_nowait(p->eth_i, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

/* Update the lcore's view of the link. Must be called inside the gate: if the
 * link then goes down, the driver's rings stay mapped until the lcore leaves
 * the gate. */
static inline bool link_look(struct queue *q)
{
	bool is_up = port_is_up(q->port);

	if (is_up && !q->is_up) {
		/* Either a thread that takes the link down sees is_in_use, or
		 * we see the link down. */
		atomic_store(&q->is_in_use, true);
		atomic_thread_fence(memory_order_seq_cst);
		is_up = port_is_up(q->port);
		/* Counted once per port. */
		COUNT(q, link_ups, is_up && !q->index);
	}
	q->is_up = is_up;
	return is_up;
}

#endif
