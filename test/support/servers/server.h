/* A real server of one test: in its own folder, on a unix socket or a free port, removed with the
 * test. */
#ifndef TEST_SUPPORT_SERVERS_SERVER_H
#define TEST_SUPPORT_SERVERS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "support/deployments/deployment.h"
#include "support/servers/resp.h"

typedef struct server server_t;

enum { SERVER_ARGUMENTS = 32 };

/* Address and password must last as long as the server, the rest until it is started. */
typedef struct server_options {
  const char *address;  /* listens on a free TCP port of this address; NULL: on a unix socket */
  const char *password; /* NULL: none */
  bool tls;             /* on the port; the certificates are up to the arguments */
  bool cluster;         /* a node of a cluster; on 127.0.0.1, if there is no address */
  bool sentinel;        /* not a server, but a Sentinel */
  const char *arguments[SERVER_ARGUMENTS]; /* more of the server's own, up to a NULL */
  const char *lines; /* and lines of its file; pointers must stay valid until the start */
} server_options_t;

/* Adds to the arguments: words up to a NULL; NULL: none. */
void server_add(server_options_t *options, const char *const *words);

/* The same: a name and its value; NULL: no change. */
void server_set(server_options_t *options, const char *name, const char *value);

/* Starts a server. Returns when it replies. options NULL: a unix socket, no password.
 * BELAY_TEST_DEPLOYMENT selects the deployment (support/deployments/deployment.h), unless the
 * server is to be a node of a cluster. For a cluster all functions below concern all of its
 * nodes. */
server_t *server_start(const server_options_t *options);

/* The same in steps, so that several servers can start at once: make the folder and ports; start
 * the process; wait until it replies. */
server_t *server_make(const server_options_t *options);
void server_spawn(server_t *server);
void server_await(server_t *server);

/* Ends it, paused or not, and removes its folder. */
void server_stop(server_t *server);

/* Ends only the process: at once, or as it wishes. The address stays its own. */
void server_kill(server_t *server);
void server_terminate(server_t *server);

/* Restarts it at the same address; without its data, unless it appends to a file. */
void server_restart(server_t *server);

/* Adds a line to its file, for when it starts again. */
void server_configure(server_t *server, const char *line);

/* Whether there is a process, and whether it stands still. */
bool server_is_running(const server_t *server);
bool server_is_paused(const server_t *server);

/* Starts it again at the same address, with the data that it has now. */
void server_restart_keeping(server_t *server);

/* Makes the server a replica of one that listens on TCP. Returns when it has all data. */
void server_follow(server_t *replica, server_t *primary);

/* SIGSTOP and SIGCONT; returns when it stands still. */
void server_pause(server_t *server);
void server_resume(server_t *server);

/* True if each server uses TLS, and each client without TLS settings trusts it (BELAY_TEST_TLS). */
bool servers_are_secure(void);

/* Its URL: redis://address:port or unix:///path, with the password if there is one; or the
 * deployment's. */
const char *server_url(const server_t *server);
/* The same of itself, where the other leads to a Sentinel. */
const char *server_own_url(const server_t *server);
/* The part before the host or path: a user, a password, an '@'; or empty. Valid until the next
 * call. */
const char *server_login(const server_t *server);
const char *server_path(const server_t *server); /* of the unix socket; NULL on TCP without TLS */
int server_port(const server_t *server);
int server_bus(const server_t *server);            /* the port on which nodes of a cluster meet */
const char *server_folder(const server_t *server); /* its own: where it writes, if it does */

/* Writes the URL of several servers: "redis+KIND://…" or "rediss+KIND://…". The password is the
 * one for `login`. */
void server_name_several(char *url, size_t size, const char *kind, const server_t *login,
                         server_t *const *servers, unsigned n);

/* ---- queries: words up to a NULL ----
 *
 * In a cluster the node that has the key is asked. Commands without a key that change something
 * (ACL, CLIENT, CONFIG, DEBUG, FLUSHALL, SAVE, SCRIPT) go to all nodes, and the last reply is
 * returned. All others go to the first node. */

/* The reply; valid until the next question. Fails the test if there is none. */
const resp_t *server_ask(server_t *server, ...);
const resp_t *server_ask_words(server_t *server, const resp_words_t *words);

/* NULL if there is no reply, because it is down, paused, or not yet up. */
const resp_t *server_try(server_t *server, ...);

/* Fails the test if the reply is an error. */
void server_do(server_t *server, ...);

/* The reply must be an integer. */
int64_t server_integer(server_t *server, ...);

/* The reply must be a string or nil, which is NULL. Valid until the next question. */
const char *server_string(server_t *server, ...);

/* A number from INFO, of several processes the sum; -1 if it is not there. */
int64_t server_info(server_t *server, const char *section, const char *field);

/* Returns the number of commands, this query included, without those of replicas and Sentinels. */
int64_t server_commands(server_t *server);

/* Returns the number of calls of a command ("set", "evalsha", in any case), and of all commands
 * that publish. */
int64_t server_calls(server_t *server, const char *command);
int64_t server_publications(server_t *server);

/* The number of subscribers of a channel; and, by publishing, the number that got it. */
int64_t server_listeners(server_t *server, const char *channel);
int64_t server_publish(server_t *server, const char *channel, const char *message);

/* How many keys there are. */
int64_t server_keys(server_t *server);

#endif /* TEST_SUPPORT_SERVERS_SERVER_H */
