/* Settings of the environment, and the password file. */
#ifndef BELAY_CLI_SHELL_CONFIG_H
#define BELAY_CLI_SHELL_CONFIG_H

#include <stdbool.h>

/* Set the options of `common` from the environment: BELAY_TLS_CA is --tls-ca. BELAY_URL may have
 * several URLs, separated by spaces. BELAY_PASSWORD is the password. Call it before the command
 * line is read, which overrides these values. Returns false after printing an error. */
bool config_read_environment(void);

/* Read the password from the first line of --password-file, if it is given. A file that all users
 * can read is refused; a pipe is accepted. The file has at most 70,000 bytes, and no byte 0.
 * Returns false after printing an error. */
bool config_read_password(void);

/* Return true for scheme://user:password@... */
bool url_has_password(const char *url);

#endif /* BELAY_CLI_SHELL_CONFIG_H */
