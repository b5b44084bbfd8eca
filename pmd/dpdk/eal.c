/* eal.c - start DPDK as an ordinary user, run lcores, leave nothing behind.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/eal.h"

#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "engine/base/error.h"
#include "pmd/dpdk/cpus.h"
#include "pmd/dpdk/pci.h"

enum {
	LCORES_MAX = RTE_MAX_LCORE - 1, /* lcore 0 is the control thread */
	BASE_BYTES = 32 << 20,          /* DPDK's own needs without ports */
	ARG_BYTES = 8192,               /* the longest --lcores list fits */
	ARGS_MAX = 16,
	JOIN_POLL_US = 1000,
	SUN_BYTES = 108, /* longest path of a Unix socket */
};

/* Telemetry socket below the runtime directory; DPDK inserts the process's name
 * between the two slashes. */
#define TELEMETRY "/dpdk//dpdk_telemetry.v2"

/* A PCI address that no device has. */
#define NO_DEVICE "ffff:ff:1f.7"

/* A function for an lcore to run. DPDK synchronises call and return, but it is
 * built without the thread sanitizer, so is_passed repeats the synchronisation
 * where the sanitizer sees it. */
struct call {
	int (*fn)(void *arg);
	void *arg;
	atomic_bool is_passed;
};

struct sw_dpdk {
	const struct sw_log *log;
	uint32_t n_lcores;
	struct call calls[LCORES_MAX];
	FILE *stream;      /* rte_log writes here, see log_write */
	char problem[256]; /* DPDK's last error line, for our messages */
};

void sw_dpdk_params_init(struct sw_dpdk_params *p)
{
	*p = (struct sw_dpdk_params){
		.name = "sumwire",
		.runtime_dir = "/tmp",
		.n_lcores = 1,
		.cpus = "auto",
	};
}

/* Pass a line of rte_log to our log. DPDK's lines rarely matter to a user, so
 * they are debug lines unless they are critical. Keep the last error line,
 * because it often explains the failure that we report next. */
static ssize_t log_write(void *ctx, const char *text, size_t n)
{
	struct sw_dpdk *d = ctx;
	uint32_t level = (uint32_t)rte_log_cur_msg_loglevel();
	size_t len = n;

	while (len && text[len - 1] == '\n')
		len--;
	if (!len)
		return (ssize_t)n;
	if (level <= RTE_LOG_ERR)
		snprintf(
			d->problem, sizeof(d->problem), "%.*s", (int)len, text);
	sw_log(d->log, level <= RTE_LOG_CRIT ? SW_LOG_ERROR : SW_LOG_DEBUG,
		"dpdk: %.*s", (int)len, text);
	return (ssize_t)n;
}

static int log_open(struct sw_dpdk *d)
{
	cookie_io_functions_t io = {.write = log_write};

	d->stream = fopencookie(d, "w", io);
	if (!d->stream)
		return SW_ENOMEM;
	setvbuf(d->stream, NULL, _IOLBF, 512);
	rte_openlog_stream(d->stream);
	return 0;
}

static int params_check(const struct sw_dpdk_params *p)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	if (!p->name[0] || strlen(p->name) > 32 ||
		p->name[strspn(p->name, ok)]) {
		sw_log(p->log, SW_LOG_ERROR,
			"name \"%s\": 1 to 32 letters, digits, -, _ and . "
			"expected",
			p->name);
		return SW_ECONF;
	}
	if (!p->n_lcores || p->n_lcores > LCORES_MAX) {
		sw_log(p->log, SW_LOG_ERROR, "lcores %u: 1 to %d expected",
			p->n_lcores, LCORES_MAX);
		return SW_ECONF;
	}
	if (rte_lcore_count()) {
		sw_log(p->log, SW_LOG_ERROR,
			"DPDK was already started in this process; it can "
			"start only once");
		return SW_EPERM;
	}
	return 0;
}

static int entry_remove(
	const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

/* Make a directory for this process alone, or with telemetry use runtime_dir
 * itself, and point DPDK at it. Sets *@old to a copy of the previous
 * RUNTIME_DIRECTORY, or to NULL. */
static int runtime_make(
	const struct sw_dpdk_params *p, char *dir, size_t size, char **old)
{
	const char *env = getenv("RUNTIME_DIRECTORY");
	int n = snprintf(dir, size, p->has_telemetry ? "%s" : "%s/%s-XXXXXX",
		p->runtime_dir, p->name);

	if (n >= (int)size ||
		(p->has_telemetry &&
			n + strlen(p->name) + sizeof(TELEMETRY) >= SUN_BYTES)) {
		sw_log(p->log, SW_LOG_ERROR, "runtime directory %s: too long",
			p->runtime_dir);
		return SW_ECONF;
	}
	if (!p->has_telemetry && !mkdtemp(dir)) {
		sw_log(p->log, SW_LOG_ERROR,
			"runtime directory %s: %s; it must exist and be "
			"writable",
			p->runtime_dir, strerror(errno));
		return SW_ECONF;
	}
	*old = env ? strdup(env) : NULL;
	setenv("RUNTIME_DIRECTORY", dir, 1);
	return 0;
}

/* Remove the directory and restore the environment. Called when rte_eal_init
 * has returned: DPDK has then opened and mapped its files, so a killed process
 * leaves nothing behind. With telemetry the directory stays, because it holds
 * the socket. */
static void runtime_remove(
	const struct sw_dpdk_params *p, const char *dir, char *old)
{
	if (!p->has_telemetry)
		nftw(dir, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
	if (old)
		setenv("RUNTIME_DIRECTORY", old, 1);
	else
		unsetenv("RUNTIME_DIRECTORY");
	free(old);
}

static uint64_t bytes_of(const struct sw_dpdk_params *p)
{
	return BASE_BYTES + p->ports_bytes;
}

/* Check that enough hugepages are free if a port is a NIC: NICs access DPDK's
 * memory by DMA, so it must not move. */
static int hugepages_check(const struct sw_dpdk_params *p)
{
	uint64_t has = p->has_nics ? sw_pci_huge_free("") : UINT64_MAX;

	if (has >= bytes_of(p))
		return 0;
	sw_log(p->log, SW_LOG_ERROR,
		"ports of type pci need %llu MiB of hugepages, but %llu MiB "
		"are free: write a number of pages to "
		"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
		(unsigned long long)(bytes_of(p) >> 20) + 1,
		(unsigned long long)has >> 20);
	return SW_ECONF;
}

/* Check RLIMIT_FSIZE: drivers share their rings through in-memory files and do
 * not report why a file cannot grow. */
static int files_check(const struct sw_dpdk_params *p)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur >= bytes_of(p))
		return 0;
	sw_log(p->log, SW_LOG_ERROR,
		"the limit RLIMIT_FSIZE is %llu bytes, but shared memory needs "
		"files of up to %llu bytes: raise it (ulimit -f unlimited)",
		(unsigned long long)r.rlim_cur,
		(unsigned long long)bytes_of(p));
	return SW_ECONF;
}

/* Start DPDK. It copies the arguments that it keeps. */
static int eal_init(const struct sw_dpdk_params *p, char *lcores)
{
	char mem[32], prefix[64];
	char *argv[ARGS_MAX];
	int argc = 0;

	snprintf(mem, sizeof(mem), "%llu",
		(unsigned long long)(bytes_of(p) >> 20) + 1);
	snprintf(prefix, sizeof(prefix), "--file-prefix=%s", p->name);
	argv[argc++] = (char *)p->name;
	if (p->has_nics) {
		/* Each port names its device; DPDK must not touch other
		 * devices. */
		argv[argc++] = "--allow=" NO_DEVICE;
		argv[argc++] = "--in-memory";
	} else {
		argv[argc++] = "--no-pci";
		argv[argc++] = "--no-huge";
		argv[argc++] = "--no-shconf";
	}
	if (!p->has_telemetry)
		argv[argc++] = "--no-telemetry";
	argv[argc++] = "--iova-mode=va";
	argv[argc++] = "--log-level=notice";
	argv[argc++] = "-m";
	argv[argc++] = mem;
	argv[argc++] = prefix;
	argv[argc++] = lcores;
	argv[argc] = NULL;
	return rte_eal_init(argc, argv);
}

static int eal_error(struct sw_dpdk *d, const struct sw_dpdk_params *p)
{
	int err = rte_errno;
	char limit[80] = "";
	struct rlimit r;

	if (!getrlimit(RLIMIT_AS, &r) && r.rlim_cur != RLIM_INFINITY)
		snprintf(limit, sizeof(limit),
			"; its limit RLIMIT_AS is %llu bytes (ulimit -v)",
			(unsigned long long)r.rlim_cur);
	fflush(d->stream);
	sw_log(d->log, SW_LOG_ERROR,
		"DPDK did not start: %s (%s); it was asked for %llu MiB of "
		"memory%s",
		d->problem[0] ? d->problem : "no reason given",
		rte_strerror(err), (unsigned long long)(bytes_of(p) >> 20),
		limit);
	return err == ENOMEM ? SW_ENOMEM : SW_EIO;
}

static int start(struct sw_dpdk *d, const struct sw_dpdk_params *p)
{
	char lcores[ARG_BYTES], dir[256], *old;
	int err;

	err = hugepages_check(p);
	if (!err)
		err = files_check(p);
	if (!err)
		err = sw_cpus_to_lcores(
			p->cpus, p->n_lcores, p->log, lcores, sizeof(lcores));
	if (err)
		return err;
	err = runtime_make(p, dir, sizeof(dir), &old);
	if (err)
		return err;
	if (eal_init(p, lcores) < 0)
		err = eal_error(d, p);
	runtime_remove(p, dir, old);
	return err;
}

int sw_dpdk_open(const struct sw_dpdk_params *p, struct sw_dpdk **out)
{
	struct sw_dpdk *d;
	int err;

	err = params_check(p);
	if (err)
		return err;
	d = calloc(1, sizeof(*d));
	if (!d)
		return SW_ENOMEM;
	d->log = p->log;
	d->n_lcores = p->n_lcores;
	err = log_open(d);
	if (err)
		goto undo_alloc;
	err = start(d, p);
	if (err)
		goto undo_log;
	*out = d;
	return 0;

undo_log:
	rte_openlog_stream(NULL);
	fclose(d->stream);
undo_alloc:
	free(d);
	return err;
}

void sw_dpdk_close(struct sw_dpdk **d)
{
	if (!*d)
		return;
	/* Do not call rte_eal_cleanup(): it unmaps memory that DPDK's interrupt
	 * thread is still using. No files are left to remove, and DPDK starts
	 * only once per process. */
	rte_openlog_stream(NULL);
	fclose((*d)->stream);
	free(*d);
	*d = NULL;
}

static int run(void *arg)
{
	struct call *c = arg;
	int code;

	atomic_load_explicit(&c->is_passed, memory_order_acquire);
	code = c->fn(c->arg);
	atomic_store_explicit(&c->is_passed, true, memory_order_release);
	return code;
}

int sw_dpdk_launch(
	struct sw_dpdk *d, uint32_t lcore_i, int (*fn)(void *), void *arg)
{
	struct call *c;

	if (lcore_i >= d->n_lcores)
		return SW_EINVAL;
	c = &d->calls[lcore_i];
	if (rte_eal_get_lcore_state(lcore_i + 1) != WAIT)
		return SW_EBUSY;
	c->fn = fn;
	c->arg = arg;
	atomic_store_explicit(&c->is_passed, true, memory_order_release);
	return rte_eal_remote_launch(run, c, lcore_i + 1) ? SW_EBUSY : 0;
}

int sw_dpdk_join(struct sw_dpdk *d, uint32_t lcore_i)
{
	if (lcore_i >= d->n_lcores)
		return SW_EINVAL;
	/* rte_eal_wait_lcore spins and would take a core from computation */
	while (rte_eal_get_lcore_state(lcore_i + 1) == RUNNING)
		usleep(JOIN_POLL_US);
	atomic_load_explicit(
		&d->calls[lcore_i].is_passed, memory_order_acquire);
	return rte_eal_wait_lcore(lcore_i + 1);
}
