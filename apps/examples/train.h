/* train.h - inside of train: its processes and what they tell.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The command forks one rank per agent and watches them (train_crew.c).  A
 * rank trains (train_rank.c) and sums its gradients through libsumwire
 * (train_sum.c).  A reference process does without: it computes the share of
 * every rank itself and adds them.  Each tells the command about itself
 * through a pipe, one struct sw_train_msg at a time.
 */
#ifndef SW_APPS_EXAMPLES_TRAIN_H
#define SW_APPS_EXAMPLES_TRAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "apps/cli/args.h"
#include "apps/examples/digits.h"
#include "apps/examples/mlp.h"
#include "sum/dtype.h"

enum { SW_TRAIN_TEXT_BYTES = 384 };

/* The training, the same in every process; read only once the first is
 * forked. */
struct sw_train {
	uint32_t n_epochs;
	uint32_t batch; /* images per step, all ranks together */
	double rate, target_accuracy;
	uint64_t seed;
	uint64_t timeout_ns; /* longest silence of a process */
	enum sw_dtype
		dtype; /* in which gradients travel: f32, f64, f16, bf16 */
	bool is_alone, is_loopback, is_polling, is_tuned, is_json;
	struct sw_arg_list agents, stats;
	struct sw_digits train, test;
};

/* A process's figures after an epoch. Counts are of its own share. */
struct sw_train_epoch {
	uint64_t hash; /* of all weights */
	uint64_t
		sums_hash; /* the same of every summed gradient so far: an error
			      in one may be too small to change a weight */
	double loss;       /* sum over n_trained images */
	uint32_t n_trained, n_trained_right;
	uint32_t n_tested, n_tested_right;
};

/* Traffic through libsumwire in one rank. */
struct sw_train_traffic {
	uint64_t pushed_bytes, pulled_bytes;
	uint64_t open_ns;    /* while at least one sum was under way */
	uint64_t blocked_ns; /* time in which the rank could do nothing else */
	uint64_t wall_ns;    /* first step to last, tests included */
	uint64_t n_steps;
};

enum sw_train_kind {
	SW_TRAIN_JOINED, /* .joined */
	SW_TRAIN_EPOCH,  /* .epoch */
	SW_TRAIN_DONE,   /* .traffic; the last one */
	SW_TRAIN_FAILED, /* .text; the last one */
};

/* One message; small enough that a pipe takes it whole. */
struct sw_train_msg {
	enum sw_train_kind kind;
	union {
		struct {
			uint32_t rank, size;
		} joined;
		struct sw_train_epoch epoch;
		struct sw_train_traffic traffic;
		char text[SW_TRAIN_TEXT_BYTES];
	};
};

/* A process of the training as the command sees it. */
struct sw_train_child {
	const char *agent; /* NULL: the reference; its rank is 0 */
	bool is_joined, is_done;
	uint32_t rank, size;
	uint32_t n_epochs; /* entries of epochs that are there */
	struct sw_train_epoch *epochs;
	struct sw_train_traffic traffic;
	bool is_named; /* its failure has been printed */
};

/* Processes that run side by side. */
struct sw_train_crew {
	const struct sw_train *train;
	uint32_t n;
	struct sw_train_child *children;
	/* Called when all have told about epoch @epoch (from 0); an error ends
	 * the crew. */
	int (*on_epoch)(void *ctx, uint32_t epoch);
	void *ctx;
};

/* train_crew.c */

/* sw_train_crew_init - a crew of @n children that are not started; the caller
 * sets their agents.  Errors: SW_ENOMEM. */
int sw_train_crew_init(
	struct sw_train_crew *crew, const struct sw_train *t, uint32_t n);
void sw_train_crew_fini(struct sw_train_crew *crew);

/* sw_train_crew_run - fork the children and wait for all.  None is left when
 * it returns.  When one fails or is silent for too long it is named on stderr
 * and the others are ended some seconds later; SIGINT and SIGTERM end all.
 * @size  for a reference: the number of ranks that it stands for
 * Errors: SW_EPEER a child failed; SW_ETIMEDOUT; SW_EAGAIN interrupted; SW_EIO
 * no process could be started; what on_epoch returned. */
int sw_train_crew_run(struct sw_train_crew *crew, uint32_t size);

/* train_rank.c */

/* sw_train_rank - run as a forked process; never returns.
 * @agent  the agent's socket; NULL: be the reference for @size ranks, 1 or 2
 * @pipe   where messages go */
_Noreturn void sw_train_rank(
	const struct sw_train *t, const char *agent, uint32_t size, int pipe);

/* train_sum.c: one rank's tensors in libsumwire.  Every error leaves a
 * sentence in .text. */
struct sw_train_sum {
	struct sw_client *client;
	struct sw_tensor *tensors[2 * SW_MLP_MAX_LAYERS];
	uint64_t handles[2 * SW_MLP_MAX_LAYERS];
	bool is_open[2 * SW_MLP_MAX_LAYERS];
	uint32_t n_open;
	uint64_t open_since_ns;
	bool is_polling;
	enum sw_dtype dtype;
	struct sw_train_traffic traffic;
	struct sw_autotune *tuner; /* rank 0's, from its second step on */
	uint64_t step_ns;          /* when its last step ended */
	char text[SW_TRAIN_TEXT_BYTES];
};

/* sw_train_sum_open - join the job of the agent at path @agent. */
int sw_train_sum_open(
	struct sw_train_sum *s, const struct sw_train *t, const char *agent);
void sw_train_sum_close(struct sw_train_sum *s);

/* sw_train_sum_rank - this rank's rank; the number of ranks in *@size. */
uint32_t sw_train_sum_rank(const struct sw_train_sum *s, uint32_t *size);

/* sw_train_sum_declare - declare the tensors of @m.  f32 gradients are written
 * into their shared memory from now on; others are converted on the way. */
int sw_train_sum_declare(struct sw_train_sum *s, struct sw_mlp *m);

/* sw_train_sum_begin - start to sum tensor @i, whose gradient is complete. */
int sw_train_sum_begin(struct sw_train_sum *s, const struct sw_mlp *m,
	uint32_t i, uint32_t step);

/* sw_train_sum_end - wait until tensor @i, which was begun, is summed. */
int sw_train_sum_end(
	struct sw_train_sum *s, const struct sw_mlp *m, uint32_t i);

/* sw_train_tune - a step has ended: rank 0 tells the tuner, which sets the
 * tuning of all ranks (train_tune.c). */
int sw_train_tune(struct sw_train_sum *s);

/* sw_train_tune_end - before sw_train_sum_close. */
void sw_train_tune_end(struct sw_train_sum *s);

/* train_dtype.c: gradients in the dtype that travels.  No pointer needs
 * alignment beyond its element's; buffers do not overlap. */

/* sw_train_encode - dst[i] = (dtype) src[i], nearest even. */
void sw_train_encode(
	enum sw_dtype dtype, void *dst, const float *src, uint64_t n);

/* sw_train_decode - dst[i] = src[i]; exact except for f64, which rounds to
 * nearest even. */
void sw_train_decode(
	enum sw_dtype dtype, float *dst, const void *src, uint64_t n);

/* train_report.c */

/* The conditions of a successful training, and whether they hold. */
struct sw_train_result {
	const struct sw_train_crew *ranks;     /* NULL: alone */
	const struct sw_train_crew *reference; /* NULL: none was run */
	double accuracy;
	uint32_t n_same_epochs;      /* equal weights in all ranks */
	uint32_t n_reference_epochs; /* equal weights in the reference too */
	uint32_t n_stats;            /* --stats that were read */
	uint64_t n_retransmissions;  /* in all of them */
	uint64_t time_ns;
	bool is_ok;
};

/* sw_train_report - the table, or with --json one object, on stdout. */
void sw_train_report(const struct sw_train *t, const struct sw_train_result *r);

/* sw_train_report_failure - the JSON object of a training that did not end. */
void sw_train_report_failure(void);

/* sw_train_progress - one line for epoch @epoch of @crew. */
void sw_train_progress(
	const struct sw_train_crew *crew, uint32_t epoch, bool is_same);

/* sw_train_accuracy, sw_train_mean_loss - after an epoch that all of @crew have
 * told about. */
double sw_train_accuracy(const struct sw_train_crew *crew, uint32_t epoch);
double sw_train_mean_loss(const struct sw_train_crew *crew, uint32_t epoch);

#endif
