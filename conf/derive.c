/* derive.c - values that follow from the keys of a configuration.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "conf/conf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

/* With 16 lcores, one of 64 ways fits in 98 % of cases: 1 - (15 / 16)^64. */
enum { WAYS_MAX = 64 };

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
		if (sw_ip_is_same(conf->ports[i].subnet.ip, s->ip))
			return true;
	return false;
}

int sw_conf_cpus_list(const char *text, uint32_t *cpus)
{
	uint32_t n;

	if (!strcmp(text, "auto"))
		return 0;
	n = sw_text_list(text, 1024, cpus, SW_CONF_CPUS_MAX);
	return n ? (int)n : SW_EINVAL;
}
