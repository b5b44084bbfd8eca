/* device.c - the network device that the plugin reports to NCCL.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmd/nccl/plugin.h"

enum {
	SPEED_MBIT_S = 10000, /* if the kernel does not know it */
	COMMS_MAX = 65536,
	P2P_BYTES_MAX = 1 << 30,
	COLL_BYTES_MAX = 512 << 20,
};

/* Chosen once, because NCCL keeps the strings. */
struct sw_nccl_device {
	char name[IF_NAMESIZE];
	char *pci_path; /* NULL: none */
	int speed_mbit_s;
	uint8_t address[SW_NCCL_ADDRESS_BYTES];
	uint32_t address_bytes;
};

/* Return whether @list, from NCCL_SOCKET_IFNAME, includes @name. The list has
 * prefixes of names or, after "=", whole names. */
static bool is_listed(const char *name, const char *list)
{
	bool is_whole = *list == '=';

	for (list += is_whole; *list; list += *list == ',') {
		size_t n = strcspn(list, ",");

		if (n && !strncmp(name, list, n) && (!is_whole || !name[n]))
			return true;
		list += n;
	}
	return false;
}

static bool is_wanted(const char *name)
{
	const char *list = getenv("NCCL_SOCKET_IFNAME");

	if (!list || !*list)
		return strncmp(name, "docker", 6) != 0;
	return *list == '^' ? !is_listed(name, list + 1)
			    : is_listed(name, list);
}

/* Rate an address: IPv4 above IPv6, loopback last; 0: unusable. */
static int rank_of(const struct ifaddrs *a)
{
	int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
	int rank = family == AF_INET ? 2 : 1;

	if ((family != AF_INET && family != AF_INET6) ||
		!(a->ifa_flags & IFF_UP) || !is_wanted(a->ifa_name))
		return 0;
	if (family == AF_INET6 &&
		IN6_IS_ADDR_LINKLOCAL(
			&((struct sockaddr_in6 *)(void *)a->ifa_addr)
				 ->sin6_addr))
		return 0;
	return a->ifa_flags & IFF_LOOPBACK ? rank : rank + 2;
}

static int read_speed(const char *name)
{
	char path[64];
	int speed = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &speed) != 1)
		speed = 0;
	if (f)
		fclose(f);
	return speed > 0 ? speed : SPEED_MBIT_S;
}

static struct sw_nccl_device *device_new(const struct ifaddrs *a)
{
	struct sw_nccl_device *d = calloc(1, sizeof(*d));
	char path[64];

	if (!d)
		return NULL;
	d->address_bytes = a->ifa_addr->sa_family == AF_INET
				   ? sizeof(struct sockaddr_in)
				   : sizeof(struct sockaddr_in6);
	memcpy(d->address, a->ifa_addr, d->address_bytes);
	snprintf(d->name, sizeof(d->name), "%s", a->ifa_name);
	snprintf(path, sizeof(path), "/sys/class/net/%s/device", d->name);
	d->pci_path = realpath(path, NULL);
	d->speed_mbit_s = read_speed(d->name);
	return d;
}

static struct sw_nccl_device *find(void)
{
	const struct ifaddrs *best = NULL;
	struct sw_nccl_device *d = NULL;
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return NULL;
	for (const struct ifaddrs *a = all; a; a = a->ifa_next)
		if (rank_of(a) && (!best || rank_of(a) > rank_of(best)))
			best = a;
	if (best)
		d = device_new(best);
	freeifaddrs(all);
	return d;
}

/* Return the process's device, choosing it on the first call; NULL if no
 * interface is usable. */
static struct sw_nccl_device *device(void)
{
	struct sw_nccl_process *p = sw_nccl_process();
	struct sw_nccl_device *d;

	pthread_mutex_lock(&p->lock);
	if (!p->device)
		p->device = find();
	d = p->device;
	pthread_mutex_unlock(&p->lock);
	return d;
}

uint32_t sw_nccl_own_address(uint8_t out[SW_NCCL_ADDRESS_BYTES])
{
	const struct sw_nccl_device *d = device();

	if (!d)
		return 0;
	memcpy(out, d->address, d->address_bytes);
	return d->address_bytes;
}

int sw_nccl_net_devices(int *n)
{
	*n = device() != NULL;
	if (!*n)
		sw_nccl_say(true, "no network interface is up, or none that "
				  "NCCL_SOCKET_IFNAME names");
	return NCCL_OK;
}

int sw_nccl_properties_v11(int dev, struct nccl_props_v11 *out)
{
	struct sw_nccl_device *d = dev == 0 ? device() : NULL;

	if (!d)
		return sw_nccl_fail(NCCL_INTERNAL, "no device %d", dev);
	*out = (struct nccl_props_v11){.name = d->name,
		.pci_path = d->pci_path,
		.ptr_support = NCCL_PTR_HOST,
		.speed_mbit_s = d->speed_mbit_s,
		.max_comms = COMMS_MAX,
		.max_recvs = 1,
		.vdevice = {.n_devices = 1},
		.max_p2p_bytes = P2P_BYTES_MAX,
		.max_coll_bytes = COLL_BYTES_MAX,
		.max_multi_request = 1};
	return NCCL_OK;
}

int sw_nccl_properties_v8(int dev, struct nccl_props_v8 *out)
{
	struct nccl_props_v11 p = {0};
	int err = sw_nccl_properties_v11(dev, &p);

	if (err)
		return err;
	*out = (struct nccl_props_v8){.name = p.name,
		.pci_path = p.pci_path,
		.ptr_support = p.ptr_support,
		.speed_mbit_s = p.speed_mbit_s,
		.max_comms = p.max_comms,
		.max_recvs = p.max_recvs};
	return NCCL_OK;
}
