/* client_open.c - libsumwire: attach to the agent, tune its job, leave it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pmd/client/agent_error.h"
#include "pmd/client/client_declare.h"
#include "pmd/client/client_device.h"
#include "pmd/client/client_group_end.h"
#include "pmd/client/client_turn.h"
#include "pmd/client/sized.h"
#include "pmd/client/user.h"

#define DEFAULT_NAME "agent.sock"

enum { RETRY_MS = 50, SAY_SO_EVERY_S = 5 };

/* --- settings --- */

static void log_stderr(void *ctx, const char *line)
{
	fprintf(stderr, "sumwire: %s\n", line);
}

void sw_settings_init_sized(struct sw_settings *s, size_t size)
{
	const char *agent = getenv("SUMWIRE_AGENT");
	struct sw_settings own = {.size = size,
		.local_rank = SW_ANY_LOCAL_RANK,
		.agent = agent && *agent ? agent : DEFAULT_NAME,
		.agent_user = getenv("SUMWIRE_AGENT_USER"),
		.open_timeout_s = 60,
		.wait_timeout_s = 600,
		.log = log_stderr};

	sw_sized_give(s, size, &own, sizeof(own));
}

/* Copy the caller's settings over the defaults. */
static int take_settings(const struct sw_settings *from, struct sw_settings *s)
{
	char why[SW_SIZED_WHY_BYTES];
	struct sw_settings defaults;

	sw_settings_init(&defaults);
	*s = defaults;
	if (from && sw_sized_take(s, sizeof(*s), from,
			    SW_UP_TO(struct sw_settings, log_ctx),
			    "sw_settings", why))
		return sw_client_fail(NULL, SW_EINVAL, "%s", why);
	if (!s->log)
		s->log = log_stderr;
	if (!s->agent)
		s->agent = defaults.agent;
	return 0;
}

/* --- connect --- */

static uint64_t after_s(uint32_t seconds)
{
	return sw_edge_now_ns() + seconds * UINT64_C(1000000000);
}

/* Return the path of the agent's socket; "" if it is too long.  A name without
 * a slash is in a folder of sumwire, which may not exist before the agent makes
 * it. */
static const char *find_agent(struct sw_client *c)
{
	if (strchr(c->agent, '/'))
		return c->agent;
	if (!sw_folder_seek(c->agent, c->agent_path))
		return "";
	c->settings.agent = c->agent_path;
	return c->agent_path;
}

/* Check the user of the listening process: it gets this process's tensors, and
 * this process trusts its sums. */
static int check_user(struct sw_client *c)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);
	char why[SW_USER_WHY_BYTES];

	if (getsockopt(c->sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return sw_client_fail(c, SW_EIO,
			"cannot tell who listens at %s: %s", c->settings.agent,
			strerror(errno));
	if (sw_user_is_trusted(
		    cred.uid, geteuid(), c->settings.agent_user, why))
		return 0;
	return sw_client_fail(c, SW_EPERM, "the agent at %s is not trusted: %s",
		c->settings.agent, why);
}

/* Return 0 if connected, SW_EAGAIN if no agent listens, or a permanent error.
 */
static int try_connect(struct sw_client *c)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const char *path = find_agent(c);
	int err = 0, no;

	if (!path[0] || strlen(path) >= sizeof(a.sun_path))
		return sw_client_fail(c, SW_EINVAL,
			"the agent's path '%s' must have 1 to %zu bytes",
			c->agent, sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path, strlen(path));
	c->sock = socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->sock >= 0 && !connect(c->sock, (void *)&a, sizeof(a))) {
		err = check_user(c);
		if (!err)
			return 0;
	}
	no = errno;
	if (c->sock >= 0)
		close(c->sock);
	c->sock = -1;
	if (err) /* tell an untrusted listener nothing */
		return err;
	if (no == ENOENT || no == ECONNREFUSED || no == EAGAIN)
		return sw_client_fail(
			c, SW_EAGAIN, "no agent listens at %s", path);
	if (no == EACCES)
		return sw_client_fail(c, SW_EPERM,
			"user %u may not reach the agent at %s; its [agent] "
			"users says who may attach",
			(unsigned)geteuid(), path);
	return sw_client_fail(c, SW_EIO,
		"cannot connect to the agent at %s: %s", path, strerror(no));
}

static int connect_until(struct sw_client *c, uint64_t until_ns)
{
	uint64_t say_ns = after_s(SAY_SO_EVERY_S);

	for (;;) {
		uint64_t now;
		int err = try_connect(c);

		if (err != SW_EAGAIN)
			return err;
		now = sw_edge_now_ns();
		if (now >= until_ns)
			return sw_client_fail(c, SW_ECLOSED,
				"no agent listens at %s (tried for %u s); on "
				"one machine start the program with 'sumwire "
				"run -np N', on several an agent on each with "
				"'sumwire agent --config FILE'",
				c->settings.agent, c->settings.open_timeout_s);
		if (now >= say_ns) {
			sw_client_log(&c->settings,
				"no agent listens at %s yet, giving up in %u s",
				c->settings.agent,
				(uint32_t)((until_ns - now) / 1000000000));
			say_ns = after_s(SAY_SO_EVERY_S);
		}
		poll(NULL, 0, RETRY_MS);
	}
}

/* --- attach --- */

static int use_attached(
	struct sw_client *c, const struct sw_edge_attached *m, int *fds)
{
	int err = sw_segment_attach(&c->control_segment, fds[0],
		(sizeof(struct sw_edge_control) + 4095) / 4096 * 4096);
	char limit[SW_LIMIT_TEXT];

	c->bell = fds[1];
	c->error_fd = sw_agent_error_open(c->settings.agent, c->sock);
	if (m->version < SW_EDGE_VERSION_MIN ||
		m->version > SW_EDGE_VERSION_MAX)
		return sw_client_fail(c, SW_EPROTO,
			"the agent at %s chose version %u of the attachment, "
			"this process speaks %u to %u",
			c->settings.agent, m->version, SW_EDGE_VERSION_MIN,
			SW_EDGE_VERSION_MAX);
	if (err || c->bell < 0)
		return sw_client_fail(c, err ? err : SW_EPROTO,
			"the agent at %s: its shared memory cannot be used: "
			"%s%s",
			c->settings.agent, sw_error_text(err),
			sw_segment_limit(0, limit));
	c->control = c->control_segment.base;
	sw_spsc_init(&c->submits, c->control->submits, SW_EDGE_TENSORS,
		sizeof(struct sw_submit));
	sw_spsc_init(&c->colls, c->control->colls, SW_EDGE_COLLS,
		sizeof(struct sw_edge_coll));
	sw_spsc_init(&c->completions, c->control->completions,
		SW_EDGE_COMPLETIONS, sizeof(struct sw_completion));
	sw_spsc_init(&c->notes, c->control->notes, SW_EDGE_NOTES,
		sizeof(struct sw_edge_note));
	c->rank = m->rank;
	c->size = m->size;
	c->local_rank = m->local_rank;
	c->local_size = m->local_size;
	c->epoch = m->epoch;
	c->is_async = m->is_async;
	memcpy(c->job, m->job, sizeof(c->job));
	return 0;
}

/* Return the local rank to ask for, as in struct sw_edge_attach.  A launcher
 * counts all processes of a machine, which may have several agents, so its
 * value is only a preference. */
static uint32_t wanted_local_rank(const struct sw_client *c)
{
	if (c->settings.local_rank != SW_ANY_LOCAL_RANK)
		return c->settings.local_rank + 1;
	if (!c->launch.values[SW_LAUNCH_LOCAL_RANK].variable)
		return 0;
	return (sw_launch_number(&c->launch, SW_LAUNCH_LOCAL_RANK) + 1) |
	       SW_EDGE_IF_FREE;
}

static int attach_until(struct sw_client *c, uint64_t until_ns)
{
	struct sw_edge_attach hello = {SW_EDGE_ATTACH, SW_EDGE_MAGIC,
		SW_EDGE_VERSION_MIN, SW_EDGE_VERSION_MAX, wanted_local_rank(c)};
	union sw_edge_msg m;
	int fds[2], kind;

	/* If the send fails, the agent has hung up, and the next message
	 * carries the reason. */
	sw_edge_send(c->sock, &hello, sizeof(hello), NULL, 0);
	kind = sw_client_await(c, until_ns, &m, fds);
	if (kind == SW_EDGE_ATTACHED)
		return use_attached(c, &m.attached, fds);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (kind == SW_EDGE_REFUSED)
		return sw_client_fail(c, m.text.err ? m.text.err : SW_EREFUSED,
			"%s", m.text.text);
	if (kind == SW_ETIMEDOUT)
		return sw_client_fail(c, SW_ETIMEDOUT,
			"the agent at %s did not admit this process within %u "
			"s%s%s",
			c->settings.agent, c->settings.open_timeout_s,
			c->status[0] ? "; last message from the agent: " : "",
			c->status);
	if (kind > 0)
		return sw_client_fail(c, SW_EPROTO,
			"the agent at %s answered with unexpected message kind "
			"%d",
			c->settings.agent, kind);
	return kind;
}

/* Compare a launcher's variable with the agent's value.  Returns 0 or SW_ECONF.
 */
static int compare(struct sw_client *c, enum sw_launch_key key, uint32_t ours)
{
	const struct sw_launch_value *v = &c->launch.values[key];

	if (!v->variable || sw_launch_number(&c->launch, key) == ours)
		return 0;
	return sw_client_fail(c, SW_ECONF,
		"the environment has %s=%s (%s), but for the agent at %s this "
		"is rank %u of %u, local rank %u of %u; let each process open "
		"its own agent, or set SUMWIRE_LAUNCHER=none",
		v->variable, v->said, v->launcher, c->settings.agent, c->rank,
		c->size, c->local_rank, c->local_size);
}

static int read_launch(struct sw_client *c)
{
	char why[SW_LAUNCH_WHY_BYTES];

	if (sw_launch_read(&c->launch, getenv, why) < 0)
		return sw_client_fail(
			c, SW_ECONF, "in the environment %s", why);
	return 0;
}

/* --- open and close --- */

static struct sw_client *client_new(const struct sw_settings *s)
{
	struct sw_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->settings = *s;
	c->sock = -1;
	c->bell = -1;
	c->error_fd = -1;
	c->control_segment.fd = -1;
	c->results.fd = -1;
	c->agent = strdup(s->agent);
	c->agent_user = strdup(s->agent_user ? s->agent_user : "");
	c->settings.agent = c->agent;
	c->settings.agent_user = c->agent_user;
	c->is_ours = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->agent && c->agent_user && c->is_ours != MAP_FAILED &&
		!sw_turn_init(&c->turn)) {
		madvise(c->is_ours, 4096, MADV_WIPEONFORK);
		*c->is_ours = true;
		return c;
	}
	if (c->is_ours != MAP_FAILED)
		munmap(c->is_ours, 4096);
	free(c->agent);
	free(c->agent_user);
	free(c);
	return NULL;
}

int sw_open(const struct sw_settings *settings, struct sw_client **out)
{
	struct sw_settings s;
	struct sw_client *c;
	uint64_t until_ns;
	int err;

	err = take_settings(settings, &s);
	if (err)
		return err;
	until_ns = after_s(s.open_timeout_s);
	c = client_new(&s);
	if (!c)
		return sw_client_fail(NULL, SW_ENOMEM, "out of memory");
	(void)!sw_client_lock(c);
	sw_client_lead(c);
	err = read_launch(c);
	if (!err)
		err = connect_until(c, until_ns);
	if (!err)
		err = attach_until(c, until_ns);
	if (!err)
		err = compare(c, SW_LAUNCH_SIZE, c->size);
	if (!err)
		err = compare(c, SW_LAUNCH_RANK, c->rank);
	sw_client_follow(c);
	sw_client_unlock(c);
	if (err) {
		sw_close(&c);
		return err;
	}
	*out = c;
	return 0;
}

void sw_leave(struct sw_client *c)
{
	uint32_t kind = SW_EDGE_CLOSE;

	/* A forked child must leave the attachment to the parent, and has no
	 * valid locks and threads. */
	if (*c->is_ours) {
		sw_client_end_thread(c);
		(void)!sw_client_lock(c);
		if (c->sock >= 0)
			sw_edge_send(c->sock, &kind, sizeof(kind), NULL, 0);
	}
	if (c->sock >= 0)
		close(c->sock);
	c->sock = -1;
	sw_client_close(c, SW_ECLOSED, "this process has left the job");
	if (*c->is_ours) {
		sw_client_call_thread(c);
		sw_client_unlock(c);
	}
}

int sw_abort(struct sw_client *c, const char *text)
{
	int err = sw_client_enter(c);

	if (err)
		return err;
	sw_client_unlock(c);
	sw_client_give_up(
		c, SW_EABORTED, text && *text ? text : "aborted the job");
	return 0;
}

void sw_close(struct sw_client **client)
{
	struct sw_client *c = *client;

	if (!c)
		return;
	sw_client_close_parts(c);
	sw_leave(c);
	if (c->bell >= 0)
		close(c->bell);
	if (c->error_fd >= 0)
		close(c->error_fd);
	for (uint32_t i = 0; i < c->n_batches; i++) {
		sw_segment_fini(&c->batches[i].data);
		free(c->batches[i].tensors);
		free(c->batches[i].names);
	}
	sw_client_free_groups(c);
	sw_turn_fini(&c->turn);
	sw_segment_fini(&c->results);
	sw_segment_fini(&c->control_segment);
	munmap(c->is_ours, 4096);
	free(c->agent);
	free(c->agent_user);
	free(c);
	*client = NULL;
}

/* --- properties of the job --- */

uint32_t sw_version(void)
{
	return SW_VERSION_NUMBER;
}

uint32_t sw_rank(const struct sw_client *c)
{
	return c->rank;
}

uint32_t sw_size(const struct sw_client *c)
{
	return c->size;
}

/* Return the launcher's number, or the agent's if the launcher gave none. */
static uint32_t on_machine(
	const struct sw_client *c, enum sw_launch_key key, uint32_t at_agent)
{
	int64_t said = sw_launch_number(&c->launch, key);

	return said < 0 ? at_agent : (uint32_t)said;
}

uint32_t sw_local_rank(const struct sw_client *c)
{
	return on_machine(c, SW_LAUNCH_LOCAL_RANK, c->local_rank);
}

uint32_t sw_local_size(const struct sw_client *c)
{
	return on_machine(c, SW_LAUNCH_LOCAL_SIZE, c->local_size);
}

uint32_t sw_agent_rank(const struct sw_client *c)
{
	return c->local_rank;
}

uint32_t sw_agent_size(const struct sw_client *c)
{
	return c->local_size;
}

int sw_is_async(const struct sw_client *c)
{
	return c->is_async;
}

const char *sw_job(const struct sw_client *c, uint64_t *epoch_out)
{
	*epoch_out = c->epoch;
	return c->job;
}

/* --- tuning of the scheduler --- */

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
