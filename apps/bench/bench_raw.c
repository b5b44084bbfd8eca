/* bench_raw.c - the raw echo of a port, in two processes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The processes live while a size is measured.  The server polls, so it is
 * stopped between slices; the client waits for a byte from a pipe.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "apps/cli/log.h"
#include "apps/cli/scratch.h"
#include "engine/base/error.h"
#include "pmd/dpdk/eal.h"
#include "pmd/dpdk/port.h"
#include "pmd/dpdk/raw.h"

enum {
	SERVER_HOST = 129, /* apart from the loopback's daemons */
	UDP = 5700,
	UP_MS = 10000,
	BYE_MS = 3000,
	PASS_BYTES = 64 << 20
};

struct side {
	const struct bench_options *o;
	const char *dir;
	uint64_t bytes;
	bool is_server;
	struct sw_log log;
	struct sw_raw raw;
	double best;
	int in, out; /* client: reads a byte per slice, writes its result */
	int err;
};

struct bench_raw {
	struct sw_scratch scratch;
	struct side server, client;
	pid_t pids[2]; /* server, client */
	int in, out;   /* our ends */
};

static int work_server(struct side *s)
{
	return sw_raw_server(&s->raw);
}

/* Find the best burst.  A window is one or two bursts, and at most the ring,
 * since frames beyond the ring would only wait. */
static int try_bursts(struct side *s)
{
	uint32_t ring = sw_dpdk_port_slots(s->raw.port);
	struct sw_raw best = s->raw;
	int err = 0;

	for (uint32_t burst = 4; burst <= 64 && !err; burst *= 2)
		for (uint32_t k = 1; k <= 2 && !err; k++) {
			double gbit_s = 0;

			s->raw.burst = burst;
			s->raw.window = k * burst < ring ? k * burst : ring;
			err = sw_raw_client(&s->raw, &gbit_s);
			if (gbit_s > s->best) {
				s->best = gbit_s;
				best = s->raw;
			}
		}
	s->raw = best;
	return err;
}

/* Find the port's best burst first, then measure slice after slice. */
static int work_client(struct side *s)
{
	uint64_t passes = PASS_BYTES / s->bytes;
	double gbit_s = 0;
	char byte;
	int err;

	s->raw.n_passes = (uint32_t)(passes < 2      ? 2
				     : passes > 2000 ? 2000
						     : passes);
	err = try_bursts(s);
	/* a slice takes a quarter of the passes */
	s->raw.n_passes = (s->raw.n_passes + 3) / 4;
	while (!err && write(s->out, &gbit_s, sizeof(gbit_s)) > 0 &&
		read(s->in, &byte, 1) == 1)
		err = sw_raw_client(&s->raw, &gbit_s);
	sw_raw_bye(&s->raw);
	return err;
}

static int on_lcore(void *arg)
{
	struct side *s = arg;

	s->err = s->is_server ? work_server(s) : work_client(s);
	return s->err;
}

static struct sw_ip ip_of(const struct side *s, bool is_server)
{
	struct sw_ip ip = s->o->net;

	ip.low += SERVER_HOST + !is_server;
	return ip;
}

static void nap_ms(uint32_t ms)
{
	struct timespec t = {.tv_nsec = ms * 1000000L};

	nanosleep(&t, NULL);
}

static int with_port(struct side *s, struct sw_dpdk *dpdk, struct sw_port *port)
{
	int err;

	for (uint32_t ms = 0; !sw_dpdk_port_is_up(port); ms += 10) {
		if (ms >= UP_MS)
			return SW_ETIMEDOUT;
		nap_ms(10);
	}
	s->raw = (struct sw_raw){.port = port,
		.bytes = s->bytes / 4 * 4,
		.f32 = &sw_sum_best(SW_SUM_AVX512)->ops[SW_F32],
		.ip = ip_of(s, true),
		.udp = UDP,
		.burst = SW_RX_BURST,
		.window = 1};
	err = sw_dpdk_launch(dpdk, 0, on_lcore, s);
	return err ? err : sw_dpdk_join(dpdk, 0);
}

static int run_side(struct side *s)
{
	struct sw_dpdk_params params;
	struct sw_dpdk_port_params pp;
	struct sw_dpdk *dpdk = NULL;
	struct sw_port *port = NULL;
	char socket[SW_SCRATCH_BYTES + 16], cpus[BENCH_CPUS];
	int err;

	sw_log_init(&s->log, NULL, SW_LOG_WARN);
	snprintf(socket, sizeof(socket), "%s/raw", s->dir);
	sw_dpdk_port_params_init(&pp);
	pp.name = "raw";
	pp.ip = ip_of(s, s->is_server);
	pp.udp = UDP;
	pp.ring_slots = s->o->ring;
	pp.burst = s->o->burst;
	pp.socket_path = socket;
	pp.side = s->is_server ? SW_DPDK_LISTEN : SW_DPDK_CONNECT;
	pp.type = (enum sw_dpdk_type)sw_dpdk_type_find(s->o->port);
	if (pp.type != SW_DPDK_UDP)
		pp.device = sw_bench_device(s->o, s->is_server ? 2 : 3);
	sw_dpdk_params_init(&params);
	params.name = s->is_server ? "raw-server" : "raw-client";
	params.runtime_dir = s->dir;
	params.ports_bytes = sw_dpdk_port_bytes(&pp);
	params.has_nics = pp.type == SW_DPDK_PCI;
	params.log = &s->log;
	params.cpus = sw_bench_cpus(!s->is_server, 1, cpus);
	err = sw_dpdk_open(&params, &dpdk);
	if (!err)
		err = sw_dpdk_port_open(&pp, 0, &s->log, &port);
	if (!err)
		err = with_port(s, dpdk, port);
	sw_dpdk_port_close(&port);
	sw_dpdk_close(&dpdk);
	return err;
}

static pid_t fork_side(struct bench_raw *r, struct side *s)
{
	pid_t pid = fork();
	int err;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(r->in); /* or the client would not see our close */
	err = run_side(s);
	if (err)
		fprintf(stderr, "sumwire bench: raw echo, %s: %s\n",
			s->is_server ? "server" : "client", sw_error_text(err));
	_exit(err ? 1 : 0);
}

/* Wait for the server to end, which it does when the client says good-bye.
 * Kill it after BYE_MS. */
static void end_server(pid_t pid)
{
	for (uint32_t ms = 0; waitpid(pid, NULL, WNOHANG) == 0; ms += 10) {
		if (ms >= BYE_MS)
			kill(pid, SIGKILL);
		nap_ms(10);
	}
}

static double result(struct bench_raw *r)
{
	double gbit_s = 0;

	if (read(r->out, &gbit_s, sizeof(gbit_s)) != sizeof(gbit_s))
		gbit_s = -1;
	kill(r->pids[0], SIGSTOP);
	return gbit_s;
}

/* Clean up after a failed fork.  Keeps errno. */
static void give_up(struct bench_raw *r)
{
	int why = errno;

	close(r->in);
	close(r->out);
	if (r->pids[1] > 0) {
		kill(r->pids[1], SIGKILL);
		waitpid(r->pids[1], NULL, 0);
	}
	errno = why;
}

/* Start both sides, with pipes between this process and the client. */
static int start(struct bench_raw *r)
{
	int to[2], from[2];

	if (pipe(to))
		return SW_EIO;
	if (pipe(from)) {
		close(to[0]);
		close(to[1]);
		return SW_EIO;
	}
	r->client.in = to[0];
	r->client.out = from[1];
	r->in = to[1];
	r->out = from[0];
	r->pids[1] = fork_side(r, &r->client);
	close(to[0]);
	close(from[1]);
	if (r->pids[1] > 0)
		r->pids[0] = fork_side(r, &r->server);
	if (r->pids[0] > 0)
		return 0;
	give_up(r);
	return SW_EIO;
}

struct bench_raw *sw_bench_raw_open(
	const struct bench_options *o, uint64_t bytes)
{
	struct bench_raw *r = calloc(1, sizeof(*r));
	const struct side side = {.o = o, .bytes = bytes};

	if (!r)
		return NULL;
	r->server = r->client = side;
	r->server.is_server = true;
	r->server.dir = r->client.dir = r->scratch.path;
	/* A folder inside the loopback's disappears with it, even if this
	 * process is killed. */
	if (sw_scratch_open(&r->scratch, o->folder ? o->folder : "/tmp",
		    "sumwire-raw") ||
		start(r)) {
		fprintf(stderr, "sumwire bench: raw echo: %s\n",
			strerror(errno));
		sw_scratch_close(&r->scratch);
		free(r);
		return NULL;
	}
	if (result(r) < 0)
		sw_bench_raw_close(&r);
	return r;
}

double sw_bench_raw_slice(struct bench_raw *r)
{
	kill(r->pids[0], SIGCONT);
	return write(r->in, "", 1) == 1 ? result(r) : -1;
}

void sw_bench_raw_close(struct bench_raw **at)
{
	struct bench_raw *r = *at;

	if (!r)
		return;
	kill(r->pids[0], SIGCONT);
	close(r->in);
	close(r->out);
	waitpid(r->pids[1], NULL, 0);
	end_server(r->pids[0]);
	sw_scratch_close(&r->scratch);
	free(r);
	*at = NULL;
}
