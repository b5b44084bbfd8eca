/* agent_mail.h - commands from control to lcore 0, and reports back.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_MAIL_H
#define SW_APPS_NODE_AGENT_MAIL_H

#include "apps/node/agent_shared.h"

struct agent;
struct agent_control;
struct agent_core;

enum {
	AGENT_RING_MIN = 256,
	/* A command has a place, by its kind and its process, and is in the
	 * ring at most once, however late the other thread is.  Places: SERVE,
	 * GONE and one for TUNE, END and FREE of each process; DECLARE; JOIN
	 * and LEAVE of two groups, since LEFT may cross a command. */
	AGENT_COMMANDS = 3 * AGENT_LOCAL_MAX + 5,
	/* Places of reports: TUNED of each process, RUNNING, DECLARED, one
	 * for FAILED and ENDED, LEFT. */
	AGENT_REPORTS = AGENT_LOCAL_MAX + 4,
};

/* sw_agent_ring_size - return the entries of each ring for @n_local processes.
 * No ring is ever full, and log lines may take the entries that are left. */
static inline uint32_t sw_agent_ring_size(uint32_t n_local)
{
	uint32_t n = AGENT_RING_MIN;

	while (n < 4 * n_local)
		n *= 2;
	return n;
}

enum agent_command_kind {
	AGENT_JOIN,    /* the worker is open, or err */
	AGENT_SERVE,   /* take submits of local from client */
	AGENT_DECLARE, /* n tensors of local, which are built */
	AGENT_TUNE,    /* set the tuning that local asks for */
	AGENT_END,     /* end a group, as local asks */
	AGENT_FREE,    /* memory or a closed stream of local, its item n */
	AGENT_GONE,    /* local has closed, or died for why, if that has an
			  error; other processes may go on */
	AGENT_LEAVE,   /* release clients and tensors; why: error for the job */
};

struct agent_command {
	enum agent_command_kind kind;
	int err;
	uint32_t local;
	uint32_t group; /* its group; sw_agent_command counts */
	struct sw_host_client *client;
	const struct sw_host_tensor *tensors; /* the host's, until release */
	uint32_t n, n_new; /* number of tensors; of new ones among them */
	uint32_t first;    /* first new id; consecutive for one local rank */
	struct sw_edge_tune tune;
	struct sw_edge_end end;
	struct sw_fault why;
};

enum agent_report_kind {
	AGENT_STATUS,   /* a line for people; may be dropped */
	AGENT_RUNNING,  /* the job runs */
	AGENT_DECLARED, /* the batch is admitted, or err */
	AGENT_ANSWER,   /* TUNE, END or FREE of local: done, or err */
	AGENT_FAILED,   /* the job failed; otherwise as AGENT_ENDED */
	AGENT_ENDED,    /* no lcore uses the clients' tensors: processes may
			   receive the end of the job */
	AGENT_LEFT,     /* the clients' memory and the worker are not used */
};

struct agent_report {
	enum agent_report_kind kind;
	int err;
	bool is_dead;    /* DECLARED: err is of a dead tensor */
	bool is_warning; /* STATUS: of a job that runs, about what it waits for
			  */
	uint32_t size, first, local;
	uint64_t epoch;  /* RUNNING: of the job */
	uint32_t n_lost; /* lines since the last report; sw_agent_tell counts */
	char text[SW_TEXT_MAX + SW_NAME_MAX];
};

struct agent_rings {
	/* Whether the command or report of each place is in its ring. */
	atomic_bool has_command[AGENT_COMMANDS], has_report[AGENT_REPORTS];
	/* The ring of commands, then that of reports. */
	_Alignas(64) unsigned char rings[];
};

/* sw_agent_open_rings - allocate the rings, once the configuration is read, and
 * connect both threads' parts to the shared state.  The caller must free
 * shared.rings.
 * Errors: SW_ENOMEM. */
int sw_agent_open_rings(struct agent *a);

/* sw_agent_command - send @command to lcore 0, unless it is in the ring.
 * Control thread. */
void sw_agent_command(
	struct agent_control *c, const struct agent_command *command);

/* sw_agent_take_command - receive the next command.  Returns false if the ring
 * is empty.  Lcore 0. */
bool sw_agent_take_command(
	struct agent_core *core, struct agent_command *command);

/* sw_agent_tell - send @report to the control thread, unless it is in the ring.
 * A log line that would take the room of other reports is dropped and counted.
 * Lcore 0. */
void sw_agent_tell(struct agent_core *core, const struct agent_report *report);

/* sw_agent_take_report - receive the next report.  Returns false if the ring
 * is empty.  Control thread. */
bool sw_agent_take_report(struct agent_control *c, struct agent_report *report);

#endif
