/* svg.c - a plot of lines, as SVG.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/svg.h"

#include <math.h>

#include "engine/base/error.h"

enum { WIDTH = 760, HEIGHT = 400, LEFT = 80, RIGHT = 240, TOP = 56, LOW = 60 };

#define DASHES(line) ((line).is_dashed ? "stroke-dasharray=\"6 4\" " : "")

/* The palette of Okabe and Ito, which colour-blind readers can tell apart:
 * blue, vermilion, green, … */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73",
	"#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"};

struct frame {
	double x0, x1, y1; /* the axes go from (x0, 0) to (x1, y1) */
	bool is_log;       /* x0 and x1 are logarithms of the values */
	FILE *f;
};

static double across(const struct frame *a, double x)
{
	if (a->is_log)
		x = log10(x);
	return LEFT + (x - a->x0) / (a->x1 - a->x0) * (WIDTH - LEFT - RIGHT);
}

static double down(const struct frame *a, double y)
{
	return HEIGHT - LOW - y / a->y1 * (HEIGHT - TOP - LOW);
}

static void write_text(const struct frame *a, double x, double y,
	const char *anchor, const char *colour, const char *text)
{
	fprintf(a->f,
		"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" "
		"fill=\"%s\">",
		x, y, anchor, colour);
	for (; *text; text++)
		switch (*text) {
		case '<':
			fputs("&lt;", a->f);
			break;
		case '&':
			fputs("&amp;", a->f);
			break;
		default:
			fputc(*text, a->f);
		}
	fputs("</text>\n", a->f);
}

/* Return 1, 2 or 5 times a power of ten, so that about five steps reach
 * @end. */
static double step_for(double end)
{
	double unit = pow(10, floor(log10(end / 5)));
	double n = end / 5 / unit;

	return unit * (n < 1.5 ? 1 : n < 3.5 ? 2 : n < 7.5 ? 5 : 10);
}

static void write_tick(const struct frame *a, double x)
{
	char label[32];

	fprintf(a->f, "<path d=\"M%.1f %dv4\" stroke=\"#333\"/>\n",
		across(a, x), HEIGHT - LOW);
	snprintf(label, sizeof(label), "%.6g", x);
	write_text(a, across(a, x), HEIGHT - LOW + 18, "middle", "#333", label);
}

/* Write the ticks.  On a logarithmic axis each point gets its number, if there
 * is room. */
static void write_ticks(const struct frame *a, const struct sw_svg_plot *p)
{
	double step = step_for(a->x1 - a->x0), last = 0;

	for (uint32_t i = 0; i < p->n && a->is_log; i++)
		if (across(a, p->x[i]) > last + 28) {
			write_tick(a, p->x[i]);
			last = across(a, p->x[i]);
		}
	for (double x = ceil(a->x0 / step) * step;
		!a->is_log && x <= a->x1 * 1.0001; x += step)
		write_tick(a, x);
}

static void write_axes(const struct frame *a, const struct sw_svg_plot *p)
{
	double step = step_for(a->y1);
	char label[32];

	for (double y = 0; y <= a->y1 * 1.0001; y += step) {
		fprintf(a->f, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n",
			LEFT, down(a, y), WIDTH - RIGHT);
		snprintf(label, sizeof(label), "%.4g", y);
		write_text(a, LEFT - 8, down(a, y) + 4, "end", "#333", label);
	}
	write_ticks(a, p);
	write_text(a, LEFT, 22, "start", "#000", p->title);
	write_text(a, LEFT - 24, TOP - 8, "start", "#333", p->y_name);
	write_text(
		a, WIDTH - RIGHT, HEIGHT - LOW + 40, "end", "#333", p->x_name);
}

static void write_line(
	const struct frame *a, const struct sw_svg_plot *p, uint32_t i)
{
	const double *y = p->lines[i].y;
	const char *colour = colours[i % 8];
	char move = 'M';

	fprintf(a->f,
		"<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" %s"
		"d=\"",
		colour, DASHES(p->lines[i]));
	for (uint32_t k = 0; k < p->n; k++) {
		if (!isfinite(y[k]))
			continue;
		fprintf(a->f, "%c%.1f %.1f", move, across(a, p->x[k]),
			down(a, y[k]));
		move = 'L';
	}
	fputs("\"/>\n", a->f);
	for (uint32_t k = 0; k < p->n && !p->lines[i].is_dashed; k++)
		if (isfinite(y[k]))
			fprintf(a->f,
				"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" "
				"fill=\"%s\"/>\n",
				across(a, p->x[k]), down(a, y[k]), colour);
	fprintf(a->f,
		"<path stroke=\"%s\" stroke-width=\"2\" %sd=\"M%d "
		"%.1fh20\"/>\n",
		colour, DASHES(p->lines[i]), WIDTH - RIGHT + 12,
		TOP + 20.0 * (i + 1) - 4);
	write_text(a, WIDTH - RIGHT + 38, TOP + 20.0 * (i + 1), "start", "#333",
		p->lines[i].name);
}

int sw_svg_write(const struct sw_svg_plot *p, FILE *f)
{
	struct frame a = {.x0 = p->x[0],
		.x1 = p->x[p->n - 1],
		.is_log = p->is_log,
		.f = f};

	if (a.is_log) {
		a.x0 = log10(a.x0);
		a.x1 = log10(a.x1);
	}
	if (a.x1 <= a.x0)
		a.x1 = a.x0 + 1;
	for (uint32_t i = 0; i < p->n_lines; i++)
		for (uint32_t k = 0; k < p->n; k++)
			if (isfinite(p->lines[i].y[k]))
				a.y1 = fmax(a.y1, p->lines[i].y[k]);
	a.y1 = a.y1 > 0 ? 1.05 * a.y1 : 1;
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		WIDTH, HEIGHT);
	write_axes(&a, p);
	for (uint32_t i = 0; i < p->n_lines; i++)
		write_line(&a, p, i);
	fputs("</svg>\n", f);
	return fflush(f) || ferror(f) ? SW_EIO : 0;
}
