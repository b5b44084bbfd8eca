/* wiring.c - sums of the GPUs inside a machine, for BytePS's figure 14.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/lab/figures/figure.h"
#include "apps/lab/svg.h"
#include "apps/topo/plan_share.h"
#include "apps/topo/topo.h"
#include "engine/base/error.h"

enum {
	MACHINES = 8, /* machines with GPUs, as in the paper */
	MOST = 8,     /* end of the axis */
	WAYS = 4,     /* lines of a plot */
};

/* Bandwidths of the paper's section 4.2, and M. */
static const double PCIE = 13.1e9, CROSS = 10e9, NVLINK = 150e9, WIRE = 12.5e9;
static const double M = 1e9;

enum {
	PCIE_ONLY, /* two switches with n GPUs each, the NIC at a root port */
	NVLINKS,   /* four switches with two GPUs each, the NIC at the first */
};

static const struct wiring {
	const char *name, *title, *x_name;
	uint32_t least; /* begin of the axis */
	enum sw_topo_way ways[WAYS];
	const char *labels[WAYS];
} wirings[SW_FIGURE_WIRINGS] = {
	[PCIE_ONLY] = {"byteps-14-pcie",
		"Inside a machine with PCIe alone: (S_n, S_g) = (0, 2)",
		"GPUs under each of two switches", 2,
		{SW_TOPO_BRUTE, SW_TOPO_RING, SW_TOPO_ASSISTED, SW_TOPO_MIXED},
		{"brute-force copy", "ring over all GPUs",
			"CPU-assisted (BytePS)", "optimum J*"}},
	[NVLINKS] = {"byteps-14-nvlink",
		"Inside a machine with NVLink: (S_n, S_g) = (1, 3)",
		"CPU machines beside 8 machines with 8 GPUs", 0,
		{SW_TOPO_NEAR, SW_TOPO_SCATTER, SW_TOPO_ROOT},
		{"root = 0, beside the NIC", "root = all",
			"root = 2 (BytePS)"}},
};

const char *sw_figure_wiring_name(uint32_t i)
{
	return wirings[i].name;
}

const char *sw_figure_wiring_title(uint32_t i)
{
	return wirings[i].title;
}

static void build(struct sw_machine *m, bool has_nvlink, uint32_t n_each)
{
	*m = (struct sw_machine){.n_numa_nodes = 2,
		.numa_nodes = {{.id = 0}, {.id = 1}},
		.n_switches = has_nvlink ? 4 : 2,
		.n_nics = 1,
		.nics = {{.name = "nic",
			.switch_no = has_nvlink ? 0 : SW_MACHINE_NONE,
			.link = PCIE,
			.wire = WIRE}}};
	m->n_gpus = m->n_switches * n_each;
	for (uint32_t i = 0; i < m->n_switches; i++)
		m->switches[i] = (struct sw_machine_switch){
			.numa_node = (int)(2 * i / m->n_switches),
			.link = PCIE};
	for (uint32_t i = 0; i < m->n_gpus; i++)
		m->gpus[i] = (struct sw_machine_device){
			.switch_no = (int)(i / n_each),
			.numa_node = m->switches[i / n_each].numa_node,
			.link = PCIE,
			.nvlink = has_nvlink ? NVLINK : 0};
}

/* Compute J of each line's way at @x of the axis, in seconds. */
static void solve(uint32_t which, uint32_t x, double out[WAYS])
{
	const struct wiring *w = &wirings[which];
	bool has_nvlink = which == NVLINKS;
	struct sw_topo_plan p = {.m_bytes = M, .cross = CROSS};
	struct sw_machine m;

	build(&m, has_nvlink, has_nvlink ? 2 : x);
	sw_topo_use(&p, &m, NULL, 0);
	p.nic_bytes =
		sw_plan_share(MACHINES, has_nvlink ? x : 0, M, 1).optimal_s;
	sw_topo_make_plan(&p, &m);
	for (uint32_t l = 0; l < WAYS; l++) {
		out[l] = NAN;
		for (uint32_t i = 0; i < p.n_choices; i++)
			if (p.choices[i].way == w->ways[l])
				out[l] = p.choices[i].time_s;
	}
}

void sw_figure_wiring_claims(
	uint32_t i, struct sw_figure_wiring_claim out[SW_FIGURE_WIRING_CLAIMS])
{
	static const struct sw_figure_wiring_claim
		rows[SW_FIGURE_WIRINGS][SW_FIGURE_WIRING_CLAIMS] = {
			[PCIE_ONLY] = {{"CPU-assisted below the ring, four "
					"GPUs under a switch",
					       "23.7 %", {.unit = "%"}},
				{"CPU-assisted above J*", "9.3 %",
					{.unit = "%"}},
				{"J*", "129 ms", {.unit = "ms"}}},
			[NVLINKS] = {{"root = 2 below root = all, without CPU "
				      "machines",
					     "", {.unit = "%"}},
				{"root = all below root = 0", "",
					{.unit = "%"}},
				{"J of root = 2", "", {.unit = "ms"}}}};
	double j[WAYS], values[SW_FIGURE_WIRING_CLAIMS];

	solve(i, i == NVLINKS ? 0 : 4, j);
	values[0] = 100 * (1 - j[2] / j[1]);
	values[1] = 100 * (i == NVLINKS ? 1 - j[1] / j[0] : j[2] / j[3] - 1);
	values[2] = 1e3 * (i == NVLINKS ? j[2] : j[3]);
	for (uint32_t c = 0; c < SW_FIGURE_WIRING_CLAIMS; c++) {
		out[c] = rows[i][c];
		out[c].here.low = out[c].here.high = values[c];
	}
}

int sw_figure_wiring_plot(uint32_t i, const char *path)
{
	const struct wiring *w = &wirings[i];
	double x[MOST + 1], y[WAYS][MOST + 1], j[WAYS];
	struct sw_svg_line lines[WAYS];
	struct sw_svg_plot plot = {.title = w->title,
		.x_name = w->x_name,
		.y_name = "J for M = 1 GB, ms",
		.x = x,
		.lines = lines};
	FILE *f = fopen(path, "w");
	int err;

	if (!f) {
		fprintf(stderr,
			"sumwire-lab figures: %s cannot be written: %s\n", path,
			strerror(errno));
		return SW_EIO;
	}
	for (uint32_t at = w->least; at <= MOST; at++) {
		solve(i, at, j);
		for (uint32_t l = 0; l < WAYS; l++)
			y[l][plot.n] = 1e3 * j[l];
		x[plot.n++] = at;
	}
	for (; plot.n_lines < WAYS && w->labels[plot.n_lines]; plot.n_lines++)
		lines[plot.n_lines] = (struct sw_svg_line){
			.name = w->labels[plot.n_lines], .y = y[plot.n_lines]};
	err = sw_svg_write(&plot, f);
	return fclose(f) ? SW_EIO : err;
}
