/* key.c - sumwire key: make a job's secret, or show the id of a key file.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/keys/keyring.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "conf/key_file.h"

static const char default_file[] = "sumwire.key";

/* Draw a secret.  If its id is zero, which is rare, draw again. */
static int secret_draw(struct sw_secret *secret)
{
	uint8_t bytes[SW_SECRET_BYTES];
	bool is_good = false;

	for (int i = 0; i < 8 && !is_good; i++)
		is_good = sw_crypto_random(bytes, sizeof(bytes)) &&
			  sw_secret_init(secret, bytes);
	sw_crypto_wipe(bytes, sizeof(bytes));
	if (!is_good)
		fprintf(stderr, "sumwire key: no random numbers\n");
	return is_good ? 0 : 1;
}

static int make(const char *path, struct sw_secret *secret)
{
	char comment[128], id[SW_KEY_ID_TEXT];
	char why[SW_KEY_FILE_WHY_BYTES];

	if (secret_draw(secret))
		return 1;
	snprintf(comment, sizeof(comment),
		"key %s of sumwire: whoever reads the next line can be any "
		"node of the job",
		sw_key_id_text(secret->id, id));
	if (sw_key_file_write(path, secret->bytes, comment, why)) {
		fprintf(stderr, "sumwire key: %s\n", why);
		return 1;
	}
	printf("%s: key %s\n", path, id);
	return 0;
}

static int show(const char *path, struct sw_secret *secret)
{
	char id[SW_KEY_ID_TEXT], why[SW_KEY_FILE_WHY_BYTES] = "no id";
	uint8_t bytes[SW_KEY_FILE_SECRET];
	bool is_good = !sw_key_file_read(path, geteuid(), bytes, why) &&
		       sw_secret_init(secret, bytes);

	sw_crypto_wipe(bytes, sizeof(bytes));
	if (is_good)
		printf("%s: key %s\n", path, sw_key_id_text(secret->id, id));
	else
		fprintf(stderr, "sumwire key: %s\n", why);
	return is_good ? 0 : 1;
}

int sw_cmd_key(int argc, char **argv)
{
	bool is_shown = false;
	struct sw_arg_list files = {0};
	const struct sw_arg rows[] = {
		{"--id", SW_ARG_FLAG, {.flag = &is_shown}, 0, 0,
			"print the id of an existing key instead"},
	};
	const struct sw_args args = {.name = "sumwire key",
		.summary = "write a new secret for a job to FILE, and print "
			   "its id [default FILE sumwire.key]",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
		.positional = "FILE",
		.max_positionals = 1,
		.positionals = &files};
	int err = sw_args_parse(&args, argc, argv);
	struct sw_secret *secret;
	const char *path;

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	secret = sw_crypto_get(sizeof(*secret));
	if (!secret) {
		fprintf(stderr, "sumwire key: no memory\n");
		return 1;
	}
	path = files.n ? files.items[0] : default_file;
	err = is_shown ? show(path, secret) : make(path, secret);
	sw_crypto_put(secret, sizeof(*secret));
	return err;
}
