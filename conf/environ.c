/* environ.c - options from launchers, and the source of each value.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/environ.h"

#include <string.h>

#include "conf/options.h"

/* State of an application of launcher values. */
struct apply {
	const struct sw_launch *launch;
	struct sw_conf *conf;
	const struct sw_scan *scan;
	struct sw_report *report;
	struct sw_conf_origins *origins;
};

void sw_origin_add(struct sw_conf_origins *origins, const struct sw_conf *conf,
	const void *field, uint32_t line, const struct sw_launch_value *value)
{
	struct sw_conf_origin *row = &origins->rows[origins->n];

	if (origins->n == SW_CONF_ORIGINS_MAX)
		return; /* not reached: a file has fewer keys than lines */
	origins->n++;
	*row = (struct sw_conf_origin){
		.offset = (uint32_t)((const char *)field - (const char *)conf),
		.line = line};
	if (value) {
		row->variable = value->variable;
		row->launcher = value->launcher;
	}
}

const struct sw_conf_origin *sw_conf_origin(
	const struct sw_conf_origins *origins, const struct sw_conf *conf,
	const void *field)
{
	for (uint32_t i = 0; i < origins->n; i++)
		if ((const char *)conf + origins->rows[i].offset == field)
			return &origins->rows[i];
	return NULL;
}

static const struct sw_launch_value *value_of(
	const struct apply *a, enum sw_launch_key key)
{
	const struct sw_launch_value *v = &a->launch->values[key];

	return v->variable ? v : NULL;
}

/* Check that @v agrees with the file, which sets @field. */
static void compare(const struct apply *a, const char *header,
	const struct sw_option *o, const char *field, const char *said,
	const struct sw_launch_value *v)
{
	char text[SW_CONF_USERS_BYTES];

	if (!memcmp(field, said, o->bytes))
		return;
	sw_report_error(a->report, sw_scan_line(a->scan, header, o->key),
		header, o->key,
		"is %s, but in the environment %s=%s (%s): make them agree, "
		"or set SUMWIRE_LAUNCHER=none",
		sw_option_format(o, field, text, sizeof(text)), v->variable,
		v->said, v->launcher);
}

/* Set option @key of the section headed @header, whose struct is at @base, to
 * the value @v.  NULL: do nothing. */
static void option_take(struct apply *a, const char *header,
	const struct sw_section *s, char *base, const char *key,
	const struct sw_launch_value *v)
{
	const struct sw_option *o = sw_option_find(s, key);
	_Alignas(8) char said[SW_CONF_USERS_BYTES];
	char why[SW_WHY_BYTES];
	char *field = base + o->offset;

	if (!v)
		return;
	if (sw_option_parse(o, v->text, said, why) < 0) {
		sw_report_error(a->report, 0, header, o->key,
			"in the environment %s=%s (%s): %s", v->variable,
			v->said, v->launcher, why);
		return;
	}
	if (sw_scan_has(a->scan, header, o->key)) {
		compare(a, header, o, field, said, v);
		return;
	}
	memcpy(field, said, o->bytes);
	sw_origin_add(a->origins, a->conf, field, 0, v);
}

static void one_take(struct apply *a, const char *section, const char *key,
	const struct sw_launch_value *v)
{
	const struct sw_section *s = sw_section_find(section);

	option_take(a, section, s, (char *)a->conf + s->offset, key, v);
}

/* Add the root as the only server, because the file names none. */
static bool server_add(struct apply *a, const struct sw_launch_value *ip)
{
	struct sw_conf_server *server = &a->conf->servers[0];

	if (a->conf->n_ports != 1) {
		sw_report_error(a->report, 0, NULL, NULL,
			"there is no [server NAME], but in the environment "
			"%s=%s (%s): which of the %u ports leads there?",
			ip->variable, ip->said, ip->launcher, a->conf->n_ports);
		return false;
	}
	sw_section_defaults(sw_section_find("server"), (char *)server);
	strcpy(server->label, "root");
	memcpy(server->port, a->conf->ports[0].label, sizeof(server->port));
	sw_origin_add(a->origins, a->conf, server->port, 0, ip);
	a->conf->n_servers = 1;
	return true;
}

static void servers_take(struct apply *a)
{
	const struct sw_section *s = sw_section_find("server");
	const struct sw_launch_value *ip = value_of(a, SW_LAUNCH_ROOT_IP);
	const struct sw_launch_value *n = value_of(a, SW_LAUNCH_SERVERS);
	char header[2 * SW_CONF_NAME_BYTES], *base = (char *)a->conf->servers;

	if (!a->conf->n_servers && (!ip || !server_add(a, ip)))
		return;
	snprintf(header, sizeof(header), "server %.*s", SW_CONF_NAME_BYTES - 1,
		a->conf->servers[0].label);
	option_take(a, header, s, base, "ip", ip);
	option_take(a, header, s, base, "udp_port",
		value_of(a, SW_LAUNCH_ROOT_PORT));
	if (n && sw_launch_number(a->launch, SW_LAUNCH_SERVERS) !=
			 a->conf->n_servers)
		sw_report_error(a->report, 0, NULL, NULL,
			"has %u of [server NAME], but in the environment "
			"%s=%s (%s): give one for each",
			a->conf->n_servers, n->variable, n->said, n->launcher);
}

/* Set the agent's number and the number of agents.  An agent is a process of
 * its launcher; DMLC instead numbers machines, each with one agent. */
static void agent_take(struct apply *a)
{
	const struct sw_launch_value *rank = value_of(a, SW_LAUNCH_RANK);
	const struct sw_launch_value *size = value_of(a, SW_LAUNCH_SIZE);

	one_take(a, "job", "agent",
		rank ? rank : value_of(a, SW_LAUNCH_NODE_RANK));
	one_take(a, "job", "mode", value_of(a, SW_LAUNCH_MODE));
	one_take(
		a, "job", "agents", size ? size : value_of(a, SW_LAUNCH_NODES));
	servers_take(a);
}

void sw_environ_apply(const struct sw_launch *launch, struct sw_conf *conf,
	const struct sw_scan *scan, struct sw_report *r,
	struct sw_conf_origins *origins)
{
	struct apply a = {launch, conf, scan, r, origins};

	one_take(&a, "node", "role", value_of(&a, SW_LAUNCH_ROLE));
	if (!sw_conf_origin(origins, conf, &conf->node.role))
		return; /* role is missing, and the rest depends on it */
	if (conf->node.role != SW_ROLE_SERVER)
		agent_take(&a);
	else if (sw_launch_number(launch, SW_LAUNCH_SERVERS) <= 1)
		/* with several servers, a server's port may differ from the
		 * root's */
		one_take(&a, "serve", "udp_port",
			value_of(&a, SW_LAUNCH_ROOT_PORT));
}

/* Set option @key of section @header to @value of @variable, unless the file
 * sets it. */
static void variable_take(const struct apply *a, const char *header,
	const char *key, const char *variable, const char *value)
{
	const struct sw_section *s = sw_section_find(header);
	const struct sw_option *o = sw_option_find(s, key);
	const struct sw_launch_value v = {.variable = variable};
	char *field = (char *)a->conf + s->offset + o->offset;
	char why[SW_WHY_BYTES];

	if (!value || !*value || sw_scan_has(a->scan, header, o->key))
		return;
	if (sw_option_parse(o, value, field, why) < 0)
		sw_report_error(a->report, 0, header, o->key,
			"in the environment %s: %s", variable, why);
	else
		sw_origin_add(a->origins, a->conf, field, 0, &v);
}

void sw_environ_key_file(const char *path, struct sw_conf *conf,
	const struct sw_scan *scan, struct sw_report *r,
	struct sw_conf_origins *origins)
{
	struct apply a = {NULL, conf, scan, r, origins};

	variable_take(&a, conf->node.role == SW_ROLE_SERVER ? "serve" : "job",
		"key_file", "SUMWIRE_KEY_FILE", path);
}

void sw_environ_encrypt(const char *value, struct sw_conf *conf,
	const struct sw_scan *scan, struct sw_report *r,
	struct sw_conf_origins *origins)
{
	struct apply a = {NULL, conf, scan, r, origins};

	if (conf->node.role != SW_ROLE_SERVER)
		variable_take(&a, "job", "encrypt", "SUMWIRE_ENCRYPT", value);
}

void sw_environ_note(
	const struct sw_conf_origins *origins, const struct sw_report *r)
{
	for (uint32_t i = 0; i < origins->n; i++) {
		const struct sw_conf_origin *row = &origins->rows[i];

		if (row->variable)
			sw_log(r->log, SW_LOG_ERROR,
				"%s: %s%s%s was taken from the environment",
				r->path, row->variable,
				row->launcher ? " of " : "",
				row->launcher ? row->launcher : "");
	}
}
