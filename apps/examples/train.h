/* train.h - inside train: its processes and their messages.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The command forks one rank per agent and watches them (train_crew.c).  A rank
 * trains (train_rank.c) and sums its gradients through libsumwire
 * (train_sum.c).  A reference process works without libsumwire: it computes the
 * share of every rank itself and adds them.  Each process reports to the
 * command through a pipe, one struct sw_train_msg at a time.
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

/* The training, equal in every process.  Read-only after the first fork. */
struct sw_train {
	uint32_t n_epochs;
	uint32_t batch; /* images per step, all ranks together */
	double rate, target_accuracy;
	uint64_t seed;
	uint64_t timeout_ns; /* longest time without a message of a process */
	enum sw_dtype
		/* dtype of the transferred gradients: f32, f64, f16, bf16 */
		dtype;
	bool is_alone, is_loopback, is_polling, is_tuned, is_json;
	struct sw_arg_list agents, stats;
	struct sw_digits train, test;
};

/* A process's figures after an epoch.  Counts cover its own share. */
struct sw_train_epoch {
	uint64_t hash; /* of all weights */
	uint64_t
		/* hash of every summed gradient so far: an error in one may be
		 * too small to change a weight */
		sums_hash;
	double loss; /* sum over n_trained images */
	uint32_t n_trained, n_trained_right;
	uint32_t n_tested, n_tested_right;
};

/* Traffic through libsumwire in one rank. */
struct sw_train_traffic {
	uint64_t pushed_bytes, pulled_bytes;
	uint64_t open_ns;    /* while at least one sum was in flight */
	uint64_t blocked_ns; /* time in which the rank only waited */
	uint64_t wall_ns;    /* first step to last, tests included */
	uint64_t n_steps;
};

enum sw_train_kind {
	SW_TRAIN_JOINED, /* .joined */
	SW_TRAIN_EPOCH,  /* .epoch */
	SW_TRAIN_DONE,   /* .traffic; the last message */
	SW_TRAIN_FAILED, /* .text; the last message */
};

/* One message; small enough for a pipe to take it whole. */
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

/* A process of the training, from the command's view. */
struct sw_train_child {
	const char *agent; /* NULL: the reference, with rank 0 */
	bool is_joined, is_done;
	uint32_t rank, size;
	uint32_t n_epochs; /* number of received epochs */
	struct sw_train_epoch *epochs;
	struct sw_train_traffic traffic;
	bool is_named; /* its failure has been printed */
};

/* Processes that run at the same time. */
struct sw_train_crew {
	const struct sw_train *train;
	uint32_t n;
	struct sw_train_child *children;
	/* Called when all have reported epoch @epoch (from 0).  An error ends
	 * the crew. */
	int (*on_epoch)(void *ctx, uint32_t epoch);
	void *ctx;
};

/* train_crew.c */

/* sw_train_crew_init - make a crew of @n children, none started.  The caller
 * sets their agents.  Errors: SW_ENOMEM. */
int sw_train_crew_init(
	struct sw_train_crew *crew, const struct sw_train *t, uint32_t n);
void sw_train_crew_fini(struct sw_train_crew *crew);

/* sw_train_crew_run - fork the children and wait for all; none remains when it
 * returns.  If a child fails or is silent for too long, it is named on stderr,
 * and the others end some seconds later.  SIGINT and SIGTERM end all.
 * @size  for a reference: the number of ranks that it replaces
 * Errors: SW_EPEER a child failed; SW_ETIMEDOUT; SW_EAGAIN interrupted; SW_EIO
 * no process could be started; errors of on_epoch. */
int sw_train_crew_run(struct sw_train_crew *crew, uint32_t size);

/* train_rank.c */

/* sw_train_rank - run as a forked process; never returns.
 * @agent  the agent's socket; NULL: be the reference for @size ranks, 1 or 2
 * @pipe   receives the messages */
_Noreturn void sw_train_rank(
	const struct sw_train *t, const char *agent, uint32_t size, int pipe);

/* train_sum.c: one rank's tensors in libsumwire.  After an error, .text has a
 * sentence. */
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
	uint64_t step_ns;          /* end of its last step */
	char text[SW_TRAIN_TEXT_BYTES];
};

/* sw_train_sum_open - join the job of the agent at path @agent. */
int sw_train_sum_open(
	struct sw_train_sum *s, const struct sw_train *t, const char *agent);
void sw_train_sum_close(struct sw_train_sum *s);

/* sw_train_sum_rank - return this rank's number, and the number of ranks in
 * *@size. */
uint32_t sw_train_sum_rank(const struct sw_train_sum *s, uint32_t *size);

/* sw_train_sum_declare - declare the tensors of @m.  From then on f32 gradients
 * are written directly into their shared memory; other types are converted. */
int sw_train_sum_declare(struct sw_train_sum *s, struct sw_mlp *m);

/* sw_train_sum_begin - start to sum tensor @i, whose gradient is complete. */
int sw_train_sum_begin(struct sw_train_sum *s, const struct sw_mlp *m,
	uint32_t i, uint32_t step);

/* sw_train_sum_end - wait for the sum of tensor @i, which sw_train_sum_begin
 * started. */
int sw_train_sum_end(
	struct sw_train_sum *s, const struct sw_mlp *m, uint32_t i);

/* sw_train_tune - end a step: rank 0 reports it to the tuner, which sets the
 * tuning of all ranks (train_tune.c). */
int sw_train_tune(struct sw_train_sum *s);

/* sw_train_tune_end - end the tuner.  Called before sw_train_sum_close. */
void sw_train_tune_end(struct sw_train_sum *s);

/* train_dtype.c: gradients in the transferred dtype.  Pointers need only the
 * alignment of their elements.  Buffers must not overlap. */

/* sw_train_encode - set dst[i] = (dtype) src[i], rounded to nearest even. */
void sw_train_encode(
	enum sw_dtype dtype, void *dst, const float *src, uint64_t n);

/* sw_train_decode - set dst[i] = src[i].  Exact except for f64, which rounds to
 * nearest even. */
void sw_train_decode(
	enum sw_dtype dtype, float *dst, const void *src, uint64_t n);

/* train_report.c */

/* The conditions of a successful training, and whether they are met. */
struct sw_train_result {
	const struct sw_train_crew *ranks;     /* NULL: alone */
	const struct sw_train_crew *reference; /* NULL: no reference ran */
	double accuracy;
	uint32_t n_same_epochs;      /* equal weights in all ranks */
	uint32_t n_reference_epochs; /* equal weights in the reference too */
	uint32_t n_stats;            /* number of --stats read */
	uint64_t n_retransmissions;  /* sum over all of them */
	uint64_t time_ns;
	bool is_ok;
};

/* sw_train_report - print the table, or with --json one object, to stdout. */
void sw_train_report(const struct sw_train *t, const struct sw_train_result *r);

/* sw_train_report_failure - print the JSON object of a training that failed. */
void sw_train_report_failure(void);

/* sw_train_progress - print a line about epoch @epoch of @crew. */
void sw_train_progress(
	const struct sw_train_crew *crew, uint32_t epoch, bool is_same);

/* sw_train_accuracy, sw_train_mean_loss - return a figure of an epoch that all
 * of @crew have reported. */
double sw_train_accuracy(const struct sw_train_crew *crew, uint32_t epoch);
double sw_train_mean_loss(const struct sw_train_crew *crew, uint32_t epoch);

#endif
