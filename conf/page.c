/* page.c - at build time: print sumwire.conf(5) of the given version.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/conf.h"

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	sw_conf_man(argv[1], stdout);
	return fflush(stdout) ? 1 : 0;
}
