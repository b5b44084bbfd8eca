/* error.c - the table of errors as text.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/error.h"

#include <stddef.h>

static const struct {
	int value;
	const char *name, *text;
} errors[] = {
	{0, "SW_OK", "success"},
#define SW_ERROR(name, value, text) {value, "SW_" #name, text},
#include "engine/base/errors.def"
#undef SW_ERROR
};

const char *sw_error_text(int err)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].value == err)
			return errors[i].text;
	return "unknown error";
}

const char *sw_error_name(int err)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].value == err)
			return errors[i].name;
	return "SW_E?";
}
