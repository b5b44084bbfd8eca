/* autotune.h - a tuner for the job of a program.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One rank of a job opens it and tells it how long each iteration took.  It
 * searches for the partition and credit with which that is shortest, and sets
 * them for all ranks by sw_tune; when iterations later take longer or shorter
 * than noise explains, it searches again.  Every decision is a line of the
 * client's log.
 */
#ifndef SUMWIRE_AUTOTUNE_H
#define SUMWIRE_AUTOTUNE_H

#include <sumwire/sumwire.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sw_autotune;

/* sw_autotune_open - begin to search over @c, which is borrowed until the
 * close.  Thread: that of @c, here and below.
 * Errors: those of sw_tune, with the error text in sw_last_error of @c. */
SW_API int sw_autotune_open(struct sw_client *c, struct sw_autotune **out);

/* sw_autotune_observe - an iteration took @iteration_s seconds.  Those shorter
 * than 20 ms are taken together.  Errors and cost: those of sw_tune, where
 * something is decided; else nothing. */
SW_API int sw_autotune_observe(struct sw_autotune *a, double iteration_s);

/* sw_autotune_close - the tuning stay as they are.  *@a becomes NULL. */
SW_API void sw_autotune_close(struct sw_autotune **a);

#ifdef __cplusplus
}
#endif

#endif
