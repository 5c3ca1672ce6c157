/* Access rules: the permissions that a least-privilege user of the server needs. */
#ifndef BELAY_ACL_H
#define BELAY_ACL_H

#include <stdbool.h>
#include <stddef.h>

#include "belay/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of the rules; belay_acl_options_init() sets the defaults. They are read during the call
 * only. */
typedef struct belay_acl_options {
  /** Namespace of the client, as in belay_client_options_t; the user may use all namespaces below
   * it too. No part may contain a space. Default {"belay"}. */
  const char *const *namespace_parts;
  size_t namespace_count; /**< number of parts; default 1 */
  /** Features to permit, by the names of belay_acl_name(), such as "lock"; or "all": every name
   * except the deployments "cluster", "replicas" and "sentinel". Default {"all"}. */
  const char *const *names;
  size_t names_count; /**< number of names; default 1 */
  /** Exact keys of locks outside of the namespace (belay_lock_options_t.key), 1 to 1024 bytes
   * without white space. Their contention flags and wake-up channels are permitted too. Default
   * none. */
  const char *const *keys;
  size_t keys_count; /**< number of keys, at most 64; default 0 */
  /** Database, 0 to 65535; default 0. If it is not 0, SELECT of it is permitted. */
  int db;
  /** Version of the oldest server that must accept the rules: major * 10000 + minor * 100 + patch.
   * A server rejects all rules if it does not know one of the commands. At least 60000; default
   * 70000. */
  unsigned server_version;
  bool valkey; /**< true if it is a version of Valkey, not of Redis; default false */
  /** true if the rules are for a user of the Sentinels; then only server_version is used. Default
   * false. */
  bool sentinel;
} belay_acl_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_acl_options_init(belay_acl_options_t *options);

/** Write the rules: the text after `ACL SETUSER name`, or after `user name` in a users.acl, with
 * single spaces. Each server of a deployment needs them, because servers do not exchange rules.
 * They begin with `on` and remove all former permissions, but do not change passwords: a new user
 * cannot log in before it gets one.
 *
 * CLIENT KILL is among them, because a client ends its lost connections. Servers cannot limit it to
 * the user's own connections.
 *
 * options: NULL for the defaults. len: required; *len is the length without the terminating 0.
 * buffer: at least *len + 1 bytes; NULL: only *len is set.
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
 * Returns 0, or BELAY_EINVAL with "" in buffer: it is too small, or an option or a name is wrong
 * (*len is 0). */
BELAY_API int belay_acl_rules(const belay_acl_options_t *options, char *buffer, size_t size,
                              size_t *len);

/** Return the index-th name for belay_acl_options_t.names: the features in alphabetical order, then
 * the deployments; NULL after the last. in_all: NULL, or set to true if "all" includes the name. */
BELAY_API const char *belay_acl_name(size_t index, bool *in_all);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ACL_H */
