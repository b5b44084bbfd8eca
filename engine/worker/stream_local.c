/* stream_local.c - do collectives of groups whose ranks are all local.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * They need no server.  Each turn does some chunks of each stream, so that a
 * large collective does not keep the lcore from its frames. */
#include "engine/worker/stream.h"

enum { TURN_BYTES = 128 << 10 }; /* one stream's bytes in a turn */

static void do_chunk(struct sw_worker *w, const struct sw_stream *s,
	struct sw_coll *c, uint32_t chunk)
{
	const struct sw_piece p = sw_piece_of(w, s, c, chunk);
	const uint8_t *bytes;

	if (sw_coll_is_sum(c->ask.kind)) {
		c->weight = sw_piece_give(w, s, &p, &bytes);
		sw_piece_take(s, &p, bytes);
	} else {
		c->weight = 1;
		sw_piece_copy_own(s, &p);
	}
}

static uint32_t work(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_stream *s = t->stream;
	uint32_t n = 0;

	while (t->is_open && !t->life->from && s->here_coll != s->n_colls &&
		n * w->params.payload < TURN_BYTES) {
		struct sw_coll *c = &s->colls[s->here_coll % SW_COLLS];

		do_chunk(w, s, c, s->here_at++);
		n++;
		t->progress_ns = w->now_ns;
		if (--c->n_left)
			continue;
		s->here_coll++;
		s->here_at = 0;
		sw_coll_end(w, t, c, 0);
	}
	return n;
}

uint32_t sw_stream_local_work(struct sw_worker *w)
{
	uint32_t n = 0;

	for (struct sw_wtensor *t = w->here; t; t = t->stream->next_here)
		n += work(w, t);
	return n;
}
