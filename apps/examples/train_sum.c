/* train_sum.c - one rank's tensors in libsumwire.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/examples/train.h"

#include <string.h>

#include "apps/cli/clock.h"
#include <sumwire/sumwire.h>

/* Keep the library's message about @err, or the error's name if there is
 * none. */
static int keep(struct sw_train_sum *s, const char *what, int err)
{
	const char *why = sw_last_error(s->client);

	snprintf(s->text, sizeof(s->text), "%s: %s", what,
		*why ? why : sw_error_text(err));
	return err;
}

static void log_line(void *ctx, const char *line)
{
	fprintf(stderr, "%s: %s\n", (const char *)ctx, line);
}

int sw_train_sum_open(
	struct sw_train_sum *s, const struct sw_train *t, const char *agent)
{
	uint32_t timeout_s =
		(uint32_t)((t->timeout_ns + 999999999) / 1000000000);
	struct sw_settings set;
	int err;

	*s = (struct sw_train_sum){
		.is_polling = t->is_polling, .dtype = t->dtype};
	sw_settings_init(&set);
	set.agent = agent;
	set.open_timeout_s = timeout_s;
	set.wait_timeout_s = timeout_s;
	set.log = log_line;
	set.log_ctx = (void *)agent;
	err = sw_open(&set, &s->client);
	return err ? keep(s, "cannot join", err) : 0;
}

void sw_train_sum_close(struct sw_train_sum *s)
{
	sw_close(&s->client);
}

uint32_t sw_train_sum_rank(const struct sw_train_sum *s, uint32_t *size)
{
	*size = sw_size(s->client);
	return sw_rank(s->client);
}

/* Declare the tensors.  Their order is the order of use in the forward pass,
 * and so are their priorities. */
int sw_train_sum_declare(struct sw_train_sum *s, struct sw_mlp *m)
{
	struct sw_tensor_desc descs[2 * SW_MLP_MAX_LAYERS];
	int err;

	for (uint32_t i = 0; i < m->n_tensors; i++)
		descs[i] = (struct sw_tensor_desc){
			.size = sizeof(struct sw_tensor_desc),
			.name = m->tensors[i].name,
			.n_elems = m->tensors[i].n_elems,
			.dtype = s->dtype,
			.priority = i,
		};
	err = sw_declare(s->client, descs, m->n_tensors, s->tensors);
	if (err)
		return keep(s, "cannot declare the tensors", err);
	for (uint32_t i = 0; s->dtype == SW_F32 && i < m->n_tensors; i++)
		m->tensors[i].grad = sw_tensor_data(s->tensors[i]);
	return 0;
}

int sw_train_sum_begin(struct sw_train_sum *s, const struct sw_mlp *m,
	uint32_t i, uint32_t step)
{
	const struct sw_mlp_tensor *x = &m->tensors[i];
	int err;

	if (s->dtype != SW_F32)
		sw_train_encode(s->dtype, sw_tensor_data(s->tensors[i]),
			x->grad, x->n_elems);
	if (!s->n_open)
		s->open_since_ns = sw_now_ns();
	err = sw_push_pull(s->client, s->tensors[i], step, &s->handles[i]);
	if (err)
		return keep(s, x->name, err);
	s->is_open[i] = true;
	s->n_open++;
	s->traffic.pushed_bytes += x->n_elems * sw_dtype_bytes(s->dtype);
	return 0;
}

/* Move the sum to x->grad, unless it is already there. */
static void take_result(const struct sw_train_sum *s,
	const struct sw_mlp_tensor *x, struct sw_tensor *t)
{
	const void *result = sw_tensor_result(t);

	if (s->dtype != SW_F32)
		sw_train_decode(s->dtype, x->grad, result, x->n_elems);
	else if (result != x->grad)
		memcpy(x->grad, result, x->n_elems * sizeof(*x->grad));
}

int sw_train_sum_end(struct sw_train_sum *s, const struct sw_mlp *m, uint32_t i)
{
	uint64_t start_ns = sw_now_ns(), end_ns;
	const struct sw_mlp_tensor *x = &m->tensors[i];
	int err;

	err = s->is_polling ? sw_wait_polling(s->client, s->handles[i])
			    : sw_wait(s->client, s->handles[i]);
	if (err)
		return keep(s, x->name, err);
	end_ns = sw_now_ns();
	s->is_open[i] = false;
	s->n_open--;
	s->traffic.pulled_bytes += x->n_elems * sw_dtype_bytes(s->dtype);
	s->traffic.blocked_ns += end_ns - start_ns;
	if (!s->n_open)
		s->traffic.open_ns += end_ns - s->open_since_ns;
	take_result(s, x, s->tensors[i]);
	return 0;
}
