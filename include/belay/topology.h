/* The servers of a deployment: role, distance and clock. For operators. */
#ifndef BELAY_TOPOLOGY_H
#define BELAY_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belay/client.h"
#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_TOPOLOGY_SERVERS_MAX 256 /**< maximum number of returned servers */
#define BELAY_TOPOLOGY_SAMPLES_MAX 100 /**< round trips that are measured to each */

/** The role that a server reports. */
typedef enum belay_role {
  BELAY_ROLE_UNKNOWN, /**< it did not say */
  BELAY_ROLE_PRIMARY, /**< it takes writes */
  BELAY_ROLE_REPLICA, /**< it copies a primary */
  BELAY_ROLE_SENTINEL /**< it has no data */
} belay_role_t;

/** "unknown", "primary", "replica", "sentinel"; "?" for another number. */
BELAY_API const char *belay_role_name(belay_role_t role);

/** One server. Unreported or forbidden values are "" or 0. */
typedef struct belay_topology_server {
  const char *address; /**< "host:port", as it was found, or the path of its socket */
  /** 0: it was reached, and all that was asked was answered or refused; else why not, such as
   * BELAY_EUNREACHABLE, BELAY_ETLS, BELAY_EAUTH, BELAY_EUNKNOWN (an answer did not come in time)
   * or BELAY_ENOMEM (it was found, and could not be asked) */
  int status;
  const char *
      detail; /**< in words, what the status comes from, as belay_detail() has it; "": nothing is known */
  belay_role_t role;    /**< what it is */
  const char *software; /**< name of the software: "redis", "valkey" */
  const char *version;  /**< such as "7.0.15" */
  const char *run_id;   /**< another one after each start */
  const char *primary;  /**< of a replica: the address of its primary */
  bool in_sync;         /**< of a replica: it is connected to its primary, and copies */
  unsigned replicas;    /**< of a primary: how many are connected to it */
  /** bytes of the stream of writes: of a primary made, of a replica copied; -1: unknown */
  int64_t replicated;
  /** commands that it has executed since it started, those of replication and of this look too;
   * -1: unknown */
  int64_t commands;
  /** number of measured round trips; 0: none, and the following fields are 0 */
  unsigned samples;
  int64_t rtt_min_us;     /**< the shortest, on a connection that carries nothing else */
  int64_t rtt_median_us;  /**< half of them took no longer */
  int64_t clock_ahead_us; /**< by how much its clock is ahead of this machine's; negative: behind */
  int64_t
      clock_error_us; /**< by at most so much that is wrong, if neither clock was set meanwhile */
} belay_topology_server_t;

/** A callback of the shape of belay/request.h. servers: n of them, at least 1, in the order of
 * discovery; n is 0 unless status is 0. status:
 *
 * - 0: the found servers were asked; each entry has a status of its own.
 * - BELAY_ECANCELED: belay_request_cancel() or a close.
 * - BELAY_ENOMEM: memory ran out, so some found servers are missing.
 * - another error: no server was found, and this is the cause, such as BELAY_ENOSENTINEL or
 *   BELAY_ENOMASTER. */
typedef void (*belay_topology_cb)(belay_request_t *request, int status,
                                  const belay_topology_server_t *servers, size_t n);

/** Finds the servers of the client's deployment and asks each about itself, on a temporary connection
 * with the same user, password and TLS. It asks for the time `samples` times (1 to
 * BELAY_TOPOLOGY_SAMPLES_MAX), one after another, and computes distance and clock from them (Cristian's
 * algorithm, with the bounds of all samples).
 *
 * With redis:// and unix:// there is one server. With the other URLs these are the servers of the URL,
 * the known ones, and those that they name: replicas of primaries, primaries of replicas. A server with
 * two addresses appears once if it tells its run id. Sentinels are not included. The request ends after
 * request.timeout_ms; a server without a reply then appears with the known part. A name lookup may take
 * longer, because it cannot be cancelled: belay_close() waits for it.
 *
 * @code
 * static void on_servers(belay_request_t *request, int status, const belay_topology_server_t *servers, size_t n) {
 *   (void)request;
 *   if (status != 0)
 *     fprintf(stderr, "%s\n", belay_strerror(status));
 *   for (size_t i = 0; i < n; i++)
 *     printf("%s: %s, %lld us away\n", servers[i].address, belay_role_name(servers[i].role),
 *            (long long)servers[i].rtt_median_us);
 * }
 *
 * int look_around(belay_client_t *client, belay_request_t *request) {
 *   return belay_topology_read(client, request, 5, on_servers);
 * }
 * @endcode
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_topology_read(belay_client_t *client, belay_request_t *request,
                                  unsigned samples, belay_topology_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_TOPOLOGY_H */
