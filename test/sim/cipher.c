/* cipher.c - decrypt frames as their receiver would, and check their nonces.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/server/server_int.h"
#include "engine/wire/cipher.h"
#include "engine/worker/link.h"
#include "test/sim/job.h"

/* The keys that a frame's sender uses for its receiver. */
struct keys {
	struct sw_seal *seal;          /* NULL: the sender has none */
	struct sw_result_keys *shared; /* if the sender is a server */
};

static struct keys keys_of_push(const struct sim_job *job, uint32_t from,
	const struct sw_tx_frame *t, uint32_t session)
{
	const struct sim_worker *w = &job->workers[from - sim_job_first(job)];

	for (uint32_t lane = 0; lane < w->n_lanes; lane++) {
		const struct sw_worker *e =
			lane ? &w->others[lane - 1] : &w->engine;

		for (uint32_t i = 0; i < e->n_links; i++)
			if (e->links[i].peer.far_id == session &&
				sw_ip_is_same(
					e->links[i].peer.path.ip, t->to.ip) &&
				e->links[i].peer.path.udp == t->to.udp)
				return (struct keys){
					.seal = e->links[i].peer.seal};
	}
	return (struct keys){0};
}

static struct keys keys_of_result(const struct sim_job *job, uint32_t from,
	const struct sw_tx_frame *t, uint32_t session)
{
	uint32_t e = from * job->n_lcores + t->endpoint;

	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++) {
		const struct sw_session *s = job->servers[e]->sessions[i];

		if (s && s->peer.far_id == session &&
			sw_path_is_same(&s->peer.path, &t->to))
			return (struct keys){.seal = s->peer.seal,
				.shared = s->job->results};
	}
	return (struct keys){0};
}

/* Check that all frames encrypted with one key and nonce have the same
 * bytes. */
static void check_nonce(struct sim_job *job, const struct sw_result_keys *keys,
	const struct sw_header *h, const struct sw_tx_frame *t)
{
	struct sim_nonce now = {
		.crc = sw_crc32c(0, t->payload, h->payload_len)};
	struct sim_nonce *has;

	now.era = sw_era_near(keys->era, h->flags / SW_FLAG_ERA);
	memcpy(now.key, keys->secret[1], sizeof(now.key));
	memcpy(now.place, &h->key, sizeof(now.place));
	has = &job->nonces[sw_crc32c(0, &now, offsetof(struct sim_nonce, crc)) %
			   SIM_NONCES];
	if (!memcmp(has, &now, offsetof(struct sim_nonce, crc)) &&
		has->crc != now.crc && !job->oracle[0])
		snprintf(job->oracle, sizeof(job->oracle),
			"key %u, round %u, chunk %u: two texts under one nonce",
			h->key, h->round, h->chunk);
	*has = now;
}

bool sim_cipher_open(struct sim_job *job, uint32_t from,
	const struct sw_tx_frame *t, struct sw_tx_frame *out)
{
	bool is_inner = (uint32_t)t->to.ip.low == SW_LOOPBACK_IP;
	struct sw_header h;
	struct keys k;

	*out = *t;
	if (!job->params.is_encrypted || is_inner || !t->payload_len)
		return true;
	memcpy(&h, t->head, SW_HEAD_BYTES);
	h.psn = h.psn_low | (uint64_t)h.psn_high << 32;
	k = h.type == SW_RESULT ? keys_of_result(job, from, t, h.session)
				: keys_of_push(job, from, t, h.session);
	if (!k.seal || !(h.flags & SW_FLAG_CIPHER)) {
		if (!job->oracle[0])
			snprintf(job->oracle, sizeof(job->oracle),
				"node %u sent a frame in the clear", from);
		return false;
	}
	out->payload = job->plain;
	if (h.type == SW_RESULT && sw_result_is_shared(&h)) {
		check_nonce(job, k.shared, &h, t);
		sw_seal_crypt_result(sw_era_key(&k.shared->ciphers,
					     sw_era_near(k.shared->era,
						     h.flags / SW_FLAG_ERA)),
			&h.key, t->payload, h.payload_len, job->plain);
	} else {
		sw_seal_crypt(&k.seal->tx_cipher, h.class, h.psn, t->payload,
			h.payload_len, job->plain);
	}
	return true;
}
