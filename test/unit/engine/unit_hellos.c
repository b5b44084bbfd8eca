/* unit_hellos.c - a flood of HELLOs delays a running job's sums only a little.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Time is the time of the server's core: each frame costs some, and the HELLOs
 * of strangers share one queue with the job's frames. sumwire-lab engine
 * --keyed --instructions counts 3,500 instructions for a HELLO that is
 * answered, and 285 for a HELLO beyond the limit. */
#include "engine/peer/handshake.h"
#include "test/support/keyed_rig.h"

enum {
	QUEUE = 512,         /* frames, as in a NIC; more are lost */
	JOB_NS = 2000,       /* cost of a frame of the job, in each direction */
	ANSWERED_NS = 4000,  /* cost of a HELLO that is answered or checked */
	LIMITED_NS = 200,    /* cost of a HELLO beyond the limit */
	HELLO_GAP_NS = 2000, /* 500,000 per second: too many to answer all */
	SUMS = 300,
	SUM_LIMIT_S = 1,
};

static struct {
	struct kept frames[QUEUE];
	uint32_t first, n;
	uint64_t hello_at_ns; /* UINT64_MAX: there is no flood */
	uint32_t n_hellos, n_lost;
} queue;

static struct kept *enqueue(void)
{
	if (queue.n == QUEUE) {
		queue.n_lost++;
		return NULL;
	}
	return &queue.frames[(queue.first + queue.n++) % QUEUE];
}

/* Write a HELLO of stranger @i. Strangers have many addresses. They name no key
 * or a key that the server lacks, or replay a HELLO with a valid key. */
static void say_hello(struct kept *k, uint32_t i)
{
	struct sw_path from = {
		.ip = sw_ip_v4(0x0b000000 + i % 50000), .udp = 7000};
	struct sw_hand_path path = {.worker = from.ip, .server = ip_of(0)};
	struct sw_hello hello = {.nonce = 1 + i};
	struct sw_tx_frame f = {.header = {.type = SW_HELLO,
					.class = SW_CLASS_CTL,
					.payload_len = sizeof(hello)}};

	if (i % 3)
		memcpy(&hello.key_id, rig.secrets[0].id, sizeof(hello.key_id));
	if (i % 3 == 2)
		sw_hand_mac(&rig.secrets[0], SW_LABEL_HELLO, &path,
			(uint8_t *)&hello, sizeof(hello),
			offsetof(struct sw_hello, mac));
	sw_frame_fill(&f, path_of(0), &hello, false);
	put(k, &f, 0);
	k->from = from;
}

static void flood(void)
{
	for (; queue.hello_at_ns <= rig.now_ns;
		queue.hello_at_ns += HELLO_GAP_NS) {
		struct kept *k = enqueue();

		if (k)
			say_hello(k, queue.n_hellos++);
	}
}

/* Let the server's core handle the oldest frame. */
static void handle(void)
{
	struct kept *k = &queue.frames[queue.first];
	uint64_t limited = rig.srv->stats.hellos_limited;
	bool is_hello = k->bytes[3] == SW_HELLO;

	queue.first = (queue.first + 1) % QUEUE;
	queue.n--;
	give(server(), k);
	rig.now_ns += !is_hello                                 ? JOB_NS
		      : rig.srv->stats.hellos_limited > limited ? LIMITED_NS
								: ANSWERED_NS;
}

/* Let worker @i run; workers have cores of their own. */
static void work(uint32_t i)
{
	struct sw_tx_frame f;
	struct kept *k;

	worker(i)->tick(worker(i), rig.now_ns, 0);
	while (worker(i)->tx(worker(i), rig.now_ns, 0, &f, 1)) {
		k = enqueue();
		if (k)
			put(k, &f, 1 + i);
	}
}

static void turn(void)
{
	static struct kept k;
	struct sw_tx_frame f;

	flood();
	for (uint32_t n = 0; queue.n && n < SW_RX_BURST; n++)
		handle();
	server()->tick(server(), rig.now_ns, 0);
	for (uint32_t n = 0;
		n < SW_TX_BURST && server()->tx(server(), rig.now_ns, 0, &f, 1);
		n++) {
		put(&k, &f, 0);
		if (f.header.type == SW_COOKIE)
			continue;
		give(worker(owner(f.to)), &k);
		rig.now_ns += JOB_NS;
	}
	for (uint32_t i = 0; i < N; i++)
		work(i);
	rig.now_ns += 500;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Return the 99th percentile of the time that a sum takes. */
static uint64_t p99_ns(void)
{
	static uint64_t ns[SUMS];

	for (uint32_t s = 0; s < SUMS; s++) {
		uint64_t from_ns = rig.now_ns;

		for (uint32_t i = 0; i < N; i++)
			assert_int_equal(
				sw_worker_push(&rig.w[i], 0, 2 + s, 0), 0);
		rig.n_done = 0;
		while (rig.n_done < N) {
			turn();
			assert_true(rig.now_ns - from_ns < SUM_LIMIT_S * SW_S);
		}
		ns[s] = rig.now_ns - from_ns;
	}
	qsort(ns, SUMS, sizeof(*ns), compare);
	return ns[SUMS * 99 / 100];
}

static void hellos__delay_sums_little(void **state)
{
	uint64_t quiet_ns, flooded_ns;

	run();
	memset(&queue, 0, sizeof(queue));
	queue.hello_at_ns = UINT64_MAX;
	quiet_ns = p99_ns();
	queue.hello_at_ns = rig.now_ns;
	flooded_ns = p99_ns();
	print_message("# p99 of a sum: %llu us, beside %u HELLOs %llu us\n",
		(unsigned long long)(quiet_ns / SW_US), queue.n_hellos,
		(unsigned long long)(flooded_ns / SW_US));
	assert_true(queue.n_hellos > 10 * SW_HELLO_BURST);
	assert_int_equal(queue.n_lost, 0);
	assert_true(flooded_ns < 2 * quiet_ns);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hellos__delay_sums_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
