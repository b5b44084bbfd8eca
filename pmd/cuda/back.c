/* back.c - the back ends by name.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/back.h"

#include <string.h>

const struct sw_back_ops *sw_back_find(const char *name, const char **options)
{
	static const struct sw_back_ops *const all[] = {
		&sw_back_cuda, &sw_back_fake};
	size_t n = strcspn(name, ":");

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strncmp(all[i]->name, name, n) || all[i]->name[n])
			continue;
		*options = name[n] ? name + n + 1 : NULL;
		return all[i];
	}
	return NULL;
}
