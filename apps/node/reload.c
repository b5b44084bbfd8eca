/* reload.c - SIGHUP: apply changes of configuration and keys without a restart.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/node/daemon.h"
#include "conf/options.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

/* Changed options: applied now, or left for a restart. */
struct changes {
	struct sw_daemon *daemon;
	const struct sw_conf *now;
	char taken[256], left[256];
};

/* Return whether a reload applies @o as an option of keys.  It always reads the
 * key files again. */
static bool is_of_keys(const struct sw_option *o)
{
	return !strcmp(o->key, "key_file") ||
	       (!strcmp(o->section, "serve") &&
		       (!strcmp(o->key, "key_dir") ||
			       !strcmp(o->key, "key_grace") ||
			       !strcmp(o->key, "encrypt") ||
			       !strcmp(o->key, "require_key")));
}

static bool is_taken(const struct sw_option *o)
{
	return is_of_keys(o) ||
	       (!strcmp(o->section, "log") && !strcmp(o->key, "level")) ||
	       (!strcmp(o->section, "share") &&
		       (!strcmp(o->key, "weight") || !strcmp(o->key, "quota")));
}

static void note(char list[256], const struct sw_section *s, const char *label,
	const char *key)
{
	sw_text_add(list, 256, "%s[%s%s%s] %s", *list ? ", " : "", s->name,
		*label ? " " : "", label, key);
}

static void struct_compare(struct changes *c, const struct sw_section *s,
	const char *was, const char *is, const char *label)
{
	char before[SW_CONF_USERS_BYTES], after[SW_CONF_USERS_BYTES];

	for (uint32_t i = 0; i < sw_n_options; i++) {
		const struct sw_option *o = &sw_options[i];

		if (!sw_option_is_in(o, s))
			continue;
		sw_option_format(o, was + o->offset, before, sizeof(before));
		sw_option_format(o, is + o->offset, after, sizeof(after));
		if (strcmp(before, after))
			note(is_taken(o) ? c->taken : c->left, s, label,
				o->key);
	}
}

static bool has_same_labels(
	const struct sw_section *s, const char *was, const char *is, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(was + i * s->bytes, is + i * s->bytes))
			return false;
	return true;
}

static void section_compare(struct changes *c, const struct sw_section *s)
{
	const char *was = (const char *)c->daemon->file + s->offset;
	const char *is = (const char *)c->now + s->offset;
	uint32_t n_was = 1, n_is = 1;

	if (s->is_many) {
		memcpy(&n_was, (const char *)c->daemon->file + s->n_offset,
			sizeof(n_was));
		memcpy(&n_is, (const char *)c->now + s->n_offset, sizeof(n_is));
		if (n_was != n_is || !has_same_labels(s, was, is, n_is)) {
			note(c->left, s, "", "sections");
			return;
		}
	}
	for (uint32_t i = 0; i < n_is; i++)
		struct_compare(c, s, was + i * s->bytes, is + i * s->bytes,
			s->is_many ? is + i * s->bytes : "");
}

/* Apply the shares if the file names the same jobs as before; other changes of
 * jobs need a restart. */
static void take_shares(struct sw_daemon *d, const struct sw_conf *now)
{
	const struct sw_conf *was = d->file;

	if (now->n_shares != was->n_shares)
		return;
	for (uint32_t i = 0; i < now->n_shares; i++)
		if (strcmp(now->shares[i].label, was->shares[i].label))
			return;
	for (uint32_t i = 0; i < now->n_shares; i++) {
		d->file->shares[i] = now->shares[i];
		atomic_store(&d->shares[i].weight, now->shares[i].weight);
		atomic_store(&d->shares[i].quota, now->shares[i].quota_bytes);
	}
	atomic_fetch_add(&d->n_reloads, 1);
}

static void take_conf(struct sw_daemon *d, const struct sw_conf *now)
{
	enum sw_log_level level = (enum sw_log_level)now->log.level;

	sw_log_set_level(&d->log, level);
	for (uint32_t i = 0; i < d->n_lcores; i++)
		sw_lines_set_level(d->lines[i], level);
	d->file->log.level = now->log.level;
	take_shares(d, now);
}

static void keys_copy(struct sw_conf *to, const struct sw_conf *from)
{
	memcpy(to->job.key_file, from->job.key_file, sizeof(to->job.key_file));
	memcpy(to->serve.key_file, from->serve.key_file,
		sizeof(to->serve.key_file));
	memcpy(to->serve.key_dir, from->serve.key_dir,
		sizeof(to->serve.key_dir));
	to->serve.require_key = from->serve.require_key;
	to->serve.encrypt = from->serve.encrypt;
	to->serve.key_grace_ns = from->serve.key_grace_ns;
}

/* Read the key files that @now names.  After an error keep everything as it
 * is. */
static void take_keys(struct sw_daemon *d, const struct sw_conf *now)
{
	struct sw_conf *was = d->file;

	keys_copy(&d->conf, now);
	if (sw_daemon_reload_secrets(d))
		keys_copy(&d->conf, was);
	else
		keys_copy(was, now);
}

void sw_daemon_reload(struct sw_daemon *d)
{
	struct sw_conf *now = malloc(sizeof(*now));
	struct changes c = {.daemon = d, .now = now};

	if (!now || sw_conf_load(d->path, now, &d->log)) {
		sw_log(&d->log, SW_LOG_ERROR,
			"%s is not reloaded; the previous configuration stays "
			"in use",
			d->path);
		free(now);
		return;
	}
	for (uint32_t i = 0; i < sw_n_sections; i++)
		section_compare(&c, &sw_sections[i]);
	if (c.left[0])
		sw_log(&d->log, SW_LOG_WARN,
			"%s: these changes need a restart: %s", d->path,
			c.left);
	sw_log(&d->log, SW_LOG_INFO, "%s reloaded: %s", d->path,
		c.taken[0] ? c.taken : "nothing else has changed");
	take_conf(d, now);
	take_keys(d, now);
	free(now);
}
