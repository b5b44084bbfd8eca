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
/* wait for an answer under load; then it is lost */
#define LATE_NS (500 * MS)
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

/* Receive the answer to request @number within @ns.  Returns false if it did
 * not arrive. */
static bool take_of(
	struct path *p, uint64_t ns, uint32_t number, struct sw_echo *out)
{
	uint64_t end_ns = sw_now_ns() + ns, now_ns;
	uint32_t n;

	while ((now_ns = sw_now_ns()) < end_ns)
		if (take_echo(p, end_ns - now_ns, out, &n) &&
			out->number == number)
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

	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t number = ask(p, kind, mtu - p->heads);

		if (number && take_of(p, PROBE_NS, number, &e))
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

static double at(double *sorted, uint32_t n, double part)
{
	uint32_t i = (uint32_t)(part * n);

	return sorted[i < n ? i : n - 1];
}

static void check_idle(struct path *p)
{
	double us[PINGS];
	uint32_t n = 0, sent = 0;
	uint64_t end_ns = sw_now_ns() + IDLE_NS;
	struct sw_params params;

	while (sent < PINGS && sw_now_ns() < end_ns) {
		uint64_t from_ns = sw_now_ns();
		uint32_t number = ask(p, SW_ECHO_ASK, SMALL);
		struct sw_echo e;

		sent++;
		if (number && take_of(p, PING_NS, number, &e))
			us[n++] = (double)(sw_now_ns() - from_ns) / 1e3;
		usleep(1000);
	}
	if (!n) {
		sw_doctor_wrong(p->r, "round trip", "no job can use this path",
			"check cables and the load of both machines",
			"all of %u packets were lost", sent);
		return;
	}
	sw_sort(us, n);
	sw_params_init(&params);
	if (at(us, n, 0.5) * 1e3 > (double)FAR_NS)
		sw_doctor_wrong(p->r, "round trip",
			"[node] queue fills this path only in part",
			"raise [node] queue, or use machines that are near",
			"idle: p50 %.0f us, p99 %.0f us: at most %.0f Mb/s "
			"with "
			"the default queue",
			at(us, n, 0.5), at(us, n, 0.99),
			params.queue_bytes * 8 / at(us, n, 0.5));
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

/* Requests in flight.  A request without an answer counts as lost after
 * LATE_NS, because a busy machine may answer late. */
struct window {
	uint32_t size, n_sent, n_back;
	uint64_t sent_ns[WINDOW_MAX];
	uint32_t number[WINDOW_MAX];
	double *us;
};

static void window_fill(struct path *p, struct window *w, uint64_t from_ns)
{
	for (uint32_t i = 0; i < w->size; i++) {
		uint64_t now_ns = sw_now_ns();

		if (w->number[i] && now_ns - w->sent_ns[i] < LATE_NS)
			continue;
		if (w->n_sent >= SAMPLES ||
			w->n_sent >= 1 + (now_ns - from_ns) * LOAD_PER_SECOND /
						     (1000 * MS))
			return;
		w->number[i] = ask(p, SW_ECHO_ASK, p->mtu - p->heads);
		w->sent_ns[i] = now_ns;
		w->n_sent += w->number[i] != 0;
	}
}

static void window_take(struct path *p, struct window *w, uint64_t ns)
{
	struct sw_echo e;
	uint32_t n;

	if (!take_echo(p, ns, &e, &n))
		return;
	for (uint32_t i = 0; i < w->size; i++) {
		if (!w->number[i] || w->number[i] != e.number)
			continue;
		w->us[w->n_back++] =
			(double)(sw_now_ns() - w->sent_ns[i]) / 1e3;
		w->number[i] = 0;
	}
}

static void tell_load(struct path *p, struct window *w, double seconds)
{
	uint32_t lost = w->n_sent - w->n_back;
	double p50 = 0, p99 = 0;

	if (w->n_back) {
		sw_sort(w->us, w->n_back);
		p50 = at(w->us, w->n_back, 0.5);
		p99 = at(w->us, w->n_back, 0.99);
	}
	if (lost * 1000 > w->n_sent || !w->n_sent)
		sw_doctor_wrong(p->r, "loss",
			"senders slow down, and each lost frame waits for a "
			"retransmission",
			"look for full queues and bad cables: ethtool -S, "
			"ip -s link, the switch's counters",
			"%u of %u packets of %u bytes were lost (p50 %.0f us, "
			"p99 %.0f us)",
			lost, w->n_sent, p->mtu, p50, p99);
	else
		sw_doctor_ok(p->r, "loss",
			"%u of %u packets of %u bytes at %.0f Mb/s; p50 %.0f "
			"us, p99 %.0f us",
			lost, w->n_sent, p->mtu,
			(double)w->n_back * p->mtu * 8 / 1e6 / seconds, p50,
			p99);
}

static void check_load(struct path *p)
{
	struct window w = {.us = malloc(SAMPLES * sizeof(double))};
	uint64_t from_ns = sw_now_ns(), end_ns = from_ns + LOAD_NS, now_ns;

	if (!w.us)
		return;
	w.size = WINDOW_BYTES / p->mtu;
	w.size = w.size > WINDOW_MAX ? WINDOW_MAX : w.size;
	while ((now_ns = sw_now_ns()) < end_ns) {
		window_fill(p, &w, from_ns);
		window_take(p, &w, MS / 10);
	}
	while (sw_now_ns() < end_ns + LATE_NS && w.n_back < w.n_sent)
		window_take(p, &w, MS);
	tell_load(p, &w, (double)LOAD_NS / 1e9);
	free(w.us);
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
	check_idle(p);
	if (p->mtu)
		check_load(p);
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
