/* unit_host_client.c - libsumwire against agents that send invalid answers.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_raw.h"

#include "pmd/client/segment.h"

/* An agent that accepts one client; each case writes its answers. */
struct fake {
	struct rig *r; /* provides the folder */
	int listener, sock, bell;
	struct sw_segment control;
	struct sw_edge_control *shared;
	struct sw_spsc submits, completions;
	void (*act)(struct fake *f);
	pthread_t thread;
};

static void fake_wait(struct fake *f)
{
	struct pollfd fd = {.fd = f->sock, .events = POLLIN};
	union sw_edge_msg m;

	poll(&fd, 1, 3000);
	sw_edge_recv(f->sock, &m, sizeof(m), NULL, 0);
}

static void *fake_run(void *arg)
{
	struct fake *f = arg;

	f->sock = accept(f->listener, NULL, NULL);
	fake_wait(f);
	f->act(f);
	close(f->sock);
	if (f->bell >= 0)
		close(f->bell);
	sw_segment_fini(&f->control);
	return NULL;
}

static void fake_open(struct fake *f, void (*act)(struct fake *))
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	*f = (struct fake){.r = rig_new(NULL), .act = act, .bell = -1};
	f->control.fd = -1;
	strcpy(a.sun_path, f->r->path);
	f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->listener, (void *)&a, sizeof(a)), 0);
	assert_int_equal(listen(f->listener, 1), 0);
	pthread_create(&f->thread, NULL, fake_run, f);
}

static void fake_close(struct fake *f)
{
	pthread_join(f->thread, NULL);
	close(f->listener);
	unlink(f->r->path);
	rig_close(f->r);
}

static void fake_say(
	struct fake *f, enum sw_edge_kind kind, int err, const char *text)
{
	struct sw_edge_text m;

	sw_edge_text(&m, kind, err, 0, text);
	sw_edge_send(f->sock, &m, sizeof(m), NULL, 0);
}

static void send_attached_version(
	struct fake *f, const int *fds, uint32_t n_fds, uint32_t version)
{
	struct sw_edge_attached m = {
		SW_EDGE_ATTACHED, 0, 1, 0, 1, version, .epoch = 1};

	sw_edge_send(f->sock, &m, sizeof(m), fds, n_fds);
}

static void send_attached(struct fake *f, const int *fds, uint32_t n_fds)
{
	send_attached_version(f, fds, n_fds, SW_EDGE_VERSION_MAX);
}

/* Admit the client correctly. */
static void fake_admit(struct fake *f)
{
	int bells[2], fds[2];

	sw_segment_create(&f->control, "test", sizeof(*f->shared));
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bells);
	f->bell = bells[0];
	f->shared = f->control.base;
	sw_spsc_init(&f->submits, f->shared->submits, SW_EDGE_TENSORS,
		sizeof(struct sw_submit));
	sw_spsc_init(&f->completions, f->shared->completions,
		SW_EDGE_COMPLETIONS, sizeof(struct sw_completion));
	fds[0] = f->control.fd;
	fds[1] = bells[1];
	send_attached(f, fds, 2);
	close(bells[1]);
}

static void open_fails(void (*act)(struct fake *), int err, const char *text)
{
	struct fake f;
	struct sw_settings s;
	struct sw_client *c = NULL;

	fake_open(&f, act);
	s = rig_settings(f.r);
	assert_int_equal(sw_open(&s, &c), err);
	assert_null(c);
	if (!strstr(sw_last_error(NULL), text))
		fail_msg("last error: %s", sw_last_error(NULL));
	fake_close(&f);
}

static void hang_up(struct fake *f)
{
}

static void refuse_without_error(struct fake *f)
{
	fake_say(f, SW_EDGE_REFUSED, 0, "just so");
}

static void refuse_with_success(struct fake *f)
{
	fake_say(f, SW_EDGE_REFUSED, 5, "just so");
}

static void end_at_once(struct fake *f)
{
	fake_say(f, SW_EDGE_CLOSED, SW_ECONF, "just so");
}

static void send_unknown_kind(struct fake *f)
{
	fake_say(f, 99, SW_EPEER, "what");
}

static void send_endless_text(struct fake *f)
{
	struct sw_edge_text m = {.kind = SW_EDGE_STATUS};

	memset(m.text, 'x', sizeof(m.text));
	sw_edge_send(f->sock, &m, sizeof(m), NULL, 0);
	fake_wait(f);
}

static void send_too_much(struct fake *f)
{
	static const char bytes[20000];

	sw_edge_send(f->sock, bytes, sizeof(bytes), NULL, 0);
	fake_wait(f);
}

static void attach_without_memory(struct fake *f)
{
	send_attached(f, NULL, 0);
	fake_wait(f);
}

static void attach_without_bell(struct fake *f)
{
	sw_segment_create(&f->control, "test", sizeof(*f->shared));
	send_attached(f, &f->control.fd, 1);
	fake_wait(f);
}

static void attach_with_small_memory(struct fake *f)
{
	int fds[2];

	sw_segment_create(&f->control, "test", 4096);
	fds[0] = f->control.fd;
	fds[1] = f->sock;
	send_attached(f, fds, 2);
	fake_wait(f);
}

static void attach_with_unsealed_memory(struct fake *f)
{
	int fds[2] = {memfd_create("test", MFD_CLOEXEC), f->sock};

	assert_int_equal(
		ftruncate(fds[0], (sizeof(*f->shared) + 4095) / 4096 * 4096),
		0);
	send_attached(f, fds, 2);
	close(fds[0]);
	fake_wait(f);
}

static void attach_with_unknown_version(struct fake *f)
{
	send_attached_version(f, NULL, 0, SW_EDGE_VERSION_MAX + 1);
	fake_wait(f);
}

static void attach_with_endless_job(struct fake *f)
{
	struct sw_edge_attached m = {
		SW_EDGE_ATTACHED, 0, 1, 0, 1, SW_EDGE_VERSION_MAX, .epoch = 1};

	memset(m.job, 'j', sizeof(m.job));
	sw_edge_send(f->sock, &m, sizeof(m), NULL, 0);
	fake_wait(f);
}

static void open__checks_the_agent(void **state)
{
	uint32_t n_fds = n_open_fds();

	open_fails(hang_up, SW_ECLOSED, "has ended");
	open_fails(refuse_without_error, SW_EREFUSED, "just so");
	open_fails(refuse_with_success, SW_EPROTO, "does not know");
	open_fails(end_at_once, SW_ECONF, "just so");
	open_fails(send_unknown_kind, SW_EPROTO, "does not know");
	open_fails(send_endless_text, SW_EPROTO, "does not know");
	open_fails(send_too_much, SW_EPROTO, "does not know");
	open_fails(attach_without_memory, SW_EPROTO, "cannot be used");
	open_fails(attach_without_bell, SW_EPROTO, "cannot be used");
	open_fails(attach_with_small_memory, SW_EPROTO, "cannot be used");
	open_fails(attach_with_unsealed_memory, SW_EPROTO, "cannot be used");
	open_fails(attach_with_unknown_version, SW_EPROTO, "chose version");
	open_fails(attach_with_endless_job, SW_EPROTO, "does not know");
	assert_int_equal(n_open_fds(), n_fds);
}

static void send_declared(
	struct fake *f, uint32_t batch, uint64_t bytes, uint64_t real_bytes)
{
	struct sw_edge_declared m = {
		.kind = SW_EDGE_DECLARED, .batch = batch, .bytes = bytes};
	struct sw_segment s;

	sw_segment_create(&s, "test", real_bytes);
	sw_edge_send(f->sock, &m, sizeof(m), &s.fd, 1);
	sw_segment_fini(&s);
	fake_wait(f);
}

static void declare_other_batch(struct fake *f)
{
	fake_admit(f);
	fake_wait(f);
	send_declared(f, 1, 4096, 4096);
}

static void declare_less(struct fake *f)
{
	fake_admit(f);
	fake_wait(f);
	send_declared(f, 0, 4096, 4096);
}

static void declare_other_size(struct fake *f)
{
	fake_admit(f);
	fake_wait(f);
	send_declared(f, 0, 12288, 4096);
}

static void declare_without_memory(struct fake *f)
{
	struct sw_edge_declared m = {.kind = SW_EDGE_DECLARED, .bytes = 12288};

	fake_admit(f);
	fake_wait(f);
	sw_edge_send(f->sock, &m, sizeof(m), NULL, 0);
	fake_wait(f);
}

static void answer_attached_twice(struct fake *f)
{
	fake_admit(f);
	fake_wait(f);
	send_attached(f, &f->control.fd, 1);
	fake_wait(f);
}

static void fail_with_success(struct fake *f)
{
	fake_admit(f);
	fake_wait(f);
	fake_say(f, SW_EDGE_FAILED, 0, "just so");
	fake_wait(f);
}

static void end_instead(struct fake *f)
{
	fake_admit(f);
	fake_say(f, SW_EDGE_CLOSED, SW_EPEER, "worker 2 died");
}

static void declare_fails(void (*act)(struct fake *), int err, const char *text)
{
	struct sw_tensor_desc d = RIG_DESC("w", 2000, SW_F32, 0);
	struct sw_tensor *t = NULL;
	struct sw_client *c;
	struct fake f;

	fake_open(&f, act);
	c = rig_client(f.r);
	assert_int_equal(sw_declare(c, &d, 1, &t), err);
	assert_null(t);
	if (!strstr(sw_last_error(c), text))
		fail_msg("last error: %s", sw_last_error(c));
	sw_close(&c);
	fake_close(&f);
}

static void declare__checks_the_agent(void **state)
{
	uint32_t n_fds = n_open_fds();

	declare_fails(declare_other_batch, SW_EPROTO, "message kind");
	declare_fails(declare_less, SW_EPROTO, "cannot be used");
	declare_fails(declare_other_size, SW_EPROTO, "cannot be used");
	declare_fails(declare_without_memory, SW_EPROTO, "cannot be used");
	declare_fails(answer_attached_twice, SW_EPROTO, "message kind");
	declare_fails(fail_with_success, SW_EREFUSED, "just so");
	declare_fails(end_instead, SW_EPEER, "worker 2 died");
	assert_int_equal(n_open_fds(), n_fds);
}

/* Answer the declaration and wait for the push; the caller completes it
 * wrongly. */
static struct sw_submit fake_await_push(struct fake *f)
{
	struct sw_edge_declared m = {.kind = SW_EDGE_DECLARED, .bytes = 8192};
	struct sw_submit s = {0};
	struct sw_segment data;

	fake_admit(f);
	fake_wait(f);
	sw_segment_create(&data, "test", 8192);
	sw_edge_send(f->sock, &m, sizeof(m), &data.fd, 1);
	sw_segment_fini(&data);
	while (!sw_spsc_take(&f->submits, &s, 1))
		usleep(100);
	return s;
}

static void fake_complete(struct fake *f, uint64_t handle, int status)
{
	struct sw_completion c = {handle, status, 0};

	sw_spsc_put(&f->completions, &c, 1);
	sw_edge_bell_write(f->bell);
	fake_wait(f);
}

static void complete_other_handle(struct fake *f)
{
	fake_complete(f, fake_await_push(f).handle + 4096, 0);
}

static void complete_other_tensor(struct fake *f)
{
	fake_complete(f, fake_await_push(f).handle + 1, 0);
}

static void complete_with_success_code(struct fake *f)
{
	fake_complete(f, fake_await_push(f).handle, 3);
}

static void break_the_ring(struct fake *f)
{
	fake_await_push(f);
	atomic_store(&ring_of(f->shared->completions)->n_put, 100000);
	sw_edge_bell_write(f->bell);
	fake_wait(f);
}

static void send_out_of_turn(struct fake *f)
{
	fake_await_push(f);
	send_declared(f, 1, 4096, 4096);
}

static void complete_and_hang_up(struct fake *f)
{
	struct sw_completion c = {fake_await_push(f).handle, 0, 0};

	sw_spsc_put(&f->completions, &c, 1);
}

static void wait_ends(void (*act)(struct fake *), int err, const char *text)
{
	struct sw_client *c;
	struct sw_tensor *t;
	struct fake f;
	uint64_t h;

	fake_open(&f, act);
	c = rig_client(f.r);
	t = rig_tensor(c, "w", 1000);
	assert_int_equal(sw_push_pull(c, t, 0, &h), 0);
	assert_int_equal(sw_wait(c, h), err);
	if (!strstr(sw_last_error(c), text))
		fail_msg("last error: %s", sw_last_error(c));
	sw_close(&c);
	fake_close(&f);
}

static void wait__checks_the_agent(void **state)
{
	wait_ends(complete_other_handle, SW_EPROTO, "completion ring");
	wait_ends(complete_other_tensor, SW_EPROTO, "completion ring");
	wait_ends(complete_with_success_code, SW_EPROTO, "completion ring");
	wait_ends(break_the_ring, SW_EPROTO, "completion ring");
	wait_ends(send_out_of_turn, SW_EPROTO, "unexpected message kind");
	/* A sum that completed before the hang-up counts. */
	wait_ends(complete_and_hang_up, 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__checks_the_agent),
		cmocka_unit_test(declare__checks_the_agent),
		cmocka_unit_test(wait__checks_the_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
