/* page.c - write the page about all figures, and print one figure's claims.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "apps/lab/figures/figure.h"
#include "engine/base/error.h"

enum { COLUMNS = 110 };

/* Write a paragraph in lines of at most COLUMNS. */
static void write_text(const char *text, FILE *f)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column && column + 1 + n > COLUMNS) {
			fputc('\n', f);
			column = 0;
		}
		column += (size_t)fprintf(
			f, "%s%.*s", column ? " " : "", (int)n, text);
		text += n;
		text += strspn(text, " ");
	}
	fputc('\n', f);
}

static void write_row(const char *text, const char *paper,
	const struct sw_figure_claim *claim, FILE *out)
{
	char here[64] = "–", deviation[64] = "–";

	if (claim) {
		sw_figure_here(claim, here);
		sw_figure_deviation(claim, paper, deviation);
	}
	fprintf(out, "| %s | %s | %s | %s |\n", text, *paper ? paper : "–",
		here, deviation);
}

static void write_claim(const struct sw_figure *f, uint32_t i, FILE *out)
{
	const struct sw_sim_desc_claim *c = &f->desc->claims[i];
	struct sw_figure_claim claim;
	bool has_rows = !sw_figure_claim(f, i, &claim);

	write_row(c->text, c->paper, has_rows ? &claim : NULL, out);
}

static void write_trials(const struct sw_figure_trials *t, FILE *out)
{
	char text[512];

	fputs("\n## Trials of the tuner\n\n"
	      "| `sumwire-lab tune` | ByteScheduler, figure 14 | here | "
	      "deviation "
	      "|\n|---|---|---|---|\n",
		out);
	for (uint32_t i = 0; i < SW_FIGURE_TRIALS; i++)
		write_row(sw_figure_trial_texts[i][0],
			sw_figure_trial_texts[i][1], &t->claims[i], out);
	fputc('\n', out);
	snprintf(text, sizeof(text),
		"The search ends within 3 %% of a grid's best point, on %u "
		"random landscapes of simulated iterations with 1 %% of noise. "
		"The paper searches for that point itself, on two networks.",
		t->n_landscapes);
	write_text(text, out);
}

static const char *const wiring_differs[SW_FIGURE_WIRINGS] = {
	"J, the time of the busiest link, is computed by "
	"[topo](lab.md#sumwire-lab-topo). The paper's 129 ms do not follow "
	"from its 105 Gb/s, its 23.7 % do. Its training gains up to 20 %.",
	"The paper finds the same order by training speed, without numbers. "
	"Roots 2 and 3 in turns load the link of root 2, so they are one line "
	"here and nearly equal there."};

static void write_wiring(uint32_t i, FILE *out)
{
	struct sw_figure_wiring_claim claims[SW_FIGURE_WIRING_CLAIMS];
	const char *name = sw_figure_wiring_name(i);

	fprintf(out,
		"\n## %s\n\n![%s](figures/%s.svg)\n\n| `sumwire-lab topo` | "
		"BytePS, section 4.2, figure 14 | here | deviation "
		"|\n|---|---|---|---|\n",
		sw_figure_wiring_title(i), name, name);
	sw_figure_wiring_claims(i, claims);
	for (uint32_t c = 0; c < SW_FIGURE_WIRING_CLAIMS; c++)
		write_row(
			claims[c].text, claims[c].paper, &claims[c].here, out);
	fputc('\n', out);
	write_text(wiring_differs[i], out);
}

static void write_rest(FILE *out)
{
	fputs("\n## Elsewhere\n\n", out);
	write_text("The formulas of BytePS's table 1 are the curves of its "
		   "figures above. Table 2 is about RDMA, which sumwire does "
		   "not use.",
		out);
}

static void write_figure(const struct sw_figure *f, FILE *out)
{
	const struct sw_sim_desc_figure *d = &f->desc->figure;

	fprintf(out, "\n## %s\n\n![%s](figures/%s.svg)\n", d->title, f->name,
		f->name);
	if (f->desc->n_claims) {
		fprintf(out,
			"\n| [description](../conf/lab/figures/%s.ini) | %s | "
			"here | deviation |\n|---|---|---|---|\n",
			f->name, *d->paper ? d->paper : "paper");
		for (uint32_t i = 0; i < f->desc->n_claims; i++)
			write_claim(f, i, out);
	}
	if (!*d->differs)
		return;
	fputc('\n', out);
	write_text(d->differs, out);
}

int sw_figures_page(const struct sw_figure *figures, uint32_t n,
	const struct sw_figure_trials *trials, const char *commit, FILE *f)
{
	char text[512];

	fputs("# The papers' figures\n\n", f);
	write_text("This page is for researchers. It puts numbers of the "
		   "papers about ByteScheduler (SOSP 2019) and BytePS (OSDI "
		   "2020) beside those of sumwire's engine, which runs in a "
		   "[simulated network](lab.md#sumwire-lab-sim).",
		f);
	fputs("\n```text\nbuild/apps/sumwire-lab figures --commit $(git "
	      "rev-parse --short=8 HEAD)\n```\n\n",
		f);
	snprintf(text, sizeof(text),
		"The command writes this page and its plots; commit %s wrote "
		"these.",
		commit);
	write_text(text, f);
	fputc('\n', f);
	write_text("Deviations are differences: in points between percents, "
		   "otherwise in percent of the paper's number; from a range, "
		   "to its nearer end. Two numbers are the smallest and the "
		   "largest of several rows.",
		f);
	for (uint32_t i = 0; i < n; i++)
		write_figure(&figures[i], f);
	for (uint32_t i = 0; i < SW_FIGURE_WIRINGS; i++)
		write_wiring(i, f);
	write_trials(trials, f);
	write_rest(f);
	return fflush(f) || ferror(f) ? SW_EIO : 0;
}

void sw_figure_print(const struct sw_figure *f)
{
	printf("%s: %s\n", f->name, f->desc->figure.title);
	for (uint32_t i = 0; i < f->desc->n_claims; i++)
		write_claim(f, i, stdout);
}
