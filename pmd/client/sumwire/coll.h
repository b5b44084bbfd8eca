/* coll.h - libsumwire: ordered collectives of groups of ranks.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Beside declared tensors there are collectives, which have no names and any
 * size.  A group is a list of ranks, which call the same collectives on it, in
 * the same order.  Servers keep a window of what is under way, whatever the
 * sizes are.
 *
 * Thread: calls of one group come from one thread at a time, those of different
 * groups from any.  Fork: as in sumwire.h.
 */
#ifndef SUMWIRE_COLL_H
#define SUMWIRE_COLL_H

#include <sumwire/coll_kind.h>
#include <sumwire/sumwire.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sw_group; /* belongs to its client */

/* sw_alloc - @bytes of memory that the agent reads and writes in place, zeroed,
 * aligned to 64 bytes; owned by @c until sw_free or sw_close.  Buffers of
 * collectives may lie anywhere, but those that lie here need no copy.
 * Errors: SW_EINVAL 0 bytes or more than 64 GiB; SW_ENOMEM, SW_ETIMEDOUT,
 * SW_ECLOSED as of sw_declare. */
SW_API int sw_alloc(struct sw_client *c, size_t bytes, void **out);

/* sw_free - give memory back: when it returns 0, it is mapped neither here nor
 * by the agent, and later sw_allocs may have what it took.
 * @p  as sw_alloc gave it; NULL: nothing is done
 * Errors: SW_EBUSY a collective that is open uses it, or it is a tensor's
 * (sw_last_error says which): it stays as it is; SW_EINVAL it is not of
 * sw_alloc; SW_ETIMEDOUT, SW_ECLOSED as of sw_declare: sw_close frees it.
 * Cost: a message to the agent and its answer, some 10 us to 10 ms. */
SW_API int sw_free(struct sw_client *c, void *p);

/* sw_group_open - a group of ranks of the job.  Says nothing to anybody: a
 * stream of the group is opened with its first collective of each kind.
 * @name    the same at all of them, 1 to 100 bytes; groups of one name are the
 *          same group
 * @ranks   @n_ranks of them, different, this one among them, in an order that
 *          is the same at all of them; NULL: all ranks
 * @out     owned by @c, valid until sw_group_close or sw_close
 * A name may be used again when its group was closed, by all of its members.
 * Errors: SW_EINVAL; SW_EBUSY a group of that name is open, or 256 are;
 * SW_ENOMEM, or why the attachment ended. */
SW_API int sw_group_open(struct sw_client *c, const char *name,
	const uint32_t *ranks, uint32_t n_ranks, struct sw_group **out);

/* What becomes of the elements that members give; n of them do.
 *   SW_SUM         a + b + …; bool: or
 *   SW_AVG         the sum divided by n, once; integers: of the sum as it
 *                  wrapped, cut towards zero; not of bool
 *   SW_MIN, _MAX   a NaN of any gives NaN; -0 is smaller than +0
 *   SW_PROD        a * b * …; bool: and
 *   SW_BAND, _BOR, _BXOR    bit by bit; integers and bool only
 *   SW_PREMUL_SUM  the sum of each member's times its own scale, rounded to
 *                  the dtype before it is added: integers to the nearest, and
 *                  stopped at the ends of their type; not of bool.  Others may
 *                  call it SW_SUM: their scale is 1
 * Integers wrap.  f16 and bf16 are computed in f32 and rounded once.  Floats
 * are added and multiplied in the order in which members' bytes come, unless
 * [job] order is rank: then in that of agents, with the same bits each time. */

/* One collective.  The buffers are the caller's again when its handle has
 * ended.  @count elements of @dtype are those of
 *   SW_ALL_REDUCE      @send and @recv: what comes of @op, at all
 *   SW_REDUCE          the same; at @root
 *   SW_BCAST           the same; what @root has in @send, at all
 *   SW_REDUCE_SCATTER  @recv; @send has as many for each rank, in the order of
 *                      the group: what comes of its own part, at each
 *   SW_ALL_GATHER      @send; @recv has as many for each rank
 *   SW_BARRIER         nothing: it ends when all ranks have called it.  It
 *                      waits for no other collective of theirs
 * @send and @recv may be the same (of all_gather: the own part of @recv; of
 * reduce_scatter: the own part of @send), else they are apart.  A rank that
 * gives nothing (SW_BCAST, all but @root) or gets nothing (SW_REDUCE, all but
 * @root) may leave that buffer NULL.
 * Buffers outside memory of sw_alloc are copied through memory of the library,
 * in pieces, while others are on the wire: by the caller that waits, and
 * in collectives of more than one piece (1 MiB) by a thread of the library. */
struct sw_coll_args {
	size_t size; /* of this struct */
	enum sw_coll_kind kind;
	enum sw_dtype dtype;
	uint64_t count;
	uint32_t root;        /* a rank of the job */
	enum sw_reduce_op op; /* SW_SUM where nothing is summed */
	const void *send;
	void *recv;
	double scale; /* SW_PREMUL_SUM */
};

#define SW_COLL_ARGS_INIT                                                \
	{                                                                \
		sizeof(struct sw_coll_args), SW_COLL_NONE, SW_F32, 0, 0, \
			SW_SUM, NULL, NULL, 1                            \
	}

/* sw_coll - start a collective on @g.
 * @handle   ends exactly once, through sw_poll or sw_wait
 * Returns at once, but for the first of its kind, which waits for the servers.
 * Barriers, broadcasts and all_gathers pass all_reduces and reduces, packet by
 * packet, and these pass reduce_scatters.
 * Collectives of one kind are done in order, several of them at once; up to
 * 1,024 of a client may be open.
 * When calls of members differ, also in their order, handles end with
 * SW_EMISMATCH and a sentence that names two of them, and count, dtype and root
 * of this rank's: at all that wait for a result; a rank that only gives may
 * have ended before.  The group is then dead: all that is open on it, and all
 * that is called later, of any kind, ends so; other groups go on.  The same
 * happens, with SW_EREFUSED, when a server's quota has no room for the first
 * collective of a kind, which takes 2 to 3 MiB of each server, and one more for
 * each agent of the group where [job] order is rank; sw_last_error says what is
 * needed and left.
 * Errors: SW_EINVAL an argument cannot be, with the reason in sw_last_error;
 * SW_EBUSY too many are open; those of sw_declare and sw_push_pull. */
SW_API int sw_coll(
	struct sw_group *g, const struct sw_coll_args *args, uint64_t *handle);

/* sw_coll_test - has @handle ended?  sw_poll, which all handles have. */
static inline int sw_coll_test(struct sw_client *c, uint64_t handle)
{
	return sw_poll(c, handle);
}

/* sw_group_abort - end every open collective of @g, at all members: their
 * handles, and all later calls, end with @err and the sentence
 * "rank 2 aborted group 'dp': TEXT".  Returns when the agent neither reads nor
 * writes a buffer of @g; the handles must still be waited for.
 * @err   SW_EABORTED; or SW_EEXPIRED, if the reason is a timeout of yours: then
 *        the agent adds the ranks that it waits for to the sentence
 * @text  up to 80 bytes; NULL: none
 * A group that has already ended keeps its first reason.
 * Errors: SW_EINVAL another @err, SW_ETIMEDOUT the agent still uses a buffer
 * after wait_timeout_s, SW_ECLOSED, or why the attachment ended. */
SW_API int sw_group_abort(struct sw_group *g, int err, const char *text);

/* sw_group_set_timeout - have the library abort @g with SW_EEXPIRED when a
 * collective called from now on has not ended after @seconds.  The sentence
 * names the collective and the ranks that are missing, as far as the agent
 * knows them; all members get the same one.  0, as after sw_group_open: never;
 * sw_wait then gives up after wait_timeout_s, and the handle stays open.
 * A thread of the library keeps the time.
 * Errors: SW_ENOMEM, or why the attachment ended. */
SW_API int sw_group_set_timeout(struct sw_group *g, uint32_t seconds);

/* sw_group_close - this process is through with @g.  What is open on it ends
 * with SW_ECLOSED, here, and as by sw_group_abort at the other members; its
 * handles are still to be waited for.  Waits for no member; where nothing was
 * called on it, for the servers, which are told by a stream of barriers.  When
 * all members have closed it the servers have the memory back; a rank that
 * waits for one that has closed it fails at once, as after sw_group_abort.
 * @g is given up whatever it returns, and not to be used again.  Where the
 * agent still uses buffers of @g after wait_timeout_s, the library gives back
 * what @g has when its last handle was reported.
 * Errors: those of sw_group_abort. */
SW_API int sw_group_close(struct sw_group *g);

#ifdef __cplusplus
}
#endif

#endif
