/* client_tuning.c - libsumwire: tuning of the scheduler, while the job runs.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include "pmd/client/client.h"
#include "pmd/client/sized.h"

static int await_answer(
	struct sw_client *c, const char *what, uint64_t until_ns)
{
	union sw_edge_msg m;
	int fds[2], kind = sw_client_await(c, until_ns, &m, fds);

	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (kind == SW_EDGE_TUNED && m.text.err)
		return sw_client_fail(c, m.text.err, "%s", m.text.text);
	if (kind == SW_EDGE_TUNED)
		return 0;
	if (kind == SW_ETIMEDOUT)
		sw_client_close(c, SW_ETIMEDOUT,
			"the agent at %s did not answer the %s request within "
			"%u s",
			c->settings.agent, what, c->settings.open_timeout_s);
	else if (kind > 0)
		sw_client_close(c, SW_EPROTO,
			"the agent at %s answered the %s request with "
			"unexpected message kind %d",
			c->settings.agent, what, kind);
	return sw_client_check(c);
}

int sw_client_ask(
	struct sw_client *c, const void *m, size_t bytes, const char *what)
{
	uint64_t until_ns;
	int err;

	sw_client_lead(c);
	until_ns =
		sw_client_after_ms(c->settings.open_timeout_s * UINT64_C(1000));
	err = sw_client_send(c, m, bytes, until_ns);
	/* A hang-up has a reason, which the next message tells. */
	if (!err || err == SW_ECLOSED)
		err = await_answer(c, what, until_ns);
	sw_client_follow(c);
	return err;
}

static int ask(struct sw_client *c, struct sw_edge_tune m)
{
	int err = sw_client_enter(c);

	if (err)
		return err;
	m.kind = SW_EDGE_TUNE;
	err = sw_client_ask(c, &m, sizeof(m), "tuning");
	sw_client_unlock(c);
	return err;
}

int sw_set_partition(struct sw_client *c, uint64_t bytes)
{
	return ask(c, (struct sw_edge_tune){
			      .what = SW_EDGE_PARTITION, .value = {bytes}});
}

int sw_set_credit(struct sw_client *c, uint64_t bytes)
{
	return ask(c, (struct sw_edge_tune){
			      .what = SW_EDGE_CREDIT, .value = {bytes}});
}

int sw_set_rate(struct sw_client *c, uint64_t bit_s)
{
	return ask(c,
		(struct sw_edge_tune){.what = SW_EDGE_RATE, .value = {bit_s}});
}

int sw_tune(struct sw_client *c, const char *policy, uint64_t partition_bytes,
	uint64_t credit_bytes)
{
	struct sw_edge_tune m = {
		.what = SW_EDGE_JOB, .value = {partition_bytes, credit_bytes}};
	struct sw_tuning now;
	size_t len;

	if (!policy) {
		sw_get_tuning(c, &now);
		policy = now.policy;
	}
	len = strnlen(policy, sizeof(m.policy));
	if (len == 0 || len == sizeof(m.policy))
		return sw_client_fail(
			c, SW_EINVAL, "there is no policy \"%.64s\"", policy);
	memcpy(m.policy, policy, len);
	return ask(c, m);
}

void sw_get_tuning_sized(
	const struct sw_client *c, struct sw_tuning *out, size_t size)
{
	struct sw_edge_tuning *k = &c->control->tuning;
	uint64_t name[SW_EDGE_POLICY_BYTES / 8];

	struct sw_tuning now = {.number = atomic_load_explicit(
					&k->number, memory_order_acquire),
		.round = atomic_load_explicit(&k->round, memory_order_relaxed),
		.partition_bytes = atomic_load_explicit(
			&k->partition_bytes, memory_order_relaxed),
		.credit_bytes = atomic_load_explicit(
			&k->credit_bytes, memory_order_relaxed),
		.rate_bit_s = atomic_load_explicit(
			&k->rate_bit_s, memory_order_relaxed)};
	for (uint32_t i = 0; i < SW_EDGE_POLICY_BYTES / 8; i++)
		name[i] = atomic_load_explicit(
			&k->policy[i], memory_order_relaxed);
	memcpy(now.policy, name, sizeof(now.policy) - 1);
	sw_sized_give(out, size, &now, sizeof(now));
}
