/* Settings: the environment, then files, complete the command line. */
#ifndef BELAY_CLI_SHELL_CONFIG_H
#define BELAY_CLI_SHELL_CONFIG_H

#include <stdbool.h>

/* Complete `common` from the environment (BELAY_URL, ...), and then from files: that of
 * --config or BELAY_CONFIG, or $XDG_CONFIG_HOME/belay/config (~/.config/belay/config) and
 * /etc/belay/config. Earlier sources win; passwords and password files count as one setting. A
 * URL's own password stays.
 *
 * A file must be a regular one of at most 1 MiB without a byte 0. Its lines are `name = value`
 * of at most 70,000 bytes, empty, or comments that begin with #. A name is that of a long
 * option, or `password`. A file with a password that every user can read is refused. A password
 * file may be a pipe: at most 70,000 bytes without a byte 0, whose first line is the password.
 *
 * Returns false after printing an error. */
bool config_read(void);

/* Return true for scheme://user:password@... */
bool url_has_password(const char *url);

#endif /* BELAY_CLI_SHELL_CONFIG_H */
