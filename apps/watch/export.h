/* export.h - metrics in the text format of Prometheus.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_WATCH_EXPORT_H
#define SW_APPS_WATCH_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "apps/watch/scan.h"

/* sw_export - write the metrics of all daemons in @scan to @to, in Prometheus'
 * text format 0.0.4 or, if @is_open, as OpenMetrics 1.0.  Rows of one family
 * are consecutive, and no row is repeated.  Errors: SW_ENOMEM. */
int sw_export(const struct sw_scan *scan, bool is_open, FILE *to);

#endif
