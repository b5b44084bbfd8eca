/* keyed_rig.h - a keyed job of two workers and a server that exchange bytes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The rig keeps the last frame of each type and direction, so that a test can
 * change it and send it again. Each program has one rig. */
#ifndef SW_TEST_SUPPORT_KEYED_RIG_H
#define SW_TEST_SUPPORT_KEYED_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/server/server_int.h"
#include "engine/worker/link.h"
#include "engine/keys/keyring.h"
#include "test/support/env.h"
#include "test/support/unit.h"

enum { N = 2, ELEMS = 3 * 288, FRAME = SW_HEAD_BYTES + SW_PAYLOAD_MAX };

struct kept {
	uint8_t bytes[FRAME];
	uint32_t len;
	struct sw_path from;
};

struct rig {
	struct test_env env;
	struct sw_params params;
	struct sw_port server_port, ports[N];
	struct sw_server *srv;
	struct sw_worker w[N];
	struct sw_keyring_entry entries[2];
	struct sw_keyring keyring;
	struct sw_secret secrets[N]; /* the workers' secrets */
	uint64_t now_ns;
	bool is_plain[N], may_fail;
	uint32_t n_done;
	struct kept to_server[N][SW_N_TYPES], to_worker[N][SW_N_TYPES];
	int32_t data[N][ELEMS];
	/* Called with each frame, if not NULL. */
	void (*seen)(const struct kept *k);
	const char *tensor_name;
	char text[N][512]; /* each worker's last state as text */
	enum sw_worker_state state[N];
};

static struct rig rig;
static bool rig_encrypts; /* encrypt all jobs from now on */

static inline void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	uint32_t i = (uint32_t)((struct sw_worker *)ctx - rig.w);

	rig.state[i] = state;
	if (*text)
		snprintf(rig.text[i], sizeof(rig.text[i]), "%s", text);
}

static inline void on_declared(void *ctx)
{
}

static inline void on_done(void *ctx, uint32_t tensor, uint32_t local,
	uint64_t cookie, int err, uint32_t weight)
{
	if (!rig.may_fail)
		assert_int_equal(err, 0);
	rig.n_done += !err;
}

static inline uint64_t draw(void *ctx)
{
	return test_random(&rig.env.rng);
}

static inline struct sw_ip ip_of(uint32_t i)
{
	return sw_ip_v4(0x0a000001 + i);
}

/* Return the path of the server (@i = 0) or of worker @i - 1. */
static inline struct sw_path path_of(uint32_t i)
{
	return (struct sw_path){
		.ip = ip_of(i), .udp = (uint16_t)(i ? 6000 : 5000)};
}

static inline void set_secret(struct sw_secret *s, uint8_t first)
{
	uint8_t bytes[SW_SECRET_BYTES] = {first, 1, 2, 3};

	assert_true(sw_secret_init(s, bytes));
}

static inline void open_worker(uint32_t i)
{
	struct sw_worker_server server = {.name = "s0", .path = path_of(0)};
	struct sw_worker_job job = {.job = "job",
		.node = i ? "n1" : "n0",
		.member = (uint16_t)i,
		.n_members = N,
		.n_local = 1,
		.servers = &server,
		.n_servers = 1,
		.secret = rig.is_plain[i] ? NULL : &rig.secrets[i]};
	struct sw_worker_events events = {.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.ctx = &rig.w[i]};
	struct sw_port *ports[] = {&rig.ports[i]};

	assert_int_equal(sw_worker_open(&rig.w[i], &rig.params, &rig.env.env,
				 &events, &job, ports, 1, rig.now_ns),
		0);
}

/* Give both workers and the server the same secret; a test may change one. */
static inline void init(void)
{
	memset(&rig, 0, sizeof(rig));
	test_env_init(&rig.env);
	rig.env.env.random = draw;
	sw_params_init(&rig.params);
	rig.params.payload = SW_PAYLOAD_MIN;
	rig.params.is_encrypted = rig_encrypts;
	rig.now_ns = SW_S;
	rig.tensor_name = "t";
	rig.server_port = (struct sw_port){.ip = ip_of(0),
		.udp = path_of(0).udp,
		.max_payload = SW_PAYLOAD_MAX};
	set_secret(&rig.entries[0].secret, 1);
	for (uint32_t i = 0; i < N; i++) {
		rig.ports[i] = (struct sw_port){
			.ip = ip_of(1 + i), .max_payload = SW_PAYLOAD_MAX};
		set_secret(&rig.secrets[i], 1);
	}
	rig.keyring = (struct sw_keyring){.entries = rig.entries, .n = 1};
}

static inline void open_server(void)
{
	struct sw_port *ports[] = {&rig.server_port};

	assert_int_equal(sw_server_open(&rig.srv, &rig.params, &rig.env.env,
				 ports, 1, UINT64_MAX / 2),
		0);
	sw_server_set_keys(rig.srv, &rig.keyring);
}

static inline void open_all(void)
{
	open_server();
	for (uint32_t i = 0; i < N; i++)
		open_worker(i);
}

static inline void close_all(void)
{
	for (uint32_t i = 0; i < N; i++)
		sw_worker_close(&rig.w[i]);
	sw_server_close(rig.srv);
}

static inline void put(
	struct kept *k, const struct sw_tx_frame *f, uint32_t from)
{
	memcpy(k->bytes, f->head, SW_HEAD_BYTES);
	if (f->payload_len)
		memcpy(k->bytes + SW_HEAD_BYTES, f->payload, f->payload_len);
	k->len = SW_HEAD_BYTES + f->payload_len;
	k->from = path_of(from);
	if (rig.seen)
		rig.seen(k);
}

/* Give the engine a copy, because it decrypts frames in place. */
static inline void give(struct sw_engine *e, const struct kept *k)
{
	uint8_t bytes[FRAME];
	struct sw_rx_frame f = {.data = bytes,
		.payload = bytes + SW_HEAD_BYTES,
		.len = k->len,
		.from = k->from};

	memcpy(bytes, k->bytes, k->len);
	e->rx(e, rig.now_ns, 0, &f, 1);
}

static inline struct sw_engine *server(void)
{
	return sw_server_engine(rig.srv);
}

static inline struct sw_engine *worker(uint32_t i)
{
	return &rig.w[i].engine;
}

/* Return the index of the worker with address @to. */
static inline uint32_t owner(struct sw_path to)
{
	return (uint32_t)(to.ip.low - ip_of(1).low);
}

static inline bool pump_once(void)
{
	struct sw_tx_frame f;
	struct kept *k;
	bool any = false;

	while (server()->tx(server(), rig.now_ns, 0, &f, 1)) {
		uint32_t i = owner(f.to);

		k = &rig.to_worker[i][f.header.type];
		put(k, &f, 0);
		give(worker(i), k);
		any = true;
	}
	for (uint32_t i = 0; i < N; i++)
		while (worker(i)->tx(worker(i), rig.now_ns, 0, &f, 1)) {
			k = &rig.to_server[i][f.header.type];
			put(k, &f, 1 + i);
			give(server(), k);
			any = true;
		}
	return any;
}

/* Let @ns pass and deliver all frames that fall due. */
static inline void pass(uint64_t ns)
{
	for (uint64_t end = rig.now_ns + ns; rig.now_ns < end;
		rig.now_ns += 100 * SW_US) {
		server()->tick(server(), rig.now_ns, 0);
		for (uint32_t i = 0; i < N; i++)
			worker(i)->tick(worker(i), rig.now_ns, 0);
		while (pump_once())
			;
	}
}

static inline void declare(void)
{
	for (uint32_t i = 0; i < N; i++) {
		struct sw_worker_tensor t = {.name = rig.tensor_name,
			.n_elems = ELEMS,
			.dtype = SW_I32,
			.base = rig.data[i]};

		assert_int_equal(sw_worker_declare(&rig.w[i], &t, 1), 0);
	}
	pass(100 * SW_MS);
}

static inline void sum(uint32_t step)
{
	for (uint32_t i = 0; i < N; i++) {
		for (uint32_t e = 0; e < ELEMS; e++)
			rig.data[i][e] = (int32_t)(e + 1000 * i + step);
		assert_int_equal(sw_worker_push(&rig.w[i], 0, step, 0), 0);
	}
	rig.n_done = 0;
	pass(100 * SW_MS);
	assert_int_equal(rig.n_done, N);
	for (uint32_t e = 0; e < ELEMS; e++)
		for (uint32_t i = 0; i < N; i++)
			assert_int_equal(
				rig.data[i][e], 2 * e + 1000 + 2 * step);
}

static inline void run_as_set(void)
{
	open_all();
	pass(200 * SW_MS);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(rig.w[i].state, SW_WORKER_RUNNING);
	declare();
	sum(1);
}

static inline void run(void)
{
	init();
	/* prevents the server from answering a stranger with LEFT */
	rig.keyring.is_required = true;
	run_as_set();
}

static inline int encrypts(void **state)
{
	rig_encrypts = true;
	return 0;
}

/* Run the tests twice: with jobs that only authenticate, then with encrypted
 * ones. */
static inline int run_twice(const struct CMUnitTest *tests, size_t n)
{
	struct CMUnitTest all[48];

	assert_true(2 * n <= SW_ARRAY_SIZE(all));
	for (size_t i = 0; i < 2 * n; i++) {
		all[i] = tests[i % n];
		all[i].setup_func = i < n ? NULL : encrypts;
	}
	return _cmocka_run_group_tests("keyed", all, 2 * n, NULL, NULL);
}

#endif
