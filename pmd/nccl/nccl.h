/* nccl.h - NCCL's interface to network plugins, versions 8 and 11.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Our own declarations of NCCL's documented interface. NCCL looks in the
 * library for the tables ncclNetPlugin_vX and ncclCollNetPlugin_vX, the highest
 * X first: NCCL 2.20 to 2.27 know version 8; 2.28 and later also know version
 * 11.
 *
 * Threads: NCCL makes calls of one communicator from one thread at a time, its
 * proxy, and calls of different communicators concurrently. Only CollNet's
 * connect may wait for other nodes. Functions return an enum nccl_result.
 */
#ifndef SW_PMD_NCCL_NCCL_H
#define SW_PMD_NCCL_NCCL_H

#include <stddef.h>
#include <stdint.h>

enum nccl_result {
	NCCL_OK = 0,
	NCCL_SYSTEM = 2,   /* the kernel or a library failed */
	NCCL_INTERNAL = 3, /* NCCL made an invalid call */
	NCCL_USAGE = 5,    /* the user made a mistake */
	NCCL_REMOTE = 6,   /* another node or the network failed */
};

enum nccl_dtype {
	NCCL_I8,
	NCCL_U8,
	NCCL_I32,
	NCCL_U32,
	NCCL_I64,
	NCCL_U64,
	NCCL_F16,
	NCCL_F32,
	NCCL_F64,
	NCCL_BF16,
	NCCL_F8E4M3,
	NCCL_F8E5M2,
	NCCL_N_DTYPES,
};

/* NCCL computes averages and scaled sums itself and requests NCCL_SUM. */
enum nccl_op { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_N_OPS };

enum {
	NCCL_PTR_HOST = 1, /* bits: kinds of memory */
	NCCL_PTR_CUDA = 2,
	NCCL_HANDLE_BYTES = 128, /* bytes that one node gives to another */
	NCCL_REQUESTS = 32,      /* most in flight per communicator */
	NCCL_LOG_WARN = 2,
	NCCL_LOG_INFO = 3,
	NCCL_LOG_NET = 16, /* NCCL's logging subsystem */
	NCCL_DEVICES_PER_NIC = 4,
};

typedef void (*nccl_log)(int level, unsigned long flags, const char *file,
	int line, const char *fmt, ...);

/* Strings belong to the plugin. */
struct nccl_props_v8 {
	char *name;     /* the same for a device in both tables */
	char *pci_path; /* in /sys; NULL: none */
	uint64_t guid;
	int ptr_support; /* kinds of memory */
	int reg_is_global;
	int speed_mbit_s;
	int port;
	float latency_us;
	int max_comms;
	int max_recvs;
	int device_type, device_version; /* 0: no code on the GPU */
};

struct nccl_vdevice_v11 {
	int n_devices;
	int devices[NCCL_DEVICES_PER_NIC];
};

struct nccl_props_v11 {
	char *name;
	char *pci_path;
	uint64_t guid;
	int ptr_support;
	int reg_is_global;
	int force_flush;
	int speed_mbit_s;
	int port;
	float latency_us;
	int max_comms;
	int max_recvs;
	int device_type, device_version;
	struct nccl_vdevice_v11 vdevice;
	size_t max_p2p_bytes, max_coll_bytes;
	int max_multi_request;
};

/* A piece of memory of an all_gather or reduce_scatter. */
struct nccl_part_v8 {
	void *mhandle;
	void *address;
	uint32_t size;
};

struct nccl_part_v11 {
	void *mhandle;
	void *address;
	size_t size;
};

/* If a call sets a comm or request to NULL and returns NCCL_OK, NCCL calls it
 * again, except CollNet's connect: NCCL calls that once, and NULL means that it
 * failed. A test that sets *done ends its request. */
struct nccl_net_v8 {
	const char *name;
	int (*init)(nccl_log log);
	int (*devices)(int *n);
	int (*get_properties)(int dev, struct nccl_props_v8 *out);
	int (*listen)(int dev, void *handle, void **listen_comm);
	int (*connect)(int dev, void *handle, void **send_comm, void **on_gpu);
	int (*accept)(void *listen_comm, void **recv_comm, void **on_gpu);
	int (*reg_mr)(
		void *comm, void *data, size_t size, int type, void **mhandle);
	int (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type,
		uint64_t offset, int fd, void **mhandle);
	int (*dereg_mr)(void *comm, void *mhandle);
	int (*isend)(void *send_comm, void *data, int size, int tag,
		void *mhandle, void **request);
	int (*irecv)(void *recv_comm, int n, void **data, int *sizes, int *tags,
		void **mhandles, void **request);
	int (*iflush)(void *recv_comm, int n, void **data, int *sizes,
		void **mhandles, void **request);
	int (*test)(void *request, int *done, int *sizes);
	int (*close_send)(void *send_comm);
	int (*close_recv)(void *recv_comm);
	int (*close_listen)(void *listen_comm);
	int (*get_device_mr)(void *comm, void *mhandle, void **on_gpu);
	int (*irecv_consumed)(void *recv_comm, int n, void *request);
};

struct nccl_net_v11 {
	const char *name;
	int (*init)(void **ctx, uint64_t comm_id, void *config, nccl_log log,
		void *profiler);
	int (*devices)(int *n);
	int (*get_properties)(int dev, struct nccl_props_v11 *out);
	int (*listen)(void *ctx, int dev, void *handle, void **listen_comm);
	int (*connect)(void *ctx, int dev, void *handle, void **send_comm,
		void **on_gpu);
	int (*accept)(void *listen_comm, void **recv_comm, void **on_gpu);
	int (*reg_mr)(
		void *comm, void *data, size_t size, int type, void **mhandle);
	int (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type,
		uint64_t offset, int fd, void **mhandle);
	int (*dereg_mr)(void *comm, void *mhandle);
	int (*isend)(void *send_comm, void *data, size_t size, int tag,
		void *mhandle, void *profiled, void **request);
	int (*irecv)(void *recv_comm, int n, void **data, size_t *sizes,
		int *tags, void **mhandles, void **profiled, void **request);
	int (*iflush)(void *recv_comm, int n, void **data, int *sizes,
		void **mhandles, void **request);
	int (*test)(void *request, int *done, int *sizes);
	int (*close_send)(void *send_comm);
	int (*close_recv)(void *recv_comm);
	int (*close_listen)(void *listen_comm);
	int (*get_device_mr)(void *comm, void *mhandle, void **on_gpu);
	int (*irecv_consumed)(void *recv_comm, int n, void *request);
	int (*make_vdevice)(int *dev, struct nccl_vdevice_v11 *props);
	int (*finalize)(void *ctx);
	int (*set_attr)(void *ctx, void *attr);
};

/* In an all_gather the window spans the @bytes_per_rank of all nodes, in order.
 * One part receives it, and @send begins with this node's share of it; a
 * reduce_scatter is the reverse. */
struct nccl_collnet_v8 {
	const char *name;
	int (*init)(nccl_log log);
	int (*devices)(int *n);
	int (*get_properties)(int dev, struct nccl_props_v8 *out);
	int (*listen)(int dev, void *handle, void **listen_comm);
	int (*connect)(void *handles[], int n_ranks, int rank,
		void *listen_comm, void **coll_comm);
	int (*reduce_support)(int dtype, int op, int *is_supported);
	int (*reg_mr)(
		void *comm, void *data, size_t size, int type, void **mhandle);
	int (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type,
		uint64_t offset, int fd, void **mhandle);
	int (*dereg_mr)(void *comm, void *mhandle);
	int (*iallreduce)(void *comm, void *send, void *recv, int count,
		int dtype, int op, void *send_mr, void *recv_mr,
		void **request);
	int (*iallgather)(void *comm, void *send, int n_parts,
		struct nccl_part_v8 *parts, size_t bytes_per_rank,
		size_t window_offset, size_t window_bytes, void *send_mr,
		void **request);
	int (*ireducescatter)(void *comm, int n_parts,
		struct nccl_part_v8 *parts, void *recv, size_t bytes_per_rank,
		size_t window_offset, size_t window_bytes, int dtype, int op,
		void *recv_mr, void **request);
	int (*iflush)(void *comm, void *data, int size, void *mhandle,
		void **request);
	int (*test)(void *request, int *done, int *size);
	int (*close_coll)(void *comm);
	int (*close_listen)(void *listen_comm);
};

struct nccl_collnet_v11 {
	const char *name;
	int (*init)(void **ctx, uint64_t comm_id, nccl_log log);
	int (*devices)(int *n);
	int (*get_properties)(int dev, struct nccl_props_v11 *out);
	int (*listen)(void *ctx, int dev, void *handle, void **listen_comm);
	int (*connect)(void *handles[], int n_ranks, int rank,
		void *listen_comm, void **coll_comm);
	int (*reduce_support)(int dtype, int op, int *is_supported);
	int (*reg_mr)(
		void *comm, void *data, size_t size, int type, void **mhandle);
	int (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type,
		uint64_t offset, int fd, void **mhandle);
	int (*dereg_mr)(void *comm, void *mhandle);
	int (*iallreduce)(void *comm, void *send, void *recv, size_t count,
		int dtype, int op, void *send_mr, void *recv_mr,
		void **request);
	int (*iallgather)(void *comm, void *send, int n_parts,
		struct nccl_part_v11 *parts, size_t bytes_per_rank,
		size_t window_offset, size_t window_bytes, void *send_mr,
		void **request);
	int (*ireducescatter)(void *comm, int n_parts,
		struct nccl_part_v11 *parts, void *recv, size_t bytes_per_rank,
		size_t window_offset, size_t window_bytes, int dtype, int op,
		void *recv_mr, void **request);
	int (*iflush)(void *comm, void *data, int size, void *mhandle,
		void **request);
	int (*test)(void *request, int *done, int *size);
	int (*close_coll)(void *comm);
	int (*close_listen)(void *listen_comm);
	int (*make_vdevice)(int *dev, struct nccl_vdevice_v11 *props);
	int (*finalize)(void *ctx);
};

_Static_assert(sizeof(struct nccl_props_v8) == 64, "as NCCL has it");
_Static_assert(sizeof(struct nccl_props_v11) == 112, "as NCCL has it");
_Static_assert(offsetof(struct nccl_props_v11, vdevice) == 64, "");
_Static_assert(offsetof(struct nccl_props_v11, max_p2p_bytes) == 88, "");
_Static_assert(sizeof(struct nccl_part_v8) == 24, "");
_Static_assert(sizeof(struct nccl_part_v11) == 24, "");
_Static_assert(sizeof(struct nccl_net_v8) == 19 * sizeof(void *), "");
_Static_assert(sizeof(struct nccl_net_v11) == 22 * sizeof(void *), "");
_Static_assert(sizeof(struct nccl_collnet_v8) == 17 * sizeof(void *), "");
_Static_assert(sizeof(struct nccl_collnet_v11) == 19 * sizeof(void *), "");

#endif
