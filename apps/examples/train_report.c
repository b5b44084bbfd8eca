/* train_report.c - train's report, as text and as JSON.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/examples/train.h"

#include <inttypes.h>

#include "apps/cli/json.h"

/* Add up the counts of one epoch over all children of the crew. */
static struct sw_train_epoch total(const struct sw_train_crew *crew, uint32_t e)
{
	struct sw_train_epoch sum = {.hash = crew->children[0].epochs[e].hash};

	for (uint32_t i = 0; i < crew->n; i++) {
		const struct sw_train_epoch *x = &crew->children[i].epochs[e];

		sum.loss += x->loss;
		sum.n_trained += x->n_trained;
		sum.n_trained_right += x->n_trained_right;
		sum.n_tested += x->n_tested;
		sum.n_tested_right += x->n_tested_right;
	}
	return sum;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

double sw_train_accuracy(const struct sw_train_crew *crew, uint32_t epoch)
{
	struct sw_train_epoch x = total(crew, epoch);

	return ratio(x.n_tested_right, x.n_tested);
}

double sw_train_mean_loss(const struct sw_train_crew *crew, uint32_t epoch)
{
	struct sw_train_epoch x = total(crew, epoch);

	return ratio(x.loss, x.n_trained);
}

/* Return the stream for text.  With --json, stdout only has the object. */
static FILE *person(const struct sw_train *t)
{
	return t->is_json ? stderr : stdout;
}

void sw_train_progress(
	const struct sw_train_crew *crew, uint32_t epoch, bool is_same)
{
	struct sw_train_epoch x = total(crew, epoch);
	FILE *f = person(crew->train);

	if (!epoch)
		fprintf(f, "epoch    loss  training    test  weights\n");
	fprintf(f, "%5u  %6.4f    %6.4f  %6.4f  %016" PRIx64 "%s\n", epoch + 1,
		ratio(x.loss, x.n_trained),
		ratio(x.n_trained_right, x.n_trained),
		ratio(x.n_tested_right, x.n_tested), x.hash,
		crew->n < 2 ? ""
		: is_same   ? "  identical"
			    : "  DIFFERENT");
	fflush(f);
}

static double gbit_s(const struct sw_train_traffic *x, uint64_t ns)
{
	return ratio((double)x->pushed_bytes * 8, (double)ns);
}

static void traffic_table(FILE *f, const struct sw_train_crew *crew)
{
	fprintf(f, "\n                                  sums under way  "
		   " whole training\n"
		   "rank  pushed MB  pulled MB      s  Gb/s/way   "
		   "    s  Gb/s/way  waited s\n");
	for (uint32_t i = 0; i < crew->n; i++) {
		const struct sw_train_traffic *x = &crew->children[i].traffic;

		fprintf(f,
			"%6u  %9.1f  %9.1f %6.2f  %8.2f   %6.2f  %8.2f  "
			"%8.2f\n",
			crew->children[i].rank, (double)x->pushed_bytes / 1e6,
			(double)x->pulled_bytes / 1e6, (double)x->open_ns / 1e9,
			gbit_s(x, x->open_ns), (double)x->wall_ns / 1e9,
			gbit_s(x, x->wall_ns), (double)x->blocked_ns / 1e9);
	}
	fprintf(f, "\n");
}

static void same_row(FILE *f, const char *what, uint32_t n_same, uint32_t n)
{
	if (n_same == n)
		fprintf(f, "%-26s identical after each of %u epochs\n", what,
			n);
	else
		fprintf(f, "%-26s DIFFERENT after epoch %u\n", what,
			n_same + 1);
}

static void reference_row(
	FILE *f, const struct sw_train *t, const struct sw_train_result *r)
{
	const char *what = "one process of two halves";

	if (r->reference)
		same_row(f, what, r->n_reference_epochs, t->n_epochs);
	else
		fprintf(f,
			"%-26s not compared: the sum of %u ranks depends "
			"on their order\n",
			what, r->ranks->children[0].size);
}

static void table(
	FILE *f, const struct sw_train *t, const struct sw_train_result *r)
{
	if (r->ranks)
		traffic_table(f, r->ranks);
	fprintf(f, "%-26s %.4f, %s %.4f\n", "test accuracy", r->accuracy,
		r->accuracy >= t->target_accuracy ? "at least" : "BELOW",
		t->target_accuracy);
	if (r->ranks && r->ranks->n > 1)
		same_row(f, "sums, weights of ranks", r->n_same_epochs,
			t->n_epochs);
	if (r->ranks)
		reference_row(f, t, r);
	if (r->n_stats)
		fprintf(f, "%-26s %" PRIu64 "\n", "retransmissions",
			r->n_retransmissions);
	fprintf(f, "%-26s %u of %u images\n", "steps",
		t->train.n / t->batch * t->n_epochs, t->batch);
	fprintf(f, "%-26s %.1f s\n", "time", (double)r->time_ns / 1e9);
	fprintf(f, "%s\n", r->is_ok ? "all checks passed" : "FAILED");
}

static void json_rank(struct sw_json *j, const struct sw_train_child *c)
{
	const struct sw_train_traffic *x = &c->traffic;

	sw_json_object_open(j, NULL);
	sw_json_u64(j, "rank", c->rank);
	sw_json_text(j, "agent", c->agent);
	sw_json_u64(j, "pushed_bytes", x->pushed_bytes);
	sw_json_u64(j, "pulled_bytes", x->pulled_bytes);
	sw_json_double(j, "summing_s", (double)x->open_ns / 1e9);
	sw_json_double(j, "waited_s", (double)x->blocked_ns / 1e9);
	sw_json_double(j, "wall_s", (double)x->wall_ns / 1e9);
	sw_json_double(j, "summing_gbit_s", gbit_s(x, x->open_ns));
	sw_json_double(j, "wall_gbit_s", gbit_s(x, x->wall_ns));
	sw_json_close(j);
}

static void json_epoch(
	struct sw_json *j, const struct sw_train_crew *crew, uint32_t e)
{
	struct sw_train_epoch x = total(crew, e);
	char hash[20];

	snprintf(hash, sizeof(hash), "%016" PRIx64, x.hash);
	sw_json_object_open(j, NULL);
	sw_json_double(j, "loss", ratio(x.loss, x.n_trained));
	sw_json_double(
		j, "training_accuracy", ratio(x.n_trained_right, x.n_trained));
	sw_json_double(j, "test_accuracy", ratio(x.n_tested_right, x.n_tested));
	sw_json_text(j, "weights", hash);
	sw_json_close(j);
}

static void json_network(struct sw_json *j, const struct sw_train *t,
	const struct sw_train_result *r)
{
	sw_json_bool(j, "is_identical", r->n_same_epochs == t->n_epochs);
	if (r->reference)
		sw_json_bool(j, "is_reference_identical",
			r->n_reference_epochs == t->n_epochs);
	if (r->n_stats)
		sw_json_u64(j, "retransmissions", r->n_retransmissions);
	sw_json_array_open(j, "ranks");
	for (uint32_t i = 0; i < r->ranks->n; i++)
		json_rank(j, &r->ranks->children[i]);
	sw_json_close(j);
}

static void json(const struct sw_train *t, const struct sw_train_result *r)
{
	const struct sw_train_crew *crew = r->ranks ? r->ranks : r->reference;
	struct sw_json j;

	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	sw_json_bool(&j, "is_ok", r->is_ok);
	sw_json_double(&j, "accuracy", r->accuracy);
	sw_json_double(&j, "target_accuracy", t->target_accuracy);
	sw_json_text(&j, "dtype", sw_dtype_name(t->dtype));
	sw_json_u64(&j, "batch", t->batch);
	sw_json_u64(&j, "steps", t->train.n / t->batch * t->n_epochs);
	sw_json_double(&j, "time_s", (double)r->time_ns / 1e9);
	if (r->ranks)
		json_network(&j, t, r);
	sw_json_array_open(&j, "epochs");
	for (uint32_t e = 0; e < t->n_epochs; e++)
		json_epoch(&j, crew, e);
	sw_json_close(&j);
	sw_json_close(&j);
	sw_json_fini(&j);
}

void sw_train_report_failure(void)
{
	struct sw_json j;

	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	sw_json_bool(&j, "is_ok", false);
	sw_json_close(&j);
	sw_json_fini(&j);
}

void sw_train_report(const struct sw_train *t, const struct sw_train_result *r)
{
	if (t->is_json)
		json(t, r);
	else
		table(stdout, t, r);
}
