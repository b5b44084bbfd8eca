/* daemons.h - find the daemons of this machine, and ask them about themselves.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A daemon answers each connection to its socket daemon-PID.sock with lines
 * "KEY VALUE", then closes it. Readers ignore unknown keys, so a reader and a
 * daemon of different versions understand the common lines.
 *
 * Lines about the daemon:
 *	sumwire FORMAT VERSION
 *	name, role, pid, state, since (s of the epoch)
 *	stats, trace, socket (paths)
 *	port UPS AGO_MS LABEL (number of link-ups; time since the last one)
 *	core WAITED_NS PERIOD_NS (per polling core, in order: time that it was
 *	ready but had no CPU)
 * Lines about each job:
 *	job agent|server STATE HERE ALL RANKS SIZE FIRST AGE_S CHUNKS NAME
 *	missing AGENTS, text SENTENCE, idle S, more N, keyed 0|1, encrypted 0|1
 *	payload AGREED MOST (bytes)
 *	process PID LOCAL (agent only)
 *	sums SLOTS CHUNKS (open slots, completed chunks)
 *	group OPEN COLLECTIVES BYTES NS NAME (agent only)
 * Lines about each member of the job above, in the members' order:
 *	member here|missing|left N_RANKS FIRST NODE
 *	last SAMPLES NS (samples in which it contributed last; sum of delays)
 *	late N N ... (these samples by bucket of engine/base/histogram.h)
 * Lines about each server session of the agent's job above:
 *	session open|closed LANE SERVER
 * Lines about the path to the member or server above:
 *	path SRTT_NS LEAST_NS WINDOW SENT LOST NUMBERED MISSED PAYLOAD LOST_PART
 *	MISSED_PART
 *	moved PUSH_BYTES RESULT_BYTES GRANT_NS WINDOW_NS FLIGHT_NS MARKED_PART
 *	(payloads; time in stalls by cause; marked frames)
 *	losses QUEUED TIMEOUTS (of LOST: while a queue was long; by a timeout)
 * Lines about each waiting tensor or stream of the job above:
 *	wait tensor|stream CHUNKS MEMBERS_IN_HEX NAME
 *	still MS NUMBER KIND (time without progress; its collective)
 *	for RANKS (agent only: the missing ranks)
 */
#ifndef SW_PMD_HOST_DAEMONS_H
#define SW_PMD_HOST_DAEMONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/base/histogram.h"
#include "engine/base/limits.h"

#define SW_DAEMON_PREFIX "daemon-"
#define SW_TRACE_PREFIX  "trace-"

enum {
	SW_DAEMON_FORMAT = 1,
	SW_DAEMON_JOBS = 9, /* jobs that a daemon serves, plus an agent's own */
	SW_DAEMON_WAITS = 32, /* waits kept per job */
	SW_DAEMON_GROUPS = 32,
	SW_DAEMON_PROCESSES = 64,
	SW_DAEMON_CORES = 16,
	SW_DAEMON_PORTS = 32,
	SW_DAEMONS_MAX = 1024,
};

/* The path from a server to a member, or from an agent to a server. 0:
 * unknown. */
struct sw_daemon_path {
	uint64_t srtt_ns, least_ns; /* round-trip time: smoothed, smallest */
	uint64_t window_bytes;      /* congestion window; 0: no limit */
	uint64_t sent, lost;        /* data frames of the daemon */
	/* Frames lost while a queue was long; frames whose loss a timeout
	 * detected. */
	uint64_t queued, timeouts;
	uint64_t numbered, missed; /* the peer's frames: sent, not arrived */
	uint64_t payload;          /* server: largest payload of the path */
	/* Frames lost and not arrived, per 10,000, in the last seconds. */
	uint64_t lost_part, missed_part;
	uint64_t push_bytes, result_bytes; /* payload of each way */
	/* Time that data waited for the peer's grant, for the congestion window
	 * and for frames in flight; frames that queues marked, per 10,000. */
	uint64_t grant_ns, window_ns, flight_ns, marked_part;
};

/* A member of a job: an agent with its ranks. */
struct sw_daemon_member {
	const char *state;       /* "here", "missing", "left" */
	uint32_t n_ranks, first; /* unknown: n_ranks 0, first UINT32_MAX */
	const char *node;        /* "-": unknown */
	/* Samples in which this member contributed last, and the sum of their
	 * delays after the first contribution; the same samples by bucket. */
	uint64_t n_last, late_ns;
	uint64_t late[SW_HISTOGRAM_BUCKETS];
	struct sw_daemon_path path;
};

/* A session of an agent's lane with a polling core of a server. */
struct sw_daemon_session {
	bool is_open;
	uint32_t lane;
	const char *server;
	struct sw_daemon_path path;
};

/* A group at an agent: its collectives. Each piece of a long one counts. */
struct sw_daemon_group {
	uint64_t n_open, n_done;
	uint64_t bytes, ns; /* of completed collectives */
	const char *name;
};

/* A training process at an agent. */
struct sw_daemon_process {
	pid_t pid;
	uint32_t local; /* local rank at the agent */
};

/* A tensor or a stream of collectives with waiting chunks. */
struct sw_daemon_wait {
	bool is_stream;
	uint32_t n_chunks;
	uint64_t lacks;    /* missing members, a bit each; 0: unknown */
	uint64_t still_ms; /* time without progress */
	uint32_t number;   /* collective in its group, or round */
	const char *kind;  /* "all_reduce"; NULL: unknown */
	const char *who;   /* agent: missing, "ranks 4-7 of 8"; NULL: unknown */
	const char *name;
};

/* A job at a daemon. Unknown numbers are 0. */
struct sw_daemon_job {
	bool is_served; /* the daemon sums for the job; false: it takes part */
	const char *state;      /* "running" */
	uint32_t n_here, n_all; /* agents at a server, processes at an agent */
	uint32_t n_ranks;       /* ranks connected here */
	uint32_t size, first;   /* ranks of the job; first rank at this agent */
	uint64_t age_s, open_chunks, open_slots, done_chunks;
	const char *name, *missing, *text; /* NULL: none */
	bool has_key, is_keyed; /* is_keyed is known; frames have tags */
	bool is_encrypted;
	bool has_idle;
	uint64_t idle_s; /* since the last push */
	uint64_t n_more; /* waiting tensors that are not in waits */
	/* Payload size that the members agreed on, and the largest that the
	 * server's ports carry. */
	uint64_t payload, most_payload;
	uint32_t n_members, n_waits, n_processes, n_groups;
	struct sw_daemon_member members[SW_MAX_MEMBERS];
	struct sw_daemon_wait waits[SW_DAEMON_WAITS];
	struct sw_daemon_process processes[SW_DAEMON_PROCESSES];
	struct sw_daemon_group groups[SW_DAEMON_GROUPS];
};

/* sw_daemons_write_job - write the "job" line of @job to @to. */
void sw_daemons_write_job(FILE *to, const struct sw_daemon_job *job);

/* A port whose link has come up again since the daemon's start. */
struct sw_daemon_port {
	uint64_t n_ups, ago_ms; /* link-ups; time since the last one */
	const char *label;
};

/* Time that a polling core recently had work but no CPU, and the period
 * observed. */
struct sw_daemon_core {
	uint64_t waited_ns, period_ns;
};

enum sw_found {
	SW_FOUND,        /* it answered */
	SW_FOUND_SILENT, /* it did not answer within a second */
	SW_FOUND_DENIED, /* it belongs to another user */
	SW_FOUND_OTHER,  /* its answer is invalid */
};

struct sw_found_daemon {
	enum sw_found found;
	char path[108]; /* path of its socket */
	pid_t pid;
	uid_t uid;
	uint32_t format;
	uint64_t since_s;
	/* Without control characters; NULL: unknown. */
	const char *version, *name, *role, *state, *stats, *socket, *trace;
	uint32_t n_ports, n_cores, n_jobs, n_sessions;
	struct sw_daemon_port ports[SW_DAEMON_PORTS];
	struct sw_daemon_core cores[SW_DAEMON_CORES];
	struct sw_daemon_job jobs[SW_DAEMON_JOBS];
	struct sw_daemon_session sessions[SW_MAX_SERVERS]; /* an agent's */
	char *text; /* holds the strings */
};

struct sw_found_daemons {
	uint32_t n;
	struct sw_found_daemon *all; /* by name, then pid */
};

/* sw_daemons_find - find the running daemons of this user, of services, and for
 * root of all users, and ask each of them; takes at most a second per 256
 * daemons. Removes sockets that killed daemons of this user left. The caller
 * must free @out.
 * Errors: SW_ENOMEM. */
int sw_daemons_find(struct sw_found_daemons *out);
void sw_daemons_free(struct sw_found_daemons *found);

/* sw_daemons_find_in - find and ask the daemons in one folder; add them to
 * @out. */
int sw_daemons_find_in(const char *folder, struct sw_found_daemons *out);

/* sw_daemons_parse - parse the answer @text, which it modifies and @d then
 * refers to, into @d. Returns false if the answer is invalid. */
bool sw_daemons_parse(char *text, struct sw_found_daemon *d);

/* sw_daemon_is_called - return whether @name is the daemon's name, its pid, or
 * the name of one of its jobs. */
bool sw_daemon_is_called(const struct sw_found_daemon *d, const char *name);

/* sw_daemons_match - return how many daemons match @name, and set *@at to the
 * first: daemons with that name; if none, the daemon with that pid; if none,
 * the daemons of that job. */
uint32_t sw_daemons_match(
	const struct sw_found_daemons *found, const char *name, uint32_t *at);

#endif
