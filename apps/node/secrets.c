/* secrets.c - the secrets of a daemon: read key files, replace secrets later.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/secrets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/key_file.h"
#include "conf/options.h"
#include "engine/base/error.h"
#include "pmd/client/user.h"

#define SUFFIX ".key"

enum { PATH = SW_CONF_PATH_BYTES + SW_CONF_NAME_BYTES + sizeof(SUFFIX) };

/* One reading of all key files. */
struct reading {
	struct sw_secrets *s;
	const struct sw_conf *conf;
	const struct sw_log *log;
};

/* --- files --- */

/* Return the user that will run the daemon: it must be able to read the files
 * again. */
static uint32_t own_uid(const struct sw_conf *c)
{
	uint32_t uid;

	if (!*c->node.user || geteuid() || !sw_user_find(c->node.user, &uid))
		return geteuid();
	return uid;
}

/* Add the secret in the file at @path for @job; "" means all jobs. */
static int file_take(struct reading *r, const char *job, const char *path)
{
	struct sw_keyring_entry *e = &r->s->entries[r->s->n];
	char why[SW_KEY_FILE_WHY_BYTES];
	uint8_t bytes[SW_KEY_FILE_SECRET];
	bool is_good;

	if (sw_key_file_read(path, own_uid(r->conf), bytes, why)) {
		sw_log(r->log, SW_LOG_ERROR, "%s", why);
		return SW_ECONF;
	}
	is_good = sw_secret_init(&e->secret, bytes);
	sw_crypto_wipe(bytes, sizeof(bytes));
	if (!is_good) {
		sw_log(r->log, SW_LOG_ERROR,
			"key file %s: no id can be made of its key", path);
		return SW_ECONF;
	}
	snprintf(e->job, sizeof(e->job), "%s", job);
	e->until_ns = 0;
	r->s->n++;
	return 0;
}

/* Copy the job's name from a file name "JOB.key".  Returns false for other
 * names. */
static bool job_of(const char *name, char job[SW_CONF_NAME_BYTES])
{
	size_t n = strlen(name), end = sizeof(SUFFIX) - 1;

	if (n <= end || strcmp(name + n - end, SUFFIX) != 0 ||
		n - end >= SW_CONF_NAME_BYTES)
		return false;
	memcpy(job, name, n - end);
	job[n - end] = '\0';
	return sw_label_is_good(job);
}

/* Check who may write into the folder: other users could remove keys. */
static int folder_check(const struct reading *r, int fd, const char *path)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		sw_log(r->log, SW_LOG_ERROR, "[serve] key_dir %s: %s", path,
			strerror(errno));
		return SW_ECONF;
	}
	if ((st.st_uid && st.st_uid != own_uid(r->conf)) || st.st_mode & 022) {
		sw_log(r->log, SW_LOG_ERROR,
			"[serve] key_dir %s has mode %04o and belongs to user "
			"%u: only user %u or root may write there (chown, "
			"chmod 700)",
			path, st.st_mode & 07777, st.st_uid, own_uid(r->conf));
		return SW_ECONF;
	}
	return 0;
}

/* Call @take for each key file of the folder.  Returns 0 if none is
 * configured. */
static int folder_walk(struct reading *r,
	int (*take)(struct reading *r, const char *job, const char *path))
{
	const char *path = r->conf->serve.key_dir;
	char job[SW_CONF_NAME_BYTES], file[PATH];
	const struct dirent *e;
	int fd, err;
	DIR *dir;

	if (!*path)
		return 0;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	err = folder_check(r, fd, path);
	dir = err ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return err ? err : SW_ENOMEM;
	}
	while (!err && (e = readdir(dir))) {
		if (!job_of(e->d_name, job))
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		err = take(r, job, file);
	}
	closedir(dir);
	return err;
}

static int room_count(struct reading *r, const char *job, const char *path)
{
	(void)job;
	(void)path;
	/* one for its secret, one for its replaced secret (old_take) */
	r->s->room += 2;
	return 0;
}

/* Take a key file.  The next reading takes files that appeared after the
 * count. */
static int folder_take(struct reading *r, const char *job, const char *path)
{
	return r->s->n < r->s->room ? file_take(r, job, path) : 0;
}

/* --- replaced secrets --- */

static bool has(const struct sw_secrets *s, const struct sw_keyring_entry *e,
	bool is_same_secret)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (!strcmp(s->entries[i].job, e->job) &&
			(!is_same_secret ||
				!memcmp(s->entries[i].secret.id, e->secret.id,
					SW_KEY_ID_BYTES)))
			return true;
	return false;
}

/* If the secret of @e was replaced, keep it for @job until the grace ends.
 */
static void old_keep(struct reading *r, const struct sw_keyring_entry *e,
	const char *job, uint64_t now_ns)
{
	uint64_t until_ns = now_ns + r->conf->serve.key_grace_ns;
	struct sw_keyring_entry to = *e;

	snprintf(to.job, sizeof(to.job), "%s", job);
	if (!to.until_ns || to.until_ns > until_ns)
		to.until_ns = until_ns;
	if (to.until_ns > now_ns && r->s->n < r->s->room &&
		!has(r->s, &to, true) && has(r->s, &to, false))
		r->s->entries[r->s->n++] = to;
	sw_crypto_wipe(&to, sizeof(to));
}

static void old_take(
	struct reading *r, const struct sw_secrets *old, uint64_t now_ns)
{
	uint32_t n = r->s->n;

	if (r->conf->node.role == SW_ROLE_AGENT)
		return; /* it uses a single secret */
	for (uint32_t i = 0; old && i < old->n; i++) {
		const struct sw_keyring_entry *e = &old->entries[i];

		old_keep(r, e, e->job, now_ns);
		/* A job with a new secret of its own used this common one
		 * before. */
		for (uint32_t k = 0; !*e->job && k < n; k++)
			if (!has(old, &r->s->entries[k], false))
				old_keep(r, e, r->s->entries[k].job, now_ns);
	}
}

/* --- the set --- */

/* Read all secrets.  The job's own secret is the first entry. */
static int all_take(struct reading *r)
{
	const struct sw_conf *c = r->conf;
	int err = 0;

	if (c->node.role != SW_ROLE_SERVER && *c->job.key_file)
		err = file_take(r, c->job.name, c->job.key_file);
	r->s->job = (struct sw_keyring){.entries = r->s->entries, .n = r->s->n};
	if (c->node.role == SW_ROLE_AGENT)
		return err;
	if (!err && *c->serve.key_file)
		err = file_take(r, "", c->serve.key_file);
	return err ? err : folder_walk(r, folder_take);
}

int sw_secrets_open(struct sw_secrets **out, const struct sw_conf *conf,
	const struct sw_secrets *old, uint64_t now_ns, const struct sw_log *log)
{
	struct sw_secrets *s = calloc(1, sizeof(*s));
	struct reading r = {s, conf, log};
	int err;

	if (!s)
		return SW_ENOMEM;
	s->room = 2 + (old ? old->n : 0);
	err = conf->node.role == SW_ROLE_AGENT ? 0
					       : folder_walk(&r, room_count);
	if (!err)
		s->entries = sw_crypto_get(s->room * sizeof(*s->entries));
	if (!err && !s->entries)
		err = SW_ENOMEM;
	if (!err)
		err = all_take(&r);
	if (err) {
		sw_secrets_close(s);
		return err;
	}
	old_take(&r, old, now_ns);
	s->serve = (struct sw_keyring){.entries = s->entries,
		.n = conf->node.role == SW_ROLE_AGENT ? 0 : s->n,
		.is_required = conf->serve.require_key,
		.encrypting = (enum sw_encrypting)conf->serve.encrypt};
	*out = s;
	return 0;
}

void sw_secrets_close(struct sw_secrets *s)
{
	if (!s)
		return;
	if (s->entries)
		sw_crypto_put(s->entries, s->room * sizeof(*s->entries));
	free(s);
}

void sw_secrets_log(const struct sw_secrets *s, const struct sw_conf *conf,
	const struct sw_log *log)
{
	char id[SW_KEY_ID_TEXT];

	for (uint32_t i = 0; i < s->n; i++) {
		const struct sw_keyring_entry *e = &s->entries[i];

		sw_log(log, SW_LOG_INFO, "%s key %s for %s%s",
			e->until_ns ? "still knows the replaced" : "knows",
			sw_key_id_text(e->secret.id, id),
			*e->job ? "job " : "every job", e->job);
	}
	if (conf->node.role == SW_ROLE_AGENT)
		return;
	sw_log(log, SW_LOG_INFO, "jobs without a key are %s",
		s->serve.is_required ? "refused ([serve] require_key)"
				     : "accepted ([serve] require_key = no)");
}
