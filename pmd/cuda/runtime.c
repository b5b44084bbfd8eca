/* runtime.c - find and load the CUDA runtime.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/runtime.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "pmd/cuda/back.h"

enum { WAIT_VALUE_SINCE = 12000 }; /* version of the function to look up */

static const struct {
	const char *name;
	size_t at;
} functions[] = {
#define ROW(name, arguments) {"cuda" #name, offsetof(struct sw_cuda, name)},
	SW_CUDA_FUNCTIONS(ROW)
#undef ROW
		{"cudaGetErrorString",
			offsetof(struct sw_cuda, GetErrorString)},
};

void sw_cuda_say(
	const struct sw_cuda *c, const char *what, int error, char *why)
{
	snprintf(why, SW_BACK_WHY, "%s: %.80s (%d)", what,
		c->GetErrorString(error), error);
}

static int take_functions(struct sw_cuda *c, const char *name, char *why)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *f = dlsym(c->library, functions[i].name);

		if (!f) {
			snprintf(why, SW_BACK_WHY, "%.100s lacks %s", name,
				functions[i].name);
			return SW_EDEVICE;
		}
		memcpy((char *)c + functions[i].at, &f, sizeof(f));
	}
	return 0;
}

/* Look up cuStreamWaitValue32. Runtimes since 12.5 look it up by version,
 * runtime 13 only by version. */
static void find_wait_value(struct sw_cuda *c)
{
	static const char name[] = "cuStreamWaitValue32";
	int (*by_version)(
		const char *, void **, unsigned int, unsigned long long, int *);
	int (*by_name)(const char *, void **, unsigned long long, int *);
	void *old = dlsym(c->library, "cudaGetDriverEntryPoint");
	void *new = dlsym(c->library, "cudaGetDriverEntryPointByVersion");
	void *f = NULL;
	int status = -1, err = -1;

	memcpy(&by_version, &new, sizeof(new));
	memcpy(&by_name, &old, sizeof(old));
	if (new)
		err = by_version(name, &f, WAIT_VALUE_SINCE, 0, &status);
	else if (old)
		err = by_name(name, &f, 0, &status);
	if (err)
		c->GetLastError();
	if (!err && !status)
		memcpy(&c->wait_value, &f, sizeof(f));
}

static int check_driver(struct sw_cuda *c, const char *name, char *why)
{
	int n = 0, driver = 0, runtime = 0;
	int err = c->GetDeviceCount(&n);

	if (!err && n > 0)
		return 0;
	c->GetLastError();
	c->DriverGetVersion(&driver);
	c->RuntimeGetVersion(&runtime);
	if (!err) {
		snprintf(why, SW_BACK_WHY, "%.80s finds no device", name);
	} else if (!driver) {
		snprintf(why, SW_BACK_WHY,
			"%.40s is installed, NVIDIA's driver is not: %.60s "
			"(%d)",
			name, c->GetErrorString(err), err);
	} else {
		snprintf(why, SW_BACK_WHY,
			"%.40s is of CUDA %d.%d, the driver of %d.%d: %.50s "
			"(%d)",
			name, runtime / 1000, runtime / 10 % 100, driver / 1000,
			driver / 10 % 100, c->GetErrorString(err), err);
	}
	return SW_EDEVICE;
}

int sw_cuda_node(const struct sw_cuda *c, int device, const char *sys)
{
	char id[32] = "", path[256];
	int node = -1;
	FILE *f;

	if (c->DeviceGetPCIBusId(id, sizeof(id), device)) {
		c->GetLastError();
		return -1;
	}
	for (char *p = id; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	snprintf(
		path, sizeof(path), "%s/bus/pci/devices/%s/numa_node", sys, id);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

static int load_one(struct sw_cuda *c, const char *name, int flags, char *why)
{
	int err;

	*c = (struct sw_cuda){.library = dlopen(name, RTLD_NOW | flags)};
	if (!c->library)
		return SW_ENOENT;
	err = take_functions(c, name, why);
	if (!err)
		err = check_driver(c, name, why);
	if (err)
		sw_cuda_unload(c);
	else
		find_wait_value(c);
	return err;
}

int sw_cuda_load(struct sw_cuda *c, char *why)
{
	static const char *const names[] = {
		"libcudart.so.13", "libcudart.so.12"};
	const char *named = getenv("SUMWIRE_CUDART");
	int err = SW_ENOENT;

	snprintf(why, SW_BACK_WHY,
		"no CUDA runtime: neither libcudart.so.13 nor .12 was found");
	if (named) {
		err = load_one(c, named, 0, why);
		if (err == SW_ENOENT)
			snprintf(why, SW_BACK_WHY,
				"SUMWIRE_CUDART: %.120s cannot be loaded",
				named);
		return err ? SW_EDEVICE : 0;
	}
	for (size_t i = 0; i < 4 && err; i++)
		err = load_one(c, names[i % 2], i < 2 ? RTLD_NOLOAD : 0, why);
	return err ? SW_EDEVICE : 0;
}

void sw_cuda_unload(struct sw_cuda *c)
{
	if (c->library)
		dlclose(c->library);
	*c = (struct sw_cuda){0};
}
