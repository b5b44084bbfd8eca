/* reference.c - every option and launcher's variable, as Markdown and as a
 * manual page.  SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/options.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The rows of launch.def: a launcher, then its variables. */
static const struct {
	const char *launcher, *variable, *gives;
} launch_rows[] = {
#define GIVES_ROLE                                 "[node] role"
#define GIVES_RANK                                 "an agent's [job] agent; a training process's rank"
#define GIVES_SIZE                                 "[job] agents; size"
#define GIVES_LOCAL_RANK                           "local rank"
#define GIVES_LOCAL_SIZE                           "local size"
#define GIVES_NODE_RANK                            "[job] agent, if nothing else gives it"
#define GIVES_NODES                                "[job] agents, if nothing else gives it"
#define GIVES_SERVERS                              "number of [server NAME], to compare"
#define GIVES_ROOT_IP                              "ip of the first [server NAME], made if there is none"
#define GIVES_ROOT_PORT                            "its udp_port; [serve] udp_port of an only server"
#define GIVES_MODE                                 "[job] mode; 1: asynchronous"
#define LAUNCHER(id, word, mark, is_wrapped, name) {name, mark, NULL},
#define VARIABLE(launcher, variable, key, conversion) \
	{NULL, variable, GIVES_##key},
#include "conf/launch.def"
#undef LAUNCHER
#undef VARIABLE
};

static const char intro[] =
	"A file has sections, [NAME], with lines \"key = value\". A line that "
	"begins with ; or # is a comment, and so is \" # text\" behind a "
	"value. Numbers are decimal, without sign or "
	"leading zero. An unknown key, a key given twice and a value out of "
	"range are errors. Sections with a NAME may be repeated up to %d "
	"times, with different names in lower case.";

static const char launchers[] =
	"A daemon takes what its file leaves out from the variables of the "
	"launcher that started it. A file and a launcher must agree, and two "
	"launchers must agree, unless one has started the other (torchrun or "
	"mpirun within srun). SUMWIRE_LAUNCHER names the launcher that counts: "
	"run, torchrun, openmpi, pmi, slurm, dmlc or none. \"sumwire conf "
	"--print FILE\" shows where each value comes from.";

/* The writers of one format. */
struct format {
	void (*section)(const struct sw_section *s, FILE *f);
	void (*option)(const struct sw_option *o, FILE *f);
	void (*launcher)(const char *name, const char *mark, FILE *f);
	void (*variable)(const char *name, const char *gives, FILE *f);
};

static void options_write(const struct format *format, FILE *f)
{
	for (uint32_t i = 0; i < sw_n_sections; i++) {
		format->section(&sw_sections[i], f);
		for (uint32_t k = 0; k < sw_n_options; k++)
			if (sw_option_is_in(&sw_options[k], &sw_sections[i]))
				format->option(&sw_options[k], f);
	}
}

static void launchers_write(const struct format *format, FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(launch_rows); i++)
		if (launch_rows[i].gives)
			format->variable(launch_rows[i].variable,
				launch_rows[i].gives, f);
		else
			format->launcher(launch_rows[i].launcher,
				launch_rows[i].variable, f);
}

static void md_section(const struct sw_section *s, FILE *f)
{
	fprintf(f, "\n## [%s%s]\n\n%c%s.\n\n", s->name, sw_section_label(s),
		toupper(s->text[0]), s->text + 1);
	fprintf(f, "| key | value | default | meaning |\n");
	fprintf(f, "|---|---|---|---|\n");
}

static void md_option(const struct sw_option *o, FILE *f)
{
	fprintf(f, "| `%s` | ", o->key);
	sw_option_allowed_print(o, f);
	fprintf(f, " | ");
	sw_option_default_print(o, f);
	fprintf(f, " | %s |\n", o->text);
}

static void md_launcher(const char *name, const char *mark, FILE *f)
{
	fprintf(f, "| %s | | counts if `%s` is set |\n", name, mark);
}

static void md_variable(const char *name, const char *gives, FILE *f)
{
	fprintf(f, "| | `%s` | %s |\n", name, gives);
}

void sw_conf_reference(FILE *f)
{
	static const struct format md = {
		md_section, md_option, md_launcher, md_variable};

	fprintf(f, "# Configuration reference\n\nThis page lists every option "
		   "of a configuration file. `sumwire conf --reference` writes "
		   "it; do not edit it.\n\n");
	fprintf(f, intro, SW_CONF_MANY_MAX);
	fprintf(f, "\n");
	options_write(&md, f);
	fprintf(f, "\n## Variables of launchers\n\n%s\n\n", launchers);
	fprintf(f, "| launcher | variable | gives |\n|---|---|---|\n");
	launchers_write(&md, f);
}

/* Write @text with troff's special characters escaped. */
static void man_text(const char *text, FILE *f)
{
	for (const char *p = text; *p; p++)
		if (*p == '\\')
			fputs("\\e", f);
		else if (*p == '-')
			fputs("\\-", f);
		else if (*p == '\'')
			fputs("\\(aq", f);
		else if (*p != '`')
			fputc(*p, f);
}

static void man_section(const struct sw_section *s, FILE *f)
{
	fprintf(f, ".SH \"[%s%s]\"\n%c", s->name, sw_section_label(s),
		toupper(s->text[0]));
	man_text(s->text + 1, f);
	fputs(".\n", f);
}

/* Write the text that @print makes of @o, escaped for troff. */
static void man_of(void (*print)(const struct sw_option *o, FILE *f),
	const struct sw_option *o, FILE *f)
{
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	if (!to)
		return;
	print(o, to);
	fclose(to);
	man_text(text, f);
	free(text);
}

static void man_option(const struct sw_option *o, FILE *f)
{
	fprintf(f, ".TP\n.B %s\n\\&", o->key);
	man_text(o->text, f);
	fputs(".\n.br\nValue: ", f);
	man_of(sw_option_allowed_print, o, f);
	fputs(". Default: ", f);
	man_of(sw_option_default_print, o, f);
	fputs(".\n", f);
}

static void man_launcher(const char *name, const char *mark, FILE *f)
{
	fprintf(f, ".SS %s\nIt counts if\n.B %s\nis set.\n", name, mark);
}

static void man_variable(const char *name, const char *gives, FILE *f)
{
	fprintf(f, ".TP\n.B %s\n\\&", name);
	man_text(gives, f);
	fputs("\n", f);
}

void sw_conf_man(const char *version, FILE *f)
{
	static const struct format man = {
		man_section, man_option, man_launcher, man_variable};
	char text[sizeof(intro) + 16];

	fprintf(f,
		".\\\" sumwire.conf.5 - written by the build from "
		"conf/options.def\n"
		".TH SUMWIRE.CONF 5 \"\" \"sumwire %s\" \"File Formats\"\n"
		".SH NAME\nsumwire.conf \\- configuration of sumwire's "
		"server and agents\n.SH DESCRIPTION\n",
		version);
	snprintf(text, sizeof(text), intro, SW_CONF_MANY_MAX);
	man_text(text, f);
	fputs("\n.PP\n.B sumwire conf\nchecks, explains and prints "
	      "configurations.\n",
		f);
	options_write(&man, f);
	fputs(".SH \"VARIABLES OF LAUNCHERS\"\n", f);
	man_text(launchers, f);
	fputs("\n", f);
	launchers_write(&man, f);
	fputs(".SH SEE ALSO\n.BR sumwire (1)\n", f);
}
