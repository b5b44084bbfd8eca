/* cost_step.h - server and workers stepped in one thread, stage by stage.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The clock is virtual, turns come in a fixed order, and a received burst has
 * frames of one kind, so every run takes the same instructions.  Each stage of
 * the measured rounds has its own function, by whose name a profiler tells the
 * stages apart.
 */
#ifndef SW_APPS_COST_COST_STEP_H
#define SW_APPS_COST_COST_STEP_H

#include "apps/cost/cost_nodes.h"

enum { COST_STEP_ROUNDS = 2 }; /* measured rounds */

/* Its number, its function, and what the table calls it. The unit that is
 * counted: frames; for idle, turns, ticks and submits the calls.  The last ones
 * are of strangers to a keyed server: PUSHes, as many as true ones, and HELLOs
 * with a good MAC, which an attacker may send again.  Then what a reader of the
 * status costs, once in each round. */
#define COST_STAGES(X)                                      \
	X(SERVER_PUSH, server_push, "PUSH in")              \
	X(SERVER_RESULT, server_result, "RESULT out")       \
	X(SERVER_ACK_IN, server_ack_in, "ACK in")           \
	X(SERVER_ACK_OUT, server_ack_out, "ACK out")        \
	X(SERVER_OTHER_IN, server_other_in, "others in")    \
	X(SERVER_OTHER_OUT, server_other_out, "others out") \
	X(SERVER_IDLE, server_idle, "nothing to send")      \
	X(SERVER_TICK, server_tick, "timers")               \
	X(SERVER_TURN, server_turn, "turn of the loop")     \
	X(WORKER_SUBMIT, worker_submit, "submit")           \
	X(WORKER_PUSH, worker_push, "PUSH out")             \
	X(WORKER_RESULT, worker_result, "RESULT in")        \
	X(WORKER_ACK_IN, worker_ack_in, "ACK in")           \
	X(WORKER_ACK_OUT, worker_ack_out, "ACK out")        \
	X(WORKER_OTHER_IN, worker_other_in, "others in")    \
	X(WORKER_OTHER_OUT, worker_other_out, "others out") \
	X(WORKER_IDLE, worker_idle, "nothing to send")      \
	X(WORKER_TICK, worker_tick, "timers")               \
	X(WORKER_TURN, worker_turn, "turn of the loop")     \
	X(WRONG_SESSION, wrong_session, "wrong session")    \
	X(WRONG_PATH, wrong_path, "wrong path")             \
	X(WRONG_TAG, wrong_tag, "wrong tag")                \
	X(HELLO_TAKEN, hello_taken, "HELLO")                \
	X(HELLO_LIMITED, hello_limited, "HELLO, limited")   \
	X(SERVER_LOOK, server_look, "status")

#define COST_STAGE_NUMBER(number, function, text) COST_##number,
enum cost_stage { COST_STAGES(COST_STAGE_NUMBER) COST_N_STAGES };
#undef COST_STAGE_NUMBER

/* Counts of all measured rounds. */
struct cost_steps {
	uint64_t units[COST_N_STAGES];
};

/* sw_cost_step - run @shape with kernels of AVX2 at most, and count its units.
 * Errors, all printed: SW_EINVAL this CPU has no AVX2; SW_EIO two runs sent
 * different frames; errors of the job. */
int sw_cost_step(const struct cost_shape *shape, struct cost_steps *out);

#endif
