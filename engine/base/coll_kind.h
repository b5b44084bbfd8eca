/* coll_kind.h - the kinds of collectives.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_COLL_KIND_H
#define SW_COLL_KIND_H

/* The codes travel on the wire and through the client interface. */
enum sw_coll_kind {
	SW_COLL_NONE, /* none: a tensor's push_pull or broadcast */
	SW_ALL_REDUCE,
	SW_REDUCE_SCATTER,
	SW_ALL_GATHER,
	SW_BCAST,
	SW_REDUCE,
	SW_BARRIER, /* an all_reduce of a byte each */
	SW_N_COLL_KINDS,
};

#endif
