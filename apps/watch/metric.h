/* metric.h - counters by the names and units of Prometheus.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_WATCH_METRIC_H
#define SW_APPS_WATCH_METRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "apps/cli/counters.h"

enum { SW_METRIC_FAMILY = 128, SW_METRIC_LABELS = 1024 };

/* The rows of all metrics that have the same name. */
struct sw_metric {
	char family[SW_METRIC_FAMILY]; /* "sumwire_rx_bytes"; no "_total" */
	/* The counter's name as labels: port="lan",queue="0". */
	char labels[SW_METRIC_LABELS];
	const char *text; /* help, from the counter's row */
	const char *unit; /* "bytes", "seconds"; NULL: the family has none */
	bool is_counter, is_known; /* unknown: a counter of no table */
	/* One of a histogram's: its bucket (histogram.h), or the sum. */
	bool is_times, is_sum;
	uint32_t bucket;
	double scale; /* factor of the value; 1: it stays whole */
};

/* sw_metric_of - write to @out how the counter @name of a daemon is called in
 * Prometheus.  A counter that no table has becomes a row of one family. */
void sw_metric_of(const char *name, struct sw_metric *out);

/* sw_label_add - append LABEL="VALUE" to the list @out of @size bytes, with the
 * escapes of Prometheus and '?' for what is not UTF-8 or does not print.  A
 * label that does not fit is left out. */
void sw_label_add(char *out, size_t size, const char *label, const char *value);

#endif
