/* bench.c - the speed of the kernels as a ratio to moving the same data.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sum/bench.h"
#include "sum/bench_crc.h"
#include "sum/level.h"

enum {
	PAIRS = 15,
	QUICK_PAIRS = 5,
	SAMPLE_NS = 4000000,    /* minimum length of a sample in a cache */
	DRAM_PARTS = 32,        /* a sample in DRAM is one of this many parts */
	CHUNK_BYTES = 8192,     /* largest payload of a packet */
	STAGGER_BYTES = 7 * 64, /* between 9 buffers, in the low 12 bits */
	SLACK_BYTES = 65536,    /* for the gaps between 9 buffers */
	FILL = 0x3c, /* 1.06 as f16, 0.011 as f32 or bf16: normal sums */
};

struct sw_sum_bench {
	uint8_t *dst;     /* set_bytes / 2 bytes for destinations */
	uint8_t *src;     /* set_bytes bytes for sources, never changed */
	size_t set_bytes; /* size of the largest working set */
	bool is_quick;
	uint32_t n_pairs;
	uint64_t sets[SW_N_BENCH_SETS]; /* bytes; 0: skipped */
	struct sw_isal isal;
	bool has_isal;
};

/* A timed operation on a working set, part by part. */
struct work {
	enum {
		RUN_OP,
		RUN_VERIFIED,
		RUN_ADDS,
		RUN_CRC,
		RUN_ISAL,
		RUN_CRC_FAR,
		RUN_HASH,
		RUN_HASH_FAR,
	} how;
	const struct sw_sum_ops *ops;
	enum sw_kernel op;
	struct sw_sum_shape shape;
	uint8_t *dst, *src[SW_KERNEL_MAX_SRC];
	uint32_t n_src;
	size_t n_total, n_part; /* elements */
	size_t *at;             /* next part's first element; may be shared */
	size_t own_at;
	uint32_t crc; /* CRC of a part of the source, the same for all */
	const struct sw_crc *kernel;
	sw_isal_fn *isal;
	struct sw_polyval_key key;
};

/* Return the thread's CPU time, which excludes other programs on the core. */
static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t cache_bytes(int name, uint64_t fallback)
{
	long bytes = sysconf(name);

	return bytes > 0 ? (uint64_t)bytes : fallback;
}

static size_t mapped_bytes(const struct sw_sum_bench *b)
{
	return b->set_bytes / 2 + b->set_bytes + SLACK_BYTES;
}

bool sw_sum_bench_open(bool is_quick, struct sw_sum_bench **out)
{
	struct sw_sum_bench *b = calloc(1, sizeof(*b));
	uint64_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20);

	if (!b)
		return false;
	b->is_quick = is_quick;
	b->n_pairs = is_quick ? QUICK_PAIRS : PAIRS;
	b->set_bytes = is_quick ? 64 << 20 : 1 << 30;
	b->dst = mmap(NULL, mapped_bytes(b), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->dst == MAP_FAILED) {
		free(b);
		return false;
	}
	madvise(b->dst, mapped_bytes(b), MADV_HUGEPAGE);
	memset(b->dst, FILL, mapped_bytes(b));
	b->has_isal = sw_isal_open(&b->isal);
	b->src = b->dst + b->set_bytes / 2;
	b->sets[SW_BENCH_L1] = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32768) / 2;
	b->sets[SW_BENCH_L2] = l2 / 2;
	b->sets[SW_BENCH_L3] = l2 > 4 << 20 ? 32 << 20 : 8 * l2;
	b->sets[SW_BENCH_DRAM] = is_quick ? 0 : b->set_bytes;
	*out = b;
	return true;
}

void sw_sum_bench_close(struct sw_sum_bench **b)
{
	if (!*b)
		return;
	sw_isal_close(&(*b)->isal);
	munmap((*b)->dst, mapped_bytes(*b));
	free(*b);
	*b = NULL;
}

/* Return the yardstick of the same level. */
static const struct sw_sum *yardstick(const struct sw_sum *sum)
{
	switch (sum->level) {
#if SW_SUM_HAS_AVX2
	case SW_SUM_AVX2:
		return &sw_sum_move_avx2;
#endif
#if SW_SUM_HAS_AVX512
	case SW_SUM_AVX512:
		return &sw_sum_move_avx512;
#endif
	default:
		return &sw_sum_move_scalar;
	}
}

/* Lay out destination and sources, @bytes in all, staggered or all at the same
 * page offset; fill the destination again. Return false if there is no such
 * operation. */
static bool work_init(struct work *w, const struct sw_sum_bench *b,
	const struct sw_sum_ops *ops, enum sw_kernel op, uint64_t bytes,
	size_t stagger_bytes)
{
	uint32_t widest;
	size_t stride;

	memset(w, 0, sizeof(*w));
	w->ops = ops;
	w->op = op;
	if (!sw_kernel_shape(ops, op, &w->shape))
		return false;
	w->n_src = op == SW_KERNEL_SUM ? SW_KERNEL_MAX_SRC : 1;
	widest = w->shape.dst_bytes > w->shape.src_bytes ? w->shape.dst_bytes
							 : w->shape.src_bytes;
	w->n_total = bytes / ((w->n_src + 1) * widest) & ~(size_t)255;
	w->n_part = w->n_total;
	stride = ((w->n_total * widest + 4095) & ~(size_t)4095) + stagger_bytes;
	w->dst = b->dst;
	memset(w->dst, FILL, w->n_total * w->shape.dst_bytes);
	for (uint32_t k = 0; k < w->n_src; k++)
		w->src[k] = b->src + k * stride + stagger_bytes;
	w->at = &w->own_at;
	return true;
}

static void work_run(struct work *w)
{
	size_t at = *w->at;
	struct sw_sum_call call = {.dst = w->dst + at * w->shape.dst_bytes,
		.n_src = w->n_src,
		.factor = 1,
		.by = 8, /* a power of two, as most jobs have */
		.n = w->n_part};

	for (uint32_t k = 0; k < w->n_src; k++)
		call.src[k] = w->src[k] + at * w->shape.src_bytes;
	if (w->how == RUN_OP)
		sw_kernel_run(w->ops, w->op, &call);
	else if (w->how == RUN_VERIFIED)
		sw_sum_fold(w->ops, w->ops->add, call.dst, call.src[0], call.n,
			w->crc);
	else
		for (uint32_t k = 1; k < w->n_src; k++)
			w->ops->add(call.dst, call.src[k], call.n);
	at += w->n_part;
	*w->at = at + w->n_part <= w->n_total ? at : 0;
}

/* Compute the CRC of one chunk repeatedly, or of distant chunks in turn. */
static void crc_run(struct work *w)
{
	uint8_t *p = w->src[0] + w->own_at;
	uint8_t hash[SW_POLYVAL_BLOCK];

	w->own_at += CHUNK_BYTES;
	if (w->own_at + CHUNK_BYTES > w->n_total)
		w->own_at = 0;
	switch (w->how) {
	case RUN_HASH:
		sw_polyval(&w->key, p, CHUNK_BYTES, hash);
		w->crc ^= hash[0];
		return;
	case RUN_HASH_FAR:
		sw_polyval_far(&w->key, p, CHUNK_BYTES, p + CHUNK_BYTES, hash);
		w->crc ^= hash[0];
		return;
	case RUN_CRC:
		w->crc ^= w->kernel->crc(0, p, CHUNK_BYTES);
		return;
	case RUN_CRC_FAR:
		w->crc ^= w->kernel->far(0, p, CHUNK_BYTES);
		return;
	default:
		break;
	}
	w->crc ^= ~w->isal(p, CHUNK_BYTES, ~0u);
}

static double sample_ns(struct work *w, uint32_t n_runs)
{
	uint64_t start = clock_ns();

	for (uint32_t i = 0; i < n_runs; i++)
		if (w->how < RUN_CRC)
			work_run(w);
		else
			crc_run(w);
	return (double)(clock_ns() - start) / n_runs;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Statistics of the samples: median, quartiles, and median time of the first
 * side. */
struct ratio {
	double median, low, high, first_ns;
};

/* Return the number of runs that makes a sample long compared with the clock
 * and with cache effects. */
static uint32_t n_runs_of(const struct sw_sum_bench *b, struct work *w)
{
	double ns = sample_ns(w, 1);

	ns = sample_ns(w, 1 + (uint32_t)(20000 / (ns + 1)));
	return 1 + (uint32_t)((b->is_quick ? SAMPLE_NS / 4 : SAMPLE_NS) / ns);
}

/* Return t(a) / t(b), measured alternately; each is first in every other
 * pair. */
static struct ratio ratio_of(
	const struct sw_sum_bench *b, struct work *a, struct work *other)
{
	double ratios[PAIRS], times[PAIRS];
	uint32_t n_a = n_runs_of(b, a), n_b = n_runs_of(b, other);

	for (uint32_t i = 0; i < b->n_pairs; i++) {
		double ta = i & 1 ? 0 : sample_ns(a, n_a);
		double tb = sample_ns(other, n_b);

		if (i & 1)
			ta = sample_ns(a, n_a);
		ratios[i] = ta / tb;
		times[i] = ta;
	}
	qsort(times, b->n_pairs, sizeof(*times), compare_doubles);
	qsort(ratios, b->n_pairs, sizeof(*ratios), compare_doubles);
	return (struct ratio){.median = ratios[b->n_pairs / 2],
		.low = ratios[b->n_pairs / 4],
		.high = ratios[b->n_pairs - 1 - b->n_pairs / 4],
		.first_ns = times[b->n_pairs / 2]};
}

bool sw_sum_bench_measure(struct sw_sum_bench *b, const struct sw_sum *sum,
	enum sw_dtype dtype, enum sw_kernel op, enum sw_sum_bench_set set,
	struct sw_sum_bench_row *out)
{
	const struct sw_sum_ops *move = &yardstick(sum)->ops[dtype];
	uint64_t bytes = b->sets[set], per_elem;
	struct work kernel, yard;
	struct ratio ratio;

	if (!bytes ||
		!work_init(&kernel, b, &sum->ops[dtype], op, bytes,
			STAGGER_BYTES) ||
		!work_init(&yard, b, move, op, bytes, STAGGER_BYTES))
		return false;
	if (set == SW_BENCH_DRAM) {
		/* Kernel and yardstick share one advancing position, so that
		 * neither finds the other's data in a cache. */
		kernel.n_part = yard.n_part = kernel.n_total / DRAM_PARTS;
		yard.at = kernel.at;
	}
	ratio = ratio_of(b, &kernel, &yard);
	out->ratio_to_move = 1 / ratio.median;
	per_elem = kernel.n_src * kernel.shape.src_bytes +
		   (1 + kernel.shape.reads_dst) * kernel.shape.dst_bytes;
	out->gbyte_s = (double)(kernel.n_part * per_elem) / ratio.first_ns;
	out->dtype = dtype;
	out->op = op;
	out->sum = sum;
	out->working_set_bytes =
		kernel.n_total * (kernel.shape.dst_bytes +
					 kernel.n_src * kernel.shape.src_bytes);
	return true;
}

/* One side of a comparison. */
struct side {
	enum sw_dtype dtype;
	enum sw_kernel op;
	enum { WHOLE, CHUNKS, CHUNKS_VERIFIED, BY_ADDS, EQUAL_SPACING } how;
};

/* Comparisons: the time of the first side over the time of the second, for the
 * same number of elements. */
static const struct {
	const char *name;
	struct side first, second;
	enum sw_sum_bench_set set;
	double target;
	bool is_upper;
} versus[] = {
	{"elements/s: f16 add / f32 add", {SW_F32, SW_KERNEL_ADD, WHOLE},
		{SW_F16, SW_KERNEL_ADD, WHOLE}, SW_BENCH_L2, 1, false},
	{"elements/s: bf16 add / f32 add", {SW_F32, SW_KERNEL_ADD, WHOLE},
		{SW_BF16, SW_KERNEL_ADD, WHOLE}, SW_BENCH_L2, 1, false},
	{"elements/s: f16 round_scale / f32 add",
		{SW_F32, SW_KERNEL_ADD, WHOLE},
		{SW_F16, SW_KERNEL_ROUND_SCALE, WHOLE}, SW_BENCH_L2, 0.7,
		false},
	{"elements/s: bf16 round_scale / f32 add",
		{SW_F32, SW_KERNEL_ADD, WHOLE},
		{SW_BF16, SW_KERNEL_ROUND_SCALE, WHOLE}, SW_BENCH_L2, 0.7,
		false},
	{"time: verify and add 8 KB f32 / add",
		{SW_F32, SW_KERNEL_ADD, CHUNKS_VERIFIED},
		{SW_F32, SW_KERNEL_ADD, CHUNKS}, SW_BENCH_L2, 1.7, true},
	{"time: seven f32 adds / sum of 8 in one pass",
		{SW_F32, SW_KERNEL_SUM, BY_ADDS},
		{SW_F32, SW_KERNEL_SUM, WHOLE}, SW_BENCH_DRAM, 1.5, false},
	{"time: f32 sum of 8 equally spaced / staggered",
		{SW_F32, SW_KERNEL_SUM, EQUAL_SPACING},
		{SW_F32, SW_KERNEL_SUM, WHOLE}, SW_BENCH_DRAM, 1, false},
};

static void side_init(struct work *w, const struct sw_sum_bench *b,
	const struct sw_sum *sum, const struct side *side, uint64_t bytes)
{
	bool is_chunks = side->how == CHUNKS || side->how == CHUNKS_VERIFIED;

	work_init(w, b, &sum->ops[side->dtype], side->op, bytes,
		side->how == EQUAL_SPACING ? 0 : STAGGER_BYTES);
	w->how = side->how == BY_ADDS           ? RUN_ADDS
		 : side->how == CHUNKS_VERIFIED ? RUN_VERIFIED
						: RUN_OP;
	if (is_chunks)
		w->n_part = CHUNK_BYTES / w->shape.src_bytes;
	if (w->how == RUN_VERIFIED)
		w->crc = sw_crc32c(0, w->src[0], CHUNK_BYTES);
}

static void versus_fill(struct sw_sum_bench_versus *out, struct ratio ratio)
{
	out->ratio = ratio.median;
	out->low = ratio.low;
	out->high = ratio.high;
}

bool sw_sum_bench_compare(struct sw_sum_bench *b, const struct sw_sum *sum,
	uint32_t i, struct sw_sum_bench_versus *out)
{
	struct work first, second;
	uint64_t bytes;

	if (i >= sizeof(versus) / sizeof(versus[0]))
		return false;
	bytes = b->sets[versus[i].set];
	out->name = versus[i].name;
	out->target = versus[i].target;
	out->is_upper = versus[i].is_upper;
	out->ratio = 0;
	out->working_set_bytes = bytes;
	if (!bytes)
		return true;
	side_init(&first, b, sum, &versus[i].first, bytes);
	side_init(&second, b, sum, &versus[i].second, bytes);
	versus_fill(out, ratio_of(b, &first, &second));
	return true;
}

bool sw_sum_bench_compare_crc(struct sw_sum_bench *b, const struct sw_crc *crc,
	uint32_t i, struct sw_sum_bench_versus *out)
{
	struct work isal = {
		.kernel = crc, .dst = b->dst, .src = {b->src + STAGGER_BYTES}};
	struct work ours = isal;

	if (i)
		return false;
	*out = (struct sw_sum_bench_versus){
		.name = "time: CRC-32C of 8 KB by ISA-L / ours",
		.working_set_bytes = CHUNK_BYTES,
		.target = 1.5};
	isal.how = RUN_ISAL;
	ours.how = RUN_CRC;
	isal.isal = b->has_isal ? sw_isal_beside(&b->isal, crc) : NULL;
	if (isal.isal)
		versus_fill(out, ratio_of(b, &isal, &ours));
	return true;
}

/* Comparisons: the time of CRC-32C over that of POLYVAL. */
static const struct {
	const char *name;
	int crc, hash;
} versus_crc[] = {
	{"time: CRC-32C of 8 KB / POLYVAL", RUN_CRC, RUN_HASH},
	{"time: CRC-32C of far chunks / POLYVAL", RUN_CRC_FAR, RUN_HASH_FAR},
};

bool sw_sum_bench_compare_polyval(struct sw_sum_bench *b,
	const struct sw_polyval *polyval, uint32_t i,
	struct sw_sum_bench_versus *out)
{
	static const uint8_t key[SW_POLYVAL_BLOCK] = {1, 2, 3};
	struct work crc = {.dst = b->dst, .src = {b->src + STAGGER_BYTES}};
	struct work hash = crc;

	if (i >= sizeof(versus_crc) / sizeof(versus_crc[0]))
		return false;
	crc.n_total = hash.n_total = i ? b->sets[SW_BENCH_L3] : CHUNK_BYTES;
	*out = (struct sw_sum_bench_versus){.name = versus_crc[i].name,
		.working_set_bytes = crc.n_total,
		.target = 0.5};
	crc.how = versus_crc[i].crc;
	for (uint32_t row = 0; sw_crc_row(row, NULL); row++)
		if (!strcmp(sw_crc_row(row, NULL)->name, polyval->name))
			crc.kernel = sw_crc_row(row, NULL);
	hash.how = versus_crc[i].hash;
	sw_polyval_prepare_for(&hash.key, key, polyval);
	versus_fill(out, ratio_of(b, &crc, &hash));
	return true;
}
