/* The mode of BELAY_TEST_ACL: a server has two users. Clients of the test are "worker", with
 * exactly the rules of belay_acl_rules() for the features of the program (the table is in
 * acl.c). The test's own queries, and servers among themselves, are "admin", which may do
 * everything. Clients without a user may do nothing; if a test sets a password, clients with
 * that password are workers. */
#ifndef TEST_SUPPORT_SERVERS_ACL_H
#define TEST_SUPPORT_SERVERS_ACL_H

#include <stdbool.h>
#include <stdio.h>

#include "support/servers/server.h"

#define ACL_ADMIN "admin"
#define ACL_ADMIN_PASSWORD "of-the-house" /* a Sentinel writes it down without quotes */

/* The server_version of belay_acl_options_t that goes for the servers here. */
unsigned acl_version(void);

/* True if a server with these options gets the two users: in this mode, unless it is a Sentinel or
 * lacks commands. */
bool acl_applies(const server_options_t *options);

/* In this mode the test is skipped, and says why. */
void acl_skip(const char *why);

/* Adds them to a server's file. */
void acl_write(FILE *out, const server_options_t *options);

/* Translates rules about the user "default" to the worker; "allow everything" becomes all rules
 * of a worker. Other words stay. Valid until the next call. */
void acl_translate(const server_options_t *options, resp_words_t *words);

/* Connects to the unix socket of a server with these options (NULL: the defaults) as a user with
 * all rights. Returns 0 or -1. */
int acl_dial(const server_options_t *options, resp_client_t *client, const char *path);

/* The text before the host in the URL of such a server, for a client of the test. Valid until
 * the next call. */
const char *acl_login(const server_options_t *options);

#endif /* TEST_SUPPORT_SERVERS_ACL_H */
