/* top.c - sumwire top: the current activity of daemons and jobs.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/args.h"
#include "apps/cli/clock.h"
#include "apps/cli/cmd.h"
#include "apps/cli/signals.h"
#include "apps/watch/frame.h"
#include "engine/base/error.h"

enum { LINES = 24, COLUMNS = 80 };

struct top {
	const char *name; /* NULL: all daemons */
	double interval_s;
	bool is_once, is_terminal, has_keys;
	enum sw_frame_sort sort;
	struct sw_scan before, now;
	struct termios was; /* the terminal's mode before, if has_keys */
	/* descriptor of SIGINT, SIGTERM, SIGHUP, SIGWINCH */
	int signals;
};

/* --- the terminal --- */

static void terminal_open(struct top *t)
{
	struct termios raw;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGWINCH);
	sw_hangup_add(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	t->is_terminal = !t->is_once && isatty(STDOUT_FILENO);
	t->has_keys = t->is_terminal && !tcgetattr(STDIN_FILENO, &t->was);
	if (!t->has_keys)
		return;
	raw = t->was;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/* Leave the last frame in view, and the cursor behind it. */
static void terminal_close(const struct top *t)
{
	if (t->has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &t->was);
	close(t->signals);
}

static void size_get(const struct top *t, struct sw_frame *f)
{
	struct winsize size;
	bool is_known = t->is_terminal &&
			!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) &&
			size.ws_row && size.ws_col;

	f->lines = is_known ? size.ws_row : LINES;
	f->columns = is_known ? size.ws_col : COLUMNS;
	if (f->columns > 150)
		f->columns = 150;
}

/* --- frames --- */

static void title_write(const struct top *t, uint32_t columns, FILE *to)
{
	time_t now = time(NULL);
	char line[160];
	struct tm tm;

	localtime_r(&now, &tm);
	snprintf(line, sizeof(line),
		"sumwire top %02d:%02d:%02d, %u daemon%s, rates over %g s, "
		"by %s%s",
		tm.tm_hour, tm.tm_min, tm.tm_sec, t->now.found.n,
		t->now.found.n == 1 ? "" : "s", t->interval_s,
		sw_frame_sort_name(t->sort),
		t->has_keys ? " (s: sort, q: quit)" : "");
	fprintf(to, "%.*s\n", (int)columns, line);
}

/* Redraw from the corner.  Each line clears its rest, and the last one the
 * screen below, so nothing flickers. */
static void screen_write(const char *text, size_t n)
{
	fputs("\033[H", stdout);
	for (size_t i = 0; i < n; i++) {
		if (text[i] != '\n')
			putchar(text[i]);
		else
			fputs(i + 1 < n ? "\033[K\n" : "\033[K\033[J", stdout);
	}
}

static int frame_show(const struct top *t)
{
	struct sw_frame f = {.before = &t->before,
		.now = &t->now,
		.sort = t->sort,
		.is_terminal = t->is_terminal};
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);
	int err = to ? 0 : SW_ENOMEM;

	if (err)
		return err;
	size_get(t, &f);
	title_write(t, f.columns, to);
	f.lines = f.lines > 1 ? f.lines - 1 : 1;
	err = sw_frame_write(&f, to);
	if (!t->now.found.n && t->name)
		fprintf(to, "no daemon has this name, pid or job: %.40s\n",
			t->name);
	else if (!t->now.found.n)
		fprintf(to, "no daemon of sumwire runs here\n");
	if (fclose(to))
		err = SW_ENOMEM;
	if (!err && t->is_terminal)
		screen_write(text, n);
	else if (!err)
		fwrite(text, 1, n, stdout);
	free(text);
	return fflush(stdout) ? SW_EIO : err;
}

/* --- waiting --- */

/* Handle a key or a signal.  Returns true to end. */
static bool take_input(struct top *t, const struct pollfd polls[2])
{
	struct signalfd_siginfo info;
	char key;

	if (polls[0].revents &&
		read(t->signals, &info, sizeof(info)) == sizeof(info) &&
		info.ssi_signo != SIGWINCH)
		return true;
	if (!polls[1].revents)
		return false;
	if (read(STDIN_FILENO, &key, 1) != 1)
		return true;
	if (key == 's')
		t->sort = (t->sort + 1) % SW_SORTS;
	return key == 'q' || key == 4;
}

/* Wait until the next scan of the daemons; keys redraw.  Returns true to
 * end. */
static bool wait_until(struct top *t, uint64_t at_ns)
{
	struct pollfd polls[2] = {{.fd = t->signals, .events = POLLIN},
		{.fd = t->has_keys ? STDIN_FILENO : -1, .events = POLLIN}};
	uint64_t now_ns;

	while ((now_ns = sw_now_ns()) < at_ns) {
		if (poll(polls, 2, (int)((at_ns - now_ns) / 1000000) + 1) <= 0)
			continue;
		if (take_input(t, polls))
			return true;
		if (t->now.all && t->is_terminal)
			(void)!frame_show(t);
	}
	return false;
}

static int run(struct top *t)
{
	uint64_t at_ns = sw_now_ns();
	int err = sw_scan_daemons(t->name, &t->now);

	if (t->is_terminal)
		fputs("\033[H\033[2J", stdout);
	while (!err) {
		at_ns = sw_now_ns() + (uint64_t)(t->interval_s * 1e9);
		if (wait_until(t, at_ns))
			break;
		sw_scan_free(&t->before);
		t->before = t->now;
		err = sw_scan_daemons(t->name, &t->now);
		if (!err)
			err = frame_show(t);
		if (t->is_once)
			break;
	}
	if (t->is_terminal)
		fputs("\n", stdout);
	return err;
}

static int sort_parse(const char *text, enum sw_frame_sort *out)
{
	for (int i = 0; i < SW_SORTS; i++)
		if (!strcmp(text, sw_frame_sort_name((enum sw_frame_sort)i))) {
			*out = (enum sw_frame_sort)i;
			return 0;
		}
	fprintf(stderr, "sumwire top: --sort %s: rate, loss or name\n", text);
	return SW_EINVAL;
}

int sw_cmd_top(int argc, char **argv)
{
	struct top t = {.interval_s = 1};
	struct sw_arg_list names = {0};
	const char *sort = "rate";
	const struct sw_arg rows[] = {
		{"--interval", SW_ARG_DOUBLE, {.real = &t.interval_s}, 0.1,
			3600, "seconds between screens"},
		{"--once", SW_ARG_FLAG, {.flag = &t.is_once}, 0, 0,
			"print one screen after one interval, then exit"},
		{"--sort", SW_ARG_STRING, {.string = &sort}, 0, 0,
			"order of the rows: rate, loss or name"},
	};
	const struct sw_args args = {.name = "sumwire top",
		.summary = "show live rates of this machine's daemons; NAME "
			   "limits them to a job or daemon",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
		.positional = "NAME",
		.max_positionals = 1,
		.positionals = &names};
	int err = sw_args_parse(&args, argc, argv);
	bool is_unknown;

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (sort_parse(sort, &t.sort))
		return 2;
	t.name = names.n ? names.items[0] : NULL;
	terminal_open(&t);
	err = run(&t);
	is_unknown = t.is_once && t.name && !t.now.found.n;
	terminal_close(&t);
	sw_scan_free(&t.before);
	sw_scan_free(&t.now);
	if (err)
		fprintf(stderr, "sumwire top: %s\n", sw_error_text(err));
	return err || is_unknown ? 1 : 0;
}
