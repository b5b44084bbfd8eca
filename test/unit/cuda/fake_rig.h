/* fake_rig.h - load a stand-in for the CUDA runtime.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The rig loads the library by its path, as a program may load its own before
 * it opens a device.
 */
#ifndef SW_TEST_UNIT_CUDA_FAKE_RIG_H
#define SW_TEST_UNIT_CUDA_FAKE_RIG_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/cuda/fake.h"
#include "test/support/unit.h"

/* @version is 12 or 13. Returns the handle for dlclose. */
static inline void *fake_load(uint32_t version, struct fake **out)
{
	struct fake *(*state)(void);
	char path[256];
	void *library, *f;

	snprintf(path, sizeof(path), "%s/cudart-fake-%u.so",
		getenv("FAKE_CUDA"), version);
	library = dlopen(path, RTLD_NOW);
	if (!library)
		fail_msg("%s", dlerror());
	f = dlsym(library, "fake_state");
	memcpy(&state, &f, sizeof(f));
	*out = state();
	return library;
}

/* Check that nothing of the runtime is in use and that no call was invalid. */
static inline void fake_unload(void *library, const struct fake *f)
{
	assert_int_equal(f->bad_calls, 0);
	assert_int_equal(f->n_streams, 0);
	assert_int_equal(f->n_events, 0);
	assert_int_equal(f->n_pinned, 0);
	assert_int_equal(f->n_blocks, 0);
	assert_int_equal(f->current, 0);
	assert_int_equal(f->n_spoiled, 0);
	dlclose(library);
}

#endif
