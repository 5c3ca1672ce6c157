/* The mode of BELAY_TEST_ACL: a server has two users. The clients of the test are "worker", who may do what
 * belay_acl_rules() says for what the program is about (the table is in acl.c), and nothing else. The test's own questions
 * behind the scenes, and servers among themselves, are "admin", who may do everything. Who does not say who he is may do
 * nothing; but where a test gives the server a password, whoever has that is a worker. */
#ifndef TEST_SUPPORT_SERVERS_ACL_H
#define TEST_SUPPORT_SERVERS_ACL_H

#include <stdbool.h>
#include <stdio.h>

#include "support/servers/server.h"

#define ACL_ADMIN "admin"
#define ACL_ADMIN_PASSWORD "of-the-house" /* a Sentinel writes it down without quotes */

/* The server_version of belay_acl_options_t that goes for the servers here. */
unsigned acl_version(void);

/* Whether a server with these options has such users: in this mode, if it is no sentinel and has all of its commands. */
bool acl_applies(const server_options_t *options);

/* In this mode the test is skipped, and says why. */
void acl_skip(const char *why);

/* Adds them to a server's file. */
void acl_write(FILE *out, const server_options_t *options);

/* What is said of the user "default", and of his password, goes for the worker; and if he is to be allowed everything, that
 * is everything that a worker may. Other words stay as they are. Valid until the next time. */
void acl_translate(const server_options_t *options, resp_words_t *words);

/* Connects to the unix socket of a server with these options (NULL: none), as who may do everything; 0 or -1. */
int acl_dial(const server_options_t *options, resp_client_t *client, const char *path);

/* What comes before the host in the URL of a server with these options, for a client of the test. Valid until the next
 * time. */
const char *acl_login(const server_options_t *options);

#endif /* TEST_SUPPORT_SERVERS_ACL_H */
