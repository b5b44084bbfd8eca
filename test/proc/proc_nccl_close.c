/* proc_nccl_close.c - NCCL closes during a sum, also at a frozen agent.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * No process may access a buffer after NCCL has it back: the test protects the
 * buffer, so that an access ends the process by a signal.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/proc/proc_nccl.h"
#include "test/proc/proc_say.h"

enum {
	OPEN = 8,
	BYTES = 4 << 20,
	ROUNDS = 6,
	LIMIT_S = 20, /* libsumwire waits 60 s for an agent */
};

struct sums {
	struct node *k;
	void *comm;
	char *send, *recv; /* each has OPEN buffers */
	void *send_mr, *recv_mr;
	void *requests[OPEN];
	uint32_t n;
};

static char *map(void)
{
	char *p = mmap(NULL, (size_t)OPEN * BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	nccl_must(p != MAP_FAILED, "no memory");
	return p;
}

static void begin(struct node *k, struct sums *s)
{
	*s = (struct sums){.k = k, .comm = nccl_connect(k)};
	s->send = map();
	s->recv = map();
	s->send_mr = nccl_register(k, s->comm, s->send, (size_t)OPEN * BYTES);
	s->recv_mr = nccl_register(k, s->comm, s->recv, (size_t)OPEN * BYTES);
}

/* Start one more sum if an agent accepts it; return the error otherwise. */
static int try_start(struct sums *s)
{
	size_t at = (size_t)(s->n % OPEN) * BYTES;
	void **r = &s->requests[s->n++ % OPEN];
	uint32_t n_tries = 0;
	int err = 0;

	for (*r = NULL; !err && !*r; nccl_later(&n_tries))
		err = nccl_all_reduce(s->k, s->comm, s->send + at, s->recv + at,
			BYTES / 4, NCCL_I32, NCCL_SUM, s->send_mr, s->recv_mr,
			r);
	return err;
}

static void start(struct sums *s)
{
	nccl_must(!try_start(s), "iallreduce");
}

static void protect(char *p)
{
	nccl_must(!mprotect(p, (size_t)OPEN * BYTES, PROT_NONE), "mprotect");
}

/* Make NCCL's calls at the end of a communicator, with sums in flight. */
static void give_back(struct sums *s)
{
	int done, size;

	nccl_deregister(s->k, s->comm, s->recv_mr);
	protect(s->recv);
	nccl_must(nccl_test(s->k, s->requests[OPEN - 1], &done, &size) || done,
		"a request whose buffer is gone is still open");
	nccl_deregister(s->k, s->comm, s->send_mr);
	protect(s->send);
	nccl_close(s->k, s->comm);
}

static void forget(struct sums *s)
{
	munmap(s->send, (size_t)OPEN * BYTES);
	munmap(s->recv, (size_t)OPEN * BYTES);
}

/* Check that a sum ends well, so the job continues. */
static void sum_once(struct node *k)
{
	struct sums s;

	begin(k, &s);
	memset(s.send, (int)k->rank + 1, BYTES);
	start(&s);
	nccl_must(nccl_await(k, s.requests[0]) == BYTES, "a sum");
	nccl_must(s.recv[0] == (char)(k->n * (k->n + 1) / 2), "sum %d",
		s.recv[0]);
	nccl_deregister(k, s.comm, s.send_mr);
	nccl_deregister(k, s.comm, s.recv_mr);
	nccl_close(k, s.comm);
	forget(&s);
}

/* --- node 0 closes, at different times of a sum --- */

static void close_first(struct sums *s, uint32_t round)
{
	for (uint32_t i = 0; i < OPEN; i++)
		start(s);
	usleep(round * 600);
	give_back(s);
}

/* Close in the middle of a copy, approximately; another node may close before
 * this one has started all its sums. */
static void close_copying(struct sums *s, uint32_t round)
{
	const volatile char *at = s->recv + (size_t)(round % 4) * BYTES;
	int err = 0;

	memset(s->recv, 0x77, (size_t)OPEN * BYTES);
	for (uint32_t i = 0; i < OPEN && !err; i++)
		err = try_start(s);
	for (uint64_t i = 0; !err && *at == 0x77 && i < 1000000000; i++)
		;
	give_back(s);
}

/* Sums without node 0 fail. */
static void close_later(struct sums *s)
{
	struct node *k = s->k;
	void *request = NULL;
	uint32_t n_tries = 0;
	int err = 0;

	while (!err && !request) {
		err = nccl_all_reduce(k, s->comm, s->send, s->recv, BYTES / 4,
			NCCL_I32, NCCL_SUM, s->send_mr, s->recv_mr, &request);
		nccl_later(&n_tries);
	}
	for (n_tries = 0; !err; nccl_later(&n_tries)) {
		int done = 0, size;

		err = nccl_test(k, request, &done, &size);
		nccl_must(!done, "a sum without node 0");
	}
	nccl_deregister(k, s->comm, s->send_mr);
	nccl_deregister(k, s->comm, s->recv_mr);
	nccl_close(k, s->comm);
}

void nccl_run_close(struct node *k)
{
	struct sums s[ROUNDS];

	for (uint32_t i = 0; i < ROUNDS; i++) {
		begin(k, &s[i]);
		if (k->rank == 0)
			close_first(&s[i], i);
		nccl_barrier(k);
		if (k->rank)
			close_later(&s[i]);
	}
	for (uint32_t i = 0; i < ROUNDS; i++)
		forget(&s[i]);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		begin(k, &s[i]);
		close_copying(&s[i], i);
	}
	sum_once(k);
	for (uint32_t i = 0; i < ROUNDS; i++)
		forget(&s[i]);
}

/* --- all close while agents are frozen --- */

static const struct node *frozen;

static void freeze(const struct node *k, int signal_number)
{
	for (uint32_t i = 0; i < k->n_pids; i++)
		kill(k->pids[i], signal_number);
}

static void be_late(int number)
{
	static const char text[] =
		"wrong: deregMr or closeColl waits for an agent\n";

	freeze(frozen, SIGCONT);
	_exit(write(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ? number
							       : EXIT_WRONG);
}

static void freeze_together(struct node *k, int signal_number)
{
	nccl_barrier(k);
	if (k->rank == 0)
		freeze(k, signal_number);
	nccl_barrier(k);
}

static void close_frozen(struct node *k, uint32_t n_before, struct sums *s)
{
	begin(k, s);
	for (uint32_t i = 0; i < n_before; i++)
		start(s);
	if (n_before)
		nccl_await(k, s->requests[0]);
	freeze_together(k, SIGSTOP);
	while (s->n < OPEN)
		start(s);
	usleep(20000);
	alarm(LIMIT_S);
	give_back(s);
	alarm(0);
	freeze_together(k, SIGCONT);
}

void nccl_run_frozen(struct node *k)
{
	struct sums s[3];

	frozen = k;
	signal(SIGALRM, be_late);
	sum_once(k);
	close_frozen(k, OPEN, &s[0]); /* the agents have all of them */
	close_frozen(k, OPEN / 2, &s[1]);
	close_frozen(k, 0, &s[2]); /* the agents do not even have the stream */
	sum_once(k);
	for (uint32_t i = 0; i < 3; i++)
		forget(&s[i]);
}
