/* client_tuning.c - libsumwire: tuning of the scheduler, while the job runs.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client_turn.h"
#include "pmd/client/sized.h"

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
			c, SW_EINVAL, "unknown policy \"%.64s\"", policy);
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
