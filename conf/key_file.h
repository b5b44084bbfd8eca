/* key_file.h - read and write the file of a job's secret.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A key file has one line of 64 hexadecimal digits.  Empty lines and lines that
 * begin with '#' are ignored.  No message contains any of the secret.
 */
#ifndef SW_CONF_KEY_FILE_H
#define SW_CONF_KEY_FILE_H

#include <stdint.h>

enum {
	SW_KEY_FILE_SECRET = 32,     /* bytes of the secret */
	SW_KEY_FILE_MAX = 4096,      /* bytes of a file, comments included */
	SW_KEY_FILE_WHY_BYTES = 512, /* size of the text of an error */
	SW_KEY_ID_TEXT = 17,         /* size of an id's text, for 8 bytes */
};

/* sw_key_file_read - read the secret in the file at @path.  The file must be a
 * regular file, no symbolic link, of mode 0600 or 0400, and belong to root or
 * to user @own.  All checks use the open file, so another file that takes its
 * name meanwhile has no effect. /dev/fd/N is the inherited descriptor N,
 * through which a parent can pass a file without a name; it can be read again.
 * @own     the user that runs this process, or will run it
 * @secret  SW_KEY_FILE_SECRET bytes; zeros on error
 * @why     on error, the cause and the remedy (SW_KEY_FILE_WHY_BYTES)
 * Errors: SW_ENOENT it does not exist; SW_ECONF everything else. */
int sw_key_file_read(
	const char *path, uint32_t own, uint8_t *secret, char *why);

/* sw_key_file_write - write @secret and the line @comment into a new file at
 * @path, with mode 0600.  Never changes an existing file.
 * @why     on error, the cause (SW_KEY_FILE_WHY_BYTES)
 * Errors: SW_EBUSY the file exists; SW_EIO. */
int sw_key_file_write(const char *path, const uint8_t *secret,
	const char *comment, char *why);

/* sw_key_id_text - write the id of a secret as 16 hexadecimal digits.  Returns
 * @out. */
const char *sw_key_id_text(const uint8_t id[8], char out[SW_KEY_ID_TEXT]);

#endif
