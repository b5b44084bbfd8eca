/* key_file.h - the secret of a job in a file: read it, make it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A key file has one line of 64 hexadecimal digits.  Empty lines and lines that
 * begin with '#' do not count.  No function here puts any of the secret into a
 * message.
 */
#ifndef SW_CONF_KEY_FILE_H
#define SW_CONF_KEY_FILE_H

#include <stdint.h>

enum {
	SW_KEY_FILE_SECRET = 32,     /* bytes of the secret */
	SW_KEY_FILE_MAX = 4096,      /* bytes of a file, comments included */
	SW_KEY_FILE_WHY_BYTES = 512, /* room for what is wrong */
	SW_KEY_ID_TEXT = 17,         /* room for an id of 8 bytes as text */
};

/* sw_key_file_read - read the secret in the file at @path.  The file must be a
 * regular file, no symbolic link, of mode 0600 or 0400, and belong to root or
 * to user @own.  All checks are made on the open file, so it
 * does not matter if another one takes its name meanwhile.  /dev/fd/N is the
 * inherited descriptor N, for a starter that hands over a file without a name;
 * it can be read again.
 * @own     the user that runs this process, or will run it
 * @secret  SW_KEY_FILE_SECRET bytes; zeros on error
 * @why     on error, what is wrong and what to do (SW_KEY_FILE_WHY_BYTES)
 * Errors: SW_ENOENT it does not exist; SW_ECONF all others. */
int sw_key_file_read(
	const char *path, uint32_t own, uint8_t *secret, char *why);

/* sw_key_file_write - write @secret into a new file at @path, with mode 0600,
 * and with @comment, one line.  An existing file is never changed.
 * @why     on error, what is wrong (SW_KEY_FILE_WHY_BYTES)
 * Errors: SW_EBUSY there is a file; SW_EIO. */
int sw_key_file_write(const char *path, const uint8_t *secret,
	const char *comment, char *why);

/* sw_key_id_text - write the id of a secret as people read it, 16 digits.
 * Returns @out. */
const char *sw_key_id_text(const uint8_t id[8], char out[SW_KEY_ID_TEXT]);

#endif
