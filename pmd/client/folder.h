/* folder.h - the folder where sockets lie that were given a name alone.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Nobody else can write to it, so nobody else can be there first:
 * /run/sumwire for root (and, made by the service manager, for a service), for
 * other users $XDG_RUNTIME_DIR/sumwire, or /run/user/UID/sumwire; without such,
 * $HOME/.sumwire-HOST.  Never the temporary folder.
 */
#ifndef SW_PMD_CLIENT_FOLDER_H
#define SW_PMD_CLIENT_FOLDER_H

#include <stdbool.h>

enum {
	SW_FOLDER_BYTES = 108, /* what a Unix socket's address holds */
	SW_FOLDER_WHY_BYTES = 600,
};

/* sw_folder_make - find it, make it where it is missing, and see that it is
 * safe.  Thread: control.
 * @why  on error, a sentence: what is wrong with which, what to do
 * Errors: SW_EPERM somebody else's, or others can write to it; SW_EIO there is
 * none and none can be made. */
int sw_folder_make(char out[SW_FOLDER_BYTES], char why[SW_FOLDER_WHY_BYTES]);

/* sw_folder_seek - where socket @name is, for those who connect and check who
 * listens: in the first of these folders that has it, /run/sumwire being the
 * last for others than root; where it is not, in the first of them.
 * @out  its path; false: @name is empty or too long */
bool sw_folder_seek(const char *name, char out[SW_FOLDER_BYTES]);

#endif
