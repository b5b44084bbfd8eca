/* daemon_secrets.c - replace the daemon's secrets while it runs.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/daemon.h"

int sw_daemon_reload_secrets(struct sw_daemon *d)
{
	struct sw_secrets *s;
	int err =
		sw_secrets_open(&s, &d->conf, d->secrets, sw_now_ns(), &d->log);

	if (err) {
		sw_log(&d->log, SW_LOG_WARN, "the current keys stay valid");
		return err;
	}
	s->older = d->secrets;
	d->secrets = s;
	sw_log(&d->log, SW_LOG_INFO, "read the key files again");
	sw_secrets_log(s, &d->conf, &d->log);
	/* the worker has its own copy */
	if (d->conf.node.role == SW_ROLE_AGENT)
		sw_daemon_drop_secrets(d);
	return 0;
}

void sw_daemon_drop_secrets(struct sw_daemon *d)
{
	while (d->secrets->older) {
		struct sw_secrets *old = d->secrets->older;

		d->secrets->older = old->older;
		sw_secrets_close(old);
	}
}
