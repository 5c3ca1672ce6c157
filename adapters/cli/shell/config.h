/* Settings: what the command line does not say comes from the environment, else from files. */
#ifndef BELAY_CLI_SHELL_CONFIG_H
#define BELAY_CLI_SHELL_CONFIG_H

#include <stdbool.h>

/* Completes `common` by the environment (BELAY_URL, ...), and then by files: that of --config or BELAY_CONFIG, or
 * those that are there of $XDG_CONFIG_HOME/belay/config (~/.config/belay/config) and /etc/belay/config. What has been said
 * counts more than what is read later: of passwords and files of them together, too. A URL that has a password keeps it.
 *
 * A file is a regular one, of at most 1 MiB, without a byte 0: lines of `name = value` of at most 70,000 bytes, empty ones,
 * and comments, which begin with #; a name is that of a long option, or `password`. One with a password that everybody
 * may read is refused. A password file may be a pipe too: of at most 70,000 bytes, without a byte 0, whose first line is
 * the password.
 *
 * false: something is wrong, and was said. */
bool config_read(void);

/* scheme://user:password@... */
bool url_has_password(const char *url);

#endif /* BELAY_CLI_SHELL_CONFIG_H */
