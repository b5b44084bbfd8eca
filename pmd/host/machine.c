/* machine.c - read a machine's topology through hwloc.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/machine.h"

#include <errno.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/error.h"

enum {
	XML_BYTES = 16 << 20, /* larger files are refused */
	CLASS_NETWORK = 0x02,
	CLASS_DISPLAY = 0x03,
	CLASS_3D = 0x0302,
	VENDOR_NVIDIA = 0x10de,
	VENDOR_AMD = 0x1002,
};

struct reading {
	hwloc_topology_t t;
	struct sw_machine *m;
	char *why;
	size_t size;
};

#define FAIL(r, err, ...) (snprintf((r)->why, (r)->size, __VA_ARGS__), (err))

static void bus_text(const struct hwloc_pcidev_attr_s *a, char *out)
{
	snprintf(out, SW_MACHINE_NAME, "%04x:%02x:%02x.%01x", a->domain, a->bus,
		a->dev, a->func);
}

/* hwloc reports GB/s. */
static double bytes_s(const struct hwloc_pcidev_attr_s *a)
{
	return a->linkspeed > 0 ? 1e9 * (double)a->linkspeed : 0;
}

static bool is_pci_bridge(hwloc_obj_t o)
{
	return o->type == HWLOC_OBJ_BRIDGE &&
	       o->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

/* --- NUMA nodes --- */

static int take_nodes(struct reading *r)
{
	hwloc_obj_t o = NULL;

	while ((o = hwloc_get_next_obj_by_type(r->t, HWLOC_OBJ_NUMANODE, o))) {
		struct sw_machine_numa_node *n =
			&r->m->numa_nodes[r->m->n_numa_nodes];

		if (r->m->n_numa_nodes == SW_MACHINE_MAX)
			return FAIL(r, SW_ECONF,
				"it has more than %d NUMA nodes",
				SW_MACHINE_MAX);
		n->id = o->os_index;
		if (hwloc_bitmap_list_snprintf(n->cpus, sizeof(n->cpus),
			    o->cpuset) >= (int)sizeof(n->cpus))
			n->cpus[0] = '\0';
		r->m->n_numa_nodes++;
	}
	return 0;
}

/* Return the NUMA node that @o is attached to; SW_MACHINE_NONE if it is not
 * exactly one. */
static int node_of(struct reading *r, hwloc_obj_t o)
{
	hwloc_obj_t at = hwloc_get_non_io_ancestor_obj(r->t, o);

	if (!at || !at->nodeset || hwloc_bitmap_weight(at->nodeset) != 1)
		return SW_MACHINE_NONE;
	return hwloc_bitmap_first(at->nodeset);
}

/* --- switches --- */

/* Return the upstream port of the uppermost switch above @o, which is the
 * bridge below the root port; NULL if there is no switch. */
static hwloc_obj_t switch_above(hwloc_obj_t o)
{
	hwloc_obj_t found = NULL;

	for (o = o->parent; o && is_pci_bridge(o); o = o->parent)
		if (o->parent && is_pci_bridge(o->parent))
			found = o;
	return found;
}

static int switch_of(struct reading *r, hwloc_obj_t o, int *no)
{
	hwloc_obj_t bridge = switch_above(o);
	struct sw_machine *m = r->m;
	struct sw_machine_switch s;

	*no = SW_MACHINE_NONE;
	if (!bridge)
		return 0;
	s = (struct sw_machine_switch){.numa_node = node_of(r, bridge),
		.link = bytes_s(&bridge->attr->bridge.upstream.pci)};
	bus_text(&bridge->attr->bridge.upstream.pci, s.bus);
	for (uint32_t i = 0; i < m->n_switches; i++)
		if (!strcmp(m->switches[i].bus, s.bus))
			*no = (int)i;
	if (*no != SW_MACHINE_NONE)
		return 0;
	if (m->n_switches == SW_MACHINE_MAX)
		return FAIL(r, SW_ECONF, "it has more than %d PCIe switches",
			SW_MACHINE_MAX);
	*no = (int)m->n_switches;
	m->switches[m->n_switches++] = s;
	return 0;
}

/* --- devices --- */

static bool is_gpu(hwloc_obj_t o)
{
	const struct hwloc_pcidev_attr_s *a = &o->attr->pcidev;

	return a->class_id == CLASS_3D ||
	       (a->class_id >> 8 == CLASS_DISPLAY &&
		       (a->vendor_id == VENDOR_NVIDIA ||
			       a->vendor_id == VENDOR_AMD));
}

static bool is_nic(hwloc_obj_t o)
{
	return o->attr->pcidev.class_id >> 8 == CLASS_NETWORK;
}

/* Return the kernel's name of a NIC, otherwise its verbs device's name,
 * otherwise @bus. */
static const char *nic_name(hwloc_obj_t o, const char *bus)
{
	const char *verbs = NULL;

	for (hwloc_obj_t c = o->io_first_child; c; c = c->next_sibling) {
		if (c->type != HWLOC_OBJ_OS_DEVICE || !c->name)
			continue;
		if (c->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK)
			return c->name;
		if (c->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
			verbs = c->name;
	}
	return verbs ? verbs : bus;
}

static const char *gpu_name(hwloc_obj_t o)
{
	const char *name = hwloc_obj_get_info_by_name(o, "PCIDevice");

	for (hwloc_obj_t c = o->io_first_child; c && !name; c = c->next_sibling)
		name = hwloc_obj_get_info_by_name(c, "GPUModel");
	return name ? name : "";
}

static int take_device(struct reading *r, hwloc_obj_t o,
	struct sw_machine_device *all, uint32_t *n)
{
	struct sw_machine_device d = {
		.numa_node = node_of(r, o), .link = bytes_s(&o->attr->pcidev)};
	int err = switch_of(r, o, &d.switch_no);

	if (err)
		return err;
	bus_text(&o->attr->pcidev, d.bus);
	snprintf(d.name, sizeof(d.name), "%s",
		is_nic(o) ? nic_name(o, d.bus) : gpu_name(o));
	for (uint32_t i = 0; i < *n; i++)
		if (!strcmp(all[i].bus, d.bus))
			return FAIL(r, SW_ECONF,
				"it contradicts itself: two devices are at %s",
				d.bus);
	if (*n == SW_MACHINE_MAX)
		return FAIL(r, SW_ECONF, "it has more than %d %s",
			SW_MACHINE_MAX, is_nic(o) ? "NICs" : "GPUs");
	all[(*n)++] = d;
	return 0;
}

static int by_bus(const void *a, const void *b)
{
	const struct sw_machine_device *x = a, *y = b;

	return strcmp(x->bus, y->bus);
}

static int take_devices(struct reading *r)
{
	struct sw_machine *m = r->m;
	hwloc_obj_t o = NULL;
	int err = 0;

	while (!err && (o = hwloc_get_next_pcidev(r->t, o))) {
		if (is_gpu(o))
			err = take_device(r, o, m->gpus, &m->n_gpus);
		else if (is_nic(o))
			err = take_device(r, o, m->nics, &m->n_nics);
	}
	qsort(m->gpus, m->n_gpus, sizeof(m->gpus[0]), by_bus);
	qsort(m->nics, m->n_nics, sizeof(m->nics[0]), by_bus);
	return err;
}

/* --- NVLink --- */

static struct sw_machine_device *gpu_at(struct sw_machine *m, hwloc_obj_t o)
{
	char bus[SW_MACHINE_NAME];

	while (o && o->type != HWLOC_OBJ_PCI_DEVICE)
		o = o->parent;
	if (!o)
		return NULL;
	bus_text(&o->attr->pcidev, bus);
	for (uint32_t i = 0; i < m->n_gpus; i++)
		if (!strcmp(m->gpus[i].bus, bus))
			return &m->gpus[i];
	return NULL;
}

/* Add up the NVLinks of each GPU. hwloc's matrix has MB/s to other GPUs and to
 * NVSwitches. */
static int take_nvlinks(struct reading *r)
{
	struct hwloc_distances_s *d;
	unsigned n = 1;

	if (hwloc_distances_get_by_name(r->t, "NVLinkBandwidth", &n, &d, 0) ||
		!n)
		return 0;
	for (unsigned i = 0; i < d->nbobjs; i++) {
		struct sw_machine_device *gpu = gpu_at(r->m, d->objs[i]);
		double sum = 0;

		for (unsigned j = 0; j < d->nbobjs; j++)
			if (j != i)
				sum += 1e6 *
				       (double)d->values[i * d->nbobjs + j];
		if (gpu)
			gpu->nvlink = sum;
	}
	hwloc_distances_release(r->t, d);
	return 0;
}

/* --- the machine --- */

static int check_file(struct reading *r, const char *xml)
{
	struct stat st;

	if (stat(xml, &st))
		return FAIL(r, errno == ENOENT ? SW_ENOENT : SW_EIO,
			"cannot be read: %s", strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size > XML_BYTES)
		return FAIL(r, SW_EIO,
			"is not a regular file of at most %d MiB",
			XML_BYTES >> 20);
	return 0;
}

/* Load the topology without the components of hwloc that would open a display
 * or a device. */
static int load(struct reading *r, const char *xml)
{
	static const char *const not_these[] = {"gl", "opencl"};

	if (hwloc_topology_set_io_types_filter(
		    r->t, HWLOC_TYPE_FILTER_KEEP_ALL))
		return FAIL(r, SW_ENOMEM, "hwloc: %s", strerror(errno));
	for (size_t i = 0; i < 2; i++)
		hwloc_topology_set_components(r->t,
			HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, not_these[i]);
	if (xml && hwloc_topology_set_xml(r->t, xml))
		return FAIL(r, SW_ECONF,
			"is not the XML of a machine, as \"lstopo FILE.xml\" "
			"writes it");
	if (hwloc_topology_load(r->t))
		return FAIL(r, xml ? SW_ECONF : SW_EIO,
			"hwloc cannot make a machine of it");
	return 0;
}

int sw_machine_read(
	struct sw_machine *m, const char *xml, char *why, size_t size)
{
	struct reading r = {.m = m, .why = why, .size = size};
	int err;

	*m = (struct sw_machine){.n_numa_nodes = 0};
	err = xml ? check_file(&r, xml) : 0;
	if (err)
		return err;
	if (hwloc_topology_init(&r.t))
		return FAIL(&r, SW_ENOMEM, "hwloc: %s", strerror(errno));
	err = load(&r, xml);
	if (!err)
		err = take_nodes(&r);
	if (!err)
		err = take_devices(&r);
	if (!err)
		err = take_nvlinks(&r);
	hwloc_topology_destroy(r.t);
	return err;
}
