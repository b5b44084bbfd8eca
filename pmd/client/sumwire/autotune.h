/* autotune.h - tune partition and credit while a program trains.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One rank of a job opens a tuner and reports how long each iteration took. The
 * tuner searches for the partition and credit that make iterations shortest,
 * and sets them for all ranks with sw_tune. If iterations later take longer or
 * shorter than noise explains, it searches again. The client's log has one line
 * per decision.
 */
#ifndef SUMWIRE_AUTOTUNE_H
#define SUMWIRE_AUTOTUNE_H

#include <sumwire/sumwire.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sw_autotune;

/* sw_autotune_open - start to search on behalf of @c, which stays borrowed
 * until sw_autotune_close.
 * Thread: the user of @c, also for the calls below.
 * Errors: as for sw_tune; sw_last_error of @c has the text. */
SW_API int sw_autotune_open(struct sw_client *c, struct sw_autotune **out);

/* sw_autotune_observe - report that an iteration took @iteration_s seconds. The
 * tuner adds up iterations until they take 20 ms together.
 * Errors and cost: as for sw_tune if the tuner changes the tuning; otherwise
 * none. */
SW_API int sw_autotune_observe(struct sw_autotune *a, double iteration_s);

/* sw_autotune_close - stop the search and set *@a to NULL. The job keeps its
 * current tuning. */
SW_API void sw_autotune_close(struct sw_autotune **a);

#ifdef __cplusplus
}
#endif

#endif
