/* attack.c - keyed jobs under an attacker who reads and changes every frame.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The attacker knows the protocol and the source, and seals CRCs as it likes.
 * It has no secret. All ranks of all jobs must end well, with exact sums: the
 * oracle of the simulator checks both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "sum/sum.h"
#include "test/sim/job.h"

enum { LIMIT_S = 4000, KEPT = 512, NONCES = 64 };

enum kind {
	REPLAY,  /* an unchanged copy */
	BITS,    /* one to three bits flipped */
	NUMBER,  /* another packet number under the old tag */
	REFLECT, /* sent back to its sender as if from the receiver */
	SESSION, /* under the session of another frame */
	CUT,     /* truncated, with a correct length in the header */
	ZEROS,   /* a tag of zeros */
	RANDOM,  /* a random tag */
	TYPE,    /* another type */
	SWAP,    /* the payload of another frame */
	CRC,     /* CRCs in place of the tag, as without keys */
	FORGED,  /* LEAVE, LEFT, ERROR, STATUS or COOKIE with good CRCs */
	N_KINDS,
};

static const char *const names[N_KINDS] = {"replays", "flipped bits",
	"other numbers", "reflections", "other sessions", "truncated",
	"tags of zeros", "random tags", "other types", "swapped payloads",
	"with CRCs", "forged control frames"};

struct attacker {
	struct sim_job *job;
	uint64_t rng, n, most, by_kind[N_KINDS];
	uint64_t flipped[SW_N_TYPES]; /* frames, by their original type */
	struct sim_frame *kept[KEPT]; /* any frames, replaced at random */
	uint64_t n_seen;
	uint64_t nonces[NONCES]; /* from JOINs; they seed CRCs */
	uint32_t n_nonces;
	bool is_busy; /* the hook ignores the attacker's own frames */
};

static struct sim_frame *copy(const struct sim_frame *f)
{
	struct sim_frame *c =
		malloc(sizeof(*c) + SW_HEAD_BYTES + SW_PAYLOAD_MAX);

	if (!c)
		abort();
	memcpy(c, f, sizeof(*c) + f->len);
	return c;
}

static const struct sim_frame *any(struct attacker *a)
{
	uint64_t n = sw_min64(a->n_seen, KEPT);

	return a->kept[sim_below(&a->rng, n)];
}

static void load(const struct sim_frame *f, struct sw_header *h)
{
	memcpy(h, f->bytes, SW_HEAD_BYTES);
	h->psn = h->psn_low | (uint64_t)h->psn_high << 32;
}

/* Seal the frame with CRCs seeded by a nonce seen on the wire, or by 0. */
static void seal(struct attacker *a, struct sim_frame *f, struct sw_header *h)
{
	uint64_t nonce = a->n_nonces ? a->nonces[sim_below(&a->rng,
					       sw_min64(a->n_nonces, NONCES))]
				     : 0;

	h->payload_crc = sw_crc32c(0, f->bytes + SW_HEAD_BYTES, h->payload_len);
	h->head_crc = h->type == SW_COOKIE ? 0 : sw_session_seed(nonce);
	sw_header_seal(h);
	memcpy(f->bytes, h, SW_HEAD_BYTES);
}

static void forge(struct attacker *a, struct sim_frame *f)
{
	static const uint8_t types[] = {
		SW_LEAVE, SW_LEFT, SW_ERROR, SW_STATUS, SW_COOKIE};
	uint8_t type = types[sim_below(&a->rng, sizeof(types))];
	uint8_t *payload = f->bytes + SW_HEAD_BYTES;
	struct sw_header h;
	struct sw_fault fault = {.err = SW_EINVAL, .text = "forged"};
	struct sw_cookie cookie = {0};

	load(f, &h);
	h.type = type;
	h.class = SW_CLASS_CTL;
	h.flags = 0;
	h.psn = h.psn + sim_below(&a->rng, 100);
	h.payload_len = sizeof(fault);
	if (a->n_nonces) {
		fault.nonce = a->nonces[sim_below(
			&a->rng, sw_min64(a->n_nonces, NONCES))];
		cookie.nonce = fault.nonce;
	}
	memset(payload, 0, sizeof(struct sw_status));
	memcpy(payload, &fault, sizeof(fault));
	if (type == SW_LEFT) {
		h.ctl.left = any(a)->bytes[8];
		memcpy(&h.ctl.left, any(a)->bytes + 8, sizeof(h.ctl.left));
		h.payload_len = 0;
	} else if (type == SW_STATUS) {
		payload[8] = SW_JOB_FAILED;
		h.payload_len = sizeof(struct sw_status);
	} else if (type == SW_COOKIE) {
		/* Half of them claim that the server does not know a
		 * session. */
		if (sim_below(&a->rng, 2))
			memcpy(&cookie.unknown, any(a)->bytes + 8,
				sizeof(cookie.unknown));
		memcpy(payload, &cookie, sizeof(cookie));
		h.session = 0;
		h.payload_len = sizeof(cookie);
		if (sim_below(&a->rng, 2))
			h.payload_len += 16; /* claim a MAC behind the cookie */
	}
	f->len = SW_HEAD_BYTES + h.payload_len;
	seal(a, f, &h);
}

static void reflect(struct sim_frame *f)
{
	uint32_t node = f->from;
	uint16_t udp = f->from_udp;

	f->from = f->to;
	f->from_udp = f->to_udp;
	f->to = node;
	f->to_udp = udp;
}

/* Truncate the payload at a random place, and put its new length in the
 * header. */
static void cut(struct attacker *a, struct sim_frame *f)
{
	uint32_t n =
		(uint32_t)sim_below(&a->rng, f->len - SW_HEAD_BYTES + 1ULL);

	f->len = SW_HEAD_BYTES + n;
	memcpy(f->bytes + 6, &n, 2);
}

static void change(struct attacker *a, struct sim_frame *f, enum kind kind)
{
	const struct sim_frame *other = any(a);
	struct sw_header h;
	uint32_t n = 1 + (uint32_t)sim_below(&a->rng, 3);
	uint64_t some = 0;

	load(f, &h);
	switch (kind) {
	case BITS:
		a->flipped[h.type < SW_N_TYPES ? h.type : 0]++;
		while (n--) {
			uint64_t bit = sim_below(&a->rng, 8ULL * f->len);

			f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		break;
	case NUMBER:
		some = h.psn + 1 + sim_below(&a->rng, 300);
		memcpy(f->bytes + 12, &some, 4);
		break;
	case REFLECT:
		reflect(f);
		memcpy(f->bytes + 8, other->bytes + 8, 4);
		break;
	case SESSION:
		memcpy(f->bytes + 8, other->bytes + 8, 4);
		f->from = other->from;
		f->to = other->to;
		f->from_udp = other->from_udp;
		f->to_udp = other->to_udp;
		break;
	case CUT:
		cut(a, f);
		break;
	case RANDOM:
		some = test_random(&a->rng);
		memcpy(f->bytes + 46, &some, 8);
		break;
	case ZEROS:
		memset(f->bytes + 46, 0, 8);
		break;
	case TYPE:
		f->bytes[3] = (uint8_t)(1 + sim_below(&a->rng, SW_N_TYPES));
		break;
	case SWAP:
		if (other->len == f->len && other->bytes[3] == f->bytes[3])
			memcpy(f->bytes + SW_HEAD_BYTES,
				other->bytes + SW_HEAD_BYTES,
				f->len - SW_HEAD_BYTES);
		else
			f->bytes[f->len - 1] ^= 1;
		break;
	case CRC:
		seal(a, f, &h);
		break;
	case FORGED:
		forge(a, f);
		break;
	default:
		break;
	}
}

/* A JOIN with a stolen cookie costs its owner's address one of its 64 places: a
 * few such JOINs are the denial of service that SECURITY.md names. */
static bool is_spared(struct attacker *a, const struct sim_frame *f)
{
	return f->bytes[3] == SW_JOIN && sim_below(&a->rng, 20);
}

/* Do both nodes exist in this job? Frames of earlier jobs may name other
 * machines. */
static bool is_here(const struct attacker *a, const struct sim_frame *f)
{
	return f->from < a->job->net.n_nodes && f->to < a->job->net.n_nodes;
}

static void attack(struct attacker *a)
{
	struct sim_frame *f = copy(any(a));
	enum kind kind = (enum kind)sim_below(&a->rng, N_KINDS);

	if (f->len >= SW_HEAD_BYTES && !is_spared(a, f))
		change(a, f, kind);
	else
		f->len = 0;
	if (f->len && is_here(a, f)) {
		sim_net_replay(&a->job->net, f);
		a->n++;
		a->by_kind[kind]++;
	}
	free(f);
}

static enum sim_fate on_frame(void *ctx, struct sim_frame *f)
{
	struct attacker *a = ctx;
	uint64_t at = a->n_seen < KEPT ? a->n_seen : sim_below(&a->rng, KEPT);
	uint64_t n = sim_below(&a->rng, 8);

	if (f->bytes[3] == SW_JOIN)
		memcpy(&a->nonces[a->n_nonces++ % NONCES],
			f->bytes + SW_HEAD_BYTES, 8);
	free(a->kept[at]);
	a->kept[at] = copy(f);
	a->n_seen++;
	while (n-- && a->n < a->most)
		attack(a);
	/* Delay some frames, so that later ones overtake them. */
	if (!sim_below(&a->rng, 200)) {
		a->job->net.faults.jitter_ns = sim_below(&a->rng, 50000);
		return SIM_PASS;
	}
	return SIM_PASS;
}

static bool run_seed(struct attacker *a, uint64_t seed, uint64_t counts[3])
{
	struct sim_job *job = malloc(sizeof(*job));
	const char *wrong = NULL;

	if (!job)
		abort();
	sim_job_draw(job, seed);
	job->is_keyed = true;
	job->params.is_encrypted = seed % 2;
	job->net.faults.false_ack = 0;
	if (job->doom || job->mismatch || job->clash.how) {
		free(job);
		return true;
	}
	job->log.level = SW_LOG_ERROR;
	a->job = job;
	a->rng = seed * 2 + 1;
	a->n_nonces = 0;
	job->net.faults.corrupt += !job->net.faults.corrupt; /* CRCs may fail */
	job->net.hook = on_frame;
	job->net.hook_ctx = a;
	sim_job_open(job);
	sim_job_draw_nodes(job);
	if (!sim_job_run(job, LIMIT_S * SW_S))
		wrong = job->oracle[0] ? job->oracle : "not complete";
	else if (job->n_groups)
		sim_job_pass(job, 5 * SW_S + job->freeze_ns);
	if (!wrong)
		wrong = sim_groups_wrong(job);
	if (!wrong)
		wrong = sim_job_wrong(job);
	for (uint32_t r = 0; r < job->n_workers && !wrong; r++)
		if (job->workers[r].has_failed)
			wrong = job->workers[r].text;
	for (uint32_t i = 0; i < job->n_servers * job->n_lcores; i++) {
		counts[0] += job->servers[i]->stats.rx_tag;
		counts[1] += job->servers[i]->stats.rx_replay;
		counts[2] += job->servers[i]->stats.rx_session;
	}
	if (wrong)
		printf("not ok - seed %llu: %s\n", (unsigned long long)seed,
			wrong);
	sim_job_close(job);
	free(job);
	fflush(stdout);
	return !wrong;
}

int main(int argc, char **argv)
{
	struct attacker a = {.most = 300000};
	uint64_t counts[3] = {0}, seed = 1, failed = 0;

	if (getenv("SUMWIRE_TEST_QUICK"))
		a.most = 100000;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--attempts"))
			a.most = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--from"))
			seed = strtoull(argv[i + 1], NULL, 10);
	}
	while (a.n < a.most)
		failed += !run_seed(&a, seed++, counts);
	printf("# flipped by type:");
	for (uint32_t t = 0; t < SW_N_TYPES; t++)
		printf(" %llu", (unsigned long long)a.flipped[t]);
	printf("\n");
	for (uint32_t k = 0; k < N_KINDS; k++)
		printf("# %llu %s\n", (unsigned long long)a.by_kind[k],
			names[k]);
	printf("# servers dropped by tag %llu, as replays %llu, by session "
	       "%llu\n",
		(unsigned long long)counts[0], (unsigned long long)counts[1],
		(unsigned long long)counts[2]);
	printf("# %llu attempts in %llu seeds\n", (unsigned long long)a.n,
		(unsigned long long)seed);
	for (uint32_t i = 0; i < KEPT; i++)
		free(a.kept[i]);
	printf("%llu failed\n", (unsigned long long)failed);
	return failed != 0;
}
