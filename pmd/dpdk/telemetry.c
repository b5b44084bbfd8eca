/* telemetry.c - our telemetry commands, for dpdk-telemetry.py.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * DPDK calls a command's function without a context, on a thread per reader.
 * The function therefore looks its context up by name in a memzone, which lives
 * as long as the process. */
#include "pmd/dpdk/telemetry.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_memzone.h>
#include <rte_telemetry.h>

#include "engine/base/error.h"

#define ZONE "sumwire_telemetry"

struct sw_dpdk_telemetry {
	pthread_mutex_t lock;
	const struct sw_dpdk_command *commands;
	uint32_t n;
	sw_dpdk_answer_fn answer; /* NULL: closed */
	void *ctx;
};

static void put(void *out, const char *name, uint64_t value)
{
	char text[RTE_TEL_MAX_STRING_LEN];

	snprintf(text, sizeof(text), "%s", name);
	for (char *s = text; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			*s = '/';
	(void)!rte_tel_data_add_dict_u64(out, text, value);
}

static int on_command(
	const char *command, const char *params, struct rte_tel_data *out)
{
	const struct rte_memzone *zone = rte_memzone_lookup(ZONE);
	struct sw_dpdk_telemetry *t = zone ? zone->addr : NULL;
	int err = SW_ECLOSED;

	rte_tel_data_start_dict(out);
	if (!t)
		return -ENOENT;
	pthread_mutex_lock(&t->lock);
	for (uint32_t i = 0; i < t->n && t->answer; i++)
		if (!strcmp(t->commands[i].name, command))
			err = t->answer(
				t->ctx, i, params ? params : "", put, out);
	pthread_mutex_unlock(&t->lock);
	return err ? -EIO : 0;
}

int sw_dpdk_telemetry_open(const struct sw_dpdk_command *commands, uint32_t n,
	sw_dpdk_answer_fn answer, void *ctx, struct sw_dpdk_telemetry **out)
{
	const struct rte_memzone *zone;
	struct sw_dpdk_telemetry *t;

	if (rte_memzone_lookup(ZONE))
		return SW_EBUSY;
	zone = rte_memzone_reserve(ZONE, sizeof(*t), SOCKET_ID_ANY, 0);
	if (!zone)
		return SW_ENOMEM;
	t = zone->addr;
	*t = (struct sw_dpdk_telemetry){
		.commands = commands, .n = n, .answer = answer, .ctx = ctx};
	pthread_mutex_init(&t->lock, NULL);
	for (uint32_t i = 0; i < n; i++)
		if (rte_telemetry_register_cmd(
			    commands[i].name, on_command, commands[i].help)) {
			/* Commands that are registered now answer with an
			 * error. */
			sw_dpdk_telemetry_close(&t);
			return SW_ENOMEM;
		}
	*out = t;
	return 0;
}

void sw_dpdk_telemetry_close(struct sw_dpdk_telemetry **t)
{
	if (!*t)
		return;
	pthread_mutex_lock(&(*t)->lock);
	(*t)->answer = NULL;
	pthread_mutex_unlock(&(*t)->lock);
	*t = NULL;
}
