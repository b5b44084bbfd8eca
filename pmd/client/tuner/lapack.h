/* lapack.h - the three functions of LAPACK that the tuner calls.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Loaded when a search begins: a program that does not tune needs no LAPACK,
 * and libsumwire does not bring one into processes that have another.
 */
#ifndef SW_PMD_CLIENT_TUNER_LAPACK_H
#define SW_PMD_CLIENT_TUNER_LAPACK_H

#include <stdint.h>

enum { SW_LAPACK_COLUMNS = 102 }; /* LAPACK_COL_MAJOR */

/* LAPACKE's functions of these names, with 32-bit integers. */
struct sw_lapack {
	void *library;
	int32_t (*dpotrf)(
		int layout, char uplo, int32_t n, double *a, int32_t lda);
	int32_t (*dpotrs)(int layout, char uplo, int32_t n, int32_t nrhs,
		const double *a, int32_t lda, double *b, int32_t ldb);
	int32_t (*dtrtrs)(int layout, char uplo, char trans, char diag,
		int32_t n, int32_t nrhs, const double *a, int32_t lda,
		double *b, int32_t ldb);
};

/* sw_lapack_open - load the library.  Any thread.  Returns NULL, or why it
 * cannot be used: static text, or dlerror's of this thread. */
const char *sw_lapack_open(struct sw_lapack *l);

/* sw_lapack_close - the functions are not called any more; may be zeroed. */
void sw_lapack_close(struct sw_lapack *l);

#endif
