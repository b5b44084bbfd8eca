/* metric.h - counters with the names and units of Prometheus.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_WATCH_METRIC_H
#define SW_APPS_WATCH_METRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "apps/cli/counters.h"

enum { SW_METRIC_FAMILY = 128, SW_METRIC_LABELS = 1024 };

/* The metric of one counter, with its family. */
struct sw_metric {
	char family[SW_METRIC_FAMILY]; /* "sumwire_rx_bytes"; no "_total" */
	/* The counter's name as labels: port="lan",queue="0". */
	char labels[SW_METRIC_LABELS];
	const char *text; /* help, from the counter's row */
	const char *unit; /* "bytes", "seconds"; NULL: the family has none */
	bool is_counter, is_known; /* not is_known: a counter of no table */
	/* A part of a histogram: its bucket (histogram.h), or the sum. */
	bool is_times, is_sum;
	uint32_t bucket;
	double scale; /* factor of the value; 1: it stays an integer */
};

/* sw_metric_of - write the Prometheus metric of a daemon's counter @name to
 * @out.  Counters that no table has share one family. */
void sw_metric_of(const char *name, struct sw_metric *out);

/* sw_label_add - append LABEL="VALUE" to the list @out of @size bytes, escaped
 * for Prometheus.  '?' replaces text that is not UTF-8 or not printable.  A
 * label that does not fit is dropped. */
void sw_label_add(char *out, size_t size, const char *label, const char *value);

#endif
