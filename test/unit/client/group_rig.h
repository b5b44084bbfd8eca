/* group_rig.h - two groups of a client whose agent a test controls.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_CLIENT_GROUP_RIG_H
#define SW_TEST_UNIT_CLIENT_GROUP_RIG_H

#include "test/unit/host/host_rig.h"

#include "pmd/client/client_group.h"
#include "pmd/host/host.h"
#include "test/support/unit.h"
#include <sumwire/coll.h>

enum { SCENE_BYTES = 32 << 20 }; /* bytes of the buffer */

struct scene {
	struct rig *r;
	struct sw_client *c;
	struct sw_group *g, *other; /* named "dp" and "other" */
	int32_t *buffer;
};

static inline int scene_open(void **state)
{
	static struct scene s;

	s = (struct scene){
		.r = rig_open(NULL), .buffer = calloc(SCENE_BYTES, 1)};
	s.c = rig_client(s.r);
	assert_int_equal(sw_group_open(s.c, "dp", NULL, 0, &s.g), 0);
	assert_int_equal(sw_group_open(s.c, "other", NULL, 0, &s.other), 0);
	*state = &s;
	return 0;
}

static inline int scene_close(void **state)
{
	struct scene *s = *state;

	sw_close(&s->c);
	rig_close(s->r);
	free(s->buffer);
	return 0;
}

/* Check that a call returned @expected and that its message contains @why. */
static inline void fails(
	struct scene *s, int err, int expected, const char *why)
{
	assert_int_equal(err, expected);
	assert_contains(sw_last_error(s->c), why);
}

#endif
