/* Settings: the environment, then files, complete the command line. */
#ifndef BELAY_CLI_SHELL_CONFIG_H
#define BELAY_CLI_SHELL_CONFIG_H

#include <stdbool.h>

/* Complete `common`, which has the options of the command line, from these sources. The first
 * source that has a setting counts; a password and a password file are one setting.
 *
 *   1. The environment: BELAY_TLS_CA is --tls-ca. BELAY_URL may have several URLs, separated by
 *      spaces. BELAY_PASSWORD is the password.
 *   2. The file of --config or BELAY_CONFIG. Without these the user's file,
 *      $XDG_CONFIG_HOME/belay/config or ~/.config/belay/config, and then /etc/belay/config.
 *   3. The first line of the password file. A pipe is accepted.
 *
 * A settings file is a regular file of at most 1 MiB. Its lines are `name = value`, empty, or
 * comments that begin with #. A name is that of a long option, or `password`. A password file has
 * at most 70,000 bytes. Neither has a byte 0. A file with a password that all users can read is
 * refused. Returns false after printing an error. */
bool config_read(void);

/* Return true for scheme://user:password@... */
bool url_has_password(const char *url);

#endif /* BELAY_CLI_SHELL_CONFIG_H */
