/* unit_forged.c - no frame of an attacker changes a keyed job's state.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each treatment gets a frame of each type in the table of types, in both
 * directions: the next frame that the peer could send, sealed as the peer
 * would. So only the treatment keeps the frame out. */
#include "engine/wire/cipher.h"
#include "test/support/keyed_rig.h"

/* --- an engine's whole state except counters --- */

static struct {
	struct sw_server srv;
	struct sw_session sessions[N];
	struct sw_worker w[N];
	struct sw_link links[N];
	struct sw_taken taken[N + 1][SW_SEAL_SPACES];
} was;

static struct sw_stats *counters_of(uint32_t who)
{
	return who ? &rig.w[who - 1].stats : &rig.srv->stats;
}

static struct sw_session *session_of(uint32_t i)
{
	return rig.srv->jobs[0].members[i].session;
}

/* Return the peer that sends to @who; 0 is the server. */
static struct sw_peer *peer_at(uint32_t who)
{
	return who ? &rig.w[who - 1].links[0].peer : &session_of(0)->peer;
}

/* Save the state of all engines. */
static void remember(void)
{
	memcpy(&was.srv, rig.srv, sizeof(was.srv));
	for (uint32_t i = 0; i < N; i++) {
		was.sessions[i] = *session_of(i);
		was.w[i] = rig.w[i];
		was.links[i] = rig.w[i].links[0];
	}
	for (uint32_t i = 0; i <= N; i++)
		memcpy(was.taken[i], peer_at(i)->seal->taken,
			sizeof(was.taken[i]));
}

static void forget_counters(void)
{
	was.srv.stats = rig.srv->stats;
	was.srv.next = rig.srv->next;
	was.srv.now_ns = rig.now_ns;
	for (uint32_t i = 0; i < N; i++) {
		was.w[i].stats = rig.w[i].stats;
		was.w[i].now_ns = rig.now_ns;
		was.w[i].is_misrouted = rig.w[i].is_misrouted;
	}
}

/* Check that no engine has changed since remember, and that none has an answer
 * to send. */
static void all_are_as_before(void)
{
	struct sw_tx_frame out;

	assert_int_equal(server()->tx(server(), rig.now_ns, 0, &out, 1), 0);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(
			worker(i)->tx(worker(i), rig.now_ns, 0, &out, 1), 0);
	forget_counters();
	assert_memory_equal(&was.srv, rig.srv, sizeof(was.srv));
	for (uint32_t i = 0; i < N; i++) {
		assert_memory_equal(&was.sessions[i], session_of(i),
			sizeof(was.sessions[i]));
		assert_memory_equal(&was.w[i], &rig.w[i], sizeof(was.w[i]));
		assert_memory_equal(
			&was.links[i], rig.w[i].links, sizeof(was.links[i]));
	}
	for (uint32_t i = 0; i <= N; i++)
		assert_memory_equal(was.taken[i], peer_at(i)->seal->taken,
			sizeof(was.taken[i]));
}

/* Give a frame to the server (@who 0) or a worker. */
static void give_to(uint32_t who, const struct kept *k)
{
	give(who ? worker(who - 1) : server(), k);
}

/* --- a true frame of each type --- */

static struct kept good[2][SW_N_TYPES];

static bool is_session_type(uint32_t type)
{
	return type != SW_HELLO && type != SW_JOIN && type != SW_COOKIE &&
	       type != SW_ACCEPT;
}

static struct sw_rx_frame frame_of(const struct kept *k)
{
	return (struct sw_rx_frame){.data = k->bytes,
		.payload = k->bytes + SW_HEAD_BYTES,
		.len = k->len,
		.from = k->from};
}

/* Does the table of types accept this header? */
static bool opens(const struct sw_header *h)
{
	static struct kept k;
	struct sw_stats stats = {0};
	struct sw_header out = *h;
	struct sw_rx_frame f;

	out.magic = SW_MAGIC;
	out.version = SW_VERSION_MAX;
	memcpy(k.bytes, &out, SW_HEAD_BYTES);
	k.len = SW_HEAD_BYTES + h->payload_len;
	f = frame_of(&k);
	sw_frames_open(&f, 1, &out, true, &stats);
	return out.type != 0;
}

/* Build the next frame of @type from the peer of @who, with the shortest
 * payload that the table allows. Return false if the table lacks the type. */
static bool build(uint32_t who, uint8_t type)
{
	struct sw_peer *from = who ? &session_of(0)->peer : peer_at(1);
	struct sw_tagging tags = {.seal = from->seal};
	uint8_t payload[SW_PAYLOAD_MAX];
	struct sw_tx_frame f = {
		.header = {.session = from->far_id,
			.type = type,
			.class = sw_type_is_data(type) ? 0 : SW_CLASS_CTL,
			/* A RESULT uses its packet number as nonce, as other
			 * types do. */
			.op = type == SW_RESULT ? SW_ROUND_COPY : 0}};
	struct sw_header *h = &f.header;

	while (!opens(h))
		if (h->payload_len++ == SW_PAYLOAD_MAX)
			return false;
	h->psn = peer_at(who)->seal->taken[h->class].largest + 1;
	memset(payload, 0x5a, sizeof(payload));
	if (from->seal->is_encrypted && h->payload_len)
		sw_encrypt(from->seal, h, payload, payload);
	sw_polyval(type == SW_RESULT ? &peer_at(who)->seal->result_hash
				     : &from->seal->tx_hash,
		payload, h->payload_len,
		sw_frame_seal(&f, from->path, payload, false, &tags));
	sw_frames_tag(&tags);
	put(&good[who][type], &f, !who);
	return true;
}

/* Would the receiver accept the frame? This uses up its packet number. */
static bool is_taken(uint32_t who, const struct kept *k)
{
	struct sw_stats stats = {0};
	struct kept copy = *k;
	struct sw_rx_frame f = frame_of(&copy);
	struct sw_header h;

	sw_frames_open(&f, 1, &h, true, &stats);
	return sw_frame_is_true(peer_at(who)->seal, 0, &f, &h, &stats);
}

/* Build a frame of each type in both directions and check that it would be
 * accepted. Then apply @fn, which alone can keep the frame out. */
static void each_type(void (*fn)(uint32_t who, const struct kept *k))
{
	for (uint8_t type = 1; type < SW_N_TYPES; type++)
		for (uint32_t who = 0; who < 2 && is_session_type(type);
			who++) {
			struct sw_seal *seal = peer_at(who)->seal;
			struct sw_seal before = *seal;

			assert_true(build(who, type));
			assert_true(is_taken(who, &good[who][type]));
			*seal = before;
			if (!fn)
				continue;
			remember();
			fn(who, &good[who][type]);
			all_are_as_before();
		}
}

/* --- treatments --- */

static void flip(uint32_t who, const struct kept *k)
{
	static struct kept bad;
	/* Flip all bits of the header and some of the payload. */
	for (uint32_t i = 0; i < 8 * k->len;
		i += i < 8 * SW_HEAD_BYTES ? 1 : 97) {
		bad = *k;
		bad.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		give_to(who, &bad);
	}
}

static void keyed__no_flipped_bit_changes_anything(void **state)
{
	run();
	each_type(flip);
	sum(2);
	close_all();
}

static void again(uint32_t who, const struct kept *k)
{
	uint64_t before = counters_of(who)->rx_replay;

	give_to(who, k);
	assert_int_equal(counters_of(who)->rx_replay, before + 1);
}

static void replay(uint32_t who, const struct kept *k)
{
	assert_true(is_taken(who, k));
	remember();
	again(who, k);
}

/* First replay frames that the job itself sent, then one frame of each type. */
static void keyed__no_replay_changes_anything(void **state)
{
	run();
	for (uint32_t step = 2; step < 4; step++) {
		remember();
		for (uint32_t type = 1; type < SW_N_TYPES; type++) {
			if (!is_session_type(type))
				continue;
			if (rig.to_server[0][type].len)
				again(0, &rig.to_server[0][type]);
			if (rig.to_worker[0][type].len)
				again(1, &rig.to_worker[0][type]);
		}
		all_are_as_before();
		sum(step);
	}
	each_type(replay);
	close_all();
}

static void cut_and_zero(uint32_t who, const struct kept *k)
{
	static struct kept bad;
	uint16_t n = 0;

	bad = *k;
	memset(bad.bytes + SW_SEAL_HEAD_BYTES, 0, 8);
	give_to(who, &bad);
	for (uint32_t len = 0; len < k->len; len += len < 60 ? 1 : 61) {
		bad = *k;
		bad.len = len;
		give_to(who, &bad);
		if (len < SW_HEAD_BYTES)
			continue;
		/* the header has the new length */
		n = (uint16_t)(len - SW_HEAD_BYTES);
		memcpy(bad.bytes + 6, &n, sizeof(n));
		give_to(who, &bad);
	}
}

static void keyed__no_truncated_frame_and_no_tag_of_zeros(void **state)
{
	run();
	each_type(cut_and_zero);
	sum(2);
	close_all();
}

/* Return a frame to its sender, under the sender's own session id and from the
 * address that the frame was sent to. */
static void reflect(uint32_t who, const struct kept *k)
{
	static struct kept bad;
	uint32_t id = peer_at(!who)->id;

	bad = *k;
	memcpy(bad.bytes + 8, &id, sizeof(id));
	bad.from = path_of(!who ? 0 : 1);
	give_to(!who, &bad);
}

static void keyed__no_reflection_changes_anything(void **state)
{
	run();
	each_type(reflect);
	sum(2);
	close_all();
}

/* Send a frame of worker 0 in the session and from the address of worker 1. */
static void cross(uint32_t who, const struct kept *k)
{
	static struct kept bad;
	uint32_t id = who ? peer_at(2)->id : session_of(1)->peer.id;

	bad = *k;
	memcpy(bad.bytes + 8, &id, sizeof(id));
	if (!who)
		bad.from = path_of(2);
	give_to(who ? 2 : 0, &bad);
}

static void keyed__no_frame_of_another_session_changes_anything(void **state)
{
	run();
	each_type(cross);
	sum(2);
	close_all();
}

/* Seal a frame as an attacker without a key would. */
static void set_crcs(struct kept *k, uint32_t seed)
{
	struct sw_header h;

	memcpy(&h, k->bytes, SW_HEAD_BYTES);
	h.psn = h.psn_low | (uint64_t)h.psn_high << 32;
	h.payload_crc = sw_crc32c(0, k->bytes + SW_HEAD_BYTES, h.payload_len);
	h.head_crc = seed;
	sw_header_seal(&h);
	memcpy(k->bytes, &h, SW_HEAD_BYTES);
}

/* The seed follows from the session's nonce, which every JOIN shows in
 * clear. */
static void reseal(uint32_t who, const struct kept *k)
{
	static struct kept bad;

	bad = *k;
	bad.bytes[12] += 5; /* a new packet number */
	set_crcs(&bad, peer_at(1)->seed);
	give_to(who, &bad);
}

static void keyed__no_crc_takes_the_place_of_a_tag(void **state)
{
	run();
	each_type(reseal);
	sum(2);
	close_all();
}

/* Replay frames of an earlier run with the same secret, paths and members. */
static void keyed__no_frame_of_an_earlier_run_changes_anything(void **state)
{
	run();
	each_type(NULL);
	close_all();
	init();
	rig.env.rng = 12345;
	open_all();
	pass(200 * SW_MS);
	declare();
	sum(1);
	remember();
	for (uint32_t type = 1; type < SW_N_TYPES; type++)
		for (uint32_t who = 0; who < 2 && is_session_type(type);
			who++) {
			struct kept *k = &good[who][type];
			uint32_t id = peer_at(who)->id;

			/* Suppose that the session id is the same by chance: */
			memcpy(k->bytes + 8, &id, sizeof(id));
			give_to(who, k);
		}
	all_are_as_before();
	sum(2);
	close_all();
}

/* --- the handshake, whose frames carry CRCs --- */

/* Return the number of bytes that a MAC or Noise covers; the rest is
 * padding. */
static uint32_t bound(const struct kept *k)
{
	switch (k->bytes[3]) {
	case SW_JOIN:
		return SW_JOIN_KEYED;
	case SW_ACCEPT:
		return SW_ACCEPT_KEYED;
	default:
		return k->len - SW_HEAD_BYTES;
	}
}

static uint32_t n_flipped[SW_N_TYPES];

/* Flip each bit of the first payload of each handshake type to or from worker
 * 0, under valid CRCs. A flip creates no job and no session and ends nothing.
 * The genuine frame that follows has its effect. */
static void flip_handshake(const struct kept *k)
{
	uint32_t type = k->bytes[3], seed = 0;
	bool is_to_server = k == &rig.to_server[0][type];
	struct sw_link *l = &rig.w[0].links[0];
	static struct kept bad;

	if ((is_session_type(type) && type != SW_ERROR) || n_flipped[type] ||
		(!is_to_server && k != &rig.to_worker[0][type]))
		return;
	n_flipped[type] = 8 * bound(k);
	if (type == SW_ACCEPT || type == SW_ERROR)
		seed = sw_session_seed(l->nonce);
	for (uint32_t i = 0; i < n_flipped[type]; i++) {
		bad = *k;
		bad.bytes[SW_HEAD_BYTES + i / 8] ^= (uint8_t)(1 << i % 8);
		set_crcs(&bad, seed);
		give(is_to_server ? server() : worker(0), &bad);
		assert_int_equal(sw_worker_end_of(&rig.w[0]), 0);
		assert_int_not_equal(l->state, SW_LINK_OPEN);
		if (!is_to_server)
			continue;
		assert_int_equal(rig.srv->pending[0].id, 0);
		/* The server proves nothing for a key id that it lacks. */
		if (i / 64 != offsetof(struct sw_hello, key_id) / 8)
			assert_int_equal(rig.srv->cookies[0].n, 0);
		/* A stolen cookie uses up its owner's tokens (SECURITY.md). */
		memset(rig.srv->sources, 0, sizeof(rig.srv->sources));
		memset(rig.srv->cookies, 0, sizeof(rig.srv->cookies));
		memset(rig.srv->replies, 0, sizeof(rig.srv->replies));
	}
}

static void keyed__no_flipped_bit_of_the_handshake_opens_anything(void **state)
{
	init();
	rig.seen = flip_handshake;
	open_all();
	memset(n_flipped, 0, sizeof(n_flipped));
	pass(200 * SW_MS);
	declare();
	sum(1);
	for (uint8_t type = 1; type < SW_N_TYPES; type++)
		assert_true(is_session_type(type) || n_flipped[type]);
	close_all();
}

/* The server refuses by an ERROR with a MAC. */
static void keyed__no_flipped_bit_of_a_refusal_ends_anything(void **state)
{
	init();
	rig.keyring.encrypting =
		rig_encrypts ? SW_MUST_NOT_ENCRYPT : SW_MUST_ENCRYPT;
	memset(n_flipped, 0, sizeof(n_flipped));
	rig.seen = flip_handshake;
	open_all();
	pass(200 * SW_MS);
	assert_true(n_flipped[SW_ERROR] > 0);
	assert_int_equal(sw_worker_end_of(&rig.w[0]), SW_EREFUSED);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keyed__no_flipped_bit_changes_anything),
		cmocka_unit_test(keyed__no_replay_changes_anything),
		cmocka_unit_test(keyed__no_truncated_frame_and_no_tag_of_zeros),
		cmocka_unit_test(keyed__no_reflection_changes_anything),
		cmocka_unit_test(
			keyed__no_frame_of_another_session_changes_anything),
		cmocka_unit_test(keyed__no_crc_takes_the_place_of_a_tag),
		cmocka_unit_test(
			keyed__no_frame_of_an_earlier_run_changes_anything),
		cmocka_unit_test(
			keyed__no_flipped_bit_of_the_handshake_opens_anything),
		cmocka_unit_test(
			keyed__no_flipped_bit_of_a_refusal_ends_anything),
	};

	return run_twice(tests, SW_ARRAY_SIZE(tests));
}
