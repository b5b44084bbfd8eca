/* unit_keyed.c - who may join a keyed job, and what its frames reveal.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/keyed_rig.h"

/* Two members get each result, but the server hashes and encrypts its bytes
 * once. */
static void keyed__results_are_hashed_once(void **state)
{
	run();
	assert_int_equal(rig.srv->stats.chunks_done, 3);
	assert_int_equal(rig.srv->stats.results, 6);
	assert_int_equal(rig.srv->stats.result_hashes, 3);
	assert_int_equal(rig.srv->stats.result_ciphers, rig_encrypts ? 3 : 0);
	sum(2);
	assert_int_equal(rig.srv->stats.result_hashes, 6);
	assert_int_equal(rig.srv->stats.result_ciphers, rig_encrypts ? 6 : 0);
	close_all();
}

/* A repeated JOIN gets the same ACCEPT; with a second X25519 the ACCEPT would
 * differ. */
static void keyed__a_join_again_gets_the_same_accept(void **state)
{
	struct kept *join = &rig.to_server[0][SW_JOIN];
	static struct kept first;
	struct sw_tx_frame f;

	init();
	open_all();
	for (int i = 0; i < 100 && !join->len; i++) {
		worker(0)->tick(worker(0), rig.now_ns, 0);
		while (worker(0)->tx(worker(0), rig.now_ns, 0, &f, 1)) {
			put(&rig.to_server[0][f.header.type], &f, 1);
			give(server(), &rig.to_server[0][f.header.type]);
		}
		if (join->len)
			break;
		while (server()->tx(server(), rig.now_ns, 0, &f, 1)) {
			put(&rig.to_worker[0][f.header.type], &f, 0);
			give(worker(0), &rig.to_worker[0][f.header.type]);
		}
	}
	assert_true(join->len > 0);
	assert_int_equal(server()->tx(server(), rig.now_ns, 0, &f, 1), 1);
	assert_int_equal(f.header.type, SW_ACCEPT);
	put(&first, &f, 0);
	give(server(), join);
	assert_int_equal(server()->tx(server(), rig.now_ns, 0, &f, 1), 1);
	assert_int_equal(f.header.type, SW_ACCEPT);
	assert_int_equal(f.payload_len, first.len - SW_HEAD_BYTES);
	assert_memory_equal(
		f.payload, first.bytes + SW_HEAD_BYTES, f.payload_len);
	/* A flip of any bit in the sealed part makes the JOIN worthless. */
	for (uint32_t i = SW_JOIN_CLEAR; i < SW_JOIN_KEYED; i++) {
		static struct kept bad;
		struct sw_header h;

		bad = *join;
		bad.bytes[SW_HEAD_BYTES + i] ^= 4;
		memcpy(&h, bad.bytes, SW_HEAD_BYTES);
		h.psn = h.psn_low;
		h.head_crc = 0;
		h.payload_crc =
			sw_crc32c(0, bad.bytes + SW_HEAD_BYTES, h.payload_len);
		sw_header_seal(&h);
		memcpy(bad.bytes, &h, SW_HEAD_BYTES);
		rig.now_ns += SW_S; /* sources may ask only at a limited rate */
		rig.srv->params.cookie_life = 1000 * SW_S;
		give(server(), &bad);
	}
	rig.now_ns += 10 * SW_MS;
	pass(200 * SW_MS);
	close_all();
}

/* The receiver checks a burst in one pass. It drops only the forged and the
 * duplicate frames; all others have their effect once. */
static void keyed__a_burst_loses_what_is_not_true(void **state)
{
	static uint8_t bytes[SW_TX_BURST][FRAME];
	struct sw_tx_frame out[SW_TX_BURST];
	struct sw_rx_frame f[SW_TX_BURST];
	const struct sw_stats *st;
	uint64_t n_pushes;
	uint32_t n;

	run();
	st = &rig.srv->stats;
	assert_int_equal(sw_worker_push(&rig.w[0], 0, 2, 0), 0);
	n = worker(0)->tx(worker(0), rig.now_ns, 0, out, SW_TX_BURST);
	assert_int_equal(n, 3);
	for (uint32_t i = 0; i < 6; i++) {
		const struct sw_tx_frame *from = &out[i % n];

		memcpy(bytes[i], from->head, SW_HEAD_BYTES);
		memcpy(bytes[i] + SW_HEAD_BYTES, from->payload,
			from->payload_len);
		f[i] = (struct sw_rx_frame){.data = bytes[i],
			.payload = bytes[i] + SW_HEAD_BYTES,
			.len = SW_HEAD_BYTES + from->payload_len,
			.from = path_of(1)};
	}
	bytes[1][SW_HEAD_BYTES] ^= 1;
	n_pushes = st->push_folded;
	server()->rx(server(), rig.now_ns, 0, f, 6);
	assert_int_equal(st->rx_tag, 1);
	assert_int_equal(st->rx_replay, 2); /* the first and the third frame */
	assert_int_equal(st->push_folded, n_pushes + 3);
	close_all();
}

static void lose_acks(const struct kept *k)
{
	if (k == &rig.to_worker[0][SW_ACK])
		rig.to_worker[0][SW_ACK].len = 0;
}

/* If ACKs are lost, the sender retransmits under new numbers, so a repeated
 * number never needs an answer. */
static void keyed__lost_acks_repeat_no_number(void **state)
{
	uint64_t n_again;

	run();
	rig.seen = lose_acks;
	assert_int_equal(sw_worker_push(&rig.w[0], 0, 2, 0), 0);
	pass(100 * SW_MS);
	n_again = rig.w[0].stats.retransmissions;
	assert_true(n_again > 0);
	assert_true(rig.srv->stats.push_again > 0);
	assert_int_equal(rig.srv->stats.rx_replay, 0);
	rig.seen = NULL;
	pass(SW_S);
	n_again = rig.w[0].stats.retransmissions;
	pass(SW_S); /* no frame is in flight */
	assert_int_equal(rig.w[0].stats.retransmissions, n_again);
	close_all();
}

/* --- keys that do not match --- */

static void keyed__another_key_is_a_hint_until_time_is_up(void **state)
{
	init();
	set_secret(&rig.secrets[0], 2);
	set_secret(&rig.secrets[1], 2);
	rig.params.join_timeout = 5 * SW_S;
	open_all();
	pass(3 * SW_S);
	assert_int_equal(rig.w[0].state, SW_WORKER_JOINING);
	assert_true(rig.srv->stats.rx_tag > 0);
	/* The server logs one line about each. */
	assert_contains(rig.env.lines,
		"agent at 10.0.0.2 has another key than this server");
	assert_contains(rig.env.lines,
		"agent at 10.0.0.3 has another key than this server");
	pass(4 * SW_S);
	assert_int_not_equal(sw_worker_end_of(&rig.w[0]), 0);
	assert_contains(rig.text[0], "it says, without a proof: it has no such "
				     "key");
	close_all();
}

/* The worker whose key the server has learns which member is missing. */
static void keyed__members_with_different_keys_are_told(void **state)
{
	init();
	set_secret(&rig.secrets[1], 2);
	rig.params.join_timeout = 5 * SW_S;
	open_all();
	pass(7 * SW_S);
	assert_int_not_equal(sw_worker_end_of(&rig.w[0]), 0);
	assert_contains(rig.text[0], "agent 1");
	assert_int_not_equal(sw_worker_end_of(&rig.w[1]), 0);
	assert_contains(rig.text[1], "it says, without a proof: it has no such "
				     "key");
	assert_int_equal(rig.srv->stats.sessions_opened, 1);
	close_all();
}

static void keyed__a_server_that_requires_keys_refuses_others(void **state)
{
	init();
	rig.keyring.is_required = true;
	rig.is_plain[0] = rig.is_plain[1] = true;
	open_all();
	pass(SW_S);
	assert_int_not_equal(sw_worker_end_of(&rig.w[0]), 0);
	assert_contains(rig.text[0], "takes no agent without a key");
	close_all();
}

static void keyed__a_job_has_members_with_keys_or_without(void **state)
{
	init();
	rig.is_plain[1] = true;
	open_all();
	pass(SW_S);
	assert_true(
		!sw_worker_end_of(&rig.w[0]) != !sw_worker_end_of(&rig.w[1]));
	close_all();
}

/* If an operator trusts a port, members there need no key, even beside members
 * of the same job and port that have one. */
static void keyed__a_trusted_port_needs_no_key(void **state)
{
	init();
	rig.keyring.is_required = true;
	rig.server_port.is_trusted = rig.ports[1].is_trusted = true;
	open_all();
	pass(200 * SW_MS);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(rig.w[i].state, SW_WORKER_RUNNING);
	declare();
	for (uint32_t step = 1; step < 4; step++)
		sum(step);
	assert_non_null(rig.srv->jobs[0].members[0].session->peer.seal);
	assert_null(rig.srv->jobs[0].members[1].session->peer.seal);
	close_all();
}

/* A member that claims a trusted port is refused at a port that is not
 * trusted. */
static void keyed__no_frame_makes_a_port_trusted(void **state)
{
	init();
	rig.ports[1].is_trusted = true;
	open_all();
	pass(SW_S);
	assert_int_equal(sw_worker_end_of(&rig.w[1]), SW_EREFUSED);
	assert_contains(rig.text[1], "its port is trusted, but not that of the "
				     "server");
	close_all();
}

/* The new key is 2, the old one 1. */
static void init_two_keys(void)
{
	init();
	rig.entries[1] = rig.entries[0];
	set_secret(&rig.entries[0].secret, 2);
	rig.entries[1].until_ns = 10 * SW_S;
	rig.keyring.n = 2;
}

/* The old key and the new one are both good, until the old one's time. */
static void keyed__a_key_is_replaced(void **state)
{
	for (uint8_t secret = 1; secret <= 2; secret++) {
		init_two_keys();
		for (uint32_t i = 0; i < N; i++)
			set_secret(&rig.secrets[i], secret);
		run_as_set();
		close_all();
	}
	init();
	rig.entries[0].until_ns = SW_S / 2;
	open_all();
	pass(SW_S);
	assert_int_not_equal(sw_worker_end_of(&rig.w[0]), 0);
	assert_contains(rig.text[0], "no such key for this job");
	close_all();
}

/* Who comes first decides. */
static void keyed__members_of_a_job_have_one_key(void **state)
{
	init_two_keys();
	set_secret(&rig.secrets[1], 2);
	open_all();
	pass(SW_S);
	for (uint32_t i = 0; i < N; i++)
		if (sw_worker_end_of(&rig.w[i]))
			assert_contains(rig.text[i],
				"the job's other agents have another key: give "
				"all agents of a job the same [job] key_file");
	assert_true(
		!sw_worker_end_of(&rig.w[0]) != !sw_worker_end_of(&rig.w[1]));
	close_all();
}

static void set_keys(struct sw_keyring_entry *entries, uint32_t n)
{
	rig.keyring.entries = entries;
	rig.keyring.n = n;
	sw_server_set_keys(rig.srv, &rig.keyring);
}

/* A job loses its sessions with its own key, also if another job has a copy of
 * it, or all others have another one.  Other jobs lose nothing. */
static void keyed__a_key_is_taken_from_one_job(void **state)
{
	struct sw_keyring_entry other[2];

	for (uint32_t i = 0; i < 2; i++) { /* the others: a copy, another */
		init();
		strcpy(rig.entries[0].job, "job");
		rig.entries[1] = rig.entries[0];
		strcpy(rig.entries[1].job, i ? "" : "other");
		if (i)
			set_secret(&rig.entries[1].secret, 2);
		rig.keyring.n = 2;
		run_as_set();
		set_keys(rig.entries, 1); /* the other one goes */
		sum(2);
		set_keys(rig.entries + 1, 1);
		for (uint32_t k = 0; k < SW_MAX_SESSIONS; k++)
			assert_null(rig.srv->sessions[k]);
		close_all();
	}
	init(); /* the key of all jobs, while another job's own one goes */
	other[0] = other[1] = rig.entries[0];
	strcpy(other[1].job, "other");
	rig.keyring = (struct sw_keyring){.entries = other, .n = 2};
	run_as_set();
	set_keys(other, 1);
	sum(2);
	set_keys(other + 1, 1);
	for (uint32_t k = 0; k < SW_MAX_SESSIONS; k++)
		assert_null(rig.srv->sessions[k]);
	close_all();
}

/* The server forgets a replaced key some time after it was good for JOINs. */
static void keyed__a_replaced_key_keeps_its_sessions(void **state)
{
	run();
	set_secret(&rig.entries[1].secret, 2);
	set_keys(rig.entries + 1, 1);
	sum(2);
	close_all();
}

/* A key that is taken away ends its sessions at once; one whose time is over
 * keeps them. */
static void keyed__a_key_is_taken_away(void **state)
{
	static const struct sw_keyring none = {.is_required = true};

	run();
	rig.entries[0].until_ns = rig.now_ns;
	sw_server_set_keys(rig.srv, &rig.keyring);
	sum(2);
	sw_server_set_keys(rig.srv, &none);
	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++)
		assert_null(rig.srv->sessions[i]);
	pass(10 * SW_MS);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(sw_worker_end_of(&rig.w[i]), SW_EREFUSED);
		assert_contains(rig.text[i], "has taken this agent's key away");
	}
	close_all();
}

/* A worker with a key accepts no session from a server without one. */
static void keyed__a_worker_falls_back_to_nothing(void **state)
{
	init();
	rig.keyring.n = 0;
	rig.params.join_timeout = 2 * SW_S;
	open_all();
	pass(SW_S);
	assert_int_equal(rig.w[0].links[0].state == SW_LINK_OPEN, false);
	pass(3 * SW_S);
	assert_int_not_equal(sw_worker_end_of(&rig.w[0]), 0);
	close_all();
}

/* --- encryption --- */

static const char secret_name[] = "a name that nobody may read";
/* frames that contain the bytes that the test looks for */
static uint32_t n_clear;

static void looks(const struct kept *k)
{
	int32_t few[4];
	uint32_t sum = 1;

	n_clear += memmem(k->bytes + SW_HEAD_BYTES, k->len - SW_HEAD_BYTES,
			   secret_name, strlen(secret_name)) != NULL;
	/* the bytes of both members, and the sum */
	for (uint32_t i = 0; i < 3; i++) {
		for (int32_t e = 0; e < 4; e++)
			few[e] = i < 2 ? (int32_t)(80 + e + 1000 * i + sum)
				       : 2 * (80 + e) + 1000 + 2 * (int32_t)sum;
		n_clear +=
			memmem(k->bytes + SW_HEAD_BYTES, k->len - SW_HEAD_BYTES,
				few, sizeof(few)) != NULL;
	}
}

/* In an unencrypted job each kind of frame shows its bytes, which proves that
 * the test finds them. */
static void keyed__no_frame_shows_plaintext(void **state)
{
	for (int i = 0; i < 2; i++) {
		rig_encrypts = i;
		init();
		rig.seen = looks;
		n_clear = 0;
		open_all();
		pass(200 * SW_MS);
		rig.tensor_name = secret_name;
		declare();
		sum(1);
		close_all();
		if (i)
			assert_int_equal(n_clear, 0);
		else /* two DECLAREs, two PUSHes and two RESULTs */
			assert_int_equal(n_clear, 6);
	}
}

/* If members differ in encryption, or the server requires another setting, the
 * worker learns it. */
static void keyed__encryption_is_agreed(void **state)
{
	bool was = rig_encrypts;

	for (int refuses = 0; refuses < 2; refuses++) {
		rig_encrypts = refuses;
		init();
		rig.keyring.encrypting =
			refuses ? SW_MUST_NOT_ENCRYPT : SW_MUST_ENCRYPT;
		open_all();
		pass(SW_S);
		assert_int_equal(sw_worker_end_of(&rig.w[0]), SW_EREFUSED);
		assert_contains(rig.text[0], refuses ? "takes no encrypted job"
						     : "only encrypted jobs");
		close_all();
	}
	init();
	open_server();
	for (uint32_t i = 0; i < N; i++) {
		rig.params.is_encrypted = i;
		open_worker(i);
	}
	pass(SW_S);
	assert_int_equal(sw_worker_end_of(&rig.w[1]), SW_EMISMATCH);
	assert_contains(rig.text[1], "agent 1 has encrypt = yes, job job "
				     "has no");
	close_all();
	rig_encrypts = was;
}

/* Deliver frames until the server has offered each worker an ACCEPT; deliver no
 * ACCEPT. */
static void offer_both(void)
{
	struct sw_tx_frame f;

	for (int turn = 0; turn < 10; turn++) {
		for (uint32_t i = 0; i < N; i++) {
			worker(i)->tick(worker(i), rig.now_ns, 0);
			while (worker(i)->tx(worker(i), rig.now_ns, 0, &f, 1)) {
				put(&rig.to_server[i][f.header.type], &f,
					1 + i);
				give(server(),
					&rig.to_server[i][f.header.type]);
			}
		}
		while (server()->tx(server(), rig.now_ns, 0, &f, 1)) {
			uint32_t i = owner(f.to);
			struct kept *k = &rig.to_worker[i][f.header.type];

			put(k, &f, 0);
			if (k->bytes[3] != SW_ACCEPT)
				give(worker(i), k);
		}
	}
}

/* Deliver frames between worker @i and the server, in both directions. */
static void pump_one(uint32_t i)
{
	struct sw_tx_frame f;

	worker(i)->tick(worker(i), rig.now_ns, 0);
	server()->tick(server(), rig.now_ns, 0);
	while (worker(i)->tx(worker(i), rig.now_ns, 0, &f, 1)) {
		put(&rig.to_server[i][f.header.type], &f, 1 + i);
		give(server(), &rig.to_server[i][f.header.type]);
	}
	while (server()->tx(server(), rig.now_ns, 0, &f, 1)) {
		put(&rig.to_worker[i][f.header.type], &f, 0);
		if (owner(f.to) == i)
			give(worker(i), &rig.to_worker[i][f.header.type]);
	}
	rig.now_ns += 100 * SW_US;
}

/* Send the server a handshake frame from worker 0's path, as anybody can.
 * Return its answer of type @answer. */
static struct kept say(
	uint8_t type, const void *payload, uint16_t n, uint8_t answer)
{
	struct sw_header h = {.type = type,
		.class = SW_CLASS_CTL,
		.psn = 1,
		.payload_len = n};
	struct kept k = {.len = SW_HEAD_BYTES + n, .from = path_of(1)};
	struct kept got = {0};
	struct sw_tx_frame f;

	h.payload_crc = sw_crc32c(0, payload, n);
	sw_header_seal(&h);
	memcpy(k.bytes, &h, SW_HEAD_BYTES);
	memcpy(k.bytes + SW_HEAD_BYTES, payload, n);
	give(server(), &k);
	while (server()->tx(server(), rig.now_ns, 0, &f, 1))
		if (f.header.type == answer)
			put(&got, &f, 0);
	assert_true(got.len > 0);
	return got;
}

/* Join from a worker's path, under another job name, as an attacker without the
 * secret. */
static void join_from_its_path(void)
{
	struct sw_hello hello = {.nonce = 4711};
	struct sw_join join = {.version_min = SW_VERSION_MIN,
		.version_max = SW_VERSION_MAX,
		.nonce = hello.nonce,
		.session = 1,
		.n_members = 1,
		.n_local = 1,
		.n_servers = 1,
		.payload = SW_PAYLOAD_MIN,
		.job = "other",
		.node = "n"};
	struct sw_cookie c;
	struct kept k = say(SW_HELLO, &hello, sizeof(hello), SW_COOKIE);

	memcpy(&c, k.bytes + SW_HEAD_BYTES, sizeof(c));
	join.cookie = c.cookie;
	say(SW_JOIN, &join, sizeof(join), SW_ACCEPT);
}

/* Neither a replayed JOIN nor a JOIN without a key displaces a worker that has
 * not confirmed its session yet. */
static void keyed__no_join_displaces_a_worker(void **state)
{
	struct kept old;

	init();
	open_all();
	offer_both();
	old = rig.to_server[0][SW_JOIN];
	sw_worker_close(&rig.w[0]);
	open_worker(0); /* the agent has restarted */
	offer_both();
	assert_memory_not_equal(old.bytes, rig.to_server[0][SW_JOIN].bytes,
		SW_HEAD_BYTES + SW_JOIN_KEYED);
	give(server(), &old);
	join_from_its_path();
	give(worker(0), &rig.to_worker[0][SW_ACCEPT]);
	pump_one(0);
	assert_int_equal(rig.srv->jobs[0].n_sessions, 1);
	close_all();
}

/* Give both workers the keys of results; let only the first worker confirm. */
static void confirm_first(void)
{
	uint32_t n = 0;

	init();
	open_all();
	offer_both();
	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++)
		n += rig.srv->pending[i].seal != NULL;
	assert_int_equal(n, N);
	give(worker(0), &rig.to_worker[0][SW_ACCEPT]);
	pump_one(0);
	assert_int_equal(rig.srv->jobs[0].n_sessions, 1);
}

/* A worker that got the keys of results in one run, but confirms after that
 * run, is no member of the next run: nonces would repeat. */
static void keyed__keys_of_results_are_of_one_run(void **state)
{
	struct kept late;

	confirm_first();
	late = rig.to_worker[1][SW_ACCEPT];
	give(worker(1), &late);
	pass(100 * SW_MS); /* a worker that confirms in time is a member */
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(rig.w[i].state, SW_WORKER_RUNNING);
	close_all();

	confirm_first();
	late = rig.to_worker[1][SW_ACCEPT];
	sw_worker_leave(&rig.w[0], NULL);
	while (rig.w[0].state != SW_WORKER_LEFT)
		pump_one(0);
	assert_int_equal(rig.srv->jobs[0].n_sessions, 0);
	give(worker(1), &late);
	for (int i = 0; i < 10; i++)
		pump_one(1);
	assert_int_equal(rig.srv->jobs[0].n_sessions, 0);
	close_all();
}

/* The server answers LEAVE with a tag, and both ends have finished. */
static void keyed__leaves(void **state)
{
	run();
	for (uint32_t i = 0; i < N; i++)
		sw_worker_leave(&rig.w[i], NULL);
	pass(100 * SW_MS);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(rig.w[i].state, SW_WORKER_LEFT);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keyed__results_are_hashed_once),
		cmocka_unit_test(keyed__a_join_again_gets_the_same_accept),
		cmocka_unit_test(keyed__a_burst_loses_what_is_not_true),
		cmocka_unit_test(keyed__lost_acks_repeat_no_number),
		cmocka_unit_test(keyed__another_key_is_a_hint_until_time_is_up),
		cmocka_unit_test(keyed__members_with_different_keys_are_told),
		cmocka_unit_test(
			keyed__a_server_that_requires_keys_refuses_others),
		cmocka_unit_test(keyed__a_job_has_members_with_keys_or_without),
		cmocka_unit_test(keyed__a_trusted_port_needs_no_key),
		cmocka_unit_test(keyed__no_frame_makes_a_port_trusted),
		cmocka_unit_test(keyed__a_key_is_replaced),
		cmocka_unit_test(keyed__members_of_a_job_have_one_key),
		cmocka_unit_test(keyed__a_key_is_taken_from_one_job),
		cmocka_unit_test(keyed__a_replaced_key_keeps_its_sessions),
		cmocka_unit_test(keyed__a_key_is_taken_away),
		cmocka_unit_test(keyed__a_worker_falls_back_to_nothing),
		cmocka_unit_test(keyed__leaves),
		cmocka_unit_test(keyed__no_frame_shows_plaintext),
		cmocka_unit_test(keyed__encryption_is_agreed),
		cmocka_unit_test(keyed__keys_of_results_are_of_one_run),
		cmocka_unit_test(keyed__no_join_displaces_a_worker),
	};

	return run_twice(tests, SW_ARRAY_SIZE(tests));
}
