/* Access rules: the permissions that a least-privilege user of the server needs. */
#ifndef BELAY_ACL_H
#define BELAY_ACL_H

#include <stdbool.h>
#include <stddef.h>

#include "belay/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The purposes of the user. All options are only read during the call. */
typedef struct belay_acl_options {
  /** The client's namespace, as in belay_client_options_t. Default: {"belay"}. The user may then
   * use all namespaces below it too. A part with a space in it is BELAY_EINVAL: an ACL knows no
   * way to write one. */
  const char *const *namespace_parts;
  size_t namespace_count; /**< how many there are; default 1 */

  /** The features to permit, by the names of belay_acl_name(): "lock", "limiter", ... or "all",
   * which is every name except those of deployments: "cluster", "replicas", "sentinel". Default:
   * {"all"}. */
  const char *const *names;
  size_t names_count; /**< how many there are; default 1 */

  /** Exact keys of locks outside of the namespace (belay_lock_options_t's key), 1 to 1024 bytes
   * without a space; what wakes those who wait for them is allowed too. Default: none */
  const char *const *keys;
  size_t keys_count; /**< how many there are, at most 64; default 0 */

  int db; /**< the database, 0 to 65535; default 0 */

  /** The oldest server that is to understand the rules, as major * 10000 + minor * 100 + patch:
   * one refuses all rules if it does not know one of the commands. Default: 70000; from 60000 on */
  unsigned server_version;
  bool valkey; /**< that is a version of Valkey, rather than of Redis; default: false */

  /** The rules are for a user of the sentinels, rather than of the servers that they watch. Of
   * the rest only server_version matters then. Default: false */
  bool sentinel;
} belay_acl_options_t;

/** Fills in the defaults. */
BELAY_API void belay_acl_options_init(belay_acl_options_t *options);

/** Writes the rules: the text after `ACL SETUSER name`, or after `user name` in a
 * users.acl, as words with single spaces. Each server of a deployment needs them, because servers
 * do not exchange rules. They begin with `on` and remove all former permissions. They do not change
 * passwords: a new user cannot log in before it gets one.
 *
 * CLIENT KILL is among them: a client ends a connection that it has lost, so that nothing sent on it
 * is executed later. Servers cannot limit CLIENT KILL to the user's own connections.
 *
 * *len: the length without the terminating 0. buffer: NULL, to get the length only; otherwise its size
 * must be at least *len + 1 bytes, else it is set to "". options: NULL for the defaults.
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

/** Returns the index-th name of belay_acl_options_t.names, in alphabetical order; NULL after the
 * last. in_all: NULL, or set to true if "all" includes the name. */
BELAY_API const char *belay_acl_name(size_t index, bool *in_all);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ACL_H */
