/* plan_sim.c - training iterations as events: computation and one link.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/plan_sim.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/error.h"

enum { WARM_UP = 2, MEASURED = 10, F32 = 4 };

/* An admitted part of a partition: in the link's queue, on the link, or on its
 * way back. */
struct part {
	uint32_t tensor;
	bool is_first;      /* first part of its partition: pays the overhead */
	double bytes, at_s; /* at_s: arrival of its result or its credit */
};

struct queue {
	struct part *parts;
	uint32_t head, n, size;
};

struct tensor {
	/* Bytes of this round: not yet copied out, ready to send, not yet
	 * back. */
	double bytes, uncopied, unsent, missing;
	double part_left; /* unsent part of the partition in flight */
	uint32_t layer;
	uint64_t ready_no; /* 0: not ready */
};

struct sim {
	const struct sw_plan_run *run;
	struct sw_policy policy;
	bool is_ideal;
	double now_s;
	/* Computation: step 0 … 2 n - 1 of iteration @iteration. */
	uint32_t step, iteration;
	double step_end_s;     /* INFINITY: it waits */
	double first_s, end_s; /* begin and end of the measurement */
	double period_s;       /* length of the last iteration */
	/* the last iteration took as long as the one before */
	bool is_steady;
	struct tensor *tensors;
	uint64_t n_ready;
	uint32_t chosen; /* tensor to send from; n_tensors: choose again */
	double credit;
	struct queue sending, coming, crediting, returning;
	bool is_sending;
	double sent_s;       /* end of sending the head of sending */
	struct part leaving; /* the piece that is being copied out */
	/* ends of the copies of leaving and of the head of returning; INFINITY:
	 * no copy */
	double left_s, back_s;
};

/* --- queues of fixed size --- */

static void put(struct queue *q, struct part p)
{
	q->parts[(q->head + q->n++) % q->size] = p;
}

static struct part *at(struct queue *q, uint32_t i)
{
	return &q->parts[(q->head + i) % q->size];
}

static struct part *head(struct queue *q)
{
	return at(q, 0);
}

static void drop(struct queue *q)
{
	q->head = (q->head + 1) % q->size;
	q->n--;
}

static bool has_copies(const struct sim *s)
{
	return s->run->link.copy_bytes_s > 0 && !s->is_ideal;
}

/* --- computation --- */

static bool is_forward(const struct sim *s)
{
	return s->step < s->run->model->n_layers;
}

static uint32_t layer_of(const struct sim *s)
{
	uint32_t n = s->run->model->n_layers;

	return is_forward(s) ? s->step : 2 * n - 1 - s->step;
}

/* Return whether the pulls that the next step needs have completed. */
static bool may_start(const struct sim *s)
{
	const struct sw_model *m = s->run->model;
	const struct sw_model_layer *l = &m->layers[layer_of(s)];
	bool needs_all = s->run->has_barrier && s->step == 0;
	uint32_t first = needs_all ? 0 : l->first;
	uint32_t end = needs_all ? m->n_tensors : l->first + l->n_tensors;

	for (uint32_t t = first; is_forward(s) && t < end; t++)
		if (s->tensors[t].missing > 0)
			return false;
	return true;
}

static void start_step(struct sim *s)
{
	const struct sw_model_layer *l;

	if (s->step_end_s < INFINITY || !may_start(s))
		return;
	l = &s->run->model->layers[layer_of(s)];
	s->step_end_s =
		s->now_s + 1e-9 * s->run->time_scale *
				   (double)(is_forward(s) ? l->forward_ns
							  : l->backward_ns);
}

static void end_step(struct sim *s)
{
	const struct sw_model *m = s->run->model;
	const struct sw_model_layer *l = &m->layers[layer_of(s)];

	for (uint32_t t = l->first; t < l->first + l->n_tensors; t++)
		if (!is_forward(s)) {
			struct tensor *x = &s->tensors[t];

			*(has_copies(s) ? &x->uncopied : &x->unsent) = x->bytes;
			x->missing = x->bytes;
			x->ready_no = ++s->n_ready;
			s->chosen = m->n_tensors;
		}
	s->step_end_s = INFINITY;
	if (++s->step < 2 * m->n_layers)
		return;
	s->step = 0;
	s->is_steady =
		s->iteration > WARM_UP &&
		fabs(s->now_s - s->end_s - s->period_s) < 1e-9 * s->period_s;
	s->period_s = s->now_s - s->end_s;
	s->end_s = s->now_s;
	if (++s->iteration == WARM_UP)
		s->first_s = s->now_s;
}

/* --- communication --- */

/* Return the most urgent tensor with bytes to send, or to copy out; n_tensors:
 * none. */
static uint32_t look(const struct sim *s, bool is_copy)
{
	uint32_t n = s->run->model->n_tensors, best = n;

	for (uint32_t t = 0; t < n; t++) {
		const struct tensor *x = &s->tensors[t];
		const struct tensor *b = &s->tensors[best < n ? best : t];
		bool is_urgent = s->policy.by_priority && x->layer != b->layer
					 ? x->layer < b->layer
					 : x->ready_no < b->ready_no;

		if ((is_copy ? x->uncopied : x->unsent) > 0 &&
			(best == n || is_urgent))
			best = t;
	}
	return best;
}

/* Return the tensor to send from; n_tensors: none. */
static uint32_t choose(struct sim *s)
{
	uint32_t n = s->run->model->n_tensors;

	if (s->chosen == n || !(s->tensors[s->chosen].unsent > 0))
		s->chosen = look(s, false);
	return s->chosen;
}

static double not_landed(const struct sim *s, uint32_t t)
{
	bool is_leaving = s->left_s < INFINITY && s->leaving.tensor == t;

	return s->tensors[t].uncopied + (is_leaving ? s->leaving.bytes : 0);
}

static void admit(struct sim *s)
{
	uint32_t n = s->run->model->n_tensors, t;

	while (s->credit > 0 && (t = choose(s)) < n) {
		struct tensor *x = &s->tensors[t];
		struct part p = {.tensor = t, .is_first = !(x->part_left > 0)};

		if (p.is_first)
			x->part_left = fmin((double)s->policy.part_bytes,
				x->unsent + not_landed(s, t));
		p.bytes = fmin(x->part_left, x->unsent);
		if (has_copies(s))
			p.bytes = fmin(p.bytes, s->run->link.piece_bytes);
		x->part_left -= p.bytes;
		x->unsent -= p.bytes;
		s->credit -= p.bytes;
		put(&s->sending, p);
	}
}

/* Move the most urgent part to the head.  The parts that it overtakes keep
 * their order. */
static void sort(struct sim *s)
{
	struct queue *q = &s->sending;
	uint32_t best = 0;
	struct part p;

	for (uint32_t i = 1; i < q->n; i++)
		if (s->tensors[at(q, i)->tensor].layer <
			s->tensors[at(q, best)->tensor].layer)
			best = i;
	p = *at(q, best);
	for (; best > 0; best--)
		*at(q, best) = *at(q, best - 1);
	*at(q, 0) = p;
}

static void start_sending(struct sim *s)
{
	const struct sw_plan_link *l = &s->run->link;

	if (s->is_sending || !s->sending.n)
		return;
	if (l->is_sorted && s->policy.by_priority)
		sort(s);
	s->is_sending = true;
	s->sent_s = s->now_s +
		    (head(&s->sending)->is_first ? l->overhead_s : 0) +
		    head(&s->sending)->bytes / l->rate_bytes_s;
}

static void end_sending(struct sim *s)
{
	struct part p = *head(&s->sending);

	drop(&s->sending);
	p.at_s = s->now_s + s->run->link.latency_s;
	put(&s->coming, p);
	p.at_s = s->now_s + s->run->link.credit_s;
	put(&s->crediting, p);
	s->is_sending = false;
}

static void take_result(struct sim *s)
{
	struct part p = *head(&s->coming);

	drop(&s->coming);
	if (has_copies(s))
		put(&s->returning, p);
	else
		s->tensors[p.tensor].missing -= p.bytes;
}

static void take_credit(struct sim *s)
{
	s->credit += head(&s->crediting)->bytes;
	drop(&s->crediting);
}

/* --- copies --- */

static void start_copies(struct sim *s)
{
	const struct sw_plan_link *l = &s->run->link;
	uint32_t t =
		s->left_s < INFINITY ? s->run->model->n_tensors : look(s, true);

	if (t < s->run->model->n_tensors) {
		struct tensor *x = &s->tensors[t];

		s->leaving = (struct part){.tensor = t,
			.bytes = fmin(l->piece_bytes, x->uncopied)};
		x->uncopied -= s->leaving.bytes;
		s->left_s = s->now_s + s->leaving.bytes / l->copy_bytes_s;
	}
	if (s->back_s < INFINITY || !s->returning.n)
		return;
	s->back_s = s->now_s + head(&s->returning)->bytes / l->copy_bytes_s;
}

static void land(struct sim *s)
{
	s->tensors[s->leaving.tensor].unsent += s->leaving.bytes;
	/* the landed tensor may be more urgent */
	s->chosen = s->run->model->n_tensors;
	s->left_s = INFINITY;
}

static void come_back(struct sim *s)
{
	const struct part *p = head(&s->returning);

	s->tensors[p->tensor].missing -= p->bytes;
	drop(&s->returning);
	s->back_s = INFINITY;
}

static double next_of(struct queue *q)
{
	return q->n ? head(q)->at_s : INFINITY;
}

/* Advance to the next event, then start everything that can start. */
static void advance(struct sim *s)
{
	double sent_s = s->is_sending ? s->sent_s : INFINITY;
	double result_s = next_of(&s->coming);
	double credit_s = next_of(&s->crediting);

	s->now_s = fmin(fmin(s->step_end_s, sent_s), fmin(result_s, credit_s));
	s->now_s = fmin(s->now_s, fmin(s->left_s, s->back_s));
	if (s->now_s == s->step_end_s)
		/* first, so that newly ready tensors can leave at once */
		end_step(s);
	else if (s->now_s == s->left_s)
		land(s);
	else if (s->now_s == s->back_s)
		come_back(s);
	else if (s->now_s == result_s)
		take_result(s);
	else if (s->now_s == credit_s)
		take_credit(s);
	else
		end_sending(s);
	if (has_copies(s))
		start_copies(s);
	admit(s);
	start_sending(s);
	start_step(s);
}

static double slowest(const struct sw_plan_link *l)
{
	return l->copy_bytes_s > 0 ? fmin(l->rate_bytes_s, l->copy_bytes_s)
				   : l->rate_bytes_s;
}

/* Advance in the fluid case: the most urgent tensor owns the link until the
 * next event. */
static void advance_ideal(struct sim *s)
{
	uint32_t n = s->run->model->n_tensors, t = choose(s);
	double rate = slowest(&s->run->link), from_s = s->now_s;
	double sent_s = t < n ? from_s + s->tensors[t].unsent / rate : INFINITY;

	s->now_s = fmin(s->step_end_s, sent_s);
	if (t < n) {
		struct tensor *x = &s->tensors[t];

		x->unsent = s->now_s == sent_s
				    ? 0
				    : x->unsent - (s->now_s - from_s) * rate;
		x->missing = x->unsent;
	}
	if (s->now_s == s->step_end_s)
		end_step(s);
	start_step(s);
}

/* --- a run --- */

static uint32_t most_parts(const struct sim *s)
{
	const struct sw_model *m = s->run->model;
	double n = 1;

	for (uint32_t t = 0; t < m->n_tensors; t++)
		n += ceil(s->tensors[t].bytes / (double)s->policy.part_bytes);
	for (uint32_t t = 0; t < m->n_tensors && has_copies(s); t++)
		n += ceil(s->tensors[t].bytes / s->run->link.piece_bytes);
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static int open_sim(struct sim *s)
{
	const struct sw_model *m = s->run->model;
	uint32_t size;

	s->tensors = calloc(m->n_tensors, sizeof(*s->tensors));
	if (!s->tensors)
		return SW_ENOMEM;
	for (uint32_t t = 0; t < m->n_tensors; t++)
		s->tensors[t] = (struct tensor){
			.bytes = F32 * (double)m->tensors[t].n_elems,
			.layer = m->tensors[t].layer};
	size = most_parts(s);
	s->sending.size = s->coming.size = s->crediting.size = size;
	s->returning.size = size;
	s->sending.parts = calloc(size, sizeof(struct part));
	s->coming.parts = calloc(size, sizeof(struct part));
	s->crediting.parts = calloc(size, sizeof(struct part));
	s->returning.parts = calloc(size, sizeof(struct part));
	s->credit = (double)s->policy.credit_bytes;
	s->step_end_s = s->left_s = s->back_s = INFINITY;
	s->chosen = m->n_tensors;
	return s->sending.parts && s->coming.parts && s->crediting.parts &&
			       s->returning.parts
		       ? 0
		       : SW_ENOMEM;
}

static int simulate(struct sim *s, double *iteration_s)
{
	const struct sw_plan_run *run = s->run;
	int err;

	if (!(run->link.rate_bytes_s > 0) || !(run->time_scale > 0) ||
		!(run->link.overhead_s >= 0) || !(run->link.latency_s >= 0) ||
		!(run->link.credit_s >= 0) || !(run->link.copy_bytes_s >= 0) ||
		(run->link.copy_bytes_s > 0 && !(run->link.piece_bytes > 0)))
		return SW_EINVAL;
	err = open_sim(s);
	if (!err) {
		start_step(s);
		while (s->iteration < WARM_UP + MEASURED && !s->is_steady)
			(s->is_ideal ? advance_ideal : advance)(s);
		*iteration_s =
			(s->end_s - s->first_s) / (s->iteration - WARM_UP);
	}
	free(s->tensors);
	free(s->sending.parts);
	free(s->coming.parts);
	free(s->crediting.parts);
	free(s->returning.parts);
	return err;
}

int sw_plan_simulate(const struct sw_plan_run *run,
	const struct sw_policy *policy, double *iteration_s)
{
	struct sim s = {.run = run, .policy = *policy};

	return simulate(&s, iteration_s);
}

int sw_plan_ideal(const struct sw_plan_run *run, double *iteration_s)
{
	struct sim s = {.run = run,
		.policy = {.by_priority = true, .part_bytes = SW_PART_WHOLE},
		.is_ideal = true};

	return simulate(&s, iteration_s);
}

double sw_plan_bound(const struct sw_plan_run *run, uint64_t partition_bytes)
{
	const struct sw_model *m = run->model;
	double delta = (double)partition_bytes, n = 1, copies_s = 0;

	for (uint32_t t = 0; t < m->n_tensors; t++)
		n += floor(F32 * (double)m->tensors[t].n_elems / delta);
	if (run->link.copy_bytes_s > 0)
		copies_s = 4 * run->link.piece_bytes / run->link.copy_bytes_s;
	return n * run->link.overhead_s + 2 * delta / run->link.rate_bytes_s +
	       copies_s;
}
