/* path.c - checks of the path to another machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/doctor/path.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "apps/cli/quartiles.h"
#include "apps/doctor/hello.h"
#include "engine/base/bytes.h"
#include "engine/base/params.h"

#define MS       UINT64_C(1000000)
#define TRY_NS   (200 * MS)  /* between attempts to find the other end */
#define PROBE_NS (70 * MS)   /* wait for the answer to a probe of a size */
#define PING_NS  (100 * MS)  /* wait for the answer to a ping */
#define LOAD_NS  (1000 * MS) /* duration of the load test */
/* An answer this late leaves its place in the window.  It is lost if it has not
 * come REST_NS after the last request: a busy machine answers late. */
#define LATE_NS (500 * MS)
#define REST_NS (2000 * MS)
#define IDLE_NS (1000 * MS) /* duration of the idle test */
#define TCP_NS  (1000 * MS) /* wait for any answer of the host's TCP */
/* round trips this long: the network is not local */
#define FAR_NS (10 * MS)

enum {
	TRIES = 6,
	TOLD = 2,
	PROBES = 3,
	PINGS = 100,
	MTU_LEAST = 1280,
	SMALL = 256, /* datagram size for round trips, in bytes */
	WINDOW_BYTES = 64 << 10,
	WINDOW_MAX = 32,
	SAMPLES = 16384,
	LOAD_PER_SECOND = 10000, /* half of the other end's limit */
	/* After a pause fewer requests make up for it than the other end
	 * answers at once. */
	LOAD_BURST = 500,
};

struct path {
	struct sw_doctor_report *r;
	const char *peer;
	const union sw_echo_address *to;
	int fd;
	uint32_t heads;                /* bytes of the IP and UDP headers */
	uint32_t claimed, peer_claims; /* MTUs; 0: unknown */
	char name[IF_NAMESIZE];
	uint32_t mtu; /* works in both directions */
	uint64_t token;
	uint32_t number, asked; /* asked: bytes of the last request */
	uint32_t n_strange;     /* datagrams that are no answers */
	bool is_refused, is_unreachable;
	int why; /* errno of the last unreachable error */
	uint8_t out[SW_ECHO_MOST], in[65536];
};

/* --- one request --- */

static void note_error(struct path *p, int err)
{
	if (err == ECONNREFUSED)
		p->is_refused = true;
	else if (err == EHOSTUNREACH || err == ENETUNREACH || err == EPERM ||
		 err == EACCES) {
		p->is_unreachable = true;
		p->why = err;
	}
}

/* Send a request.  Returns its number; 0: it could not be sent. */
static uint32_t ask(struct path *p, enum sw_echo_kind kind, uint32_t bytes)
{
	struct sw_echo e = {.magic = SW_ECHO_MAGIC,
		.token = p->token,
		.number = ++p->number,
		.bytes = bytes,
		.kind = kind};

	p->asked = bytes;
	memset(p->out, 0, bytes);
	memcpy(p->out, &e, sizeof(e));
	if (send(p->fd, p->out, bytes, 0) == (ssize_t)bytes)
		return e.number;
	note_error(p, errno);
	return 0;
}

/* Receive one answer within @ns.  Returns false if none arrived. */
static bool take_echo(
	struct path *p, uint64_t ns, struct sw_echo *out, uint32_t *n)
{
	uint64_t end_ns = sw_now_ns() + ns, now_ns;

	while ((now_ns = sw_now_ns()) <= end_ns) {
		struct pollfd f = {.fd = p->fd, .events = POLLIN};
		uint64_t left = end_ns - now_ns;
		struct timespec t = {.tv_sec = (time_t)(left / (1000 * MS)),
			.tv_nsec = (long)(left % (1000 * MS))};
		ssize_t got;

		if (ppoll(&f, 1, &t, NULL) <= 0)
			continue;
		got = recv(p->fd, p->in, sizeof(p->in), 0);
		if (got < 0) {
			note_error(p, errno);
			continue;
		}
		*n = (uint32_t)got;
		if (got >= (ssize_t)sizeof(*out)) {
			memcpy(out, p->in, sizeof(*out));
			if (out->magic == SW_ECHO_MAGIC &&
				out->kind == SW_ECHO_ANSWER &&
				out->token == p->token && *n <= p->asked)
				return true;
		}
		if (sw_hello_is_answer(p->in, *n, p->token)) {
			memset(out, 0, sizeof(*out));
			return true;
		}
		p->n_strange++;
	}
	return false;
}

/* Receive the answer to one of requests @first to @last within @ns.  Returns
 * false if none arrived. */
static bool take_of(struct path *p, uint64_t ns, uint32_t first, uint32_t last,
	struct sw_echo *out)
{
	uint64_t end_ns = sw_now_ns() + ns, now_ns;
	uint32_t n;

	while ((now_ns = sw_now_ns()) < end_ns)
		if (take_echo(p, end_ns - now_ns, out, &n) &&
			out->number - first <= last - first)
			return true;
	return false;
}

/* --- finding the other end --- */

enum who { NOBODY, DOCTOR, SERVER };

/* Return whether the network has shown in @n attempts that more are useless. */
static bool is_told(const struct path *p, uint32_t n)
{
	return n >= TOLD &&
	       (p->is_refused || p->is_unreachable || p->n_strange >= TOLD);
}

static enum who find(struct path *p)
{
	enum who who = NOBODY;
	struct sw_echo e;
	uint32_t n;

	for (uint32_t i = 0; i < TRIES && who == NOBODY && !is_told(p, i);
		i++) {
		uint64_t end_ns = sw_now_ns() + TRY_NS, now_ns;

		ask(p, SW_ECHO_SHORT, SMALL);
		note_error(p, sw_hello_send(p->fd, p->token));
		while ((now_ns = sw_now_ns()) < end_ns && who != DOCTOR) {
			if (!take_echo(p, end_ns - now_ns, &e, &n))
				continue;
			who = e.magic ? DOCTOR : SERVER;
			if (who == DOCTOR)
				p->peer_claims = e.mtu;
		}
	}
	return who;
}

/* Return how the host's TCP answers a connection: 0 if it accepts, or an
 * errno. */
static int tcp_try(const union sw_echo_address *to)
{
	bool is_v6 = to->any.sa_family == AF_INET6;
	int fd = socket(to->any.sa_family,
		SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd f = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int err = ETIMEDOUT;

	if (fd < 0)
		return errno;
	if (!connect(fd, &to->any, is_v6 ? sizeof(to->v6) : sizeof(to->v4)))
		err = 0;
	else if (errno != EINPROGRESS)
		err = errno;
	else if (poll(&f, 1, (int)(TCP_NS / MS)) > 0 &&
		 getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size))
		err = errno;
	close(fd);
	return err;
}

static void tell_nobody(struct path *p)
{
	static const char *const cost = "no job can use this path";
	int err;

	if (p->n_strange) {
		sw_doctor_wrong(p->r, "UDP", cost,
			"stop the other program there, or choose another port",
			"%s: another program answers there, neither doctor nor "
			"sumwire server (%u packets)",
			p->peer, p->n_strange);
		return;
	}
	if (p->is_refused) {
		sw_doctor_wrong(p->r, "UDP", cost,
			"start the server there, or sumwire doctor --listen "
			"PORT",
			"%s: the machine answers, but nothing listens at that "
			"port",
			p->peer);
		return;
	}
	if (p->is_unreachable) {
		sw_doctor_wrong(p->r, "UDP", cost,
			"ip route get ADDRESS shows the way; check addresses, "
			"routes and own firewall rules",
			"%s: %s", p->peer, strerror(p->why));
		return;
	}
	err = tcp_try(p->to);
	if (!err || err == ECONNREFUSED)
		sw_doctor_wrong(p->r, "UDP", cost,
			"open the UDP port in firewalls at both ends and "
			"between them (nft list ruleset)",
			"%s: no answer, but TCP of that machine answers: a "
			"firewall that drops UDP, or another program at "
			"that port?",
			p->peer);
	else
		sw_doctor_wrong(p->r, "UDP", cost,
			"ping the machine; check its address, and firewalls",
			"%s: no answer to UDP, nor to TCP (%s)", p->peer,
			strerror(err));
}

/* --- sizes --- */

static bool passes(struct path *p, enum sw_echo_kind kind, uint32_t mtu)
{
	struct sw_echo e;
	uint32_t first = p->number + 1;

	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t number = ask(p, kind, mtu - p->heads);

		if (number && take_of(p, PROBE_NS, first, number, &e))
			return true;
	}
	return false;
}

/* Find the largest packet from MTU_LEAST to @most that passes; 0: none. */
static uint32_t search(struct path *p, enum sw_echo_kind kind, uint32_t most)
{
	uint32_t least = MTU_LEAST;

	if (passes(p, kind, most))
		return most;
	if (most <= least || !passes(p, kind, least))
		return 0;
	while (least + 1 < most) { /* least passes, and most does not */
		uint32_t middle = (least + most) / 2;

		if (passes(p, kind, middle))
			least = middle;
		else
			most = middle;
	}
	return least;
}

static void check_mtu(struct path *p)
{
	uint32_t most = p->claimed && p->claimed < SW_ECHO_MOST ? p->claimed
								: SW_ECHO_MOST;
	uint32_t there, back;
	char mend[SW_DOCTOR_TEXT];

	there = search(p, SW_ECHO_SHORT, most);
	back = there ? search(p, SW_ECHO_ASK, there) : 0;
	p->mtu = back;
	snprintf(mend, sizeof(mend),
		"raise the MTU of switches and tunnels between; or here and "
		"there: sudo ip link set dev %s mtu %u",
		*p->name ? p->name : "INTERFACE",
		back >= MTU_LEAST ? back : 1500);
	if (back < MTU_LEAST)
		sw_doctor_wrong(p->r, "MTU", "no tensor passes", mend,
			"packets of %d bytes do not pass %s", MTU_LEAST,
			there >= MTU_LEAST ? "back from the peer"
					   : "to the peer");
	else if (p->claimed && back < most)
		sw_doctor_wrong(p->r, "MTU",
			"larger packets vanish without a word; a job finds "
			"that out and uses smaller frames",
			mend,
			"%u bytes pass there and %u back, but %s claims %u",
			there, back, p->name, p->claimed);
	else if (p->peer_claims && p->peer_claims < p->claimed)
		sw_doctor_wrong(p->r, "MTU",
			"larger packets are dropped at the peer", mend,
			"the peer's interface has %u, %s has %u",
			p->peer_claims, p->name, p->claimed);
	else
		sw_doctor_ok(p->r, "MTU",
			"%u bytes pass in both directions%s%s", back,
			p->claimed ? ", as claimed by " : "", p->name);
}

/* --- round trips --- */

static double at(const double *sorted, uint32_t n, double part)
{
	uint32_t i = (uint32_t)(part * n);

	return sorted[i < n ? i : n - 1];
}

/* Requests and their answers, also late ones. */
struct tally {
	uint32_t first, n_sent, n_back;
	uint64_t sent_ns[SAMPLES]; /* 0: answered */
	double us[SAMPLES];        /* round trips */
};

/* Send a request.  Returns its number; 0: it could not be sent. */
static uint32_t tally_ask(struct path *p, struct tally *t, uint32_t bytes)
{
	uint64_t now_ns = sw_now_ns();
	uint32_t number = ask(p, SW_ECHO_ASK, bytes);

	if (!t->n_sent)
		t->first = number;
	if (number && number - t->first < SAMPLES) {
		t->sent_ns[number - t->first] = now_ns;
		t->n_sent++;
	}
	return number;
}

/* Receive an answer within @ns.  Returns its number; 0: none arrived. */
static uint32_t tally_take(struct path *p, struct tally *t, uint64_t ns)
{
	struct sw_echo e;
	uint32_t n, i;

	if (!take_echo(p, ns, &e, &n))
		return 0;
	i = e.number - t->first;
	if (i < SAMPLES && t->sent_ns[i]) {
		t->us[t->n_back++] =
			(double)(sw_now_ns() - t->sent_ns[i]) / 1e3;
		t->sent_ns[i] = 0;
	}
	return e.number;
}

/* Receive the late answers, and sort the round trips. */
static void tally_end(struct path *p, struct tally *t)
{
	uint64_t end_ns = sw_now_ns() + REST_NS;

	while (t->n_back < t->n_sent && sw_now_ns() < end_ns)
		tally_take(p, t, MS);
	sw_sort(t->us, t->n_back);
}

static void ping(struct path *p, struct tally *t)
{
	uint64_t end_ns = sw_now_ns() + IDLE_NS;

	while (t->n_sent < PINGS && sw_now_ns() < end_ns) {
		uint64_t until_ns = sw_now_ns() + PING_NS;
		uint32_t number = tally_ask(p, t, SMALL);

		while (number && sw_now_ns() < until_ns &&
			tally_take(p, t, PING_NS) != number)
			;
		usleep(1000);
	}
	tally_end(p, t);
}

static void check_idle(struct path *p, struct tally *t)
{
	struct sw_params params;
	const double *us = t->us;
	uint32_t n, sent;

	ping(p, t);
	n = t->n_back;
	sent = t->n_sent;
	if (!n) {
		sw_doctor_wrong(p->r, "round trip", "no job can use this path",
			"check cables and the load of both machines",
			"all of %u packets were lost", sent);
		return;
	}
	sw_params_init(&params);
	/* The quickest show the network; a busy machine delays the others. */
	if (at(us, n, 0.1) * 1e3 > (double)FAR_NS)
		sw_doctor_wrong(p->r, "round trip",
			"[node] queue fills this path only in part",
			"raise [node] queue, or use machines that are near",
			"idle: p50 %.0f us, p99 %.0f us: at most %.0f Mb/s "
			"with "
			"the default queue",
			at(us, n, 0.5), at(us, n, 0.99),
			params.queue_bytes * 8 / at(us, n, 0.1));
	else if ((sent - n) * 50 > sent)
		sw_doctor_wrong(p->r, "round trip",
			"each lost frame waits for a retransmission",
			"look for bad cables and filters: ethtool -S, ip -s "
			"link",
			"%u of %u packets were lost without any load", sent - n,
			sent);
	else
		sw_doctor_ok(p->r, "round trip",
			"idle: p50 %.0f us, p99 %.0f us, %u of %u lost",
			at(us, n, 0.5), at(us, n, 0.99), sent - n, sent);
}

/* Requests in flight, and when the next may be sent. */
struct window {
	uint32_t size;
	uint64_t next_ns;
	uint64_t sent_ns[WINDOW_MAX];
	uint32_t number[WINDOW_MAX]; /* 0: free */
};

static void window_fill(struct path *p, struct window *w, struct tally *t)
{
	const uint64_t gap_ns = 1000 * MS / LOAD_PER_SECOND;

	for (uint32_t i = 0; i < w->size; i++) {
		uint64_t now_ns = sw_now_ns();

		if (w->number[i] && now_ns - w->sent_ns[i] < LATE_NS)
			continue;
		if (t->n_sent >= SAMPLES || now_ns < w->next_ns)
			return;
		if (now_ns - w->next_ns > LOAD_BURST * gap_ns)
			w->next_ns = now_ns - LOAD_BURST * gap_ns;
		w->next_ns += gap_ns;
		w->number[i] = tally_ask(p, t, p->mtu - p->heads);
		w->sent_ns[i] = now_ns;
	}
}

static void window_take(
	struct path *p, struct window *w, struct tally *t, uint64_t ns)
{
	uint32_t number = tally_take(p, t, ns);

	for (uint32_t i = 0; number && i < w->size; i++)
		if (w->number[i] == number)
			w->number[i] = 0;
}

static void tell_load(struct path *p, const struct tally *t, double seconds)
{
	uint32_t lost = t->n_sent - t->n_back;
	double p50 = 0, p99 = 0;

	if (t->n_back) {
		p50 = at(t->us, t->n_back, 0.5);
		p99 = at(t->us, t->n_back, 0.99);
	}
	if (lost * 1000 > t->n_sent || !t->n_sent)
		sw_doctor_wrong(p->r, "loss",
			"senders slow down, and each lost frame waits for a "
			"retransmission",
			"look for full queues and bad cables: ethtool -S, "
			"ip -s link, the switch's counters",
			"%u of %u packets of %u bytes were lost (p50 %.0f us, "
			"p99 %.0f us)",
			lost, t->n_sent, p->mtu, p50, p99);
	else
		sw_doctor_ok(p->r, "loss",
			"%u of %u packets of %u bytes at %.0f Mb/s; p50 %.0f "
			"us, p99 %.0f us",
			lost, t->n_sent, p->mtu,
			(double)t->n_back * p->mtu * 8 / 1e6 / seconds, p50,
			p99);
}

static void check_load(struct path *p, struct tally *t)
{
	uint64_t from_ns = sw_now_ns(), end_ns = from_ns + LOAD_NS;
	struct window w = {.next_ns = from_ns};

	w.size = WINDOW_BYTES / p->mtu;
	w.size = w.size > WINDOW_MAX ? WINDOW_MAX : w.size;
	while (sw_now_ns() < end_ns) {
		window_fill(p, &w, t);
		window_take(p, &w, t, MS / 10);
	}
	tally_end(p, t);
	tell_load(p, t, (double)LOAD_NS / 1e9);
}

/* Run a check with a tally of its own. */
static void with_tally(
	struct path *p, void (*check)(struct path *p, struct tally *t))
{
	struct tally *t = calloc(1, sizeof(*t));

	if (t)
		check(p, t);
	free(t);
}

/* --- the whole measurement --- */

static void measure(struct path *p)
{
	enum who who = find(p);

	if (who == NOBODY) {
		tell_nobody(p);
		return;
	}
	if (who == SERVER) {
		sw_doctor_ok(p->r, "UDP",
			"%s: a sumwire server answers; its path's MTU and loss "
			"need sumwire doctor --listen there",
			p->peer);
		return;
	}
	sw_doctor_ok(p->r, "UDP", "%s: a doctor answers", p->peer);
	check_mtu(p);
	with_tally(p, check_idle);
	if (p->mtu)
		with_tally(p, check_load);
}

void sw_doctor_path(struct sw_doctor_report *r, const char *peer,
	const union sw_echo_address *to)
{
	struct path *p = calloc(1, sizeof(*p));
	bool is_v6 = to->any.sa_family == AF_INET6;

	if (!p)
		return;
	p->r = r;
	p->peer = peer;
	p->to = to;
	p->heads = is_v6 ? 48 : 28;
	p->token = sw_now_ns() << 16 ^ (uint64_t)getpid();
	p->claimed = sw_echo_interface(to, p->name);
	p->fd = sw_echo_socket(to->any.sa_family);
	if (p->fd < 0 || connect(p->fd, &to->any,
				 is_v6 ? sizeof(to->v6) : sizeof(to->v4))) {
		int err = errno;

		sw_doctor_wrong(r, "UDP", "no job can use this path",
			"ip route get ADDRESS shows the way; check addresses "
			"and routes",
			"%s: %s", peer, strerror(err));
	} else {
		measure(p);
	}
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}
