/* bench.h - the parts of sumwire bench.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_BENCH_BENCH_H
#define SW_APPS_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include <sumwire/coll.h>

#include "apps/cli/quartiles.h"
#include "apps/cli/args.h"
#include "engine/base/ip.h"
#include "sum/dtype.h"

enum {
	BENCH_TENSORS = 2048,
	BENCH_SIZES = 37, /* 1 B to 64 GiB, each twice the previous one */
};

struct bench_options {
	struct sw_arg_list agents;
	const char *folder; /* the loopback's folder, or NULL */
	uint64_t min_bytes, max_bytes;
	uint32_t factor, n_iters; /* n_iters 0: depends on the size */
	uint32_t n_servers;       /* number of servers, only for busbw */
	uint32_t n_tensors;       /* number of tensors pushed together */
	uint32_t local_ranks;     /* local ranks of the loopback's agent */
	uint32_t n_lcores;        /* lcores of each daemon of the loopback */
	uint32_t ring, burst;     /* options of the loopback's ports */
	uint64_t rate_bit_s;      /* payload rate of these ports; 0: no limit */
	enum sw_dtype dtype;
	const char *port;           /* type of the ports */
	struct sw_ip net;           /* network of the ports */
	struct sw_arg_list devices; /* devices of the ports, then of the echo */
	bool is_loopback, is_colocated, is_raw, is_json, is_polling, is_staged,
		is_in_place, has_no_crc, is_keyed, is_encrypted, is_ipv6;
	bool is_both; /* measures collectives out of place, then in place */
	/* a small tensor waits behind a large one */
	bool is_urgent, is_results;
	bool is_turns;              /* standard input names the sizes */
	const char *collective;     /* NULL: push_pull of tensors */
	const char *op;             /* operation of the collective */
	const char *policy, *order; /* options of the loopback's job */
	/* percent of faults on the loopback's ports */
	const char *faults;
	/* a pipe: while rank 0 measures the raw echo, each other rank waits to
	 * read one byte */
	int others[2];
	double kernels[BENCH_SIZES]; /* sw_bench_kernel of each size */
};

/* Results of one size, as rank 0's process measured it. */
struct bench_row {
	/* wrong: elements of all tensors */
	uint64_t size_bytes, n_elems, wrong;
	uint32_t n_iters, ranks, local_ranks, n_tensors;
	double mean_us, p50_us, p99_us;
	/* In-place results of a collective, if it is measured both ways. */
	bool has_in_place;
	uint64_t in_place_wrong;
	double in_place_us;
	/* median of the slices; 0: not measured */
	double raw_gbit_s;
	struct sw_quartiles raw_ratio; /* per slice */
	double kernel_gbit_s;          /* 0: not measured */
};

/* sw_bench_parse - read the command line into @o, which holds the defaults.
 * Returns as sw_args_parse. */
int sw_bench_parse(struct bench_options *o, int argc, char **argv);

/* sw_bench_client - measure every size over the agent at @path, as its local
 * rank @local_rank.  Calls @each after each size, which may add measurements to
 * the row.  Prints errors.  Returns 0 or a negative error. */
int sw_bench_client(const struct bench_options *o, const char *path,
	uint32_t local_rank, void (*each)(void *ctx, struct bench_row *row),
	void *ctx);

/* sw_bench_fill, sw_bench_wrong - set @n elements from element @first on; count
 * the wrong ones.  Element i is @factor * (1 + i % 3), which is exact in every
 * dtype for up to 42 ranks. */
void sw_bench_fill(const struct bench_options *o, char *data, uint64_t first,
	uint64_t n, uint32_t factor);
uint64_t sw_bench_wrong(const struct bench_options *o, const char *data,
	uint64_t first, uint64_t n, uint32_t factor);

/* A collective of all ranks (--collective), in bench_coll.c. open has the
 * errors of sw_alloc. shape sets the count from the row's size, and then the
 * row's size from the count. */
struct bench_coll {
	struct sw_group *group;
	struct sw_coll_args args;
	char *memory[2]; /* send and receive; in place only the first */
	bool is_in_place;
	uint32_t rank, size;
};

/* sw_bench_coll_find - find a collective by name.  Returns SW_N_COLL_KINDS if
 * it is unknown. */
enum sw_coll_kind sw_bench_coll_find(const char *name);
/* sw_bench_op_find - find an operation by its own or its nccl-tests name.
 * Returns SW_N_REDUCE_OPS if it is unknown. */
enum sw_reduce_op sw_bench_op_find(const char *name);
/* sw_bench_coll_factor - return the ratio of bus to algorithm bandwidth. */
double sw_bench_coll_factor(enum sw_coll_kind kind, uint32_t n);
int sw_bench_coll_open(const struct bench_options *o, struct sw_client *c,
	struct bench_coll *b);
void sw_bench_coll_shape(struct bench_coll *b, struct bench_row *row);
void sw_bench_coll_fill(const struct bench_options *o, struct bench_coll *b);
uint64_t sw_bench_coll_wrong(
	const struct bench_options *o, const struct bench_coll *b);
int sw_bench_coll_run(const struct bench_options *o, struct sw_client *c,
	const struct bench_coll *b);

/* sw_bench_kernel - return the Gb/s of the summation kernel alone.  It sums one
 * source per local rank, of @bytes (at most 64 MiB), frame by frame.  Returns 0
 * if memory is short. */
double sw_bench_kernel(const struct bench_options *o, uint64_t bytes);

/* sw_bench_urgent - measure and print the latency of a small urgent tensor over
 * the agent at @path, alone and behind a large tensor.  Prints errors.  Returns
 * 0 or a negative error. */
int sw_bench_urgent(const struct bench_options *o, const char *path);

/* sw_bench_loopback - run @measure in its own process, over a server and an
 * agent, or over two agents that also serve, on this machine.  @measure
 * receives @o with their sockets and folder.  Returns the exit code of
 * sw_run_all; 1 if @measure did not return 0. */
int sw_bench_loopback(const struct bench_options *o,
	int (*measure)(const struct bench_options *o));

/* sw_bench_net - return the network of the loopback. */
struct sw_ip sw_bench_net(const struct bench_options *o);

/* sw_bench_device - return the interface of side @i (0 server, 1 agent; 2 and 3
 * for the raw echo): as in --device, or else sw0 … sw3, which test/veth
 * creates. */
const char *sw_bench_device(const struct bench_options *o, uint32_t i);

/* sw_bench_cpus - choose CPUs for the @n lcores of side @i (0 server, 1 client)
 * of a measurement on this machine, and return @out.  Each side has its own
 * CPUs; if there are too few, both share them.  Fixed CPUs make measurements
 * repeatable.  With fewer than @n CPUs, or with one, the result is "auto". */
enum { BENCH_CPUS = 96 };
const char *sw_bench_cpus(uint32_t i, uint32_t n, char out[BENCH_CPUS]);

/* The raw echo of a tensor of @bytes over its own link (pmd/dpdk/raw.h), in
 * slices. open finds the best burst; after an error it prints the error and
 * returns NULL. slice returns the Gb/s in each direction; <= 0: it failed.
 * close accepts NULL. */
struct bench_raw;
struct bench_raw *sw_bench_raw_open(
	const struct bench_options *o, uint64_t bytes);
double sw_bench_raw_slice(struct bench_raw *r);
void sw_bench_raw_close(struct bench_raw **at);

#endif
