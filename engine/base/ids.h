/* ids.h - unique ids for objects whose indices are reused.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An id is generation << SW_ID_BITS | index.  The first object at an index has
 * generation 0, so its id is the index; each later object has a higher
 * generation.  So no two objects ever have the same id.  A stale id shows
 * because the object at its index has a different id.  An index that has used
 * up its generations is never reused. */
#ifndef SW_ENGINE_BASE_IDS_H
#define SW_ENGINE_BASE_IDS_H

#include <stdbool.h>
#include <stdint.h>

enum { SW_ID_BITS = 12, SW_IDS = 1 << SW_ID_BITS }; /* indices */

static inline uint32_t sw_id_index(uint32_t id)
{
	return id % SW_IDS;
}

/* sw_id_next - return the id of the next object at the index of @id; 0: no
 * generation is left. */
static inline uint32_t sw_id_next(uint32_t id)
{
	uint32_t next = id + SW_IDS;

	return next < SW_IDS ? 0 : next;
}

/* sw_id_follows - return whether @id has the index of @last, and a later
 * generation. */
static inline bool sw_id_follows(uint32_t id, uint32_t last)
{
	return sw_id_index(id) == sw_id_index(last) && id > last;
}

#endif
