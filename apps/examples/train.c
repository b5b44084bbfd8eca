/* train.c - train: a small real training that checks every sum.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/examples/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/clock.h"
#include "apps/launch/run.h"
#include "engine/base/error.h"
#include "pmd/host/stats_read.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Most ranks whose sum one process can reproduce bit by bit: f32 addition
 * commutes but does not associate. */
enum { REFERENCE_MAX = 2 };

/* As many ranks as the reference can reproduce.  The other rank notices a dead
 * agent after 10 s; the rest of the time lets it report it. */
enum { LOOPBACK_RANKS = REFERENCE_MAX };
#define LOOPBACK_GRACE_NS UINT64_C(15000000000)
#define LOOPBACK_QUOTA    (UINT64_C(1) << 30)

/* The agent's counter of retransmitted frames. */
#define RETRANSMISSIONS "retransmissions"

struct run {
	struct sw_train t;
	struct sw_train_crew ranks, reference;
	struct sw_train_result result;
};

static int complain(const char *text)
{
	fprintf(stderr, "example_train: %s\n", text);
	return SW_EINVAL;
}

static int check_loss(const struct sw_train_crew *crew, uint32_t epoch)
{
	if (isfinite(sw_train_mean_loss(crew, epoch)))
		return 0;
	return complain("the loss is not finite: choose a smaller --lr");
}

/* Return whether @a and @b agree after @epoch.  If not, print the
 * difference. */
static bool is_same(const struct sw_train_child *a,
	const struct sw_train_child *b, uint32_t epoch)
{
	const struct sw_train_epoch *x = &a->epochs[epoch];
	const struct sw_train_epoch *y = &b->epochs[epoch];

	if (x->hash == y->hash && x->sums_hash == y->sums_hash)
		return true;
	fprintf(stderr,
		"example_train: after epoch %u rank %u and %s %u differ: "
		"weights %016" PRIx64 " and %016" PRIx64
		", summed gradients %016" PRIx64 " and %016" PRIx64 "\n",
		epoch + 1, a->rank, b->agent ? "rank" : "reference", b->rank,
		x->hash, y->hash, x->sums_hash, y->sums_hash);
	return false;
}

static int rank_epoch(void *ctx, uint32_t epoch)
{
	struct run *r = ctx;
	const struct sw_train_child *c = r->ranks.children;
	bool all_same = true;

	for (uint32_t i = 1; i < r->ranks.n; i++)
		all_same &= is_same(&c[0], &c[i], epoch);
	if (all_same && check_loss(&r->ranks, epoch))
		return SW_EINVAL;
	sw_train_progress(&r->ranks, epoch, all_same);
	if (!all_same)
		return SW_EMISMATCH;
	r->result.n_same_epochs++;
	return 0;
}

static int alone_epoch(void *ctx, uint32_t epoch)
{
	struct run *r = ctx;

	if (check_loss(&r->reference, epoch))
		return SW_EINVAL;
	sw_train_progress(&r->reference, epoch, true);
	return 0;
}

static int reference_epoch(void *ctx, uint32_t epoch)
{
	struct run *r = ctx;

	if (!is_same(&r->ranks.children[0], &r->reference.children[0], epoch))
		return SW_EMISMATCH;
	r->result.n_reference_epochs++;
	return 0;
}

static int run_reference(struct run *r, uint32_t size,
	int (*on_epoch)(void *ctx, uint32_t epoch))
{
	int err = sw_train_crew_init(&r->reference, &r->t, 1);

	if (err)
		return complain("out of memory");
	r->reference.on_epoch = on_epoch;
	r->reference.ctx = r;
	r->result.reference = &r->reference;
	return sw_train_crew_run(&r->reference, size);
}

static int run_ranks(struct run *r)
{
	int err = sw_train_crew_init(&r->ranks, &r->t, r->t.agents.n);

	if (err)
		return complain("out of memory");
	for (uint32_t i = 0; i < r->t.agents.n; i++)
		r->ranks.children[i].agent = r->t.agents.items[i];
	r->ranks.on_epoch = rank_epoch;
	r->ranks.ctx = r;
	r->result.ranks = &r->ranks;
	return sw_train_crew_run(&r->ranks, 0);
}

static void add_counter(void *ctx, const char *name, uint64_t value)
{
	struct sw_train_result *result = ctx;

	if (!strcmp(name, RETRANSMISSIONS)) {
		result->n_retransmissions += value;
		result->n_stats++;
	}
}

/* Read the agents' counter; the servers' counters are in their own stats. */
static int read_stats(struct run *r)
{
	for (uint32_t i = 0; i < r->t.stats.n; i++) {
		const char *path = r->t.stats.items[i];
		int err = sw_stats_read(path, add_counter, &r->result);

		if (!err && r->result.n_stats == i)
			err = SW_ENOENT;
		if (!err)
			continue;
		fprintf(stderr,
			"example_train: cannot read the counter %s "
			"from %s: %s\n",
			RETRANSMISSIONS, path,
			err == SW_ECLOSED ? "nobody listens there"
					  : sw_error_text(err));
		return err;
	}
	return 0;
}

/* Decide the result.  All processes have ended here; an earlier failure is
 * reported where it is found. */
static void conclude(struct run *r, uint64_t start_ns)
{
	const struct sw_train_crew *crew =
		r->result.ranks ? &r->ranks : &r->reference;

	r->result.accuracy = sw_train_accuracy(crew, r->t.n_epochs - 1);
	r->result.is_ok = r->result.accuracy >= r->t.target_accuracy;
	r->result.time_ns = sw_now_ns() - start_ns;
	sw_train_report(&r->t, &r->result);
}

static int run_all(struct run *r)
{
	uint64_t start_ns = sw_now_ns();
	uint32_t size;
	int err;

	if (r->t.is_alone) {
		err = run_reference(r, REFERENCE_MAX, alone_epoch);
	} else {
		err = run_ranks(r);
		size = r->ranks.n ? r->ranks.children[0].size : 0;
		if (!err)
			err = read_stats(r);
		if (!err && size <= REFERENCE_MAX)
			err = run_reference(r, size, reference_epoch);
	}
	if (!err)
		conclude(r, start_ns);
	else if (r->t.is_json)
		sw_train_report_failure();
	sw_train_crew_fini(&r->ranks);
	sw_train_crew_fini(&r->reference);
	return err || !r->result.is_ok;
}

/* Train in the rank's process, as if the user had named agents and stats. */
static int work(void *ctx, const struct sw_net *net)
{
	struct run *r = ctx;
	char agents[LOOPBACK_RANKS][SW_NET_PATH_BYTES];
	char stats[LOOPBACK_RANKS + 1][SW_NET_PATH_BYTES];

	for (uint32_t i = 0; i < net->n_agents; i++) {
		sw_net_agent(net, i, agents[i]);
		r->t.agents.items[r->t.agents.n++] = agents[i];
	}
	for (uint32_t i = 0; i < sw_net_daemons(net); i++) {
		sw_net_stats(net, i, stats[i]);
		r->t.stats.items[r->t.stats.n++] = stats[i];
	}
	return run_all(r) ? 1 : 0;
}

static int run_loopback(struct run *r)
{
	struct sw_run run = {.who = "example_train",
		.n_ranks = 1,
		.grace_ns = LOOPBACK_GRACE_NS,
		.work = work,
		.ctx = r,
		.work_name = "the training",
		.net = {.n_agents = LOOPBACK_RANKS,
			.n_local = 1,
			.log_level = "warn",
			.quota_bytes = LOOPBACK_QUOTA}};

	return sw_run_all(&run);
}

static int check(const struct sw_train *t)
{
	if (t->is_alone + (t->agents.n > 0) + t->is_loopback != 1)
		return complain("give --agent PATH once per rank, "
				"--loopback or --alone");
	if (t->dtype != SW_F32 && t->dtype != SW_F64 && t->dtype != SW_F16 &&
		t->dtype != SW_BF16)
		return complain("--dtype: gradients travel as f32, f64, f16 or "
				"bf16");
	if (t->is_alone && t->is_polling)
		return complain("--polling goes with --agent or --loopback");
	if (!t->agents.n && t->stats.n)
		return complain("--stats goes with --agent");
	return 0;
}

static int load(struct sw_train *t, const char *path)
{
	struct sw_digits_error e = {""};
	struct sw_digits all;
	int err = sw_digits_load(path, &all, &e);

	if (err)
		return complain(e.text);
	err = sw_digits_split(&all, &t->train, &t->test);
	sw_digits_fini(&all);
	if (err)
		return complain("out of memory");
	if (t->test.n && t->batch <= t->train.n)
		return 0;
	fprintf(stderr,
		"example_train: %u training images and %u test images; a batch "
		"of %u needs at least as many training images, and 1 to test\n",
		t->train.n, t->test.n, t->batch);
	return SW_EINVAL;
}

static int parse(struct sw_train *t, const char **data, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"--agent", SW_ARG_LIST, {.list = &t->agents}, 0, 0,
			"socket of an agent; one rank is started for each"},
		{"--alone", SW_ARG_FLAG, {.flag = &t->is_alone}, 0, 0,
			"compute both ranks' halves in one process, without "
			"agents"},
		{"--batch", SW_ARG_U32, {.u32 = &t->batch}, 1, 65536,
			"images per step, all ranks together"},
		{"--data", SW_ARG_PATH, {.string = data}, 0, 0,
			"CSV to use instead of the built-in digits"},
		{"--dtype", SW_ARG_DTYPE, {.dtype = &t->dtype}, 0, 0,
			"element type of gradients on the wire: f32, f64, f16 "
			"or bf16"},
		{"--epochs", SW_ARG_U32, {.u32 = &t->n_epochs}, 1, 100000,
			"passes over the training images"},
		{"--json", SW_ARG_FLAG, {.flag = &t->is_json}, 0, 0,
			"print one JSON object on stdout, progress on stderr"},
		{"--loopback", SW_ARG_FLAG, {.flag = &t->is_loopback}, 0, 0,
			"start a server and an agent for each of two ranks, "
			"and stop them at the end"},
		{"--lr", SW_ARG_DOUBLE, {.real = &t->rate}, 0, 100,
			"learning rate"},
		{"--polling", SW_ARG_FLAG, {.flag = &t->is_polling}, 0, 0,
			"wait for sums by polling instead of sleeping"},
		{"--seed", SW_ARG_U64, {.u64 = &t->seed}, 0, 0,
			"seed of the initial weights and of the order of "
			"images"},
		{"--stats", SW_ARG_LIST, {.list = &t->stats}, 0, 0,
			"stats socket of an agent or server whose "
			"retransmissions are counted"},
		{"--target-accuracy", SW_ARG_DOUBLE,
			{.real = &t->target_accuracy}, 0, 1,
			"required accuracy on the test images"},
		{"--tune", SW_ARG_FLAG, {.flag = &t->is_tuned}, 0, 0,
			"tune partition and credit while training; decisions "
			"go to stderr"},
		{"--timeout", SW_ARG_TIME, {.u64 = &t->timeout_ns}, 1e9,
			86400e9, "longest silence of a rank"},
	};
	const struct sw_args args = {
		.name = "example_train",
		.summary = "train a classifier of handwritten digits, and "
			   "check every sum",
		.rows = rows,
		.n_rows = ARRAY_SIZE(rows),
	};

	return sw_args_parse(&args, argc, argv);
}

int main(int argc, char **argv)
{
	struct run r = {.t = {
				.n_epochs = 10,
				.batch = 64,
				.rate = 0.05,
				.target_accuracy = 0.95,
				.seed = 1,
				.timeout_ns = UINT64_C(60000000000),
			}};
	const char *data = NULL;
	int err = parse(&r.t, &data, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	/* This command starts the ranks, not a launcher. */
	setenv("SUMWIRE_LAUNCHER", "none", 1);
	if (check(&r.t) || load(&r.t, data))
		return 2;
	err = r.t.is_loopback ? run_loopback(&r) : run_all(&r);
	sw_digits_fini(&r.t.train);
	sw_digits_fini(&r.t.test);
	return err;
}
