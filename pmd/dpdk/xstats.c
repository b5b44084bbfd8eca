/* xstats.c - report the counters of DPDK's device and driver.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdlib.h>

#include "pmd/dpdk/port_int.h"

/* Turn a driver's name for a counter into a lower-case word. */
static void make_word(char *name)
{
	for (; *name; name++)
		*name = isalnum((unsigned char)*name)
				? (char)tolower((unsigned char)*name)
				: '_';
}

/* Put all @n counters; a name's id is its index. */
static void put_all(uint16_t eth_i, unsigned int n,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	struct rte_eth_xstat_name *names = calloc(n, sizeof(*names));
	struct rte_eth_xstat *values = calloc(n, sizeof(*values));

	if (names && values &&
		rte_eth_xstats_get_names(eth_i, names, n) == (int)n &&
		rte_eth_xstats_get(eth_i, values, n) == (int)n)
		for (unsigned int i = 0; i < n; i++) {
			uint64_t id = values[i].id;

			if (id >= n)
				continue;
			make_word(names[id].name);
			put(out, names[id].name, values[i].value);
		}
	free(names);
	free(values);
}

void sw_dpdk_port_xstats(const struct sw_port *base,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	struct port *p = port_of(base);
	int n;

	pthread_mutex_lock(&p->device_lock);
	n = p->dev_name ? rte_eth_xstats_get_names(p->eth_i, NULL, 0) : 0;
	if (n > 0)
		put_all(p->eth_i, (unsigned int)n, put, out);
	pthread_mutex_unlock(&p->device_lock);
}
