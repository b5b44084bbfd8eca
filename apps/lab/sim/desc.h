/* desc.h - the description of an experiment, as read from its file.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The rows are like those of a configuration (conf/options.h), so errors read
 * alike.  A number with commas, "1Gb/s, 10Gb/s", is an axis of a sweep: the
 * description is read once for each point.  Lists of nodes use commas
 * themselves, so "|" separates the values of a list.  All lists step together,
 * as one axis.
 */
#ifndef SW_APPS_LAB_SIM_DESC_H
#define SW_APPS_LAB_SIM_DESC_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "conf/report.h"
#include "conf/scan.h"

enum {
	SW_SIM_NAME = 32,
	SW_SIM_TEXT = 512,
	SW_SIM_JOBS = 16,
	SW_SIM_LINKS = 256,
	SW_SIM_FLAPS = 16,
	SW_SIM_ROSTERS = 16,
	SW_SIM_TRAFFIC = 16,
	SW_SIM_CLAIMS = 8,
	SW_SIM_CURVES = 4,
	SW_SIM_AXES = 4,
	SW_SIM_POINTS = 4096,
	SW_SIM_NODES_MAX = 4096,
	SW_SIM_LEAVES_MAX = 256,
	SW_SIM_SWITCHES_MAX = 512, /* with topology = links */
};

enum sw_sim_topology { SW_SIM_SWITCH, SW_SIM_LEAF_SPINE, SW_SIM_EXPLICIT };

struct sw_sim_desc_net {
	uint32_t topology, mtu, leaves, leaf_nodes, spines, oversubscription;
	uint64_t rate_bit_s, port_bit_s, delay_ns, buffer_bytes, bucket_bytes;
	bool is_shared, is_paced;
	uint64_t ecn_bytes, ecn_most_bytes, turn_ns, frame_ns, reorder_ns;
	uint32_t alpha, loss, corrupt, duplicate, reorder, bad, good, bad_loss;
	uint32_t ring;
	char switches[SW_SIM_TEXT];
	char stall[SW_SIM_TEXT], stall_gap[SW_SIM_TEXT];
};

struct sw_sim_desc_job {
	char label[SW_SIM_NAME];
	char agents[SW_SIM_TEXT], servers[SW_SIM_TEXT], sizes[SW_SIM_TEXT];
	char model[SW_SIM_TEXT], trace[SW_SIM_TEXT];
	char forward[SW_SIM_TEXT], backward[SW_SIM_TEXT];
	char straggler_time[SW_SIM_TEXT];
	uint32_t transport, collective, n_tensors, n_rounds, n_warm, straggler;
	/* copy_of: 1 + index of the original job; 0: not a copy */
	uint32_t n_copies, copy_of;
	uint64_t bytes, compute_ns, start_ns;
	bool has_congestion, is_keyed;
	/* Options of daemons. */
	struct sw_conf_job job;
	struct sw_conf_share share;
	struct sw_conf_agent agent;
	struct sw_conf_node node;
};

/* Values in the order of the row's choices. */
enum sw_sim_collective {
	SW_SIM_PUSH_PULL,
	SW_SIM_ALL_REDUCE,
	SW_SIM_REDUCE_SCATTER,
	SW_SIM_ALL_GATHER,
	SW_SIM_BROADCAST,
};

enum sw_sim_transport { SW_SIM_SUMWIRE, SW_SIM_RING, SW_SIM_SERVER };

struct sw_sim_desc_run {
	uint64_t seed, duration_ns;
	bool has_oracle;
};

struct sw_sim_desc_link {
	char label[SW_SIM_NAME];
	char from[SW_SIM_TEXT], to[SW_SIM_TEXT];
	/* 0: as in [net] */
	uint64_t rate_bit_s, delay_ns, buffer_bytes, bucket_bytes;
	uint32_t mtu;
};

struct sw_sim_desc_flap {
	char label[SW_SIM_NAME];
	char from[SW_SIM_TEXT], to[SW_SIM_TEXT];
	uint64_t at_ns, for_ns, every_ns;
};

/* A period in which a job has other servers. */
struct sw_sim_desc_roster {
	char label[SW_SIM_NAME];
	char job[SW_SIM_NAME], servers[SW_SIM_TEXT];
	uint64_t at_ns, for_ns, every_ns;
	bool is_cut;
};

struct sw_sim_desc_traffic {
	char label[SW_SIM_NAME];
	char from[SW_SIM_TEXT], to[SW_SIM_TEXT];
	uint32_t kind, n_flows;
	uint64_t start_ns, stop_ns, on_ns, off_ns, rate_bit_s;
	bool has_ecn;
};

enum sw_sim_traffic_kind { SW_SIM_RENO, SW_SIM_CUBIC, SW_SIM_UDP_ON_OFF };

struct sw_sim_desc_record {
	uint64_t every_ns;
	char csv[SW_SIM_TEXT], trace[SW_SIM_TEXT], pcapng[SW_SIM_TEXT];
	char from[SW_SIM_TEXT], to[SW_SIM_TEXT];
	uint32_t snap;
};

/* Plot and page of a sweep (apps/lab/figures). */
struct sw_sim_desc_figure {
	char title[SW_SIM_TEXT], paper[SW_SIM_TEXT], differs[SW_SIM_TEXT];
	char y[SW_SIM_NAME], over[SW_SIM_TEXT], x_name[SW_SIM_TEXT];
	bool is_log;
};

enum sw_sim_show { SW_SIM_VALUE, SW_SIM_RATIO, SW_SIM_GAIN, SW_SIM_BEHIND };

/* A claim: a number of a paper, to compare with rows. */
struct sw_sim_desc_claim {
	char label[SW_SIM_NAME];
	char text[SW_SIM_TEXT], paper[SW_SIM_TEXT];
	char of[SW_SIM_TEXT], over[SW_SIM_TEXT], curve[SW_SIM_NAME];
	char y[SW_SIM_NAME];
	uint32_t show;
};

/* A line that a formula draws over the rows of a sweep. */
struct sw_sim_desc_curve {
	char label[SW_SIM_NAME];
	char text[SW_SIM_TEXT], of[SW_SIM_TEXT];
	uint32_t formula;
};

struct sw_sim_desc {
	struct sw_sim_desc_net net;
	struct sw_sim_desc_run run;
	struct sw_sim_desc_record record;
	struct sw_sim_desc_figure figure;
	struct sw_sim_desc_claim claims[SW_SIM_CLAIMS];
	uint32_t n_claims;
	struct sw_sim_desc_curve curves[SW_SIM_CURVES];
	uint32_t n_curves;
	struct sw_sim_desc_job jobs[SW_SIM_JOBS];
	uint32_t n_jobs;
	struct sw_sim_desc_link links[SW_SIM_LINKS];
	uint32_t n_links;
	struct sw_sim_desc_flap flaps[SW_SIM_FLAPS];
	uint32_t n_flaps;
	struct sw_sim_desc_roster rosters[SW_SIM_ROSTERS];
	uint32_t n_rosters;
	struct sw_sim_desc_traffic traffic[SW_SIM_TRAFFIC];
	uint32_t n_traffic;
	uint32_t least_mtu;   /* smallest MTU of all links */
	uint32_t most_lcores; /* most lcores of a node */
	/* Names of all nodes, then of all switches of explicit links. */
	char (*names)[SW_SIM_NAME];
	uint32_t n_nodes, n_switches;
};

/* A key with several values. */
struct sw_sim_axis {
	const char *section, *key, *values; /* borrowed from the scan */
	uint32_t line, n;
	bool is_list;  /* each value is a list of nodes */
	bool is_range; /* each value is a seed, from first on */
	uint64_t first;
};

/* A file, with the axes of its sweep. */
struct sw_sim_file {
	struct sw_report report;
	struct sw_scan scan;
	struct sw_sim_axis axes[SW_SIM_AXES];
	uint32_t n_axes, n_points;
};

/* sw_sim_file_open - read a file.  Reports errors to @log.  Errors: as
 * sw_scan_open.  After 0 the caller must close @f. */
int sw_sim_file_open(
	struct sw_sim_file *f, const char *path, const struct sw_log *log);
void sw_sim_file_close(struct sw_sim_file *f);

/* sw_sim_file_refuse - report @why, such as "[job a] servers: TEXT", with the
 * line of that key.  Called when the simulation has refused the description. */
void sw_sim_file_refuse(struct sw_sim_file *f, const char *why);

/* sw_sim_axis_value - write the value of axis @i at @point into @out. */
const char *sw_sim_axis_value(const struct sw_sim_file *f, uint32_t i,
	uint32_t point, char out[SW_SIM_TEXT]);

/* sw_sim_axis_count - return the number of nodes in the list of axis @i at
 * @point.  In a list of servers, only nodes without an agent count. */
uint32_t sw_sim_axis_count(
	const struct sw_sim_file *f, uint32_t i, uint32_t point);

/* sw_sim_desc_read - read the description of @point, and check it.  Errors:
 * SW_ECONF, reported.  The caller must free *@out by sw_sim_desc_free. */
int sw_sim_desc_read(
	struct sw_sim_file *f, uint32_t point, struct sw_sim_desc **out);
void sw_sim_desc_free(struct sw_sim_desc *d);

/* sw_sim_names - call @add for each name of a list like "gpu[0-3], cpu0".
 * Returns the number of names, or 0 with the reason in @why. */
uint32_t sw_sim_names(const char *list,
	bool (*add)(void *ctx, const char *name), void *ctx, char *why,
	size_t why_len);

/* sw_sim_find - return the number of node or switch @name, or UINT32_MAX.
 * Switches are numbered after the nodes.
 * sw_sim_find_all - write the numbers of the nodes in a list to @out.  Returns
 * how many they are. */
uint32_t sw_sim_find(const struct sw_sim_desc *d, const char *name);
uint32_t sw_sim_find_all(const struct sw_sim_desc *d, const char *list,
	uint32_t out[SW_SIM_NODES_MAX]);

/* sw_sim_reference - print all sections and keys. */
void sw_sim_reference(FILE *f);

#endif
