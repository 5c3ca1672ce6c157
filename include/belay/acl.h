/* ACL: what a user of the server must be allowed, and nothing else. */
#ifndef BELAY_ACL_H
#define BELAY_ACL_H

#include <stdbool.h>
#include <stddef.h>

#include "belay/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the user is for. Everything is read inside the call only. */
typedef struct belay_acl_options {
  /** The client's namespace, as in belay_client_options_t. Default: {"belay"}. The user may then use all namespaces
   * below it too. A part with a space in it is BELAY_EINVAL: an ACL knows no way to write one. */
  const char *const *namespace_parts;
  size_t namespace_count; /**< how many there are; default 1 */

  /** What is going to be used, by the names that belay_acl_name() lists: "lock", "limiter", ... or "all", which is all of
   * them but those that say how servers are deployed: "cluster", "replicas", "sentinel". Default: {"all"} */
  const char *const *names;
  size_t names_count; /**< how many there are; default 1 */

  /** Exact keys of locks outside of the namespace (belay_lock_options_t's key), 1 to 1024 bytes without a space; what
   * wakes those who wait for them is allowed too. Default: none */
  const char *const *keys;
  size_t keys_count; /**< how many there are, at most 64; default 0 */

  int db; /**< the database, 0 to 65535; default 0 */

  /** The oldest server that is to understand the rules, as major * 10000 + minor * 100 + patch: one refuses all rules
   * if it does not know one of the commands. Default: 70000; from 60000 on */
  unsigned server_version;
  bool valkey; /**< that is a version of Valkey, rather than of Redis; default: false */

  /** The rules are for a user of the sentinels, rather than of the servers that they watch. Of the rest only
   * server_version matters then. Default: false */
  bool sentinel;
} belay_acl_options_t;

/** Fills in the defaults. */
BELAY_API void belay_acl_options_init(belay_acl_options_t *options);

/** Writes the rules, for every server of a deployment, since they do not tell each other: what comes behind `ACL SETUSER name`, or behind `user name` in a users.acl, in words that are apart
 * by single spaces. They begin with `on`, take away what the user was allowed before, but for the passwords, of which
 * they say nothing: a new user can not log in before it is given one.
 *
 * CLIENT KILL is among them: a client ends a connection that it has lost, by its number, so that nothing sent on it is
 * executed later. Servers know no rule that limits CLIENT KILL to the connections of the user itself: it can end those of
 * other users too.
 *
 * *len: their length, without the 0 behind them. buffer: NULL to ask for the length only; else it must have room for
 * *len + 1 bytes, and is empty ("") if it has not. options: NULL: the defaults.
 *
 * @code
 * static void print_rules(void) {
 *   const char *const app[] = {"app"}, *const names[] = {"lock", "limiter"};
 *   belay_acl_options_t options;
 *   char rules[4096];
 *   size_t len;
 *   belay_acl_options_init(&options);
 *   options.namespace_parts = app;
 *   options.names = names;
 *   options.names_count = 2;
 *   if (belay_acl_rules(&options, rules, sizeof rules, &len) == 0)
 *     printf("ACL SETUSER app %s\n", rules);
 * }
 * @endcode
 *
 * Returns 0, or BELAY_EINVAL: an option is out of its range, or the buffer too small. */
BELAY_API int belay_acl_rules(const belay_acl_options_t *options, char *buffer, size_t size,
                              size_t *len);

/** The names that belay_acl_options_t takes, in the order of the alphabet, from index 0 on; NULL behind the last. in_all:
 * NULL, or where it is told whether "all" means it too. */
BELAY_API const char *belay_acl_name(size_t index, bool *in_all);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ACL_H */
