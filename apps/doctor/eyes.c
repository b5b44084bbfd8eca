/* eyes.c - access of the checks to this machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/doctor/eyes.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/text.h"
#include "pmd/dpdk/netif.h"

void sw_eyes_path(
	const struct sw_eyes *e, char out[SW_EYES_PATH], const char *fmt, ...)
{
	int n = snprintf(out, SW_EYES_PATH, "%s", e->root);
	va_list args;

	if (n < 0 || n >= SW_EYES_PATH)
		return;
	va_start(args, fmt);
	vsnprintf(out + n, SW_EYES_PATH - (size_t)n, fmt, args);
	va_end(args);
}

static FILE *file_open(const struct sw_eyes *e, const char *path)
{
	char whole[SW_EYES_PATH];

	sw_eyes_path(e, whole, "%s", path);
	return fopen(whole, "re");
}

static void end_cut(char *s)
{
	size_t n = strlen(s);

	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = '\0';
}

bool sw_eyes_read(
	const struct sw_eyes *e, const char *path, char *out, uint32_t size)
{
	FILE *f = file_open(e, path);
	bool is_read;

	out[0] = '\0';
	if (!f)
		return false;
	is_read = fgets(out, (int)size, f);
	fclose(f);
	end_cut(out);
	return is_read && *out;
}

int64_t sw_eyes_number(
	const struct sw_eyes *e, const char *path, int64_t absent)
{
	char text[64], *end;
	int64_t n;

	if (!sw_eyes_read(e, path, text, sizeof(text)))
		return absent;
	n = strtoll(text, &end, 10);
	return end == text ? absent : n;
}

bool sw_eyes_field(const struct sw_eyes *e, const char *path, const char *name,
	char *out, uint32_t size)
{
	FILE *f = file_open(e, path);
	char line[4096];
	bool is_found = false;

	out[0] = '\0';
	while (f && !is_found && fgets(line, sizeof(line), f)) {
		const char *at = line + strlen(name);

		if (strncmp(line, name, strlen(name)))
			continue;
		while (*at && isspace((unsigned char)*at))
			at++;
		snprintf(out, size, "%s", at);
		end_cut(out);
		is_found = true;
	}
	if (f)
		fclose(f);
	return is_found;
}

bool sw_eyes_exists(const struct sw_eyes *e, const char *path)
{
	char whole[SW_EYES_PATH];

	sw_eyes_path(e, whole, "%s", path);
	return !access(whole, F_OK);
}

uint32_t sw_eyes_cpus(const char *list, uint32_t out[SW_EYES_CPUS])
{
	return sw_text_list(list, SW_EYES_CPUS, out, SW_EYES_CPUS);
}

bool sw_eyes_has(const char *list, uint32_t cpu)
{
	uint32_t cpus[SW_EYES_CPUS], n = sw_eyes_cpus(list, cpus);

	for (uint32_t i = 0; i < n; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}

bool sw_eyes_capability(const struct sw_eyes *e, uint32_t bit)
{
	char text[64];

	return sw_eyes_field(
		       e, "/proc/self/status", "CapEff:", text, sizeof(text)) &&
	       strtoull(text, NULL, 16) >> bit & 1;
}

uint32_t sw_eyes_own_cpus(
	const struct sw_eyes *e, uint32_t out[SW_CONF_CPUS_MAX])
{
	int n = e->conf ? sw_conf_cpus_list(e->conf->lcore.cpus, out) : 0;

	return n > 0 ? (uint32_t)n : 0;
}

bool sw_eyes_has_port(const struct sw_eyes *e, enum sw_conf_port_type type)
{
	for (uint32_t i = 0; e->conf && i < e->conf->n_ports; i++)
		if (e->conf->ports[i].type == type)
			return true;
	return false;
}

bool sw_eyes_device(const struct sw_conf_port *p, char *out, uint32_t size)
{
	if (p->type == SW_PORT_UDP)
		return sw_netif_of_ip(p->subnet.ip,
			p->device[0] ? p->device : NULL, out, size);
	snprintf(out, size, "%s", p->device);
	return *out &&
	       (p->type == SW_PORT_AF_PACKET || p->type == SW_PORT_AF_XDP);
}
