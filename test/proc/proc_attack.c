/* proc_attack.c - an attacker on a bridge: resends and alters frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * usage: proc_attack INTERFACE ATTEMPTS SEED
 *
 * It reads all frames of sumwire that pass the interface, and keeps some. Each
 * attempt sends a kept frame, or an altered copy of it, to its receiver or back
 * to its sender. Checksums of IP and UDP are right, and so are the CRCs of
 * every second altered copy: an attacker knows the protocol, but not the
 * secret. Prints the number of attempts of each kind.
 *
 * After SIGUSR1 it sends its frames to an unused address, and does not count
 * them, until SIGUSR2: the difference is the work of the attacked daemon.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sum/sum.h"
#include "test/support/random.h"

enum {
	KEPT = 4096,
	FRAME_MAX = 9100,
	IP_AT = 14,
	UDP_AT = 34,
	HEAD_AT = 42,
	HEAD = 54,
	CRC_AT = 46, /* in our header: the payload's, then the header's */
	BURST = 64,  /* attempts between two reads of the wire */
	WAIT_S = 60, /* for the first frame */
};

struct frame {
	uint32_t n;
	uint8_t bytes[FRAME_MAX];
};

struct attack {
	int fd;
	struct sockaddr_ll to;
	uint64_t rng;
	struct frame *kept;
	uint32_t n_kept; /* since the start */
	struct frame now;
	uint8_t mac[6];
};

static volatile sig_atomic_t is_aside;

static void on_signal(int number)
{
	is_aside = number == SIGUSR1;
}

static uint32_t below(struct attack *a, uint32_t n)
{
	return (uint32_t)(test_random(&a->rng) % n);
}

/* --- frames on the wire --- */

static bool is_ours(const uint8_t *p, ssize_t n)
{
	return n >= HEAD_AT + HEAD && p[12] == 8 && p[13] == 0 &&
	       p[IP_AT + 9] == IPPROTO_UDP && p[HEAD_AT] == 0x53 &&
	       p[HEAD_AT + 1] == 0x4d;
}

/* Keep frames of others; when all places are taken, replace a random one. */
static void look(struct attack *a)
{
	struct frame *f = &a->now;
	struct sockaddr_ll from;

	for (int i = 0; i < 4 * BURST; i++) {
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(a->fd, f->bytes, sizeof(f->bytes),
			MSG_DONTWAIT, (struct sockaddr *)&from, &len);

		if (n < 0)
			return;
		if (from.sll_pkttype == PACKET_OUTGOING ||
			!is_ours(f->bytes, n) ||
			!memcmp(f->bytes + 6, a->mac, sizeof(a->mac)))
			continue;
		f->n = (uint32_t)n;
		a->kept[a->n_kept < KEPT ? a->n_kept : below(a, KEPT)] = *f;
		a->n_kept++;
	}
}

static uint16_t ip_sum(const uint8_t *p)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += i == 10 ? 0 : (uint32_t)(p[i] << 8 | p[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static bool out(struct attack *a)
{
	struct frame *f = &a->now;

	memcpy(f->bytes + 6, a->mac, sizeof(a->mac));
	put16(f->bytes + IP_AT + 2, f->n - IP_AT);
	put16(f->bytes + UDP_AT + 4, f->n - UDP_AT);
	put16(f->bytes + UDP_AT + 6, 0); /* no UDP checksum */
	put16(f->bytes + IP_AT + 10, ip_sum(f->bytes + IP_AT));
	for (;;) {
		struct pollfd p = {a->fd, POLLOUT, 0};

		if (sendto(a->fd, f->bytes, f->n, 0, (struct sockaddr *)&a->to,
			    sizeof(a->to)) >= 0)
			return true;
		if (errno != EAGAIN && errno != ENOBUFS)
			return false;
		poll(&p, 1, 1);
	}
}

/* --- changes --- */

static const struct frame *other(struct attack *a)
{
	return &a->kept[below(a, a->n_kept < KEPT ? a->n_kept : KEPT)];
}

static void change_nothing(struct attack *a)
{
	(void)a;
}

static void change_bit(struct attack *a)
{
	uint32_t at = below(a, 8 * (a->now.n - HEAD_AT));

	a->now.bytes[HEAD_AT + at / 8] ^= (uint8_t)(1 << at % 8);
}

static void change_field(struct attack *a)
{
	static const uint8_t at[] = {
		3, 4, 5, 8, 12, 16, 20, 24, 28, 30, 32, 33, 34, 36, 40, 44};

	a->now.bytes[HEAD_AT + at[below(a, sizeof(at))]] ^=
		(uint8_t)(1 + below(a, 255));
}

/* A newer number, which a receiver accepts first. */
static void change_number(struct attack *a)
{
	uint32_t psn;

	memcpy(&psn, a->now.bytes + HEAD_AT + 12, sizeof(psn));
	psn += 1 + below(a, 200);
	memcpy(a->now.bytes + HEAD_AT + 12, &psn, sizeof(psn));
}

static void change_payload(struct attack *a)
{
	uint32_t n = a->now.n - HEAD_AT - HEAD;

	for (uint32_t i = 0; n && i < 16; i++)
		a->now.bytes[HEAD_AT + HEAD + below(a, n)] ^=
			(uint8_t)(1 + below(a, 255));
}

static void change_tag(struct attack *a)
{
	memset(a->now.bytes + HEAD_AT + CRC_AT, 0, 8);
}

/* The tag of one frame under the bytes of another. */
static void change_tag_for_another(struct attack *a)
{
	memcpy(a->now.bytes + HEAD_AT + CRC_AT,
		other(a)->bytes + HEAD_AT + CRC_AT, 8);
}

static void change_session(struct attack *a)
{
	memcpy(a->now.bytes + HEAD_AT + 8, other(a)->bytes + HEAD_AT + 8, 4);
}

/* The payload of another frame of the same length, if there is one. */
static void change_whole_payload(struct attack *a)
{
	const struct frame *f = other(a);

	if (f->n == a->now.n)
		memcpy(a->now.bytes + HEAD_AT + HEAD, f->bytes + HEAD_AT + HEAD,
			f->n - HEAD_AT - HEAD);
	else
		change_payload(a);
}

static void set_length(struct attack *a, uint32_t n)
{
	a->now.n = HEAD_AT + HEAD + n;
	a->now.bytes[HEAD_AT + 6] = (uint8_t)n;
	a->now.bytes[HEAD_AT + 7] = (uint8_t)(n >> 8);
}

static void change_length(struct attack *a)
{
	set_length(a, below(a, a->now.n - HEAD_AT - HEAD + 1));
}

/* Send it back to its sender, as if from its receiver. */
static void reflect(struct attack *a)
{
	uint8_t *p = a->now.bytes, swap[12];

	memcpy(swap, p, 6);
	memcpy(p, p + 6, 6);
	memcpy(p + 6, swap, 6);
	memcpy(swap, p + IP_AT + 12, 8);
	memcpy(p + IP_AT + 12, swap + 4, 4);
	memcpy(p + IP_AT + 16, swap, 4);
	memcpy(swap, p + UDP_AT, 4);
	memcpy(p + UDP_AT, swap + 2, 2);
	memcpy(p + UDP_AT + 2, swap, 2);
}

/* LEAVE, ERROR or END with an error: without keys, correct CRCs suffice to end
 * a job. */
static void make_end(struct attack *a)
{
	static const uint8_t types[] = {8, 11, 13};

	a->now.bytes[HEAD_AT + 3] = types[below(a, sizeof(types))];
	a->now.bytes[HEAD_AT + 5] = 8;
	memset(a->now.bytes + HEAD_AT + HEAD, 0, 264);
	memset(a->now.bytes + HEAD_AT + HEAD + 8, 0xff, 2);
	set_length(a, 264);
	change_number(a);
}

/* Other bytes for the next round, ahead of the genuine ones. */
static void make_next(struct attack *a)
{
	uint32_t round;

	memcpy(&round, a->now.bytes + HEAD_AT + 20, sizeof(round));
	round++;
	memcpy(a->now.bytes + HEAD_AT + 20, &round, sizeof(round));
	change_number(a);
	change_payload(a);
}

static const struct {
	const char *name;
	void (*change)(struct attack *a);
} kinds[] = {{"replay", change_nothing}, {"bit", change_bit},
	{"field", change_field}, {"number", change_number},
	{"payload", change_payload}, {"whole_payload", change_whole_payload},
	{"no_tag", change_tag}, {"other_tag", change_tag_for_another},
	{"session", change_session}, {"length", change_length},
	{"end", make_end}, {"next", make_next}};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static uint32_t crc_of(const struct frame *f, uint32_t at, uint32_t n)
{
	return sw_crc32c(0, f->bytes + HEAD_AT + at, n);
}

static uint32_t word_at(const struct frame *f, uint32_t at)
{
	uint32_t word;

	memcpy(&word, f->bytes + HEAD_AT + at, sizeof(word));
	return word;
}

/* Set both CRCs for the session of @was, the frame before the change. The seeds
 * follow from its own CRCs, because CRCs are linear. */
static void set_crcs(struct attack *a, const struct frame *was)
{
	struct frame *f = &a->now;
	uint32_t seed = word_at(was, CRC_AT + 4) ^ crc_of(was, 0, CRC_AT + 4);
	uint32_t n = f->n - HEAD_AT - HEAD;
	uint32_t crc = crc_of(f, HEAD, n);

	if (f->n == was->n)
		crc ^= word_at(was, CRC_AT) ^ crc_of(was, HEAD, n);
	memcpy(f->bytes + HEAD_AT + CRC_AT, &crc, sizeof(crc));
	crc = crc_of(f, 0, CRC_AT + 4) ^ seed;
	memcpy(f->bytes + HEAD_AT + CRC_AT + 4, &crc, sizeof(crc));
}

/* Return whether a daemon received the frame; negative: it was not sent. */
static int attempt(struct attack *a, uint64_t counts[2][KINDS])
{
	uint32_t kind = below(a, KINDS), is_back = below(a, 4) == 0;
	bool is_counted = !is_aside;

	const struct frame *was = other(a);

	a->now = *was;
	kinds[kind].change(a);
	if (kind && below(a, 2))
		set_crcs(a, was);
	if (is_back)
		reflect(a);
	counts[is_back][kind] += is_counted;
	if (!is_counted)
		memcpy(a->now.bytes, "\x02\x66\x66\x66\x66\x67", 6);
	return out(a) ? is_counted : -1;
}

/* --- begin and end --- */

static int open_wire(struct attack *a, const char *name)
{
	struct packet_mreq all = {.mr_type = PACKET_MR_PROMISC};
	int bytes = 16 << 20;

	a->to = (struct sockaddr_ll){.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name),
		.sll_halen = 6};
	all.mr_ifindex = a->to.sll_ifindex;
	memcpy(a->mac, "\x02\x66\x66\x66\x66\x66", sizeof(a->mac));
	a->fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	if (a->fd < 0 ||
		bind(a->fd, (struct sockaddr *)&a->to, sizeof(a->to)) ||
		setsockopt(a->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all,
			sizeof(all)))
		return -1;
	setsockopt(a->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	return 0;
}

static int attack(struct attack *a, uint64_t n)
{
	uint64_t counts[2][KINDS] = {0};

	for (int i = 0; i < 10 * WAIT_S && a->n_kept < KEPT / 4; i++) {
		look(a);
		usleep(100000);
	}
	if (!a->n_kept) {
		fprintf(stderr, "proc_attack: no frames\n");
		return 1;
	}
	printf("attacks\n");
	fflush(stdout);
	for (uint64_t i = 0, done = 0; done < n; i++) {
		int got;

		if (i % BURST == 0)
			look(a);
		got = attempt(a, counts);
		if (got < 0) {
			perror("proc_attack: sendto");
			return 1;
		}
		done += (uint64_t)got;
	}
	for (int k = 0; k < KINDS; k++)
		printf("%s %llu, reflected %llu\n", kinds[k].name,
			(unsigned long long)counts[0][k],
			(unsigned long long)counts[1][k]);
	printf("attempts %llu, frames seen %u\n", (unsigned long long)n,
		a->n_kept);
	return 0;
}

int main(int argc, char **argv)
{
	struct attack *a = calloc(1, sizeof(*a));

	if (argc != 4 || !a)
		return 2;
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	a->kept = calloc(KEPT, sizeof(*a->kept));
	a->rng = strtoull(argv[3], NULL, 10);
	if (!a->kept || open_wire(a, argv[1])) {
		perror("proc_attack");
		return 1;
	}
	return attack(a, strtoull(argv[2], NULL, 10));
}
