/* versions.c - the tables that NCCL looks for, and adapters between versions.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/nccl/plugin.h"

/* --- send and receive --- */

static int net_connect_v8(
	int dev, void *handle, void **send_comm, void **on_gpu)
{
	return sw_nccl_net_connect(dev, handle, send_comm);
}

static int net_accept(void *listen_comm, void **recv_comm, void **on_gpu)
{
	return sw_nccl_net_accept(listen_comm, recv_comm);
}

static int net_isend_v8(void *comm, void *data, int size, int tag,
	void *mhandle, void **request)
{
	*request = NULL;
	if (size < 0)
		return sw_nccl_fail(NCCL_INTERNAL, "isend: %d bytes", size);
	return sw_nccl_net_post(comm, true, data, (size_t)size, request);
}

static int net_irecv_v8(void *comm, int n, void **data, int *sizes, int *tags,
	void **mhandles, void **request)
{
	*request = NULL;
	if (n != 1 || sizes[0] < 0)
		return sw_nccl_fail(NCCL_INTERNAL, "irecv: %d at once", n);
	return sw_nccl_net_post(
		comm, false, data[0], (size_t)sizes[0], request);
}

static int net_iflush(void *comm, int n, void **data, int *sizes,
	void **mhandles, void **request)
{
	*request = NULL; /* nothing is on a GPU */
	return NCCL_OK;
}

static int net_init_v11(void **ctx, uint64_t comm_id, void *config,
	nccl_log log, void *profiler)
{
	*ctx = NULL;
	return sw_nccl_init(log);
}

static int net_listen_v11(void *ctx, int dev, void *handle, void **listen_comm)
{
	return sw_nccl_net_listen(dev, handle, listen_comm);
}

static int net_connect_v11(
	void *ctx, int dev, void *handle, void **send_comm, void **on_gpu)
{
	return sw_nccl_net_connect(dev, handle, send_comm);
}

static int net_isend_v11(void *comm, void *data, size_t size, int tag,
	void *mhandle, void *profiled, void **request)
{
	return sw_nccl_net_post(comm, true, data, size, request);
}

static int net_irecv_v11(void *comm, int n, void **data, size_t *sizes,
	int *tags, void **mhandles, void **profiled, void **request)
{
	*request = NULL;
	if (n != 1)
		return sw_nccl_fail(NCCL_INTERNAL, "irecv: %d at once", n);
	return sw_nccl_net_post(comm, false, data[0], sizes[0], request);
}

static int finalize(void *ctx)
{
	return NCCL_OK;
}

static int set_attr(void *ctx, void *attr)
{
	return NCCL_OK;
}

/* --- collectives --- */

static int coll_init_v11(void **ctx, uint64_t comm_id, nccl_log log)
{
	*ctx = NULL;
	return sw_nccl_init(log);
}

static int coll_listen_v11(void *ctx, int dev, void *handle, void **listen_comm)
{
	return sw_nccl_coll_listen(dev, handle, listen_comm);
}

static int coll_iallreduce_v8(void *comm, void *send, void *recv, int count,
	int dtype, int op, void *send_mr, void *recv_mr, void **request)
{
	return sw_nccl_coll_reduce(comm, send, recv,
		count < 0 ? 0 : (size_t)count, dtype, op, send_mr, recv_mr,
		request);
}

static int coll_iallgather_v11(void *comm, void *send, int n_parts,
	struct nccl_part_v11 *parts, size_t bytes_per_rank,
	size_t window_offset, size_t window_bytes, void *send_mr,
	void **request)
{
	struct sw_nccl_window w = {.own = send,
		.own_mr = send_mr,
		.bytes_per_rank = bytes_per_rank,
		.offset = window_offset,
		.bytes = window_bytes};

	*request = NULL;
	if (n_parts != 1)
		return sw_nccl_fail(
			NCCL_INTERNAL, "iallgather: %d parts", n_parts);
	w.all = parts->address;
	w.all_mr = parts->mhandle;
	w.all_bytes = parts->size;
	return sw_nccl_window_start(comm, &w, request);
}

static int coll_ireducescatter_v11(void *comm, int n_parts,
	struct nccl_part_v11 *parts, void *recv, size_t bytes_per_rank,
	size_t window_offset, size_t window_bytes, int dtype, int op,
	void *recv_mr, void **request)
{
	struct sw_nccl_window w = {.is_scatter = true,
		.own = recv,
		.own_mr = recv_mr,
		.bytes_per_rank = bytes_per_rank,
		.offset = window_offset,
		.bytes = window_bytes,
		.dtype = dtype,
		.op = op};

	*request = NULL;
	if (n_parts != 1)
		return sw_nccl_fail(
			NCCL_INTERNAL, "ireducescatter: %d parts", n_parts);
	w.all = parts->address;
	w.all_mr = parts->mhandle;
	w.all_bytes = parts->size;
	return sw_nccl_window_start(comm, &w, request);
}

static int coll_iallgather_v8(void *comm, void *send, int n_parts,
	struct nccl_part_v8 *parts, size_t bytes_per_rank, size_t window_offset,
	size_t window_bytes, void *send_mr, void **request)
{
	struct nccl_part_v11 part = {
		parts->mhandle, parts->address, parts->size};

	return coll_iallgather_v11(comm, send, n_parts, &part, bytes_per_rank,
		window_offset, window_bytes, send_mr, request);
}

static int coll_ireducescatter_v8(void *comm, int n_parts,
	struct nccl_part_v8 *parts, void *recv, size_t bytes_per_rank,
	size_t window_offset, size_t window_bytes, int dtype, int op,
	void *recv_mr, void **request)
{
	struct nccl_part_v11 part = {
		parts->mhandle, parts->address, parts->size};

	return coll_ireducescatter_v11(comm, n_parts, &part, recv,
		bytes_per_rank, window_offset, window_bytes, dtype, op, recv_mr,
		request);
}

static int coll_iflush(
	void *comm, void *data, int size, void *mhandle, void **request)
{
	*request = NULL; /* nothing is on a GPU */
	return NCCL_OK;
}

/* --- tables --- */

#define PUBLIC __attribute__((visibility("default")))

extern const struct nccl_net_v8 ncclNetPlugin_v8;
extern const struct nccl_net_v11 ncclNetPlugin_v11;
extern const struct nccl_collnet_v8 ncclCollNetPlugin_v8;
extern const struct nccl_collnet_v11 ncclCollNetPlugin_v11;

PUBLIC const struct nccl_net_v8 ncclNetPlugin_v8 = {
	.name = "sumwire",
	.init = sw_nccl_init,
	.devices = sw_nccl_net_devices,
	.get_properties = sw_nccl_properties_v8,
	.listen = sw_nccl_net_listen,
	.connect = net_connect_v8,
	.accept = net_accept,
	.reg_mr = sw_nccl_net_reg_mr,
	.dereg_mr = sw_nccl_net_dereg_mr,
	.isend = net_isend_v8,
	.irecv = net_irecv_v8,
	.iflush = net_iflush,
	.test = sw_nccl_net_test,
	.close_send = sw_nccl_net_close,
	.close_recv = sw_nccl_net_close,
	.close_listen = sw_nccl_net_close_listen,
};

PUBLIC const struct nccl_net_v11 ncclNetPlugin_v11 = {
	.name = "sumwire",
	.init = net_init_v11,
	.devices = sw_nccl_net_devices,
	.get_properties = sw_nccl_properties_v11,
	.listen = net_listen_v11,
	.connect = net_connect_v11,
	.accept = net_accept,
	.reg_mr = sw_nccl_net_reg_mr,
	.dereg_mr = sw_nccl_net_dereg_mr,
	.isend = net_isend_v11,
	.irecv = net_irecv_v11,
	.iflush = net_iflush,
	.test = sw_nccl_net_test,
	.close_send = sw_nccl_net_close,
	.close_recv = sw_nccl_net_close,
	.close_listen = sw_nccl_net_close_listen,
	.finalize = finalize,
	.set_attr = set_attr,
};

PUBLIC const struct nccl_collnet_v8 ncclCollNetPlugin_v8 = {
	.name = "sumwire",
	.init = sw_nccl_init,
	.devices = sw_nccl_coll_devices,
	.get_properties = sw_nccl_properties_v8,
	.listen = sw_nccl_coll_listen,
	.connect = sw_nccl_coll_connect,
	.reduce_support = sw_nccl_coll_support,
	.reg_mr = sw_nccl_coll_reg_mr,
	.dereg_mr = sw_nccl_coll_dereg_mr,
	.iallreduce = coll_iallreduce_v8,
	.iallgather = coll_iallgather_v8,
	.ireducescatter = coll_ireducescatter_v8,
	.iflush = coll_iflush,
	.test = sw_nccl_coll_test,
	.close_coll = sw_nccl_coll_close,
	.close_listen = sw_nccl_coll_close_listen,
};

PUBLIC const struct nccl_collnet_v11 ncclCollNetPlugin_v11 = {
	.name = "sumwire",
	.init = coll_init_v11,
	.devices = sw_nccl_coll_devices,
	.get_properties = sw_nccl_properties_v11,
	.listen = coll_listen_v11,
	.connect = sw_nccl_coll_connect,
	.reduce_support = sw_nccl_coll_support,
	.reg_mr = sw_nccl_coll_reg_mr,
	.dereg_mr = sw_nccl_coll_dereg_mr,
	.iallreduce = sw_nccl_coll_reduce,
	.iallgather = coll_iallgather_v11,
	.ireducescatter = coll_ireducescatter_v11,
	.iflush = coll_iflush,
	.test = sw_nccl_coll_test,
	.close_coll = sw_nccl_coll_close,
	.close_listen = sw_nccl_coll_close_listen,
	.finalize = finalize,
};
