/* client.c - a training process that is kept as a binary, with its libsumwire.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   client [AGENT]
 *
 * Uses what a program uses of <sumwire/...>, and checks every element.  Its
 * ranks are alone in their job.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sumwire/coll.h>

enum { N = 50001, STEPS = 3, EXIT_ERROR = 3, EXIT_WRONG = 4 };

static struct sw_client *client;

static void must(int err, const char *where)
{
	if (!err)
		return;
	printf("error %s %s: %s\n", where, sw_error_name(err),
		sw_last_error(client));
	sw_close(&client);
	exit(EXIT_ERROR);
}

static void wait_for(uint64_t handle, const char *where)
{
	must(sw_wait(client, handle), where);
}

/* What @rank gives in element @i; sums of up to 64 ranks are exact. */
static float given(uint32_t rank, uint64_t i, uint32_t step)
{
	return (float)((i * 7 + step) % 1000 * (rank + 1));
}

static float sum_of(uint64_t i, uint32_t step)
{
	uint32_t n = sw_size(client);

	return given(0, i, step) * (float)(n * (n + 1) / 2);
}

static void fill(float *v, uint64_t n, uint32_t step)
{
	for (uint64_t i = 0; i < n; i++)
		v[i] = given(sw_rank(client), i, step);
}

/* @v has elements from @first on of the sum of all ranks. */
static void check(const float *v, uint64_t first, uint64_t n, uint32_t step,
	const char *where)
{
	for (uint64_t i = 0; i < n; i++) {
		if (v[i] == sum_of(first + i, step))
			continue;
		printf("wrong %s: element %llu is %g, not %g\n", where,
			(unsigned long long)i, (double)v[i],
			(double)sum_of(first + i, step));
		exit(EXIT_WRONG);
	}
}

static void use_tensors(void)
{
	struct sw_tensor_desc descs[2] = {
		SW_TENSOR_DESC_INIT, SW_TENSOR_DESC_INIT};
	struct sw_tensor *t[2];
	uint64_t h[2];

	descs[0].name = "w";
	descs[0].n_elems = N;
	descs[1].name = "b";
	descs[1].n_elems = 3;
	descs[1].priority = 1;
	must(sw_declare(client, descs, 2, t), "declare");
	must(sw_broadcast(client, t[0], 0, 0, &h[0]), "broadcast");
	wait_for(h[0], "broadcast");
	for (uint32_t step = 1; step <= STEPS; step++) {
		for (uint32_t i = 0; i < 2; i++) {
			fill(sw_tensor_data(t[i]), descs[i].n_elems, step);
			must(sw_push_pull(client, t[i], step, &h[i]), "push");
		}
		for (uint32_t i = 0; i < 2; i++) {
			wait_for(h[i], "push");
			check(sw_tensor_result(t[i]), 0, descs[i].n_elems, step,
				descs[i].name);
		}
	}
}

static void use_collectives(void)
{
	struct sw_coll_args args = SW_COLL_ARGS_INIT;
	uint32_t rank = sw_rank(client), size = sw_size(client);
	uint64_t part = N / size, h;
	struct sw_group *all;
	float *send, *recv;
	void *p;

	must(sw_alloc(client, N * sizeof(float), &p), "alloc");
	send = p;
	must(sw_alloc(client, N * sizeof(float), &p), "alloc");
	recv = p;
	must(sw_group_open(client, "all", NULL, 0, &all), "group");
	fill(send, N, 0);
	args.kind = SW_ALL_REDUCE;
	args.count = N;
	args.send = send;
	args.recv = recv;
	must(sw_coll(all, &args, &h), "all_reduce");
	wait_for(h, "all_reduce");
	check(recv, 0, N, 0, "all_reduce");
	args.kind = SW_REDUCE_SCATTER;
	args.count = part;
	must(sw_coll(all, &args, &h), "reduce_scatter");
	wait_for(h, "reduce_scatter");
	check(recv, part * rank, part, 0, "reduce_scatter");
	args.kind = SW_ALL_GATHER;
	args.send = recv;
	args.recv = send;
	must(sw_coll(all, &args, &h), "all_gather");
	wait_for(h, "all_gather");
	check(send, 0, part * size, 0, "all_gather");
}

static void use_tuning(void)
{
	struct sw_tuning now;

	must(sw_set_partition(client, 1 << 20), "set_partition");
	sw_get_tuning(client, &now);
	if (now.round >= STEPS)
		return;
	printf("wrong: %u rounds\n", now.round);
	exit(EXIT_WRONG);
}

int main(int argc, char **argv)
{
	struct sw_settings settings;

	sw_settings_init(&settings);
	settings.agent = argc > 1 ? argv[1] : settings.agent;
	must(sw_open(&settings, &client), "open");
	use_tensors();
	use_tuning();
	use_collectives();
	sw_close(&client);
	printf("libsumwire %u: exact\n", sw_version());
	return 0;
}
