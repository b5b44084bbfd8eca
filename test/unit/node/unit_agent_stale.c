/* unit_agent_stale.c - a hostile process uses stale ids.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The process writes its ring by hand. There is no server, so the test notes
 * what servers have admitted.
 */
#include "engine/worker/stream.h"
#include "pmd/host/host.h"
#include "test/unit/node/agent_rig.h"

enum { MEMORY, FIRST, SECOND, BYTES = 4096, MEMBERS = 2 };

/* Open an agent with one lcore and one local rank, member 0 of two. */
static struct agent_rig *open_one(void)
{
	struct agent_rig *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
	struct sw_worker *w;

	memset(s, 0, sizeof(*s));
	s->r = rig_new(NULL);
	s->w[1] = (struct raw){.sock = -1, .bell = -1, .memory = -1};
	w = &s->agent.core.worker;
	open_daemon(s);
	s->agent.shared.daemon.conf.agent.local_ranks = 1;
	s->agent.shared.daemon.conf.agent.lcores = 1;
	s->agent.shared.daemon.conf.job.agents = MEMBERS;
	assert_int_equal(sw_agent_open_rings(&s->agent), 0);
	assert_int_equal(sw_agent_open_lanes(&s->agent.shared), 0);
	sw_agent_init_parts(&s->agent);
	open_host(s);
	s->agent.shared.host->p.n_local = 1;
	attach(s, 0, 0);
	work(s);
	w->state = SW_WORKER_RUNNING;
	w->size = MEMBERS;
	w->firsts[1] = 1;
	w->firsts[2] = MEMBERS;
	sw_agent_tell(&s->agent.core,
		&(struct agent_report){.kind = AGENT_RUNNING, .size = MEMBERS});
	control(s);
	raw_attached(&s->w[0]);
	work(s);
	return s;
}

/* Let every server admit the added tensors. */
static void admit_all(struct agent_rig *s)
{
	struct sw_worker *w = &s->agent.core.worker;

	work(s);
	w->n_admitted = w->n_tensors;
	for (uint32_t i = 0; i < w->n_links; i++)
		w->links[i].n_declared = w->n_tensors;
	sw_agent_on_declared(&s->agent.core);
	control(s);
}

static void expect(struct raw *w, uint32_t kind)
{
	union sw_edge_msg m;
	int fds[2];

	raw_recv(w, &m, fds);
	assert_int_equal(m.kind, kind);
	if (kind == SW_EDGE_DECLARED)
		close(fds[0]);
}

static void open_stream(struct agent_rig *s, uint32_t batch, uint32_t n_ranks)
{
	struct sw_edge_open m = {.kind = SW_EDGE_OPEN,
		.batch = batch,
		.desc = {.n_elems = n_ranks,
			.dtype = SW_EDGE_WINDOW_MIN,
			.kind = SW_EDGE_STREAM},
		.ranks = {0, 1}};

	snprintf(m.desc.name, sizeof(m.desc.name), "g%u/all_gather", batch);
	raw_send(&s->w[0], &m,
		offsetof(struct sw_edge_open, ranks) +
			n_ranks * sizeof(m.ranks[0]));
	for (uint32_t k = 0; k < 4; k++)
		control(s);
	admit_all(s);
	expect(&s->w[0], SW_EDGE_DECLARED);
}

/* Let the process declare memory and open a group of itself, which it closes
 * and does not free. Then a group of two members gets the same index. */
static struct agent_rig *open_larger(void)
{
	struct agent_rig *s = open_one();
	struct sw_worker *w = &s->agent.core.worker;
	struct sw_edge_end end = {.kind = SW_EDGE_END,
		.what = SW_EDGE_CLOSE_GROUP,
		.stream = FIRST};
	struct sw_edge_declare m;

	good_declare(&m, MEMORY, 1);
	m.descs[0].kind = SW_EDGE_MEMORY;
	m.descs[0].dtype = SW_U8;
	m.descs[0].n_elems = BYTES;
	raw_send(&s->w[0], &m, declare_bytes(1));
	for (uint32_t k = 0; k < 4; k++)
		control(s);
	expect(&s->w[0], SW_EDGE_DECLARED);
	open_stream(s, FIRST, 1);
	raw_send(&s->w[0], &end, sizeof(end));
	control(s);
	work(s);
	control(s);
	expect(&s->w[0], SW_EDGE_ANSWER);
	assert_null(w->tensors[0].worker); /* the group has been freed */
	open_stream(s, SECOND, MEMBERS);
	assert_int_equal(w->n_places, 1); /* at the same index */
	assert_int_equal(w->tensors[0].stream->group.n, MEMBERS);
	return s;
}

static struct sw_completion submit(
	struct agent_rig *s, const struct sw_edge_coll *m)
{
	struct sw_completion c = {.status = 1};

	assert_int_equal(sw_spsc_put(&s->w[0].colls, m, 1), 1);
	work(s);
	(void)!sw_spsc_take(&s->w[0].completions, &c, 1);
	return c;
}

/* A call that fits a group of one is refused in a group of two: its second part
 * would be beyond the memory. */
static void coll__of_a_group_before(void **state)
{
	static const enum sw_coll_kind kinds[] = {
		SW_ALL_GATHER, SW_REDUCE_SCATTER};
	struct agent_rig *s = open_larger();
	struct sw_worker *w = &s->agent.core.worker;
	struct sw_edge_coll m = {.handle = SW_EDGE_COLL_HANDLE | FIRST,
		.stream = FIRST,
		.count = BYTES,
		.dtype = SW_U8,
		.stride = UINT64_C(1) << 30,
		.from.item = MEMORY,
		.to.item = MEMORY};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		m.kind = (uint8_t)kinds[i];
		assert_int_equal(submit(s, &m).status, SW_EINVAL);
		assert_int_equal(w->n_open, 0);
	}
	close_scene(s);
}

/* An END of the old group does not end the new group. */
static void end__of_a_group_before(void **state)
{
	static const int reasons[] = {SW_EABORTED, SW_EEXPIRED, 0};
	struct agent_rig *s = open_larger();
	const struct sw_wtensor *t = &s->agent.core.worker.tensors[0];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct sw_edge_end m = {.kind = SW_EDGE_END,
			.what = reasons[i] ? SW_EDGE_ABORT
					   : SW_EDGE_CLOSE_GROUP,
			.err = reasons[i],
			.stream = FIRST,
			.why = "late"};

		raw_send(&s->w[0], &m, sizeof(m));
		control(s);
		work(s);
		control(s);
		expect(&s->w[0], SW_EDGE_ANSWER);
		assert_false(t->life->from || t->life->is_closed);
	}
	close_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coll__of_a_group_before),
		cmocka_unit_test(end__of_a_group_before)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
