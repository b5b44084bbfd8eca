/* unit_host_hostile.c - hostile messages from clients.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_raw.h"

/* The versions in a struct sw_edge_attach, as one word. */
#define VERSIONS (SW_EDGE_VERSION_MAX << 16 | SW_EDGE_VERSION_MIN)

static void hello__must_be_ours(void **state)
{
	static const struct {
		uint32_t words[5];
		size_t bytes;
		int err;
		const char *text;
	} cases[] = {
		{{SW_EDGE_ATTACH, SW_EDGE_MAGIC, 902 << 16 | 900, 0}, 16,
			SW_EVERSION,
			" of the attachment, this process 900 to 902: install"},
		{{SW_EDGE_ATTACH, SW_EDGE_MAGIC, 6 << 16 | 1, 0}, 16,
			SW_EVERSION, "this process 1 to 6"},
		{{SW_EDGE_ATTACH, SW_EDGE_MAGIC, 7 << 16 | 900, 0}, 16,
			SW_EVERSION, "this process 900 to 7"},
		{{SW_EDGE_ATTACH, SW_EDGE_MAGIC, 5, 0}, 16, SW_EVERSION,
			"this process 5 to 0"},
		{{SW_EDGE_ATTACH, 0x47455420, VERSIONS, 0}, 16, SW_EPROTO,
			"not from"},
		{{SW_EDGE_DECLARE, SW_EDGE_MAGIC, VERSIONS, 0}, 16, SW_EPROTO,
			"not from"},
		{{SW_EDGE_ATTACH, SW_EDGE_MAGIC, VERSIONS, 0, 0}, 20, SW_EPROTO,
			"not from"},
		{{SW_EDGE_ATTACH}, 3, SW_EPROTO, "not from"},
	};
	struct scene *s = *state;
	struct raw w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_connect(&w, s->r);
		raw_send(&w, cases[i].words, cases[i].bytes);
		raw_await_end(&w, SW_EDGE_REFUSED, cases[i].err, cases[i].text);
		raw_close(&w);
	}
	check_bystander(s);
}

/* The agent chooses the highest version that both sides speak. */
static void hello__versions_overlap(void **state)
{
	struct sw_edge_attach hello = {
		SW_EDGE_ATTACH, SW_EDGE_MAGIC, 1, UINT16_MAX, 0};
	struct scene *s = *state;
	union sw_edge_msg m;
	struct raw w;
	int fds[2];

	raw_connect(&w, s->r);
	raw_send(&w, &hello, sizeof(hello));
	assert_int_equal(raw_recv(&w, &m, fds), sizeof(m.attached));
	assert_int_equal(m.kind, SW_EDGE_ATTACHED);
	assert_int_equal(m.attached.version, SW_EDGE_VERSION_MAX);
	close(fds[0]);
	close(fds[1]);
	raw_close(&w);
	rig_await(s->r, ++s->n_gone, SW_HOST_DIED, "");
	check_bystander(s);
}

static void hello__must_come_soon(void **state)
{
	struct scene *s = *state;
	struct raw w;

	raw_connect(&w, s->r);
	raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "sent nothing");
	raw_close(&w);
	check_bystander(s);
}

/* Wait until the agent has noticed that a crowd of clients has left; before
 * that it refuses every client. */
static void await_room(const struct scene *s)
{
	union sw_edge_msg m = {.text.err = SW_EBUSY};
	struct raw w;
	int fds[2];

	for (int i = 0; m.text.err == SW_EBUSY; i++) {
		assert_true(i < 20000);
		raw_connect(&w, s->r);
		/* if the client is accepted, its wrong message ends it */
		(void)!send(w.sock, "?", 1, MSG_NOSIGNAL);
		assert_int_equal(raw_recv(&w, &m, fds), sizeof(m.text));
		raw_close(&w);
		usleep(1000);
	}
	assert_int_equal(m.text.err, SW_EPROTO);
}

static void crowd__is_sent_away(void **state)
{
	struct scene *s = *state;
	struct raw w[40], late;

	for (int i = 0; i < 40; i++)
		raw_connect(&w[i], s->r);
	for (int i = 0; i < 200 && s->r->host; i++)
		usleep(100);
	raw_connect(&late, s->r);
	raw_await_end(&late, SW_EDGE_REFUSED, SW_EBUSY, "too many processes");
	raw_close(&late);
	for (int i = 0; i < 40; i++)
		raw_close(&w[i]);
	await_room(s);
	check_bystander(s);
}

static void places__are_limited(void **state)
{
	struct scene *s = *state;
	struct sw_edge_attach hello = {SW_EDGE_ATTACH, SW_EDGE_MAGIC,
		SW_EDGE_VERSION_MIN, SW_EDGE_VERSION_MAX, 0};
	struct raw w[3], late;

	for (int i = 0; i < 3; i++)
		raw_open(&w[i], s->r);
	raw_connect(&late, s->r);
	raw_send(&late, &hello, sizeof(hello));
	raw_await_end(&late, SW_EDGE_REFUSED, SW_EBUSY, "admits 4 processes");
	raw_close(&late);
	for (int i = 0; i < 3; i++)
		raw_close(&w[i]);
	s->n_gone += 2;
	scene_check(s, SW_HOST_DIED, "closed the connection");
}

static void message__must_be_known(void **state)
{
	static const struct {
		uint32_t kind;
		size_t bytes;
		const char *text;
	} cases[] = {
		{SW_EDGE_ATTACH, sizeof(struct sw_edge_attach), "kind 1"},
		{SW_EDGE_ATTACHED, 24, "kind 4"},
		{0, 4, "kind 0"},
		{UINT32_MAX, sizeof(union sw_edge_msg), "kind 4294967295"},
		{SW_EDGE_CLOSE, 5, "kind 3 and 5 bytes"},
		{SW_EDGE_CLOSE, 3, "kind 0 and 3 bytes"},
		{SW_EDGE_CLOSE, sizeof(struct sw_edge_text) - 1, "kind 3"},
		{SW_EDGE_CLOSE, sizeof(union sw_edge_request) + 1, "more than"},
		{SW_EDGE_DECLARE, 150000, "more than"},
	};
	static char msg[150000];
	struct scene *s = *state;
	struct raw w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_open(&w, s->r);
		memcpy(msg, &cases[i].kind, sizeof(cases[i].kind));
		raw_send(&w, msg, cases[i].bytes);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, cases[i].text);
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, cases[i].text);
	}
}

static void descriptors__are_not_taken(void **state)
{
	struct scene *s = *state;
	uint32_t kind = SW_EDGE_CLOSE;
	int fds[2] = {0, 0};
	struct raw w;

	raw_open(&w, s->r);
	assert_int_equal(sw_edge_send(w.sock, &kind, sizeof(kind), fds, 2), 0);
	raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "descriptor");
	raw_close(&w);
	scene_check(s, SW_HOST_VIOLATION, "descriptor");
}

/* Pieces of a batch that are out of order evict the client. */
static void declare__must_come_in_order(void **state)
{
	static const struct {
		uint32_t batch, n_total, first_i, n;
		size_t bytes;
		const char *text;
	} cases[] = {
		{0, 1, 0, 1, 10, "10 bytes"},
		{0, 1, 0, 1, 24, "24 bytes"},
		{0, 2, 0, 2, 24 + 152, "176 bytes"},
		{0, 2, 0, 1, 24 + 288, "312 bytes"},
		{0, 65, 0, 65, 24 + 64 * 152, "bytes as a piece"},
		{0, 1, 0, 0, 24, "24 bytes"},
		{1, 1, 0, 1, 24 + 152, "of batch 1, expected"},
		{UINT32_MAX, 1, 0, 1, 24 + 152, "expected tensor 0"},
		{0, 2, 1, 1, 24 + 152, "tensors 1 to 2 of 2"},
		{0, 0, 0, 1, 24 + 152, "tensors 0 to 1 of 0"},
		{0, 4097, 0, 1, 24 + 152, "of 4097"},
		{0, UINT32_MAX, 0, 1, 24 + 152, "of 4294967295"},
		{0, UINT32_MAX, UINT32_MAX, 1, 24 + 152, "of 4294967295"},
	};
	struct scene *s = *state;
	struct sw_edge_declare m;
	struct raw w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_open(&w, s->r);
		good_declare(&m, 0, 2);
		m.batch = cases[i].batch;
		m.n_total = cases[i].n_total;
		m.first_i = cases[i].first_i;
		m.n = cases[i].n;
		raw_send(&w, &m, cases[i].bytes);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, cases[i].text);
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, cases[i].text);
	}
}

static void declare__second_piece_must_fit_the_first(void **state)
{
	static const struct {
		uint32_t batch, n_total, first_i, n;
	} cases[] = {
		{0, 100, 0, 64},
		{0, 100, 63, 1},
		{0, 100, 65, 1},
		{0, 101, 64, 1},
		{1, 100, 64, 1},
		{0, 100, 64, 37},
	};
	struct scene *s = *state;
	struct sw_edge_declare m;
	struct raw w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_open(&w, s->r);
		good_declare(&m, 0, 64);
		m.n_total = 100;
		raw_send(&w, &m, declare_bytes(64));
		m.batch = cases[i].batch;
		m.n_total = cases[i].n_total;
		m.first_i = cases[i].first_i;
		m.n = cases[i].n;
		raw_send(&w, &m, declare_bytes(m.n));
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO,
			"expected tensor 64 of batch 0");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "expected tensor 64");
	}
}

/* A fault in a tensor makes its batch fail, reported after its last piece. */
static void declare__fails_with_the_batch(void **state)
{
	struct scene *s = *state;
	struct sw_edge_declare m;
	union sw_edge_msg answer;
	uint32_t batch = 0;
	struct raw w;
	int fds[2];

	raw_open(&w, s->r);
	for (; batch < 300; batch++) {
		good_declare(&m, batch, 64);
		m.n_total = 100;
		switch (batch % 5) {
		case 0:
			memset(m.descs[5].name, 'x', SW_EDGE_NAME_BYTES);
			break;
		case 1:
			strcpy(m.descs[5].name, m.descs[60].name);
			break;
		case 2:
			m.descs[63].n_elems = UINT64_MAX;
			break;
		case 3:
			strcpy(m.descs[5].name, "\xc2\x9b"
						"2J");
			break;
		default:
			m.descs[0].dtype = UINT32_MAX;
		}
		raw_send(&w, &m, declare_bytes(64));
		good_declare(&m, batch, 64);
		m.n_total = 100;
		m.first_i = 64;
		m.n = 36;
		for (uint32_t i = 0; i < 36; i++)
			m.descs[i].name[0] = 'B';
		raw_send(&w, &m, declare_bytes(36));
		assert_int_equal(
			raw_recv(&w, &answer, fds), sizeof(answer.text));
		assert_int_equal(answer.kind, SW_EDGE_FAILED);
		assert_int_equal(answer.text.batch, batch);
		assert_int_equal(answer.text.err, SW_EINVAL);
	}
	/* Refused batches do not count towards the limit; admitted ones do. */
	for (uint32_t n = 0; n < SW_EDGE_TENSORS; batch++) {
		uint32_t more = n < 300 ? 1 : SW_EDGE_TENSORS - n;

		more = more < SW_EDGE_PIECE ? more : SW_EDGE_PIECE;
		raw_declare(&w, batch, more);
		n += more;
	}
	good_declare(&m, batch, 1);
	raw_send(&w, &m, declare_bytes(1));
	raw_await_end(
		&w, SW_EDGE_CLOSED, SW_EPROTO, "may have 4096, and has 4096");
	raw_close(&w);
	scene_check(s, SW_HOST_VIOLATION, "may have 4096, and has 4096");
}

static void declare__half_a_batch_is_given_up(void **state)
{
	struct scene *s = *state;
	struct sw_edge_declare m;
	struct raw w;

	raw_open(&w, s->r);
	raw_declare(&w, 0, 3);
	good_declare(&m, 1, 64);
	m.n_total = 100;
	raw_send(&w, &m, declare_bytes(64));
	raw_close(&w);
	scene_check(s, SW_HOST_DIED, "closed the connection");
}

static void quota__is_given_back(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < 20; i++) {
		struct sw_client *c = rig_client(s->r);

		rig_tensor(c, "large", 600000);
		sw_close(&c);
		scene_check(s, SW_HOST_CLOSED, "closed");
	}
}

/* Growth of a fixed or an unknown tensor evicts the client. */
static void growth__must_be_of_a_growing_tensor(void **state)
{
	static const uint32_t bad[] = {0, 1, SW_EDGE_TENSORS - 1};
	struct scene *s = *state;
	char text[64];
	struct raw w;

	for (uint32_t i = 0; i < 3; i++) {
		raw_open(&w, s->r);
		raw_declare(&w, 0, 1);
		snprintf(text, sizeof(text), "grew no growing tensor (%u)",
			bad[i]);
		sw_flags_raise(&w.control->grown, bad[i]);
		sw_edge_bell_write(w.bell);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, text);
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello__must_be_ours),
		cmocka_unit_test(hello__versions_overlap),
		cmocka_unit_test(hello__must_come_soon),
		cmocka_unit_test(crowd__is_sent_away),
		cmocka_unit_test(places__are_limited),
		cmocka_unit_test(message__must_be_known),
		cmocka_unit_test(descriptors__are_not_taken),
		cmocka_unit_test(declare__must_come_in_order),
		cmocka_unit_test(declare__second_piece_must_fit_the_first),
		cmocka_unit_test(declare__fails_with_the_batch),
		cmocka_unit_test(declare__half_a_batch_is_given_up),
		cmocka_unit_test(quota__is_given_back),
		cmocka_unit_test(growth__must_be_of_a_growing_tensor),
	};

	return cmocka_run_group_tests(tests, scene_open, scene_close);
}
