/* derive.c - what follows from the keys of a configuration.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <string.h>

#include "conf/conf.h"
#include "engine/base/error.h"

enum { WAYS_MAX = 64 /* with 16 lcores one of them is right, but for 2 % */ };

int sw_conf_port_find(const struct sw_conf *conf, const char *label)
{
	for (uint32_t i = 0; i < conf->n_ports; i++)
		if (!strcmp(conf->ports[i].label, label))
			return (int)i;
	return SW_ENOENT;
}

uint32_t sw_conf_n_udp(const struct sw_conf *conf)
{
	uint32_t n = conf->node.role == SW_ROLE_AGENT ? 0 : conf->serve.lcores;

	return n + (conf->node.role == SW_ROLE_SERVER ? 0 : conf->agent.lcores);
}

uint32_t sw_conf_n_lcores(const struct sw_conf *conf)
{
	uint32_t serve = conf->serve.lcores, agent = conf->agent.lcores;

	if (conf->node.role == SW_ROLE_BOTH)
		return serve > agent ? serve : agent;
	return conf->node.role == SW_ROLE_SERVER ? serve : agent;
}

uint32_t sw_conf_n_ways(const struct sw_conf *conf)
{
	uint32_t room = UINT16_MAX + 1 - conf->serve.udp_port;
	uint32_t n = room / sw_conf_n_udp(conf);

	if (conf->node.role == SW_ROLE_SERVER)
		return 1;
	return n < WAYS_MAX ? n : WAYS_MAX;
}

bool sw_conf_is_own(const struct sw_conf *conf, const struct sw_conf_server *s)
{
	if (conf->node.role != SW_ROLE_BOTH ||
		s->udp_port != conf->serve.udp_port)
		return false;
	for (uint32_t i = 0; i < conf->n_ports; i++)
		if (conf->ports[i].subnet.ip == s->ip)
			return true;
	return false;
}

static int cpu_take(const char **s, uint32_t *cpu)
{
	const char *start = *s;

	*cpu = 0;
	while (isdigit((unsigned char)**s) && *s - start < 4)
		*cpu = *cpu * 10 + (uint32_t)(*(*s)++ - '0');
	if (*s == start || *cpu > 1023 || (*start == '0' && *s - start > 1))
		return SW_EINVAL;
	return 0;
}

static int cpu_add(uint32_t *cpus, int n, uint32_t cpu)
{
	if (n == SW_CONF_CPUS_MAX)
		return SW_EINVAL;
	for (int i = 0; i < n; i++)
		if (cpus[i] == cpu)
			return SW_EINVAL;
	cpus[n] = cpu;
	return n + 1;
}

int sw_conf_cpus_list(const char *text, uint32_t *cpus)
{
	const char *s = text;
	uint32_t first, last;
	int n = 0;

	if (!strcmp(text, "auto"))
		return 0;
	do {
		if (cpu_take(&s, &first) < 0)
			return SW_EINVAL;
		last = first;
		if (*s == '-' && (s++, cpu_take(&s, &last) < 0))
			return SW_EINVAL;
		for (; first <= last && n >= 0; first++)
			n = cpu_add(cpus, n, first);
		if (n <= 0 || first != last + 1)
			return SW_EINVAL;
	} while (*s++ == ',');
	return s[-1] ? SW_EINVAL : n;
}
