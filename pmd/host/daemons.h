/* daemons.h - find the daemons of this machine, and ask them about themselves.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A daemon answers each connection to its socket daemon-PID.sock with lines
 * "KEY VALUE", then closes it.  Readers ignore unknown keys, so that daemons of
 * other versions show what is common.  The lines are:
 *
 *	sumwire FORMAT VERSION, name, role, pid, state, since (s of the epoch),
 *	stats, trace and socket (paths), port UPS AGO_MS LABEL (the link came up
 *	so often; the last time), core WAITED_NS PERIOD_NS (of each polling core
 *	in its order: without a CPU although it was ready), then for each job
 *	job agent|server STATE HERE ALL RANKS SIZE FIRST AGE_S CHUNKS NAME
 *	missing AGENTS, text SENTENCE, idle S, more N, keyed 0|1, encrypted 0|1,
 *	payload AGREED MOST (bytes), process PID LOCAL (an agent's),
 *	member here|missing|left N_RANKS FIRST NODE (in their order),
 *	last SAMPLES NS (of the member above: was the last, and how late),
 *	late N N ... (these samples by the buckets of engine/base/histogram.h),
 *	path SRTT_NS LEAST_NS WINDOW SENT LOST NUMBERED MISSED PAYLOAD LOST_PART
 *	MISSED_PART (to it),
 *	moved PUSH_BYTES RESULT_BYTES GRANT_NS WINDOW_NS FLIGHT_NS MARKED_PART
 *	(of the member above: payloads, time in stalls by cause, marks),
 *	losses QUEUED TIMEOUTS (of LOST: while a queue was long; by a timeout),
 *	session open|closed LANE SERVER (of an agent's job; its path, moved and
 *	losses follow),
 *	sums SLOTS CHUNKS (of the job above: open slots, completed chunks),
 *	group OPEN COLLECTIVES BYTES NS NAME (of an agent's job),
 *	wait tensor|stream CHUNKS MEMBERS_IN_HEX NAME (of the job above),
 *	still MS NUMBER KIND (of the wait above: without progress, its call),
 *	for RANKS (of the wait above, at an agent: whom it waits for)
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
	SW_DAEMON_JOBS = 9,   /* jobs that it serves, and an agent's own */
	SW_DAEMON_WAITS = 32, /* kept of one job */
	SW_DAEMON_GROUPS = 32,
	SW_DAEMON_PROCESSES = 64,
	SW_DAEMON_CORES = 16,
	SW_DAEMON_PORTS = 32,
	SW_DAEMONS_MAX = 1024,
};

/* The path from a server to a member, or from an agent to a server.  Zeros are
 * not known. */
struct sw_daemon_path {
	uint64_t srtt_ns, least_ns; /* round trips: smoothed, the least */
	uint64_t window_bytes;      /* congestion's; 0: it does not limit */
	uint64_t sent, lost;        /* the daemon's data frames */
	/* Lost while a queue was long; noticed by a timeout. */
	uint64_t queued, timeouts;
	uint64_t numbered, missed; /* the peer's: sent, not arrived */
	uint64_t payload;          /* the largest that it carries; a server's */
	/* Frames lost, and not arrived, of each 10,000 in the last seconds. */
	uint64_t lost_part, missed_part;
	uint64_t push_bytes, result_bytes; /* payloads of both ways */
	/* Time in which data waited: for a grant of the peer, for the
	 * congestion window, for frames in flight; frames that queues marked,
	 * of each 10,000. */
	uint64_t grant_ns, window_ns, flight_ns, marked_part;
};

/* A member of a job: an agent with its ranks. */
struct sw_daemon_member {
	const char *state;       /* "here", "missing", "left" */
	uint32_t n_ranks, first; /* n_ranks 0: not known; first: UINT32_MAX */
	const char *node;        /* "-": not known */
	/* Samples in which its contribution was the last of all, and in these
	 * the time since the first one; the same by buckets. */
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

/* A group at an agent: collectives, each piece of a long one. */
struct sw_daemon_group {
	uint64_t n_open, n_done;
	uint64_t bytes, ns; /* of those done */
	const char *name;
};

/* A training process at an agent. */
struct sw_daemon_process {
	pid_t pid;
	uint32_t local; /* rank at the agent */
};

/* A tensor, or a stream of collectives, with chunks that wait. */
struct sw_daemon_wait {
	bool is_stream;
	uint32_t n_chunks;
	uint64_t lacks;    /* members, a bit each; 0: not known */
	uint64_t still_ms; /* without progress */
	uint32_t number;   /* collective in its group, or round */
	const char *kind;  /* "all_reduce"; NULL: not known */
	const char *who;   /* at an agent: "ranks 4-7 of 8"; NULL: not known */
	const char *name;
};

/* A job at a daemon.  Numbers that are not known are 0. */
struct sw_daemon_job {
	bool is_served;         /* the daemon sums for it; false: takes part */
	const char *state;      /* "running" */
	uint32_t n_here, n_all; /* agents at a server, processes at an agent */
	uint32_t n_ranks;       /* connected here */
	uint32_t size, first;   /* ranks of the job; first rank at this agent */
	uint64_t age_s, open_chunks, open_slots, done_chunks;
	const char *name, *missing, *text; /* NULL: none */
	bool has_key, is_keyed;            /* known whether; frames have tags */
	bool is_encrypted;
	bool has_idle;
	uint64_t idle_s; /* since the last push */
	uint64_t n_more; /* tensors that wait beside those below */
	/* The one the members agreed on, and the largest that the server's
	 * ports carry. */
	uint64_t payload, most_payload;
	uint32_t n_members, n_waits, n_processes, n_groups;
	struct sw_daemon_member members[SW_MAX_MEMBERS];
	struct sw_daemon_wait waits[SW_DAEMON_WAITS];
	struct sw_daemon_process processes[SW_DAEMON_PROCESSES];
	struct sw_daemon_group groups[SW_DAEMON_GROUPS];
};

/* sw_daemons_write_job - write the line of @job. */
void sw_daemons_write_job(FILE *to, const struct sw_daemon_job *job);

/* A port whose link has come up again since the daemon's start. */
struct sw_daemon_port {
	uint64_t n_ups, ago_ms; /* ago: the last of them */
	const char *label;
};

/* A polling core's time without a CPU although it had work, of late. */
struct sw_daemon_core {
	uint64_t waited_ns, period_ns;
};

enum sw_found {
	SW_FOUND,        /* it has answered */
	SW_FOUND_SILENT, /* it has not, within a second */
	SW_FOUND_DENIED, /* it belongs to another user */
	SW_FOUND_OTHER,  /* its answer is not understood */
};

struct sw_found_daemon {
	enum sw_found found;
	char path[108]; /* of its socket */
	pid_t pid;
	uid_t uid;
	uint32_t format;
	uint64_t since_s;
	/* Without control characters; NULL: not known. */
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
 * root of all users, and ask all of them; takes at most a second.  Removes
 * sockets that killed daemons of this user left.  The caller must free @out.
 * Errors: SW_ENOMEM. */
int sw_daemons_find(struct sw_found_daemons *out);
void sw_daemons_free(struct sw_found_daemons *found);

/* sw_daemons_find_in - the same, in one folder: add what is there to @out. */
int sw_daemons_find_in(const char *folder, struct sw_found_daemons *out);

/* sw_daemons_parse - read the answer @text, which is changed, into @d.
 * Returns whether it is understood. */
bool sw_daemons_parse(char *text, struct sw_found_daemon *d);

/* sw_daemon_is_called - is @name that of the daemon, of a job of it, or its
 * pid?
 */
bool sw_daemon_is_called(const struct sw_found_daemon *d, const char *name);

/* sw_daemons_match - return how many daemons @name may mean, and the first of
 * them in *at: those of that name; else the one of that pid; else those of that
 * job. */
uint32_t sw_daemons_match(
	const struct sw_found_daemons *found, const char *name, uint32_t *at);

#endif
