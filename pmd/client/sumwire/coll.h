/* coll.h - libsumwire: ordered collectives of groups of ranks.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives complement declared tensors: they have no names and any size. A
 * group is a list of ranks that make the same collective calls in the same
 * order. A server needs memory for a fixed window per group and kind,
 * independent of the sizes of the collectives.
 *
 * Thread: calls on one group come from one thread at a time; calls on different
 * groups may come from different threads. Fork: as in sumwire.h.
 */
#ifndef SUMWIRE_COLL_H
#define SUMWIRE_COLL_H

#include <sumwire/coll_kind.h>
#include <sumwire/sumwire.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sw_group; /* belongs to its client */

/* sw_alloc - allocate @bytes of zeroed memory that the agent reads and writes
 * in place. It is aligned to 64 bytes and owned by @c until sw_free or
 * sw_close. Buffers of collectives may lie anywhere, but those in this memory
 * need no copy.
 * Errors: SW_EINVAL @bytes is 0 or above 64 GiB; SW_ENOMEM, SW_ETIMEDOUT,
 * SW_ECLOSED as for sw_declare. */
SW_API int sw_alloc(struct sw_client *c, size_t bytes, void **out);

/* sw_free - free memory of sw_alloc. When it returns 0, neither this process
 * nor the agent maps the memory, and later allocations may use the space.
 * @p  a pointer that sw_alloc returned; NULL: do nothing
 * Errors: SW_EBUSY an open collective uses the memory, or it belongs to a
 * tensor (sw_last_error says which), and nothing is freed; SW_EINVAL @p is not
 * from sw_alloc; SW_ETIMEDOUT, SW_ECLOSED as for sw_declare, and sw_close frees
 * the memory later.
 * Cost: a round trip to the agent, 10 us to 10 ms. */
SW_API int sw_free(struct sw_client *c, void *p);

/* sw_group_open - open a group of ranks of the job. It sends nothing: the first
 * collective of each kind opens the group's stream for that kind.
 * @name    1 to 100 bytes, the same at all members; groups with the same name
 *          are the same group
 * @ranks   @n_ranks different ranks, including this one, in the same order at
 *          all members; NULL: all ranks
 * @out     set on success; owned by @c, valid until sw_group_close or sw_close
 * A name is free again when all members have closed its group.
 * Errors: SW_EINVAL; SW_EBUSY a group of that name is open, or 256 groups are;
 * SW_ENOMEM; or the reason why the attachment ended. */
SW_API int sw_group_open(struct sw_client *c, const char *name,
	const uint32_t *ranks, uint32_t n_ranks, struct sw_group **out);

/* The result for each element, over the n members that contribute:
 *   SW_SUM         a + b + …; bool: or
 *   SW_AVG         the sum divided by n, once; integers: the wrapped sum,
 *                  rounded towards zero; not for bool
 *   SW_MIN, _MAX   NaN if any contribution is NaN; -0 is smaller than +0
 *   SW_PROD        a * b * …; bool: and
 *   SW_BAND, _BOR, _BXOR    bit by bit; integers and bool only
 *   SW_PREMUL_SUM  each member multiplies its elements by its own scale and
 *                  rounds them to the dtype, then they are summed; integers
 *                  round to nearest and saturate; not for bool. A member with
 *                  scale 1 may call it SW_SUM
 * Integers wrap. f16 and bf16 are computed in f32 and rounded once. Servers add
 * and multiply floats in the order in which contributions arrive. With [job]
 * order = rank they use the order of agents, which gives the same bits each
 * time. */

/* The arguments of one collective. The caller must leave the buffers alone
 * until the handle has ended. @count elements of @dtype are the length of
 *   SW_ALL_REDUCE      @send and @recv: every rank gets the result of @op
 *   SW_REDUCE          @send and @recv: @root gets the result of @op
 *   SW_BCAST           @send and @recv: every rank gets what @root sends
 *   SW_REDUCE_SCATTER  @recv; @send has @count elements for each rank, in the
 *                      order of the group: each rank gets the result for its
 *                      own part
 *   SW_ALL_GATHER      @send; @recv has @count elements from each rank, in the
 *                      order of the group
 *   SW_BARRIER         no data: it ends when all ranks have called it, and does
 *                      not wait for their other collectives
 * @send and @recv may be equal (all_gather: @send may be this rank's part of
 * @recv; reduce_scatter: @recv may be this rank's part of @send). Otherwise
 * they must not overlap. A rank that sends nothing (SW_BCAST, all except @root)
 * or receives nothing (SW_REDUCE, all except @root) may leave that buffer NULL.
 * The library copies buffers outside sw_alloc memory through its own memory, in
 * pieces, while other pieces are on the wire. The waiting caller does the
 * copies; for collectives above 1 MiB, a thread of the library also copies. */
struct sw_coll_args {
	size_t size; /* sizeof(struct sw_coll_args) */
	enum sw_coll_kind kind;
	enum sw_dtype dtype;
	uint64_t count;
	uint32_t root;        /* SW_BCAST, SW_REDUCE: a rank of the job */
	enum sw_reduce_op op; /* SW_SUM for kinds without one */
	const void *send;
	void *recv;
	double scale; /* factor of SW_PREMUL_SUM */
	/* A buffer per rank, in host memory, in place of @send of
	 * SW_REDUCE_SCATTER or @recv of SW_ALL_GATHER, which must then be NULL;
	 * else NULL. */
	void *const *parts;
};

#define SW_COLL_ARGS_INIT                                                \
	{                                                                \
		sizeof(struct sw_coll_args), SW_COLL_NONE, SW_F32, 0, 0, \
			SW_SUM, NULL, NULL, 1, NULL                      \
	}

/* sw_coll - start a collective on @g.
 * @handle   set on success; ends exactly once, through sw_poll or sw_wait
 * Returns at once, except that the first collective of a kind waits until the
 * servers have opened its stream.
 * Collectives of one kind run in order, several at a time. Between kinds,
 * packets of barriers, broadcasts and all_gathers overtake packets of
 * all_reduces and reduces, and these overtake reduce_scatters. A client may
 * have 1,024 collectives open.
 * If the members' calls or their order differ, the handles end with
 * SW_EMISMATCH. The error text names two of the ranks, and the count, dtype and
 * root of this rank's call. All ranks that wait for a result get the error; the
 * handle of a rank that only sends may have ended earlier. The group is then
 * dead: its open and later collectives of any kind end with the same error.
 * Other groups continue.
 * If a server's quota has no room for the first collective of a kind, the group
 * dies in the same way with SW_EREFUSED. A kind takes 2 to 3 MiB of each
 * server, and with [job] order = rank 1 MiB more for each agent of the
 * group. sw_last_error says how much is needed and left.
 * Errors: SW_EINVAL an argument is invalid, sw_last_error says why; SW_EBUSY
 * too many collectives are open; those of sw_declare and sw_push_pull. */
SW_API int sw_coll(
	struct sw_group *g, const struct sw_coll_args *args, uint64_t *handle);

/* sw_group_abort - end every open collective of @g at all members. Their
 * handles, and all later calls on the group, end with @err and the text "rank 2
 * aborted group 'dp': TEXT". Returns when the agent has stopped using the
 * buffers of @g. The caller must still wait for its handles.
 * @err   SW_EABORTED; or SW_EEXPIRED if the caller timed out: then the agent
 *        adds the missing ranks to the text
 * @text  at most 80 bytes; NULL: none
 * A group that has already ended keeps its first reason.
 * Errors: SW_EINVAL for another @err; SW_ETIMEDOUT the agent still uses a
 * buffer after wait_timeout_s; SW_ECLOSED; or the reason why the attachment
 * ended. */
SW_API int sw_group_abort(struct sw_group *g, int err, const char *text);

/* sw_group_set_timeout - abort @g with SW_EEXPIRED if a collective that is
 * called from now on has not ended after @seconds. The error text names the
 * collective and the missing ranks, as far as the agent knows them; all members
 * get the same text. A thread of the library keeps the time.
 * @seconds  0, the default: never abort; sw_wait then returns SW_ETIMEDOUT
 *           after wait_timeout_s and the handle stays open
 * Errors: SW_ENOMEM, or the reason why the attachment ended. */
SW_API int sw_group_set_timeout(struct sw_group *g, uint32_t seconds);

/* sw_group_close - close @g at this rank. Its open collectives end with
 * SW_ECLOSED here, and at the other members as after sw_group_abort. The caller
 * must still wait for its handles, but must not use @g again, even if this
 * call fails.
 * Other members: the call does not wait for them. A rank that waits for a
 * member that has closed the group fails at once, as after sw_group_abort. The
 * servers free the group's memory when all members have closed it.
 * If no collective was called on @g, the call opens a stream to tell the
 * servers, and waits for that. If the agent still uses buffers of @g after
 * wait_timeout_s, the library frees the group after its last handle has been
 * reported.
 * Errors: as for sw_group_abort. */
SW_API int sw_group_close(struct sw_group *g);

/* sw_wait_group_failed_for - wait until more than *@n groups of the job have
 * failed, because ranks did not call or called differently (SW_EEXPIRED,
 * SW_ESTALL, SW_EMISMATCH); *@n becomes their number. For a thread that
 * writes a report while its process does other work; groups that this process
 * has not opened may count. Start with *@n = 0.
 * Errors: SW_ETIMEDOUT after @timeout_ms; the reason why the attachment ended.
 */
SW_API int sw_wait_group_failed_for(
	struct sw_client *c, uint32_t timeout_ms, uint32_t *n);

#ifdef __cplusplus
}
#endif

#endif
