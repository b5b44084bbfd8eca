/* allreduce.c - time OpenMPI's all-reduce of f32 in place, on request.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each line on rank 0's standard input requests a turn: bytes and iterations.
 * It answers with bytes, median seconds, wrong elements.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROCESSES = 2, ITERATIONS_MAX = 1000, SIZES = 16 };

/* A size that was measured before. */
struct known {
	long bytes, wrong;
	float *data;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void all_reduce(float *data, long n)
{
	MPI_Allreduce(
		MPI_IN_PLACE, data, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static long count_wrong(const float *data, long n, float wanted)
{
	long wrong = 0;

	for (long i = 0; i < n; i++)
		wrong += data[i] != wanted;
	return wrong;
}

/* Set up a size: check its first sum; then set all elements to zero, which
 * stays zero. */
static void begin(struct known *k, long bytes, int rank)
{
	long n = bytes / (long)sizeof(float);

	k->bytes = bytes;
	k->data = malloc((size_t)bytes);
	if (!k->data)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (long i = 0; i < n; i++)
		k->data[i] = (float)(rank + 1);
	all_reduce(k->data, n);
	k->wrong = count_wrong(
		k->data, n, (float)(PROCESSES * (PROCESSES + 1)) / 2);
	for (long i = 0; i < n; i++)
		k->data[i] = 0;
	all_reduce(k->data, n);
}

/* Make one untimed sum, then timed ones. */
static void take_turn(const struct known *k, int iterations, int rank)
{
	double times[ITERATIONS_MAX];

	for (int i = -1; i < iterations; i++) {
		double start = MPI_Wtime();

		all_reduce(k->data, k->bytes / (long)sizeof(float));
		if (i >= 0)
			times[i] = MPI_Wtime() - start;
	}
	qsort(times, (size_t)iterations, sizeof(times[0]), by_value);
	if (!rank)
		printf("%ld %.9f %ld\n", k->bytes, times[iterations / 2],
			k->wrong);
	fflush(stdout);
}

/* Read rank 0's next turn, bytes and iterations; return false at the end. */
static int next_turn(int rank, long turn[2])
{
	if (!rank && (scanf("%ld %ld", &turn[0], &turn[1]) != 2 ||
			     turn[1] < 1 || turn[1] > ITERATIONS_MAX))
		turn[0] = 0;
	MPI_Bcast(turn, 2, MPI_LONG, 0, MPI_COMM_WORLD);
	return turn[0] > 0;
}

int main(int argc, char **argv)
{
	struct known known[SIZES] = {{0}};
	int rank, size;
	long turn[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != PROCESSES)
		MPI_Abort(MPI_COMM_WORLD, 1);
	while (next_turn(rank, turn)) {
		int i = 0;

		while (i < SIZES - 1 && known[i].bytes &&
			known[i].bytes != turn[0])
			i++;
		if (known[i].bytes != turn[0])
			begin(&known[i], turn[0], rank);
		take_turn(&known[i], (int)turn[1], rank);
	}
	MPI_Finalize();
	return 0;
}
