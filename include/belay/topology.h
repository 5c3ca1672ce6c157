/* A deployment's servers: who they are, how far away, and what their clocks say. For people who look after them. */
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

#define BELAY_TOPOLOGY_SERVERS_MAX 256 /**< servers that are told */
#define BELAY_TOPOLOGY_SAMPLES_MAX 100 /**< round trips that are measured to each */

/** What a server is, as it says itself. */
typedef enum belay_role {
  BELAY_ROLE_UNKNOWN, /**< it did not say */
  BELAY_ROLE_PRIMARY, /**< it takes writes */
  BELAY_ROLE_REPLICA, /**< it copies a primary */
  BELAY_ROLE_SENTINEL /**< it has no data */
} belay_role_t;

/** "unknown", "primary", "replica", "sentinel"; "?" for another number. */
BELAY_API const char *belay_role_name(belay_role_t role);

/** One server. What it did not say, or its user is not permitted to ask, is "" or 0. */
typedef struct belay_topology_server {
  const char *address; /**< "host:port", as it was found, or the path of its socket */
  /** 0: it was reached, and all that was asked was answered or refused; else why not, such as BELAY_EUNREACHABLE,
   * BELAY_ETLS, BELAY_EAUTH, BELAY_EUNKNOWN (an answer did not come in time) or BELAY_ENOMEM (it was found, and could
   * not be asked) */
  int status;
  const char *
      detail; /**< in words, what the status comes from, as belay_detail() has it; "": nothing is known */
  belay_role_t role;    /**< what it is */
  const char *software; /**< what it calls itself: "redis", "valkey" */
  const char *version;  /**< such as "7.0.15" */
  const char *run_id;   /**< another one after each start */
  const char *primary;  /**< of a replica: the address of whom it copies */
  bool in_sync;         /**< of a replica: it is connected to its primary, and copies */
  unsigned replicas;    /**< of a primary: how many are connected to it */
  /** bytes of the stream of writes: of a primary made, of a replica copied; -1: unknown */
  int64_t replicated;
  /** commands that it has executed since it started, those of replication and of this look too; -1: unknown */
  int64_t commands;
  unsigned samples;       /**< round trips that were measured; 0: none, and what follows is 0 */
  int64_t rtt_min_us;     /**< the shortest, on a connection that carries nothing else */
  int64_t rtt_median_us;  /**< half of them took no longer */
  int64_t clock_ahead_us; /**< by how much its clock is ahead of this machine's; negative: behind */
  int64_t
      clock_error_us; /**< by at most so much that is wrong, if neither clock was set meanwhile */
} belay_topology_server_t;

/** A callback of the shape of belay/request.h. servers: n of them, at least 1, in the order in which they were found; n is
 * 0 unless status is 0. status:
 *
 *   0                 as far as servers were found they were asked: what they have answered is theirs to say
 *   BELAY_ECANCELED   belay_request_cancel() or a close
 *   BELAY_ENOMEM      memory was out, so that not all that were found could be told
 *   another error     none was found, and this is why: such as BELAY_ENOSENTINEL, BELAY_ENOMASTER */
typedef void (*belay_topology_cb)(belay_request_t *request, int status,
                                  const belay_topology_server_t *servers, size_t n);

/** Finds the servers of the client's deployment, and asks each about itself, on a connection of its own (with the same
 * user, password and TLS), which is closed then; `samples` times (1 to BELAY_TOPOLOGY_SAMPLES_MAX) one after the other
 * what time it is, from which its distance and its clock are told (Cristian's algorithm: the bounds of all samples
 * together).
 *
 * Of redis:// and unix:// that is one server; of the other URLs those that are in the URL or that are known by now, and
 * those that they name, primaries their replicas and replicas their primary. One that was found by two addresses is told
 * once, if it tells its run id. Sentinels are not told. All of it ends when request.timeout_ms is over: who has not
 * answered by then is told with what he has. Only a look-up of a name may go on longer, because it cannot be cancelled:
 * belay_close() waits for that.
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
