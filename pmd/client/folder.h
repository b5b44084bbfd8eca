/* folder.h - the folder of sockets that are configured by name only.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * No other user can write to the folder, and so cannot occupy a name:
 * /run/sumwire for root (and, made by the service manager, for a service); for
 * other users $XDG_RUNTIME_DIR/sumwire, or /run/user/UID/sumwire, or else
 * $HOME/.sumwire- HOST.  Never the temporary folder. */
#ifndef SW_PMD_CLIENT_FOLDER_H
#define SW_PMD_CLIENT_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SW_FOLDER_BYTES = 108, /* size of a Unix socket's address */
	SW_FOLDER_WHY_BYTES = 600,
};

/* sw_folder_make - find the folder, create it if missing, and check that it is
 * safe.  Thread: control.
 * @why  on error, a sentence: the folder, its fault, and what to do
 * Errors: SW_EPERM another user owns it or can write to it; SW_EIO it does not
 * exist and cannot be created. */
int sw_folder_make(char out[SW_FOLDER_BYTES], char why[SW_FOLDER_WHY_BYTES]);

/* sw_folder_at - return the path of the @i-th folder in which this user's
 * programs look, best first; it may not exist.
 * @out  its path; "": this folder has no path, such as without HOME
 * Returns false after the last folder. */
bool sw_folder_at(uint32_t i, char out[SW_FOLDER_BYTES]);

/* sw_folder_seek - return the path of socket @name for clients, which check the
 * listening user: in the first of these folders that has it (users except root
 * also try /run/sumwire, last), or in the first folder if none has it.
 * @out  its path; false: @name is empty or too long */
bool sw_folder_seek(const char *name, char out[SW_FOLDER_BYTES]);

#endif
