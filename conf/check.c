/* check.c - check the keys of a configuration against each other.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/check.h"

#include <string.h>
#include <strings.h>

#include "conf/value.h"
#include "engine/base/limits.h"
#include "engine/sched/sched.h"

/* State of a check. */
struct check {
	const struct sw_conf *conf;
	const struct sw_scan *scan;
	struct sw_report *report;
};

/* A section's header as in the file, such as "port NAME". */
struct header {
	char text[2 * SW_CONF_NAME_BYTES];
};

static struct header header_of(const char *section, const char *label)
{
	struct header h;

	snprintf(h.text, sizeof(h.text), "%s %s", section, label);
	return h;
}

static uint32_t line_of(
	const struct check *c, const char *section, const char *key)
{
	return sw_scan_line(c->scan, section, key);
}

/* The network of a port, such as "10.0.0.0/24". */
struct net {
	char text[SW_IP_TEXT + 4];
};

static struct net net_of(const struct sw_conf_port *p)
{
	char ip[SW_IP_TEXT];
	struct net n;

	snprintf(n.text, sizeof(n.text), "%s/%u",
		sw_ip_text(sw_ip_mask(p->subnet.ip, p->subnet.bits), ip),
		p->subnet.bits);
	return n;
}

static bool is_near(const struct sw_conf_port *p, struct sw_ip ip)
{
	return sw_ip_is_near(p->subnet.ip, ip, p->subnet.bits);
}

static void job_check(const struct check *c)
{
	const struct sw_conf_job *job = &c->conf->job;
	char warn[32], limit[32];

	if (c->conf->node.role != SW_ROLE_SERVER && job->agent >= job->agents)
		sw_report_error(c->report, line_of(c, "job", "agent"), "job",
			"agent", "%u is too large for %u agents: 0 to %u",
			job->agent, job->agents, job->agents - 1);
	if (job->payload_bytes && !sw_payload_is_good(job->payload_bytes))
		sw_report_error(c->report, line_of(c, "job", "payload"), "job",
			"payload", "%u: a multiple of %u from %u to %u, or 0",
			job->payload_bytes, SW_PAYLOAD_UNIT, SW_PAYLOAD_MIN,
			SW_PAYLOAD_MAX);
	if (job->stall_warn_ns < job->stall_limit_ns)
		return;
	sw_value_format(job->stall_warn_ns, SW_UNIT_TIME, warn, sizeof(warn));
	sw_value_format(
		job->stall_limit_ns, SW_UNIT_TIME, limit, sizeof(limit));
	sw_report_error(c->report, line_of(c, "job", "stall_warn"), "job",
		"stall_warn", "%s is not below stall_limit (%s)", warn, limit);
}

/* Return whether DPDK drives the device, for one port. */
static bool is_nic(const struct sw_conf_port *p)
{
	return p->type == SW_PORT_PCI || p->type == SW_PORT_VDEV;
}

static void port_pair_check(const struct check *c, const struct sw_conf_port *p,
	const struct sw_conf_port *q)
{
	struct header h = header_of("port", p->label);
	char ip[SW_IP_TEXT];

	if (p->type == SW_PORT_MEMIF && q->type == SW_PORT_MEMIF &&
		p->side == q->side && p->memif_id == q->memif_id &&
		!strcmp(p->socket_path, q->socket_path))
		sw_report_error(c->report, line_of(c, h.text, "socket"), h.text,
			"socket",
			"[port %s] is the same side of the "
			"same memif: give another id or socket",
			q->label);
	if (is_nic(p) && is_nic(q) && *p->device &&
		!strcasecmp(p->device, q->device))
		sw_report_error(c->report, line_of(c, h.text, "device"), h.text,
			"device", "[port %s] has the device %s too", q->label,
			q->device);
	if (sw_ip_is_same(p->subnet.ip, q->subnet.ip)) {
		sw_ip_text(p->subnet.ip, ip);
		sw_report_error(c->report, line_of(c, h.text, "ip"), h.text,
			"ip", "[port %s] has the address %s too", q->label, ip);
	}
}

static void key_missing(const struct check *c, const char *header,
	const char *key, const char *why)
{
	sw_report_error(c->report, line_of(c, header, NULL), header, key,
		"is missing: %s", why);
}

/* Check the name of the device: a port type is driven by DPDK or by the
 * kernel. */
static void device_check(
	const struct check *c, const struct sw_conf_port *p, const char *header)
{
	if (p->type == SW_PORT_PCI && *p->device && !sw_value_is_pci(p->device))
		sw_report_error(c->report, line_of(c, header, "device"), header,
			"device",
			"\"%s\" is not a PCI address like 0000:81:00.0 "
			"(domain:bus:device.function, in hexadecimal)",
			p->device);
	if (p->type == SW_PORT_VDEV && *p->device &&
		strncmp(p->device, "net_", 4) != 0)
		sw_report_error(c->report, line_of(c, header, "device"), header,
			"device",
			"\"%s\" is not a network driver of DPDK and a number, "
			"like net_tap0",
			p->device);
	if (!is_nic(p) && (*p->args || p->mtu))
		sw_report_error(c->report, line_of(c, header, NULL), header,
			*p->args ? "args" : "mtu",
			"is for the types pci and vdev alone: leave it out");
}

static void port_queues_check(
	const struct check *c, const struct sw_conf_port *p, const char *header)
{
	uint32_t n = sw_conf_n_lcores(c->conf);

	if (p->n_link_queues > 1 && p->type != SW_PORT_MEMIF)
		sw_report_error(c->report, line_of(c, header, "queues"), header,
			"queues",
			"is for type = memif alone, others have one for each "
			"lcore: leave it out");
	else if (p->n_link_queues > n)
		sw_report_error(c->report, line_of(c, header, "queues"), header,
			"queues",
			"%u queue pairs, but %u polling lcore%s ([serve] "
			"lcores, [agent] lcores)",
			p->n_link_queues, n, n == 1 ? "" : "s");
}

/* Check the options that only the kernel, or only DPDK, supports. */
static void port_udp_check(
	const struct check *c, const struct sw_conf_port *p, const char *header)
{
	if (p->vlan || !sw_ip_is_none(p->gateway))
		sw_report_error(c->report, line_of(c, header, NULL), header,
			p->vlan ? "vlan" : "gateway",
			"is up to the kernel with type = udp: leave it out");
	if (p->fault_loss_ppm || p->fault_dup_ppm || p->fault_reorder_ppm)
		sw_report_error(c->report, line_of(c, header, NULL), header,
			p->fault_loss_ppm  ? "fault_loss"
			: p->fault_dup_ppm ? "fault_dup"
					   : "fault_reorder",
			"is not for type = udp: leave it out");
	if (p->steering == SW_STEERING_RSS)
		sw_report_error(c->report, line_of(c, header, "steering"),
			header, "steering",
			"rss is not for type = udp, where each lcore has its "
			"own sockets: use auto");
}

/* Check the options that each type needs, and those it cannot use. */
static void port_type_check(
	const struct check *c, const struct sw_conf_port *p, const char *header)
{
	bool is_memif = p->type == SW_PORT_MEMIF;
	bool is_udp = p->type == SW_PORT_UDP;

	if (is_memif && !*p->socket_path)
		key_missing(c, header, "socket",
			"a memif needs the path of its socket");
	if (is_memif && p->side == SW_SIDE_NONE)
		key_missing(c, header, "side",
			"a memif must either listen or "
			"connect");
	if (!is_memif && !is_udp && !*p->device)
		key_missing(c, header, "device",
			"this type needs the name of an interface, or a PCI "
			"address");
	port_queues_check(c, p, header);
	device_check(c, p, header);
	if (is_memif && (*p->device || p->vlan || !sw_ip_is_none(p->gateway)))
		sw_report_error(c->report, line_of(c, header, NULL), header,
			*p->device ? "device"
			: p->vlan  ? "vlan"
				   : "gateway",
			"has no meaning for a memif: leave it out");
	if (is_udp)
		port_udp_check(c, p, header);
	if (!is_memif &&
		(*p->socket_path || p->side != SW_SIDE_NONE || p->is_trusted))
		sw_report_error(c->report, line_of(c, header, NULL), header,
			*p->socket_path           ? "socket"
			: p->side != SW_SIDE_NONE ? "side"
						  : "trusted",
			"is for type = memif alone: leave it out");
}

static void gateway_check(
	const struct check *c, const struct sw_conf_port *p, const char *header)
{
	char ip[SW_IP_TEXT];
	bool is_on_link =
		!sw_ip_is_v4(p->subnet.ip) && sw_ip_is_link_local(p->gateway);

	if (sw_ip_is_none(p->gateway))
		return;
	if (sw_ip_is_same(p->gateway, p->subnet.ip) ||
		(!is_on_link && !is_near(p, p->gateway)))
		sw_report_error(c->report, line_of(c, header, "gateway"),
			header, "gateway",
			"%s: another host of the port's network %s expected",
			sw_ip_text(p->gateway, ip), net_of(p).text);
}

/* Return why the port's address cannot be a host: it is the first or the last
 * one of its network.  IPv6 reserves no last address (RFC 4291, section
 * 2.6.1). */
static const char *no_host(const struct sw_conf_subnet *s)
{
	struct sw_ip net = sw_ip_mask(s->ip, s->bits);
	uint32_t host = (uint32_t)(s->ip.low ^ net.low);

	if (s->bits + 1 == sw_ip_bits(s->ip))
		return NULL;
	if (sw_ip_is_same(s->ip, net))
		return "first";
	return sw_ip_is_v4(s->ip) && host == UINT32_MAX >> s->bits ? "broadcast"
								   : NULL;
}

static void port_check(const struct check *c, const struct sw_conf_port *p)
{
	struct header h = header_of("port", p->label);
	const char *which = no_host(&p->subnet);

	port_type_check(c, p, h.text);
	gateway_check(c, p, h.text);
	if (which)
		sw_report_error(c->report, line_of(c, h.text, "ip"), h.text,
			"ip",
			"is the %s address of its network: give a host address",
			which);
	for (const struct sw_conf_port *q = c->conf->ports; q < p; q++)
		port_pair_check(c, p, q);
}

static void ports_check(const struct check *c)
{
	if (!c->conf->n_ports)
		sw_report_error(c->report, 0, NULL, NULL,
			"there is no [port NAME]: at least one is needed");
	for (uint32_t i = 0; i < c->conf->n_ports; i++)
		port_check(c, &c->conf->ports[i]);
}

static void port_unknown(
	const struct check *c, const char *header, const char *name)
{
	struct sw_nearest near;

	sw_nearest_init(&near, name);
	for (uint32_t i = 0; i < c->conf->n_ports; i++)
		sw_nearest_add(&near, c->conf->ports[i].label);
	sw_report_error(c->report, line_of(c, header, "port"), header, "port",
		"there is no [port %s]%s%s%s", name,
		near.best ? "; did you mean " : "", near.best ? near.best : "",
		near.best ? "?" : "");
}

static void server_route_check(const struct check *c, const char *header,
	const struct sw_conf_server *s, const struct sw_conf_port *p)
{
	bool is_ours = sw_ip_is_same(s->ip, p->subnet.ip);
	char ip[SW_IP_TEXT];

	sw_ip_text(s->ip, ip);
	if (sw_conf_is_own(c->conf, s))
		return;
	if (sw_ip_is_v4(s->ip) != sw_ip_is_v4(p->subnet.ip))
		sw_report_error(c->report, line_of(c, header, "ip"), header,
			"ip",
			"%s is an IPv%c address, and [port %s] has an IPv%c "
			"one: one job uses one family",
			ip, sw_ip_is_v4(s->ip) ? '4' : '6', p->label,
			sw_ip_is_v4(s->ip) ? '6' : '4');
	else if (is_ours && c->conf->node.role == SW_ROLE_BOTH)
		sw_report_error(c->report, line_of(c, header, "udp_port"),
			header, "udp_port",
			"%u differs from [serve] udp_port (%u), but %s is our "
			"own address",
			s->udp_port, c->conf->serve.udp_port, ip);
	else if (is_ours)
		sw_report_error(c->report, line_of(c, header, "ip"), header,
			"ip", "%s is our own address on [port %s]", ip,
			p->label);
	else if (!is_near(p, s->ip) && sw_ip_is_none(p->gateway) &&
		 p->type != SW_PORT_UDP)
		sw_report_error(c->report, line_of(c, header, "ip"), header,
			"ip",
			"%s is not in the network of [port %s], %s, which has "
			"no gateway",
			ip, p->label, net_of(p).text);
}

static void server_pair_check(const struct check *c, const char *header,
	const struct sw_conf_server *s, const struct sw_conf_server *q)
{
	uint32_t first = s->udp_port > q->udp_port ? s->udp_port : q->udp_port;
	uint32_t n = c->conf->job.server_lcores;

	if (sw_ip_is_same(q->ip, s->ip) && first < s->udp_port + n &&
		first < q->udp_port + n)
		sw_report_error(c->report, line_of(c, header, "ip"), header,
			"ip",
			"[server %s] has the same address and UDP port %u: "
			"each needs %u from its udp_port on ([job] "
			"server_lcores)",
			q->label, first, n);
}

static void server_check(const struct check *c, const struct sw_conf_server *s)
{
	struct header h = header_of("server", s->label);
	int port_i = sw_conf_port_find(c->conf, s->port);

	if (port_i < 0)
		port_unknown(c, h.text, s->port);
	else
		server_route_check(c, h.text, s, &c->conf->ports[port_i]);
	for (const struct sw_conf_server *q = c->conf->servers; q < s; q++)
		server_pair_check(c, h.text, s, q);
}

/* Check that the last UDP port exists: ports are numbered from the first on. */
static void udp_check(const struct check *c)
{
	const struct sw_conf *conf = c->conf;
	uint32_t n = sw_conf_n_udp(conf);

	if (conf->serve.udp_port + n > UINT16_MAX + 1)
		sw_report_error(c->report, line_of(c, "serve", "udp_port"),
			"serve", "udp_port",
			"%u ports from there on are needed: %u at most", n,
			UINT16_MAX + 1 - n);
	for (uint32_t i = 0; i < conf->n_servers; i++) {
		struct header h = header_of("server", conf->servers[i].label);

		if (conf->servers[i].udp_port + conf->job.server_lcores >
			UINT16_MAX + 1)
			sw_report_error(c->report,
				line_of(c, h.text, "udp_port"), h.text,
				"udp_port",
				"its %u lcores need as many ports: %u at most",
				conf->job.server_lcores,
				UINT16_MAX + 1 - conf->job.server_lcores);
	}
	if (conf->n_servers * conf->job.server_lcores > SW_CONF_ENDPOINTS_MAX)
		sw_report_error(c->report, line_of(c, "job", "server_lcores"),
			"job", "server_lcores",
			"%u servers of %u lcores are more than %d",
			conf->n_servers, conf->job.server_lcores,
			SW_CONF_ENDPOINTS_MAX);
}

static void servers_check(const struct check *c)
{
	if (c->conf->node.role != SW_ROLE_SERVER && !c->conf->n_servers)
		sw_report_error(c->report, 0, NULL, NULL,
			"there is no "
			"[server NAME]: an agent needs at least one");
	for (uint32_t i = 0; i < c->conf->n_servers; i++)
		server_check(c, &c->conf->servers[i]);
}

/* Check that each lcore of an agent has at least one lcore of a server. */
static void agent_lcores_check(const struct check *c)
{
	const struct sw_conf *conf = c->conf;
	uint32_t most = conf->n_servers * conf->job.server_lcores;

	if (conf->node.role == SW_ROLE_SERVER || !most ||
		conf->agent.lcores <= most)
		return;
	sw_report_error(c->report, line_of(c, "agent", "lcores"), "agent",
		"lcores",
		"%u, but there are %u polling cores that sum (%u [server NAME] "
		"times [job] server_lcores = %u), and each of the agent's "
		"needs one: %u at most",
		conf->agent.lcores, most, conf->n_servers,
		conf->job.server_lcores, most);
}

/* Check that two sockets do not share a path. */
static void socket_check(const struct check *c, const char *header,
	const char *socket, const char *other, const char *taken)
{
	if (*socket && !strcmp(socket, taken))
		sw_report_error(c->report, line_of(c, header, "socket"), header,
			"socket",
			"[%s] has the same socket: give each section its own",
			other);
}

/* Check all sockets. memif ports may share a path: they have ids there. */
static void sockets_check(const struct check *c)
{
	bool is_server = c->conf->node.role == SW_ROLE_SERVER;
	const char *agent = is_server ? "" : c->conf->agent.socket;
	const char *stats = c->conf->stats.socket;

	socket_check(c, "stats", stats, "agent", agent);
	for (uint32_t i = 0; i < c->conf->n_ports; i++) {
		const struct sw_conf_port *p = &c->conf->ports[i];
		struct header h = header_of("port", p->label);

		socket_check(c, h.text, p->socket_path, "agent", agent);
		socket_check(c, h.text, p->socket_path, "stats", stats);
	}
}

/* Check that pinned lcores have a CPU each. */
static void cpus_check(const struct check *c)
{
	static const char *const keys[] = {[SW_ROLE_SERVER] = "[serve] lcores",
		[SW_ROLE_AGENT] = "[agent] lcores",
		[SW_ROLE_BOTH] = "the larger of [serve] and [agent] lcores"};
	const struct sw_conf *conf = c->conf;
	uint32_t cpus[SW_CONF_CPUS_MAX], n = sw_conf_n_lcores(conf);
	int n_cpus = sw_conf_cpus_list(conf->lcore.cpus, cpus);

	if (n_cpus <= 0 || (uint32_t)n_cpus == n)
		return;
	sw_report_error(c->report, line_of(c, "lcore", "cpus"), "lcore", "cpus",
		"\"%s\" has %d CPUs for %u lcores (%s): give each its own, or "
		"auto",
		conf->lcore.cpus, n_cpus, n, keys[conf->node.role]);
}

/* Check tuning values against the policy: the options allow more. */
static void tuning_check(const struct check *c)
{
	const struct sw_conf *conf = c->conf;
	const struct sw_policy *policy =
		sw_policy_at((uint32_t)conf->job.policy);
	const char *why = sw_sched_check(policy, 0, conf->job.credit_bytes);

	if (why)
		sw_report_error(c->report, line_of(c, "job", "credit"), "job",
			"credit", "%llu with policy %s: %s",
			(unsigned long long)conf->job.credit_bytes,
			policy->name, why);
	why = sw_sched_check(policy, conf->agent.part_bytes, 0);
	if (why && conf->node.role != SW_ROLE_SERVER)
		sw_report_error(c->report, line_of(c, "agent", "partition"),
			"agent", "partition", "%llu with policy %s: %s",
			(unsigned long long)conf->agent.part_bytes,
			policy->name, why);
}

/* With role = both, the list must end with the agents' machines in their order,
 * so that all nodes compute the same shares. */
static void own_server_check(const struct check *c)
{
	const struct sw_conf *conf = c->conf;
	uint32_t n = conf->n_servers, n_agents = conf->job.agents;
	uint32_t place = n - n_agents + conf->job.agent, n_own = 0;

	if (conf->node.role != SW_ROLE_BOTH)
		return;
	if (conf->serve.lcores != conf->job.server_lcores)
		sw_report_error(c->report, line_of(c, "serve", "lcores"),
			"serve", "lcores",
			"%u differs from [job] server_lcores (%u): with role = "
			"both this is one of the job's servers",
			conf->serve.lcores, conf->job.server_lcores);
	if (n < n_agents) {
		sw_report_error(c->report, 0, NULL, NULL,
			"%u [server NAME] for %u agents: with role = both "
			"each agent's machine sums, and must be in the list",
			n, n_agents);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct header h = header_of("server", conf->servers[i].label);

		if (!sw_conf_is_own(conf, &conf->servers[i]))
			continue;
		n_own++;
		if (i != place)
			sw_report_error(c->report, line_of(c, h.text, NULL),
				h.text, "ip",
				"is this node and number %u of the list, but "
				"agent %u must be number %u: the agents' "
				"machines come last, in order of their numbers",
				i + 1, conf->job.agent, place + 1);
	}
	if (!n_own)
		sw_report_error(c->report, 0, NULL, NULL,
			"no [server NAME] is this node: with role = both "
			"number %u of the list must have the address of one of "
			"our ports and [serve] udp_port",
			place + 1);
}

/* Check that encryption has a secret: without one it protects nothing. */
static void encrypt_check(const struct check *c)
{
	const struct sw_conf *conf = c->conf;

	if (conf->node.role != SW_ROLE_SERVER && conf->job.encrypt &&
		!*conf->job.key_file)
		sw_report_error(c->report, line_of(c, "job", "encrypt"), "job",
			"encrypt",
			"needs the secret of the job: give [job] key_file or "
			"SUMWIRE_KEY_FILE (sumwire key makes one)");
	if (conf->node.role == SW_ROLE_BOTH &&
		conf->serve.encrypt == (conf->job.encrypt ? SW_ENCRYPT_REFUSE
							  : SW_ENCRYPT_REQUIRE))
		sw_report_error(c->report, line_of(c, "serve", "encrypt"),
			"serve", "encrypt",
			"does not fit this node's own job, which has [job] "
			"encrypt = %s",
			conf->job.encrypt ? "yes" : "no");
}

/* Check that a server does not refuse all jobs. */
static void keys_check(const struct check *c)
{
	const struct sw_conf *conf = c->conf;
	bool has_job_key =
		conf->node.role == SW_ROLE_BOTH && *conf->job.key_file;

	encrypt_check(c);
	if (!conf->serve.require_key || *conf->serve.key_file ||
		*conf->serve.key_dir || has_job_key)
		return;
	sw_report_error(c->report, line_of(c, "serve", "require_key"), "serve",
		"require_key",
		"refuses every job, because no secret is known: give %s, "
		"[serve] key_file or [serve] key_dir",
		conf->node.role == SW_ROLE_BOTH ? "[job] key_file"
						: "SUMWIRE_KEY_FILE");
}

void sw_check_run(const struct sw_conf *conf, const struct sw_scan *scan,
	struct sw_report *r)
{
	struct check c = {conf, scan, r};

	job_check(&c);
	ports_check(&c);
	servers_check(&c);
	sockets_check(&c);
	agent_lcores_check(&c);
	cpus_check(&c);
	tuning_check(&c);
	keys_check(&c);
	own_server_check(&c);
	udp_check(&c);
}
