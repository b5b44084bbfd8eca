/* port_int.h - a port from inside pmd/dpdk; nobody else includes it.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_PORT_INT_H
#define SW_PMD_DPDK_PORT_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "pmd/dpdk/arp.h"
#include "pmd/dpdk/frame.h"
#include "pmd/dpdk/port.h"

enum {
	/* In front of the payload of an untagged frame. */
	FRAME_HEAD_BYTES = SW_OUTER_BYTES + SW_HEAD_BYTES,
	/* Authentication appends this many bytes to a payload. */
	TRAILER_BYTES = 32,
	/* What a frame has besides its payload, at most. */
	FRAME_REST_BYTES = SW_OUTER_MAX + SW_HEAD_BYTES + TRAILER_BYTES,
	/* The same, of an IPv4 packet: what counts against an MTU. */
	PACKET_REST_BYTES = SW_INNER_BYTES + SW_HEAD_BYTES + TRAILER_BYTES,
	/* Private bytes before an mbuf's data that put the payload, which is
	 * FRAME_HEAD_BYTES into the data, on a cache line. */
	PRIV_BYTES = (64 - (FRAME_HEAD_BYTES + RTE_PKTMBUF_HEADROOM) % 64) % 64,
	/* Buffers that an lcore keeps at hand.  A burst and its release stay
	 * within it, so the same few buffers are used again and again and stay
	 * in L2, however large the pool is. */
	POOL_CACHE = 2 * SW_RX_BURST,
	SW_DPDK_SLOTS_MIN = 16, /* of a ring */
	/* Shorter payloads are copied: cheaper than a second segment. */
	GATHER_MIN_BYTES = 256,
};

struct port;

/* What differs between drivers, beyond what ethdev tells of itself.  A row in
 * sw_port_types. */
struct port_type {
	const char *name;
	const char *bus; /* NULL: vdev, as net_NAME and the port's number;
			    else the parameters name the device */
	/* Write the device's arguments for rte_eal_hotplug_add. */
	int (*devargs)(const struct sw_dpdk_port_params *p, uint32_t payload,
		const struct sw_log *log, char *args, size_t size);
	/* Take and give back what lies outside DPDK, such as a socket's
	 * name; NULL: nothing. */
	int (*claim)(const struct sw_dpdk_port_params *p,
		const struct sw_log *log, int *fd_out);
	void (*unclaim)(const char *path, int fd);
	/* After the device's removal, on the same thread: undo what the driver
	 * forgets; NULL: nothing. */
	void (*removed)(const char *path);
	/* Of a link: the user at its other end if he is none whom we trust, by
	 * what lies there before it is dialled, by who answers once it is;
	 * else 0.  NULL: all are trusted. */
	uint32_t (*stranger)(const struct port *p, bool is_connected);
	/* Bytes of a receive buffer that the driver wants beyond a frame. */
	uint32_t rx_extra;
	uint32_t rx_unit; /* buffers are a multiple of it; 0: any size */
	/* Where the parameters say 0.  What lies in the ring is beyond the
	 * scheduler's reach: the smallest that carries 0.95 of what the best
	 * one does, with a burst of a quarter of it (PERFORMANCE.md). */
	uint32_t ring_slots, burst;
	/* Receive buffers that the driver has lent to the kernel, which reads
	 * and writes all that pool: an object is a page, and frames are sent
	 * from there too, or the driver would copy them; 0: nothing of it. */
	uint32_t n_lent;
	uint32_t payload_max; /* largest class that fits its buffers; 0: any */
	uint16_t max_queues;  /* 0: ethdev says */
	/* Steer with what lies outside ethdev, once the device is there: set
	 * p->steering to what it is; NULL: by ethdev's means. */
	int (*steer)(struct port *p);
	/* Its rings are locked memory, of which a user has little: the queue
	 * pairs share it. */
	bool is_locked;
	bool is_sync; /* has copied a frame when tx_burst returns */
	/* A link between two processes: the other end is a process, which
	 * has no ARP, and whose coming and going the driver tells. */
	bool is_link;
	bool is_nic;    /* it is DPDK's alone: MTU and link are asked of it */
	bool is_dma;    /* it reads frames in memory that DPDK knows alone */
	bool is_kernel; /* no device of DPDK's: the kernel's sockets (udp.c) */
	/* DPDK's memory for a port; NULL: that of its buffers (pool.c). */
	uint64_t (*bytes)(const struct sw_dpdk_port_params *p);
	/* Say what a refused device with @bytes of memory lacks; NULL: nothing
	 * to say. */
	void (*missing)(const struct sw_dpdk_port_params *p, uint64_t bytes,
		char *out, size_t size);
};

extern const struct port_type *const sw_port_types[SW_DPDK_N_TYPES];
extern const struct port_type sw_dpdk_memif, sw_dpdk_af_packet, sw_dpdk_af_xdp,
	sw_dpdk_pci, sw_dpdk_vdev, sw_dpdk_udp;

struct faults;

/* One queue pair of a port, of one lcore. */
struct queue {
	struct sw_port base; /* first: a struct sw_port is one of these */
	struct port *port;
	uint16_t index;
	struct rte_mempool *rx_pool, *head_pool, *copy_pool;
	struct sw_udp_queue *udp; /* NULL: DPDK's device is behind it */
	struct faults *faults;
	const void *rx_callback;
	/* of the lcore */
	_Alignas(64) struct rte_mbuf *rx_held[SW_RX_BURST];
	struct rte_mbuf *tx_held[SW_RX_BURST];
	uint16_t tx_bytes[SW_RX_BURST]; /* of tx_held's frames */
	uint32_t n_rx_held, n_tx_held;
	bool is_up; /* the link, when the lcore last looked */
	/* The lcore's: it may have buffers of this device. */
	_Atomic bool is_in_use;
	/* References to stable payloads that were sent in an epoch: 1 when
	 * there are none.  Nobody asks which frame is done, only whether all
	 * of an epoch are; the driver drops its reference when it frees the
	 * segment, at once or much later.  The present epoch has refs[epoch &
	 * 1], and of the earlier ones only the last has any. */
	struct rte_mbuf_ext_shared_info refs[2];
	uint32_t epoch;
	_Atomic uint64_t counters[SW_DPDK_N_COUNTERS];
};

/* A device and what its queue pairs share. */
struct port {
	/* set by open; lcores read */
	const struct port_type *type;
	const struct sw_log *log;
	uint16_t eth_i;
	uint16_t index;
	uint16_t burst;
	uint16_t n_lcores; /* to be served */
	uint16_t n_queues; /* at most so many */
	enum sw_steering steering;
	bool has_rss;
	struct rte_eth_conf conf; /* as it was made */
	uint16_t n_rx_slots, n_tx_slots;
	uint16_t mtu;        /* of a NIC */
	bool is_mtu_new;     /* it is to be set */
	bool can_gather;     /* the driver takes frames of two segments */
	uint64_t tx_flags;   /* of each frame: what the driver fills in */
	uint32_t frame_max;  /* largest frame that we send */
	uint32_t head_bytes; /* of a frame, in front of the payload */
	struct sw_outer me;
	struct sw_arp *arp; /* NULL: a link, or the kernel's */
	struct queue *queues[SW_DPDK_QUEUES];
	char *claim_path;
	int claim_fd;
	char *dev_name; /* NULL: there is no device now */
	/* Held while the device is made, started, stopped or removed, and
	 * while its own counters are read; never by an lcore. */
	pthread_mutex_t device_lock;
	/* of DPDK's interrupt thread, which dials and watches */
	_Alignas(64) struct sw_dpdk_port_params params; /* texts are copies */
	uint32_t if_index;
	struct mnl_socket *changes; /* of interfaces; NULL: not watched */
	uint32_t n_alone;           /* periods without a link */
	uint32_t n_dial_ticks;      /* also: until a reopening is tried again */
	uint32_t n_shy_ticks;       /* until a stranger is dialled again */
	uint32_t said_uid;          /* of the last one, 0: none */
	bool is_started, was_connected;
	/* By queue pair: readable while frames wait; -1: nothing is. */
	_Atomic int wake_fds[SW_DPDK_QUEUES];
	_Atomic bool is_linked; /* what the watch saw last; not of a link */
	const char *link_why;   /* as it said that; the watch's own */
	_Atomic bool is_removed;
	/* Of the kernel's sockets: why it last did not send one; 0: nothing
	 * since the watch looked. */
	_Atomic int denied_errno;
	int said_errno;        /* the watch's own */
	uint32_t n_calm_ticks; /* the watch's own: without such */
	bool has_said_short, has_said_overrun;
	/* Of the kernel's sockets: payload that each receive buffer holds, and
	 * net.core.rmem_max with which it holds all that was asked for. */
	uint32_t holds_bytes, rmem_bytes;
};

extern const struct sw_port_ops sw_dpdk_ops;

static inline struct queue *queue_of(struct sw_port *p)
{
	return (struct queue *)p;
}

static inline struct port *port_of(const struct sw_port *p)
{
	return ((const struct queue *)p)->port;
}

/* The references of frames that are sent now. */
static inline struct rte_mbuf_ext_shared_info *queue_refs(struct queue *q)
{
	return &q->refs[q->epoch & 1];
}

static inline void queue_refs_init(struct queue *q)
{
	rte_mbuf_ext_refcnt_set(&q->refs[0], 1);
	rte_mbuf_ext_refcnt_set(&q->refs[1], 1);
}

/* The owning lcore alone writes counters, so no locked instruction. */
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

	/* Asking may be a system call, so a thread of its own does. */
	if (!p->type->is_link)
		return atomic_load_explicit(
			&p->is_linked, memory_order_acquire);
	return rte_eth_link_get_nowait(p->eth_i, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

/* What the lcore sees of the link; from inside the gate, where it stays as seen
 * or the driver is left before its rings go. */
static inline bool link_look(struct queue *q)
{
	bool is_up = port_is_up(q->port);

	if (is_up && !q->is_up) {
		/* Whoever takes the link down now sees this, or is seen. */
		atomic_store(&q->is_in_use, true);
		atomic_thread_fence(memory_order_seq_cst);
		is_up = port_is_up(q->port);
		COUNT(q, link_ups, is_up && !q->index); /* the port's, once */
	}
	q->is_up = is_up;
	return is_up;
}

/* Parameters (params.c): are they right; for a port of the kernel's, which
 * interface has its address, into @p and @name; what the kernel says of an
 * interface, and the class that fits it. */
int sw_dpdk_params_check(
	const struct sw_dpdk_port_params *p, const struct sw_log *log);
int sw_dpdk_address_find(struct sw_dpdk_port_params *p,
	const struct sw_log *log, char *name, size_t size);
int sw_dpdk_interface_check(const struct sw_dpdk_port_params *p,
	const struct sw_log *log, uint32_t *if_index, uint32_t *payload);

/* Memory of the buffers of all queue pairs, and the NUMA node of the device, if
 * DPDK has memory there, else SOCKET_ID_ANY (pool.c). */
int sw_dpdk_port_node(const struct port *p);
int sw_dpdk_pools_open(struct port *p);
void sw_dpdk_pools_close(struct port *p);

/* What @p's device can do, into @p (caps.c). */
int sw_dpdk_caps_take(struct port *p);

/* DPDK's device (device.c): made, which says how many queue pairs it gives and
 * what fits it, opened with their buffers, started.  By @p->params; on the
 * interrupt thread or while nobody uses it. */
int sw_dpdk_device_make(struct port *p);
int sw_dpdk_device_open(struct port *p);
int sw_dpdk_device_start(struct port *p);
void sw_dpdk_device_close(struct port *p);

/* Drop what is held (io.c). */
void sw_io_drop_held(struct queue *q, uint32_t counter);

/* A port over the kernel's sockets (udp.c), in place of a device: how many
 * queue pairs, open, close, drop what is held, sw_dpdk_port_wake_fds, and
 * memory of DPDK's. */
void sw_udp_plan(struct port *p);
int sw_udp_open(struct port *p);
void sw_udp_close(struct port *p);
void sw_udp_drop_held(struct queue *q, uint32_t counter);
uint32_t sw_udp_fds(const struct queue *q, int fds[], uint32_t max);

/* Which queue frames land in (steer.c): how many queue pairs and which way,
 * before the device is configured; then the rules. */
int sw_dpdk_steer_plan(struct port *p);
void sw_dpdk_steer_conf(struct port *p, const struct rte_eth_dev_info *info,
	struct rte_eth_conf *conf);
int sw_dpdk_steer_start(struct port *p);
/* The queue that frames for @endpoint belong in. */
uint32_t sw_dpdk_queue_of(const struct port *p, uint32_t endpoint);

/* Whoever looks after a started port (watch.c), until stopped. */
int sw_dpdk_watch_start(struct port *p);
void sw_dpdk_watch_stop(struct port *p);

/* Faults (fault.c): take over what arrives on @q. */
int sw_dpdk_faults_open(struct queue *q);
void sw_dpdk_faults_close(struct queue *q);
bool sw_dpdk_faults_is_set(const struct sw_dpdk_port_params *p);

#endif
