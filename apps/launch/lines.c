/* lines.c - copy the output of another process in whole, tagged lines.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/launch/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/error.h"

enum {
	ROOM_FIRST = 4096,
	/* most bytes in a call; no user's pipe holds more */
	MOVE_MAX = 1 << 20,
};

void sw_lines_init(struct sw_lines *l, int fd, FILE *to, const char *tag)
{
	*l = (struct sw_lines){.fd = fd, .to = to, .tag = tag};
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void put(struct sw_lines *l, const char *text, size_t n)
{
	fputs(l->tag, l->to);
	fwrite(text, 1, n, l->to);
}

/* Write all complete lines, and move the rest to the front of the buffer. */
static void lines_put(struct sw_lines *l)
{
	size_t at = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (l->text[i] != '\n' && l->text[i] != '\r')
			continue;
		/* "\r\n" is one end of line; its '\n' may not have arrived. */
		if (l->text[i] == '\r' &&
			(i + 1 == l->n || l->text[i + 1] == '\n'))
			continue;
		put(l, l->text + at, i + 1 - at);
		at = i + 1;
	}
	l->n -= at;
	memmove(l->text, l->text + at, l->n);
}

/* Write the incomplete line as a line of its own. */
static void rest_put(struct sw_lines *l)
{
	if (!l->n)
		return;
	put(l, l->text, l->n);
	if (l->text[l->n - 1] != '\r')
		fputc('\n', l->to);
	l->n = 0;
}

/* Make room to read into.  If the buffer cannot grow, write the incomplete
 * line.  Returns the bytes of room. */
static size_t room_make(struct sw_lines *l)
{
	size_t room = l->room ? 2 * l->room : ROOM_FIRST;
	char *text;

	if (l->n < l->room)
		return l->room - l->n;
	text = room <= SW_LINES_MAX ? realloc(l->text, room) : NULL;
	if (text) {
		l->text = text;
		l->room = room;
	} else {
		rest_put(l);
	}
	return l->room - l->n;
}

static void shut(struct sw_lines *l)
{
	rest_put(l);
	close(l->fd);
	l->fd = -1;
	free(l->text);
	l->text = NULL;
	l->room = 0;
}

int sw_lines_move(struct sw_lines *l)
{
	for (size_t moved = 0; l->fd >= 0 && moved < MOVE_MAX;) {
		size_t room = room_make(l);
		ssize_t n = room ? read(l->fd, l->text + l->n, room) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			shut(l);
			break;
		}
		l->n += (size_t)n;
		moved += (size_t)n;
		lines_put(l);
	}
	return fflush(l->to) || ferror(l->to) ? SW_EIO : 0;
}

void sw_lines_fini(struct sw_lines *l)
{
	if (l->fd < 0)
		return;
	shut(l);
	fflush(l->to);
}
