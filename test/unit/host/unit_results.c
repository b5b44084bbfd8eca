/* unit_results.c - joint declarations of local ranks, in one thread.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/numa_rig.h"
#include "pmd/client/segment.h"
#include "pmd/host/host.h"
#include "test/unit/host/host_raw.h"

enum { LOCAL = 2, QUOTA = 8 << 20 };

/* An agent of two local ranks that records its calls. */
struct pair {
	struct rig *r; /* provides only the folder and the log */
	struct sw_host *host;
	uint32_t ids[LOCAL], n_attach, n_detach;
	uint32_t declarer, batch, n_declare, n_tensors;
	const struct sw_host_tensor *tensors;
	struct sw_host_client *ports[LOCAL];
	enum sw_host_why why;
	char text[SW_EDGE_TEXT_BYTES];
	struct raw w[LOCAL];
};

static void on_attach(
	void *ctx, uint32_t id, uint32_t pid, uint32_t uid, uint32_t local_rank)
{
	struct pair *p = ctx;

	assert_int_equal(local_rank, UINT32_MAX);
	p->ids[p->n_attach++] = id;
}

static void on_declare(void *ctx, uint32_t id, uint32_t batch,
	const struct sw_host_tensor *tensors, uint32_t n)
{
	struct pair *p = ctx;

	p->declarer = id;
	p->batch = batch;
	p->tensors = tensors;
	p->n_tensors = n;
	p->n_declare++;
}

static void on_detach(
	void *ctx, uint32_t id, enum sw_host_why why, const char *text)
{
	struct pair *p = ctx;

	p->why = why;
	snprintf(p->text, sizeof(p->text), "%s", text);
	p->n_detach++;
}

static void poll_some(struct pair *p)
{
	for (int i = 0; i < 20; i++)
		sw_host_poll(p->host, 0);
}

static void open_pair(struct pair *p)
{
	struct sw_edge_attach hello = {SW_EDGE_ATTACH, SW_EDGE_MAGIC,
		SW_EDGE_VERSION_MIN, SW_EDGE_VERSION_MAX, 0};
	struct sw_host_params params = {.n_local = LOCAL,
		.max_clients = 4,
		.quota_bytes = QUOTA,
		.numa_node = SW_NUMA_ANY,
		.events = {on_attach, on_declare, on_detach},
		.ctx = p};

	*p = (struct pair){.r = rig_new(NULL)};
	params.path = p->r->path;
	params.log = &p->r->log;
	assert_int_equal(rig_host_open(&params, &p->host), 0);
	for (uint32_t i = 0; i < LOCAL; i++) {
		raw_connect(&p->w[i], p->r);
		raw_send(&p->w[i], &hello, sizeof(hello));
		poll_some(p);
		assert_int_equal(sw_host_attached(p->host, p->ids[i], i, LOCAL,
					 i, LOCAL, &p->ports[i]),
			0);
		raw_attached(&p->w[i]);
	}
}

static void close_pair(struct pair *p)
{
	for (uint32_t i = 0; i < LOCAL; i++)
		raw_close(&p->w[i]);
	poll_some(p);
	for (uint32_t i = 0; i < LOCAL; i++)
		sw_host_release(p->host, p->ids[i]);
	sw_host_close(&p->host);
	rig_close(p->r);
}

/* Let local rank @i declare "a" and "b" of @n_elems, in this or the reverse
 * order. */
static void send_batch(
	struct pair *p, uint32_t i, uint64_t n_elems, bool is_reversed)
{
	struct sw_edge_declare m;

	good_declare(&m, 0, 2);
	strcpy(m.descs[is_reversed].name, "a");
	strcpy(m.descs[!is_reversed].name, "b");
	m.descs[0].n_elems = m.descs[1].n_elems = n_elems;
	raw_send(&p->w[i], &m, declare_bytes(2));
	poll_some(p);
}

/* Admit the batch of local rank @i; return the descriptor of the results. */
static int admit(struct pair *p, uint32_t i)
{
	union sw_edge_msg m;
	int fds[2];

	assert_int_equal(p->declarer, p->ids[i]);
	assert_int_equal(
		sw_host_declared(p->host, p->ids[i], p->batch, 99, 0, ""), 0);
	assert_int_equal(raw_recv(&p->w[i], &m, fds), sizeof(m.declared));
	close(fds[0]);
	return fds[1];
}

/* Each name has one number and one result, for any order of declaration;
 * submits carry that number. */
static void declare__joins_by_name(void **state)
{
	struct pair p;
	struct sw_submit in = {1, 0, 0, 0};
	struct sw_host_submit out;
	void *results[2];
	int fds[2];

	open_pair(&p);
	send_batch(&p, 0, 1000, false);
	results[0] = p.tensors[0].result;
	results[1] = p.tensors[1].result;
	assert_int_equal(p.tensors[1].node_id, 1);
	fds[0] = admit(&p, 0);
	send_batch(&p, 1, 1000, true);
	assert_string_equal(p.tensors[0].name, "b");
	assert_int_equal(p.tensors[0].node_id, 1);
	assert_int_equal(p.tensors[1].node_id, 0);
	assert_ptr_equal(p.tensors[0].result, results[1]);
	assert_ptr_equal(p.tensors[1].result, results[0]);
	assert_int_equal((uintptr_t)p.tensors[0].base % 4096, 32 * 64);
	fds[1] = admit(&p, 1);
	assert_int_equal(
		p.w[0].control->results[1], p.w[1].control->results[0]);
	sw_spsc_put(&p.w[1].submits, &in, 1);
	assert_int_equal(sw_host_take(p.ports[1], &out, 1), 1);
	assert_int_equal(out.tensor, 1); /* tensor 0 of process 1 is "b" */
	close(fds[0]);
	close(fds[1]);
	close_pair(&p);
}

/* Tensors, and the results that they add, are on the node that their process
 * asks for. */
static void declare__near(void **state)
{
	struct sw_edge_declare m;
	struct pair p;

	rig_skip_if_forbidden();
	open_pair(&p);
	for (uint32_t batch = 0; batch < 2; batch++) {
		good_declare(&m, batch, 1);
		m.descs[0].name[0] = (char)('a' + batch);
		m.near = batch;
		raw_send(&p.w[0], &m, declare_bytes(1));
		poll_some(&p);
		assert_int_equal(rig_nodes_of(p.tensors[0].base), batch);
		assert_int_equal(rig_nodes_of(p.tensors[0].result), batch);
		close(admit(&p, 0));
	}
	close_pair(&p);
}

/* Let process 1 declare, then process 0. */
static void open_declaring(struct pair *p)
{
	open_pair(p);
	send_batch(p, 1, 10, false);
	send_batch(p, 0, 10, false);
}

/* A batch waits until the previous batch of another process is answered. */
static void declare__one_at_a_time(void **state)
{
	struct pair p;

	open_declaring(&p);
	assert_int_equal(p.n_declare, 1);
	close(admit(&p, 1));
	poll_some(&p);
	assert_int_equal(p.n_declare, 2);
	close(admit(&p, 0));
	close_pair(&p);
}

static void die(struct pair *p, uint32_t i)
{
	close(p->w[i].sock);
	p->w[i].sock = -1;
	poll_some(p);
	assert_int_equal(p->n_detach, 1);
}

/* If the declaring client dies, clients that wait for its answer continue. */
static void declare__and_die(void **state)
{
	struct pair p;

	open_declaring(&p);
	die(&p, 1);
	/* the lcore may still use its tensors */
	assert_int_equal(p.n_declare, 1);
	assert_int_equal(
		sw_host_declared(p.host, p.declarer, p.batch, 99, 0, ""),
		SW_ENOENT);
	poll_some(&p);
	assert_int_equal(p.n_declare, 2);
	assert_int_equal(p.tensors[0].node_id, 0);
	assert_false(p.tensors[0].is_new);
	close(admit(&p, 0));
	close_pair(&p);
}

/* The same if the agent refuses the dead client's batch. */
static void declare__and_die_in_vain(void **state)
{
	struct pair p;

	open_declaring(&p);
	die(&p, 1);
	sw_host_declare_failed(
		p.host, p.declarer, p.batch, SW_ENOMEM, "no memory");
	poll_some(&p);
	assert_int_equal(p.n_declare, 2);
	assert_true(p.tensors[0].is_new);
	close(admit(&p, 0));
	close_pair(&p);
}

/* The client dies before its memory is ready. */
static void declare__and_die_soon(void **state)
{
	struct sw_edge_declare m;
	struct pair p;

	open_pair(&p);
	good_declare(&m, 0, 2);
	m.descs[0].n_elems = m.descs[1].n_elems = 300000;
	raw_send(&p.w[1], &m, declare_bytes(2));
	sw_host_poll(p.host, 0); /* the batch has its place, but no pages yet */
	die(&p, 1);
	assert_int_equal(p.n_declare, 0);
	send_batch(&p, 0, 300000, false);
	assert_int_equal(p.n_declare, 1);
	close(admit(&p, 0));
	close_pair(&p);
}

/* A tensor of another shape is declared without a result: its push_pulls fail,
 * but not the job. */
static void declare__other_shape(void **state)
{
	struct pair p;
	union sw_edge_msg m;
	int fds[2];

	open_pair(&p);
	send_batch(&p, 0, 10, false);
	close(admit(&p, 0));
	send_batch(&p, 1, 11, false);
	assert_int_equal(p.n_detach, 0);
	assert_int_equal(p.n_declare, 2);
	assert_int_equal(p.tensors[1].node_id, 1);
	assert_null(p.tensors[1].result);
	assert_int_equal(sw_host_declared(p.host, p.ids[1], p.batch, 99,
				 SW_EMISMATCH, "tensor a: 11 or 10"),
		0);
	assert_int_equal(raw_recv(&p.w[1], &m, fds), sizeof(m.declared));
	assert_int_equal(m.declared.err, SW_EMISMATCH);
	assert_string_equal(m.declared.text, "tensor a: 11 or 10");
	close(fds[0]);
	close(fds[1]);
	close_pair(&p);
}

/* A failed batch leaves nothing behind: names, numbers and quota are free
 * again. */
static void declare__failed_is_forgotten(void **state)
{
	struct pair p;
	union sw_edge_msg m;
	int fds[2];
	struct sw_edge_declare again;

	open_pair(&p);
	send_batch(&p, 0, 10, false);
	sw_host_declare_failed(p.host, p.ids[0], 0, SW_EREFUSED, "no");
	raw_recv(&p.w[0], &m, fds);
	assert_int_equal(m.kind, SW_EDGE_FAILED);
	/* 2 x 2 MB of tensors, and the same of results */
	send_batch(&p, 1, 530000, true);
	raw_recv(&p.w[1], &m, fds);
	assert_int_equal(m.kind, SW_EDGE_FAILED);
	if (!strstr(m.text.text, "needed for results"))
		fail_msg("%s", m.text.text);
	good_declare(&again, 1, 1);
	strcpy(again.descs[0].name, "b");
	again.descs[0].n_elems = 400000;
	raw_send(&p.w[0], &again, declare_bytes(1));
	poll_some(&p);
	assert_int_equal(p.tensors[0].node_id, 0);
	assert_int_equal(p.n_declare, 2);
	close(admit(&p, 0));
	close_pair(&p);
}

/* Let local rank 0 open a stream of @n_ranks as batch @batch. */
static void open_stream(struct pair *p, uint32_t batch, uint32_t n_ranks)
{
	struct sw_edge_open m = {.kind = SW_EDGE_OPEN,
		.batch = batch,
		.desc = {.n_elems = n_ranks,
			.dtype = SW_EDGE_WINDOW_MIN,
			.kind = SW_EDGE_STREAM}};

	snprintf(m.desc.name, sizeof(m.desc.name), "stream %u", batch);
	raw_send(&p->w[0], &m,
		offsetof(struct sw_edge_open, ranks) +
			n_ranks * sizeof(m.ranks[0]));
	poll_some(p);
}

static void expect_failed(struct pair *p, const char *why)
{
	union sw_edge_msg m;
	int fds[2];

	raw_recv(&p->w[0], &m, fds);
	assert_int_equal(m.kind, SW_EDGE_FAILED);
	if (!strstr(m.text.text, why))
		fail_msg("%s", m.text.text);
}

/* A failed stream also leaves nothing behind, even in the row of an earlier one
 * that had less room there. */
static void open__failed_is_forgotten(void **state)
{
	enum { RANKS = 20000, LEFT = 60 << 10 };
	struct sw_edge_declare all;
	union sw_edge_msg m;
	struct pair p;
	uint64_t used;
	int fds[2];

	open_pair(&p);
	open_stream(&p, 0, 2);
	close(admit(&p, 0));
	sw_host_gone(p.host, 0);
	used = p.host->used_bytes;
	open_stream(&p, 1, RANKS);
	sw_host_declare_failed(p.host, p.ids[0], 1, SW_EREFUSED, "no");
	expect_failed(&p, "no");
	assert_int_equal(p.host->used_bytes, used);
	good_declare(&all, 2, 1);
	all.descs[0].kind = SW_EDGE_MEMORY;
	all.descs[0].dtype = SW_U8;
	all.descs[0].n_elems = QUOTA - used - LEFT;
	raw_send(&p.w[0], &all, declare_bytes(1));
	poll_some(&p);
	raw_recv(&p.w[0], &m, fds);
	assert_int_equal(m.kind, SW_EDGE_DECLARED);
	close(fds[0]);
	close(fds[1]);
	used = p.host->used_bytes;
	/* there is room for its ranks only once, not twice */
	open_stream(&p, 3, RANKS);
	expect_failed(&p, "needed for results");
	assert_int_equal(p.host->used_bytes, used);
	open_stream(&p, 4, 2);
	assert_int_equal(sw_id_index(p.tensors[0].node_id), 0);
	assert_true(p.tensors[0].node_id); /* the earlier stream had id 0 */
	assert_int_equal(p.host->used_bytes, used + 4096);
	close(admit(&p, 0));
	close_pair(&p);
}

/* A client can only read its node's results. */
static void results__cannot_be_written(void **state)
{
	struct pair p;
	struct sw_segment seen;
	char path[64], byte = 1;
	const void *at;
	int fd, again;

	open_pair(&p);
	send_batch(&p, 0, 1000, false);
	*(float *)p.tensors[1].result = 42;
	fd = admit(&p, 0);
	assert_ptr_equal(
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
		MAP_FAILED);
	assert_int_equal(write(fd, &byte, 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			4096),
		-1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR);
	if (again >= 0)
		assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					 MAP_SHARED, again, 0),
			MAP_FAILED);
	if (again >= 0)
		close(again);
	assert_int_equal(sw_segment_attach_shown(&seen, fd), 0);
	at = (const char *)seen.base + p.w[0].control->results[1];
	assert_true(*(const float *)at == 42);
	sw_segment_fini(&seen);
	close_pair(&p);
}

/* The results' memory is freed with the last local rank, also if one died
 * early. */
static void results__go_with_the_last(void **state)
{
	struct pair p;

	open_pair(&p);
	/* not answered, so the batch is in progress */
	send_batch(&p, 0, 1000, false);
	raw_close(&p.w[0]);
	poll_some(&p);
	assert_int_equal(p.n_detach, 1);
	*(float *)p.tensors[0].result = 1; /* the lcore may still write */
	sw_host_release(p.host, p.ids[0]);
	send_batch(&p, 1, 1000, false);
	assert_int_equal(p.n_declare, 2);
	assert_int_equal(p.tensors[0].node_id, 0);
	close(admit(&p, 1));
	p.w[0] = (struct raw){.sock = -1, .bell = -1, .memory = -1};
	raw_connect(&p.w[0], p.r);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__joins_by_name),
		cmocka_unit_test(declare__near),
		cmocka_unit_test(declare__one_at_a_time),
		cmocka_unit_test(declare__and_die),
		cmocka_unit_test(declare__and_die_in_vain),
		cmocka_unit_test(declare__and_die_soon),
		cmocka_unit_test(declare__other_shape),
		cmocka_unit_test(declare__failed_is_forgotten),
		cmocka_unit_test(open__failed_is_forgotten),
		cmocka_unit_test(results__cannot_be_written),
		cmocka_unit_test(results__go_with_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
