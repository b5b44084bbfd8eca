/* allreduce.c - OpenMPI's all-reduce of f32 in place, timed size by size.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * usage: allreduce ITERATIONS BYTES...
 * Rank 0 prints a line per size: bytes, median seconds, wrong elements. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROCESSES = 2, WARM_UP = 2, ITERATIONS_MAX = 1000 };

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

static void measure(int iterations, long bytes)
{
	double times[ITERATIONS_MAX];
	long n = bytes / (long)sizeof(float), wrong;
	float *data = malloc((size_t)bytes);
	int rank, size;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!data || size != PROCESSES)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (long i = 0; i < n; i++)
		data[i] = (float)(rank + 1);
	all_reduce(data, n);
	wrong = count_wrong(data, n, (float)(size * (size + 1)) / 2);
	for (long i = 0; i < n; i++)
		data[i] = 0;
	for (int i = -WARM_UP; i < iterations; i++) {
		double start = MPI_Wtime();

		all_reduce(data, n);
		if (i >= 0)
			times[i] = MPI_Wtime() - start;
	}
	qsort(times, (size_t)iterations, sizeof(times[0]), by_value);
	if (!rank)
		printf("%ld %.9f %ld\n", bytes, times[iterations / 2], wrong);
	fflush(stdout);
	free(data);
}

int main(int argc, char **argv)
{
	int iterations = argc > 2 ? atoi(argv[1]) : 0;

	if (iterations < 1 || iterations > ITERATIONS_MAX) {
		fprintf(stderr, "usage: allreduce ITERATIONS BYTES...\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	for (int i = 2; i < argc; i++)
		measure(iterations, atol(argv[i]));
	MPI_Finalize();
	return 0;
}
