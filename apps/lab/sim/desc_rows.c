/* desc_rows.c - the sections and keys of a description.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/desc_rows.h"

#include "conf/value.h"
#include "engine/base/params.h"

#define ROW(section, key, type, s, field, def, min, max, unit, text)       \
	{                                                                  \
		section, key, SW_OPTION_##type,                            \
			offsetof(struct sw_sim_desc_##s, field),           \
			sizeof(((struct sw_sim_desc_##s *)0)->field), def, \
			min, max, unit, text                               \
	}

enum { PPM = 1000000, MTU_LEAST = 1280, MTU_MOST = 9216 };

static const struct sw_option net_rows[] = {
	ROW("net", "topology", CHOICE, net, topology, "switch", 0, 0,
		"switch|leaf-spine|links",
		"one switch; leaves and spines; or [link NAME] sections"),
	ROW("net", "rate", RATE, net, rate_bit_s, "10Gb/s", 1000000,
		1000000000000, "", "rate of each link"),
	ROW("net", "delay", TIME, net, delay_ns, "1us", 0, 1000000000, "",
		"one-way delay of each link"),
	ROW("net", "mtu", U32, net, mtu, "9000", MTU_LEAST, MTU_MOST, "bytes",
		"largest IP packet"),
	ROW("net", "buffer", BYTES, net, buffer_bytes, "1MiB", 1, 1ULL << 32,
		"", "queue of a switch's port; of the switch if shared"),
	ROW("net", "bucket", BYTES, net, bucket_bytes, "0", 0, 1ULL << 24, "",
		"burst of a token bucket at a switch's port, as TBF has it: "
		"bytes that leave at once after a pause"),
	ROW("net", "shared", BOOL, net, is_shared, "no", 0, 0, "yes|no",
		"ports of a switch share its buffer"),
	ROW("net", "alpha", PERCENT, net, alpha, "100%", 0, 0, "",
		"part of a shared buffer's free bytes that a port may queue"),
	ROW("net", "ecn", BYTES, net, ecn_bytes, "0", 0, 1ULL << 32, "",
		"queue from which on frames are marked; 0: never"),
	ROW("net", "ecn_all", BYTES, net, ecn_most_bytes, "0", 0, 1ULL << 32,
		"", "queue from which on all are marked; 0: as ecn"),
	ROW("net", "loss", PERCENT, net, loss, "0%", 0, PPM, "",
		"frames that each link loses at random"),
	ROW("net", "corrupt", PERCENT, net, corrupt, "0%", 0, PPM, "",
		"frames in which each link changes a bit"),
	ROW("net", "duplicate", PERCENT, net, duplicate, "0%", 0, PPM, "",
		"frames that each link delivers twice"),
	ROW("net", "reorder", PERCENT, net, reorder, "0%", 0, PPM, "",
		"frames that each link delays"),
	ROW("net", "reorder_delay", TIME, net, reorder_ns, "50us", 0,
		1000000000, "", "longest such delay"),
	ROW("net", "burst_begin", PERCENT, net, bad, "0%", 0, PPM, "",
		"frames with which a link turns bad (Gilbert-Elliott)"),
	ROW("net", "burst_end", PERCENT, net, good, "10%", 1, PPM, "",
		"frames with which it turns good again"),
	ROW("net", "burst_loss", PERCENT, net, bad_loss, "50%", 0, PPM, "",
		"frames that a bad link loses"),
	ROW("net", "leaves", U32, net, leaves, "2", 1, SW_SIM_LEAVES_MAX,
		"switches",
		"leaves, with equal numbers of nodes in their order"),
	ROW("net", "leaf_nodes", U32, net, leaf_nodes, "0", 0, 4096, "nodes",
		"nodes of a leaf, in place of leaves; 0: as leaves says"),
	ROW("net", "spines", U32, net, spines, "2", 1, 64, "switches",
		"spines; each has a link to each leaf"),
	ROW("net", "oversubscription", U32, net, oversubscription, "1", 1, 64,
		"", "rate of a leaf's nodes, by that of its uplinks"),
	ROW("net", "switches", PATH, net, switches, "", 0, 0, "",
		"names of switches, for topology = links"),
	ROW("net", "paced", BOOL, net, is_paced, "yes", 0, 0, "yes|no",
		"nodes know their link's rate and pace to 95 % of it"),
	ROW("net", "port_rate", RATE, net, port_bit_s, "0", 0, 1000000000000,
		"",
		"rate of payload that nodes pace to, as [port] rate of a "
		"daemon; 0: no limit"),
	ROW("net", "ring", U32, net, ring, "4096", 16, 65536, "frames",
		"frames that a core receives before it takes them; it drops "
		"others"),
	ROW("net", "turn", TIME, net, turn_ns, "500ns", 1, 1000000, "",
		"time of a turn of a polling core"),
	ROW("net", "frame", TIME, net, frame_ns, "0ns", 0, 1000000, "",
		"time that a core needs for each frame"),
	ROW("net", "stall", PATH, net, stall, "", 0, 0, "",
		"time that a polling core is without a CPU, as straggler_time "
		"of [job]; empty: never"),
	ROW("net", "stall_gap", PATH, net, stall_gap, "exponential 10ms", 0, 0,
		"", "time from a stall to the next one, likewise"),
};

static const struct sw_option job_rows[] = {
	ROW("job", "agents", PATH, job, agents, NULL, 0, 0, "",
		"nodes with agents, like gpu[0-3]"),
	ROW("job", "servers", PATH, job, servers, NULL, 0, 0, "",
		"nodes with servers; those with agents come last, and are all "
		"of these or none"),
	ROW("job", "copies", U32, job, n_copies, "1", 1, SW_SIM_JOBS, "jobs",
		"jobs alike, each on nodes of its own; figures are their "
		"means, and counts their sums"),
	ROW("job", "transport", CHOICE, job, transport, "sumwire", 0, 0,
		"sumwire|ring|server",
		"the engine; or TCP flows of a ring all-reduce, without "
		"servers, or of a parameter server"),
	ROW("job", "collective", CHOICE, job, collective, "push_pull", 0, 0,
		"push_pull|all_reduce|reduce_scatter|all_gather|broadcast",
		"the call of all ranks for each tensor, with buffers of its "
		"size; only push_pull knows priorities"),
	ROW("job", "tensors", U32, job, n_tensors, "4", 1, 4096, "tensors",
		"tensors of one size"),
	ROW("job", "size", BYTES, job, bytes, "4MiB", 4, 1ULL << 32, "",
		"bytes of each"),
	ROW("job", "sizes", PATH, job, sizes, "", 0, 0, "",
		"sizes of tensors, most urgent first, in place of tensors and "
		"size"),
	ROW("job", "model", PATH, job, model, "", 0, 0, "",
		"a network with its layers' times, in place of sizes: vgg16, "
		"resnet50, transformer, bert-large or a file"),
	ROW("job", "trace", PATH, job, trace, "", 0, 0, "",
		"a file of Chakra (.et) with a rank's computations and "
		"collectives, in place of sizes: all ranks follow it; with * "
		"in its name, each agent follows that of its first rank"),
	ROW("job", "forward", PATH, job, forward, "", 0, 0, "",
		"times of layers, one for each of sizes: the forward pass"),
	ROW("job", "backward", PATH, job, backward, "", 0, 0, "",
		"the same: the backward pass, after which tensors are pushed"),
	ROW("job", "rounds", U32, job, n_rounds, "10", 1, 1000000, "rounds",
		"rounds to run"),
	ROW("job", "warmup", U32, job, n_warm, "1", 0, 1000, "rounds",
		"first rounds, which no figure counts"),
	ROW("job", "compute", TIME, job, compute_ns, "0s", 0, 3600000000000, "",
		"time between the end of a round and the next one"),
	ROW("job", "start", TIME, job, start_ns, "0s", 0, 3600000000000, "",
		"when the job starts"),
	ROW("job", "straggler", PERCENT, job, straggler, "100%", 0, PPM, "",
		"chance that an agent is late in a round"),
	ROW("job", "straggler_time", PATH, job, straggler_time, "", 0, 0, "",
		"how late it is: constant TIME, uniform LEAST MOST, "
		"exponential MEAN, normal MEAN DEVIATION (cut at 0), lognormal "
		"MEDIAN SIGMA, pareto LEAST SHAPE, or file NAME with a time a "
		"line, drawn at random; empty: nobody is late"),
	ROW("job", "congestion", BOOL, job, has_congestion, "yes", 0, 0,
		"yes|no",
		"no: grants alone limit senders, whatever is lost or marked; "
		"a server takes the value of its first job"),
	ROW("job", "key", BOOL, job, is_keyed, "no", 0, 0, "yes|no",
		"the job has a secret: each frame has a tag in place of its "
		"checks"),
};

static const struct sw_option run_rows[] = {
	ROW("run", "seed", U64, run, seed, "1", 0, 0, "",
		"start of all random numbers; 1-10: a sweep, with means"),
	ROW("run", "duration", TIME, run, duration_ns, "60s", 1, 3600000000000,
		"", "longest virtual time"),
	ROW("run", "oracle", BOOL, run, has_oracle, "yes", 0, 0, "yes|no",
		"check every sum; no: frames carry no payload, for speed"),
};

static const struct sw_option link_rows[] = {
	ROW("link", "from", PATH, link, from, NULL, 0, 0, "",
		"nodes or a switch"),
	ROW("link", "to", PATH, link, to, NULL, 0, 0, "", "a switch"),
	ROW("link", "rate", RATE, link, rate_bit_s, NULL, 1000000,
		1000000000000, "", "as in [net]"),
	ROW("link", "delay", TIME, link, delay_ns, NULL, 0, 1000000000, "",
		"as in [net]"),
	ROW("link", "mtu", U32, link, mtu, NULL, MTU_LEAST, MTU_MOST, "bytes",
		"as in [net]; switches drop larger packets"),
	ROW("link", "buffer", BYTES, link, buffer_bytes, NULL, 1, 1ULL << 32,
		"", "as in [net], of the switches' ports to this link"),
	ROW("link", "bucket", BYTES, link, bucket_bytes, NULL, 0, 1ULL << 24,
		"", "likewise"),
};

static const struct sw_option flap_rows[] = {
	ROW("flap", "from", PATH, flap, from, NULL, 0, 0, "",
		"node or switch; switches are called leaf0, spine0, switch"),
	ROW("flap", "to", PATH, flap, to, NULL, 0, 0, "", "node or switch"),
	ROW("flap", "at", TIME, flap, at_ns, "0s", 0, 3600000000000, "",
		"when the link fails, both ways"),
	ROW("flap", "for", TIME, flap, for_ns, "1ms", 1, 3600000000000, "",
		"how long"),
	ROW("flap", "every", TIME, flap, every_ns, "0s", 0, 3600000000000, "",
		"when it fails again; 0: once"),
};

static const struct sw_option roster_rows[] = {
	ROW("roster", "job", PATH, roster, job, "", 0, 0, "",
		"the job, by its NAME; empty: the first one"),
	ROW("roster", "servers", PATH, roster, servers, NULL, 0, 0, "",
		"nodes with servers, in place of the job's own"),
	ROW("roster", "at", TIME, roster, at_ns, "0s", 0, 3600000000000, "",
		"when the job changes to them: all agents leave it after the "
		"current round, and join it again"),
	ROW("roster", "for", TIME, roster, for_ns, "0s", 0, 3600000000000, "",
		"how long, until it changes back; 0: half of every, or to the "
		"end"),
	ROW("roster", "every", TIME, roster, every_ns, "0s", 0, 3600000000000,
		"", "when it changes again; 0: once"),
	ROW("roster", "cut", BOOL, roster, is_cut, "no", 0, 0, "yes|no",
		"cut the leaving servers off the network: agents learn by "
		"silence, and repeat the round"),
};

static const struct sw_option traffic_rows[] = {
	ROW("traffic", "kind", CHOICE, traffic, kind, "cubic", 0, 0,
		"reno|cubic|udp",
		"a model of TCP's flows, or datagrams at a rate"),
	ROW("traffic", "from", PATH, traffic, from, NULL, 0, 0, "",
		"nodes that send"),
	ROW("traffic", "to", PATH, traffic, to, NULL, 0, 0, "",
		"nodes that receive, in turns"),
	ROW("traffic", "flows", U32, traffic, n_flows, "1", 1, 1000, "flows",
		"flows of each sender"),
	ROW("traffic", "ecn", BOOL, traffic, has_ecn, "no", 0, 0, "yes|no",
		"flows answer to marks"),
	ROW("traffic", "start", TIME, traffic, start_ns, "0s", 0, 3600000000000,
		"", "when they start"),
	ROW("traffic", "stop", TIME, traffic, stop_ns, "0s", 0, 3600000000000,
		"", "when they stop; 0: at the end"),
	ROW("traffic", "rate", RATE, traffic, rate_bit_s, "1Gb/s", 1000000,
		1000000000000, "", "rate of a flow of udp while it is on"),
	ROW("traffic", "on", TIME, traffic, on_ns, "1ms", 1, 3600000000000, "",
		"mean time that a flow of udp is on"),
	ROW("traffic", "off", TIME, traffic, off_ns, "0s", 0, 3600000000000, "",
		"mean time that it is off"),
};

static const struct sw_option record_rows[] = {
	ROW("record", "csv", PATH, record, csv, "", 0, 0, "",
		"file for queues, frames, drops, rates, windows, grants, "
		"round-trip times, retransmissions, tensors and classes over "
		"time"),
	ROW("record", "trace", PATH, record, trace, "", 0, 0, "",
		"file for the same, and for what agents compute and push, as "
		"JSON that Perfetto opens"),
	ROW("record", "every", TIME, record, every_ns, "1ms", 1000,
		3600000000000, "", "time between two records"),
	ROW("record", "pcapng", PATH, record, pcapng, "", 0, 0, "",
		"file for the frames of a link"),
	ROW("record", "from", PATH, record, from, "", 0, 0, "",
		"the link's begin, a node or a switch"),
	ROW("record", "to", PATH, record, to, "", 0, 0, "", "its end"),
	ROW("record", "snap", U32, record, snap, "512", 128, 65535, "bytes",
		"bytes of each frame that pcapng keeps"),
};

static const struct sw_option figure_rows[] = {
	ROW("figure", "title", PATH, figure, title, "", 0, 0, "",
		"heading of the figure"),
	ROW("figure", "paper", PATH, figure, paper, "", 0, 0, "",
		"paper and figure that it is compared with"),
	ROW("figure", "differs", PATH, figure, differs, "", 0, 0, "",
		"what differs from the paper, and why"),
	ROW("figure", "y", PATH, figure, y, "", 0, 0, "",
		"what to plot, as sim --y has it"),
	ROW("figure", "over", PATH, figure, over, "", 0, 0, "",
		"plot how many times as fast rows are as those with these "
		"values, like policy fifo"),
	ROW("figure", "x_name", PATH, figure, x_name, "", 0, 0, "",
		"name and unit of the other axis; empty: the key's"),
	ROW("figure", "log", BOOL, figure, is_log, "no", 0, 0, "yes|no",
		"that axis is logarithmic"),
};

static const struct sw_option claim_rows[] = {
	ROW("claim", "text", PATH, claim, text, NULL, 0, 0, "",
		"what is compared"),
	ROW("claim", "paper", PATH, claim, paper, "", 0, 0, "",
		"the paper's number, or two, like 1 to 9 %"),
	ROW("claim", "show", CHOICE, claim, show, "value", 0, 0,
		"value|ratio|gain|behind",
		"the number itself; over the other one; percent faster; "
		"percent slower"),
	ROW("claim", "y", PATH, claim, y, "", 0, 0, "",
		"the number, as in [figure]; empty: that one"),
	ROW("claim", "of", PATH, claim, of, "", 0, 0, "",
		"rows with these values, like policy p3, rate 1Gb/s; all by "
		"default"),
	ROW("claim", "over", PATH, claim, over, "", 0, 0, "",
		"the rows compared with them: what differs"),
	ROW("claim", "curve", PATH, claim, curve, "", 0, 0, "",
		"the same: a [curve]"),
};

static const struct sw_option curve_rows[] = {
	ROW("curve", "text", PATH, curve, text, "", 0, 0, "",
		"its name in the plot; empty: NAME"),
	ROW("curve", "formula", CHOICE, curve, formula, NULL, 0, 0,
		"optimal|ring|server|ideal|bound",
		"optimal, ring and server: communication after BytePS; ideal "
		"and bound: iterations after ByteScheduler"),
	ROW("curve", "of", PATH, curve, of, "", 0, 0, "",
		"rows from whose values it is computed, as in [claim]"),
};

#define SECTION(name, s, rows, text)                                     \
	{                                                                \
		name, rows, sizeof(rows) / sizeof(rows[0]),              \
			offsetof(struct sw_sim_desc, s),                 \
			sizeof(((struct sw_sim_desc *)0)->s), 0, 0, text \
	}
#define MANY(name, s, rows, text)                                        \
	{                                                                \
		name, rows, sizeof(rows) / sizeof(rows[0]),              \
			offsetof(struct sw_sim_desc, s),                 \
			sizeof(((struct sw_sim_desc *)0)->s[0]),         \
			offsetof(struct sw_sim_desc, n_##s),             \
			sizeof(((struct sw_sim_desc *)0)->s) /           \
				sizeof(((struct sw_sim_desc *)0)->s[0]), \
			text                                             \
	}

const struct sw_sim_section sw_sim_sections[] = {
	SECTION("net", net, net_rows, "the network"),
	MANY("job", jobs, job_rows, "a job; [job NAME] for several"),
	SECTION("run", run, run_rows, "the run"),
	SECTION("record", record, record_rows, "files to write"),
	MANY("link", links, link_rows, "links, for topology = links"),
	MANY("flap", flaps, flap_rows, "a link that fails by schedule"),
	MANY("roster", rosters, roster_rows, "servers that come and go"),
	MANY("traffic", traffic, traffic_rows, "other traffic"),
	SECTION("figure", figure, figure_rows, "plot and page of a sweep"),
	MANY("claim", claims, claim_rows, "a number beside a paper's"),
	MANY("curve", curves, curve_rows, "a formula in the plot"),
	{0},
};

const char *const sw_sim_lists[] = {"agents", "servers", "from", "to", NULL};

/* Options of daemons that [job] also has. */
const struct sw_sim_borrowed sw_sim_borrowed[] = {{"job", "policy"},
	{"job", "credit"}, {"job", "mode"}, {"job", "crc"}, {"job", "order"},
	{"job", "payload"}, {"job", "dead_after"}, {"job", "stall_warn"},
	{"job", "stall_limit"}, {"job", "join_timeout"}, {"job", "encrypt"},
	{"job", "server_lcores"}, {"share", "weight"}, {"share", "quota"},
	{"agent", "partition"}, {"agent", "local_ranks"}, {"agent", "lcores"},
	{"node", "queue"}, {0}};

size_t sw_sim_borrowed_at(const char *section)
{
	return *section == 'j'   ? offsetof(struct sw_sim_desc_job, job)
	       : *section == 's' ? offsetof(struct sw_sim_desc_job, share)
	       : *section == 'a' ? offsetof(struct sw_sim_desc_job, agent)
				 : offsetof(struct sw_sim_desc_job, node);
}
