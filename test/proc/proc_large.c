/* proc_large.c - a training process that calls one all_reduce of BYTES.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each buffer maps one piece of memory repeatedly, so it takes only the memory
 * of that piece. The piece's size is odd, so an access that is off by 4 GiB
 * hits another element.
 */
#include <getopt.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/proc/proc_say.h"
#include <sumwire/coll.h>

#define PIECE ((size_t)4099 << 12)

static int failed(const char *what)
{
	perror(what);
	exit(EXIT_ERROR);
}

/* Map @bytes, rounded up to whole pieces. */
static int32_t *map(size_t bytes)
{
	size_t n = (bytes + PIECE - 1) / PIECE;
	int fd = memfd_create("large", MFD_CLOEXEC);
	char *p = mmap(NULL, n * PIECE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (fd < 0 || ftruncate(fd, (off_t)PIECE))
		failed("memfd_create");
	for (size_t i = 0; i < n; i++)
		if (p == MAP_FAILED ||
			mmap(p + i * PIECE, PIECE, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			failed("mmap");
	close(fd);
	return (int32_t *)p;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"agent", required_argument, NULL, 'a'},
		{"bytes", required_argument, NULL, 'b'}, {0}};
	struct sw_coll_args args = SW_COLL_ARGS_INIT;
	struct sw_client *c = NULL;
	struct sw_group *all;
	struct sw_settings s;
	size_t bytes = 0;
	uint64_t handle;
	int32_t *send, *recv;
	int o;

	sw_settings_init(&s);
	s.wait_timeout_s = 3600;
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (o == 'a')
			s.agent = optarg;
		else if (o == 'b')
			bytes = strtoull(optarg, NULL, 10);
		else
			return 2;
	send = map(bytes);
	recv = map(bytes);
	for (size_t i = 0; i < PIECE / 4; i++)
		send[i] = (int32_t)i;
	proc_must(&c, sw_open(&s, &c), "open");
	proc_must(&c, sw_group_open(c, "all", NULL, 0, &all), "group");
	args.kind = SW_ALL_REDUCE;
	args.dtype = SW_I32;
	args.count = bytes / 4;
	args.send = send;
	args.recv = recv;
	proc_must(&c, sw_coll(all, &args, &handle), "coll");
	proc_must(&c, sw_wait(c, handle), "wait");
	for (size_t i = 0; i < PIECE / 4; i++)
		if (recv[i] != (int32_t)(i * sw_size(c))) {
			printf("wrong: element %zu is %d\n", i, recv[i]);
			return EXIT_WRONG;
		}
	proc_say("exact");
	sw_close(&c);
	return 0;
}
