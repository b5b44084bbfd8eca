/* agent_mail.h - commands from the control thread to lcore 0, and reports back.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_MAIL_H
#define SW_APPS_NODE_AGENT_MAIL_H

#include "apps/node/agent_shared.h"

struct agent;
struct agent_control;
struct agent_core;

enum {
	AGENT_RING_MIN = 256,
	/* Each command has a place, by its kind and process, and is in the ring
	 * at most once, however slow lcore 0 is.  Places: for each process
	 * SERVE, GONE, and one for TUNE, END and FREE; DECLARE; JOIN and LEAVE
	 * of two groups, since LEFT may cross a command. */
	AGENT_COMMANDS = 3 * AGENT_LOCAL_MAX + 5,
	/* Places of reports: ANSWER of each process; RUNNING; DECLARED; one for
	 * FAILED and ENDED; LEFT. */
	AGENT_REPORTS = AGENT_LOCAL_MAX + 4,
};

/* sw_agent_ring_size - return the entries of each ring for @n_local processes.
 * No ring ever fills up; log lines may use the remaining entries. */
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
	AGENT_DECLARE, /* n tensors of local, built in all lanes */
	AGENT_TUNE,    /* set the tuning that local asks for */
	AGENT_END,     /* end a group, as local asks */
	AGENT_FREE,    /* free memory or close a stream of local: its item n */
	/* local has closed, or if why has an error, has died; other processes
	 * may go on */
	AGENT_GONE,
	AGENT_LEAVE, /* release clients and tensors; why: error for the job */
};

struct agent_command {
	enum agent_command_kind kind;
	int err;
	uint32_t local;
	uint32_t group; /* number of the group; set by sw_agent_command */
	struct sw_host_client *client;
	/* owned by the host, until release */
	const struct sw_host_tensor *tensors;
	uint32_t n, n_new; /* number of tensors, and of new ones */
	/* first new id; ids are consecutive with one local rank */
	uint32_t first;
	struct sw_edge_tune tune;
	struct sw_edge_end end;
	struct sw_fault why;
};

enum agent_report_kind {
	AGENT_STATUS,   /* a log line; may be dropped */
	AGENT_RUNNING,  /* the job runs */
	AGENT_DECLARED, /* the batch is admitted, or err */
	AGENT_ANSWER,   /* TUNE, END or FREE of local: done, or err */
	AGENT_FAILED,   /* the job failed; processes as with AGENT_ENDED */
	/* no lcore uses the clients' tensors: processes may learn of the end */
	AGENT_ENDED,
	AGENT_LEFT, /* nothing uses the clients' memory and the worker */
};

struct agent_report {
	enum agent_report_kind kind;
	int err;
	bool is_dead;    /* DECLARED: err comes from a dead tensor */
	bool is_warning; /* STATUS: a running job waits */
	uint32_t size, first, local;
	uint64_t epoch; /* RUNNING: the job's epoch */
	/* dropped lines since the last report; set by sw_agent_tell */
	uint32_t n_lost;
	char text[SW_TEXT_MAX + SW_NAME_MAX];
};

struct agent_rings {
	/* For each place: whether the ring holds its command or report. */
	atomic_bool has_command[AGENT_COMMANDS], has_report[AGENT_REPORTS];
	/* The commands' ring, then the reports' ring. */
	_Alignas(64) unsigned char rings[];
};

/* sw_agent_open_rings - allocate the rings, after the configuration is read,
 * and connect both threads' parts to the shared state.  The caller must free
 * shared.rings.
 * Errors: SW_ENOMEM. */
int sw_agent_open_rings(struct agent *a);

/* sw_agent_command - send @command to lcore 0, unless the ring already holds
 * it.  Thread: control. */
void sw_agent_command(
	struct agent_control *c, const struct agent_command *command);

/* sw_agent_take_command - receive the next command.  Returns false if the ring
 * is empty.  Thread: lcore 0. */
bool sw_agent_take_command(
	struct agent_core *core, struct agent_command *command);

/* sw_agent_tell - send @report to the control thread, unless the ring already
 * holds it.  If the ring only has room left for other reports, it drops and
 * counts a log line.  Thread: lcore 0. */
void sw_agent_tell(struct agent_core *core, const struct agent_report *report);

/* sw_agent_take_report - receive the next report.  Returns false if the ring is
 * empty.  Thread: control. */
bool sw_agent_take_report(struct agent_control *c, struct agent_report *report);

#endif
