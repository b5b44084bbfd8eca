/* train_rank.c - a process of the training: steps, epochs, tests.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/examples/train.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "engine/base/random.h"

#define MOMENTUM 0.9f

enum { N_LAYERS = 3 };

static const uint32_t dims[N_LAYERS + 1] = {
	SW_DIGIT_PIXELS, 1024, 1024, SW_DIGIT_CLASSES};

static int mlp_init(struct sw_mlp *m, uint32_t max_rows, uint64_t seed)
{
	return sw_mlp_init(m, dims, N_LAYERS, max_rows, seed);
}

/* A rank owns share @rank of @size of every batch and of the test images.  The
 * reference owns all shares (one or two), and handles them one after
 * another. */
struct trainer {
	const struct sw_train *t;
	struct sw_mlp mlp;
	uint32_t rank, size;
	uint32_t step;
	uint64_t random;
	uint32_t *order;          /* [t->train.n] images, shuffled */
	float *pixels;            /* images of a share */
	uint8_t *labels;          /* labels of these images */
	struct sw_train_sum *sum; /* NULL in the reference */
	float *first;             /* reference: gradients of share 0 */
	/* reference: a tensor as it would be transferred */
	void *coded;
	float rate; /* of this epoch */
	uint64_t sums_hash[2 * SW_MLP_MAX_LAYERS];
	struct sw_train_epoch epoch;
	int pipe;
};

/* Return the first item of share @rank.  A share ends where the next one
 * begins. */
static uint32_t share_begin(uint32_t n, uint32_t rank, uint32_t size)
{
	return (uint32_t)((uint64_t)n * rank / size);
}

static void tell(int pipe, const struct sw_train_msg *m)
{
	if (write(pipe, m, sizeof(*m)) != (ssize_t)sizeof(*m))
		_exit(1); /* the command has ended */
}

static _Noreturn void fail(struct trainer *w, const char *text)
{
	struct sw_train_msg m = {.kind = SW_TRAIN_FAILED};

	snprintf(m.text, sizeof(m.text), "%s", text);
	tell(w->pipe, &m);
	_exit(1);
}

static void shuffle(struct trainer *w)
{
	for (uint32_t i = w->t->train.n - 1; i > 0; i--) {
		uint32_t j = (uint32_t)(sw_random_next(&w->random) % (i + 1));
		uint32_t swap = w->order[i];

		w->order[i] = w->order[j];
		w->order[j] = swap;
	}
}

/* Copy share @rank of the batch that starts at @start of the order.  Returns
 * its number of images. */
static uint32_t gather(struct trainer *w, uint32_t start, uint32_t rank)
{
	const struct sw_digits *d = &w->t->train;
	uint32_t begin = share_begin(w->t->batch, rank, w->size);
	uint32_t end = share_begin(w->t->batch, rank + 1, w->size);

	for (uint32_t i = begin; i < end; i++) {
		uint32_t image = w->order[start + i];

		memcpy(w->pixels + (size_t)(i - begin) * SW_DIGIT_PIXELS,
			d->pixels + (size_t)image * SW_DIGIT_PIXELS,
			SW_DIGIT_PIXELS * sizeof(float));
		w->labels[i - begin] = d->labels[image];
	}
	return end - begin;
}

/* Use the summed gradient of tensor @i. */
static void apply(struct trainer *w, uint32_t i)
{
	struct sw_mlp_tensor *x = &w->mlp.tensors[i];

	w->sums_hash[i] = sw_mlp_hash(w->sums_hash[i], x->grad, x->n_elems);
	sw_mlp_update(x, w->rate, MOMENTUM);
}

/* Wait for the sum of tensor @i, and use it: called before the tensor is
 * read. */
static void update_tensor(struct trainer *w, uint32_t i)
{
	if (!w->sum || !w->sum->is_open[i])
		return;
	if (sw_train_sum_end(w->sum, &w->mlp, i))
		fail(w, w->sum->text);
	apply(w, i);
}

/* Wait for each layer only when the forward pass reaches it, so that the sums
 * of later layers continue meanwhile.  Layer l has tensors 2l and 2l + 1. */
static void forward(struct trainer *w, uint32_t n_rows)
{
	for (uint32_t l = 0; l < w->mlp.n_layers; l++) {
		update_tensor(w, 2 * l);
		update_tensor(w, 2 * l + 1);
		sw_mlp_forward(&w->mlp, l, w->pixels, n_rows);
	}
}

/* Compute the share's loss.  Gradients are divided by the size of the whole
 * batch, so that their sum over the ranks is the batch's gradient. */
static void share_loss(struct trainer *w, uint32_t n_rows)
{
	w->epoch.loss += sw_mlp_loss(&w->mlp, w->labels, n_rows,
		1.0f / (float)w->t->batch, &w->epoch.n_trained_right);
	w->epoch.n_trained += n_rows;
}

static void begin_tensor(struct trainer *w, uint32_t i)
{
	if (w->sum && sw_train_sum_begin(w->sum, &w->mlp, i, w->step))
		fail(w, w->sum->text);
}

static void backward(struct trainer *w, uint32_t n_rows)
{
	for (uint32_t l = w->mlp.n_layers; l-- > 0;) {
		sw_mlp_backward(&w->mlp, l, w->pixels, n_rows);
		begin_tensor(w, 2 * l);
		begin_tensor(w, 2 * l + 1);
	}
}

static void run_share(struct trainer *w, uint32_t start, uint32_t rank)
{
	uint32_t n_rows = gather(w, start, rank);

	forward(w, n_rows);
	share_loss(w, n_rows);
	backward(w, n_rows);
}

/* Round the gradients as the transfer to or from the server would. */
static void round_gradients(struct trainer *w)
{
	for (uint32_t i = 0; i < w->mlp.n_tensors; i++) {
		struct sw_mlp_tensor *x = &w->mlp.tensors[i];

		sw_train_encode(w->t->dtype, w->coded, x->grad, x->n_elems);
		sw_train_decode(w->t->dtype, x->grad, w->coded, x->n_elems);
	}
}

static void keep_gradients(struct trainer *w)
{
	float *to = w->first;

	for (uint32_t t = 0; t < w->mlp.n_tensors; t++) {
		const struct sw_mlp_tensor *x = &w->mlp.tensors[t];

		memcpy(to, x->grad, x->n_elems * sizeof(float));
		to += x->n_elems;
	}
}

static void add_kept_gradients(struct trainer *w)
{
	const float *from = w->first;

	for (uint32_t t = 0; t < w->mlp.n_tensors; t++) {
		struct sw_mlp_tensor *x = &w->mlp.tensors[t];

		for (uint64_t i = 0; i < x->n_elems; i++)
			x->grad[i] += *from++;
	}
}

/* Compute one share, or both and add them: a + b has the same bits as b + a. */
static void reference_step(struct trainer *w, uint32_t start)
{
	run_share(w, start, 0);
	round_gradients(w);
	if (w->size == 2) {
		keep_gradients(w);
		run_share(w, start, 1);
		round_gradients(w);
		add_kept_gradients(w);
		round_gradients(w);
	}
	for (uint32_t i = 0; i < w->mlp.n_tensors; i++)
		apply(w, i);
}

/* Classify the test images [begin, end), as many at a time as fit. */
static void test_images(struct trainer *w, uint32_t begin, uint32_t end)
{
	const struct sw_digits *d = &w->t->test;
	uint32_t n;

	for (uint32_t at = begin; at < end; at += n) {
		n = end - at < w->mlp.max_rows ? end - at : w->mlp.max_rows;
		for (uint32_t l = 0; l < w->mlp.n_layers; l++)
			sw_mlp_forward(&w->mlp, l,
				d->pixels + (size_t)at * SW_DIGIT_PIXELS, n);
		sw_mlp_loss(&w->mlp, d->labels + at, n, 0,
			&w->epoch.n_tested_right);
	}
	w->epoch.n_tested = end - begin;
}

static void test_share(struct trainer *w)
{
	uint32_t n = w->t->test.n;

	if (w->sum)
		test_images(w, share_begin(n, w->rank, w->size),
			share_begin(n, w->rank + 1, w->size));
	else
		test_images(w, 0, n);
}

static void hash_all(struct trainer *w)
{
	for (uint32_t i = 0; i < w->mlp.n_tensors; i++) {
		const struct sw_mlp_tensor *x = &w->mlp.tensors[i];

		w->epoch.hash =
			sw_mlp_hash(w->epoch.hash, x->value, x->n_elems);
		/* Different odd factors: swapped hashes of two tensors do not
		 * cancel. */
		w->epoch.sums_hash += w->sums_hash[i] * (2 * i + 1);
	}
}

static void joint_step(struct trainer *w, uint32_t start)
{
	run_share(w, start, w->rank);
	if (w->t->is_tuned && sw_train_tune(w->sum))
		fail(w, w->sum->text);
}

/* Train one epoch.  The rate falls to zero linearly, so the last epochs
 * settle. */
static void run_epoch(struct trainer *w, uint32_t epoch)
{
	struct sw_train_msg m = {.kind = SW_TRAIN_EPOCH};
	uint32_t batch = w->t->batch;

	w->epoch = (struct sw_train_epoch){0};
	w->rate =
		(float)(w->t->rate * (w->t->n_epochs - epoch) / w->t->n_epochs);
	shuffle(w);
	for (uint32_t at = 0; at + batch <= w->t->train.n; at += batch) {
		if (w->sum)
			joint_step(w, at);
		else
			reference_step(w, at);
		w->step++;
	}
	for (uint32_t i = 0; i < w->mlp.n_tensors; i++)
		update_tensor(w, i);
	test_share(w);
	hash_all(w);
	m.epoch = w->epoch;
	tell(w->pipe, &m);
}

static void prepare(struct trainer *w)
{
	/* A share has at most one image more than 1/size of the batch. */
	uint32_t rows = w->t->batch / w->size + 1;

	if (mlp_init(&w->mlp, rows, w->t->seed))
		fail(w, "out of memory");
	w->random = ~w->t->seed;
	w->order = calloc(w->t->train.n, sizeof(*w->order));
	w->pixels = calloc(rows, SW_DIGIT_PIXELS * sizeof(float));
	w->labels = calloc(rows, 1);
	w->first = w->sum ? NULL : calloc(w->mlp.n_params, sizeof(float));
	w->coded = w->sum ? NULL : calloc(w->mlp.n_params, sizeof(double));
	if (!w->order || !w->pixels || !w->labels ||
		(!w->sum && (!w->first || !w->coded)))
		fail(w, "out of memory");
	for (uint32_t i = 0; i < w->t->train.n; i++)
		w->order[i] = i;
}

static void join(struct trainer *w, const char *agent)
{
	struct sw_train_msg m = {.kind = SW_TRAIN_JOINED};

	if (w->sum) {
		if (sw_train_sum_open(w->sum, w->t, agent))
			fail(w, w->sum->text);
		w->rank = sw_train_sum_rank(w->sum, &w->size);
	}
	if (w->size > w->t->batch)
		fail(w, "the batch has fewer images than the job has ranks");
	m.joined.rank = w->rank;
	m.joined.size = w->size;
	tell(w->pipe, &m);
}

static void train(struct trainer *w)
{
	struct sw_train_msg m = {.kind = SW_TRAIN_DONE};
	uint64_t start_ns = sw_now_ns();

	for (uint32_t i = 0; i < w->t->n_epochs; i++)
		run_epoch(w, i);
	if (w->sum)
		m.traffic = w->sum->traffic;
	m.traffic.wall_ns = sw_now_ns() - start_ns;
	m.traffic.n_steps = w->step;
	tell(w->pipe, &m);
}

/* Memory and sockets are not freed: the kernel reclaims them when the process
 * ends. */
_Noreturn void sw_train_rank(
	const struct sw_train *t, const char *agent, uint32_t size, int pipe)
{
	struct sw_train_sum sum;
	struct trainer w = {
		.t = t, .size = size, .sum = agent ? &sum : NULL, .pipe = pipe};

	join(&w, agent);
	prepare(&w);
	if (w.sum && sw_train_sum_declare(w.sum, &w.mlp))
		fail(&w, w.sum->text);
	train(&w);
	if (w.sum) {
		sw_train_tune_end(w.sum);
		sw_train_sum_close(w.sum);
	}
	_exit(0);
}
