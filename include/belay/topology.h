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

#define BELAY_TOPOLOGY_SERVERS_MAX 256 /**< maximum number of servers; others are missing */
#define BELAY_TOPOLOGY_SAMPLES_MAX 100 /**< maximum number of round trips to each */

/** Role that a server reports. */
typedef enum belay_role {
  BELAY_ROLE_UNKNOWN, /**< not reported */
  BELAY_ROLE_PRIMARY, /**< takes writes */
  BELAY_ROLE_REPLICA, /**< copies a primary */
  BELAY_ROLE_SENTINEL /**< has no data */
} belay_role_t;

/** Return "unknown", "primary", "replica" or "sentinel"; "?" for another number. */
BELAY_API const char *belay_role_name(belay_role_t role);

/** A server. Values that it does not report are "", 0 or false. */
typedef struct belay_topology_server {
  const char *address; /**< "host:port", or the path of its socket */
  /** 0: every command was answered or refused. Otherwise the error, such as BELAY_EUNREACHABLE,
   * BELAY_ETLS, BELAY_EAUTH, BELAY_EUNKNOWN (a reply was late) or BELAY_ENOMEM. */
  int status;
  const char *detail;   /**< cause of the status as belay_detail() reports it; "": unknown */
  belay_role_t role;    /**< role of the server */
  const char *software; /**< name of the software: "redis", "valkey" */
  const char *version;  /**< such as "7.0.15" */
  const char *run_id;   /**< identity, which changes at each start */
  const char *primary;  /**< replica: address of its primary */
  bool in_sync;         /**< replica: true if it is connected to its primary and copies */
  unsigned replicas;    /**< primary: number of connected replicas */
  int64_t replicated;   /**< bytes of the replication stream, made or copied; -1: unknown */
  int64_t commands;     /**< commands executed since its start, these too; -1: unknown */
  /** Number of measured round trips. 0: none, and the following fields are 0. */
  unsigned samples;
  int64_t rtt_min_us;     /**< shortest round trip, on an idle connection */
  int64_t rtt_median_us;  /**< median round trip */
  int64_t clock_ahead_us; /**< how far its clock is ahead of this machine's; negative: behind */
  int64_t clock_error_us; /**< error of clock_ahead_us, at most, if no clock was set meanwhile */
} belay_topology_server_t;

/** A callback of the shape of belay/request.h. servers: n of them, at least 1, in the order of
 * discovery; n is 0 unless status is 0. status:
 *
 *   0                 the found servers replied or not; each entry has a status of its own
 *   BELAY_ECANCELED   belay_request_cancel() or a close
 *   BELAY_ENOMEM      memory ran out, so some found servers are missing
 *   another error     no server was found, and this is the cause, such as BELAY_ENOSENTINEL or
 *                     BELAY_ENOMASTER */
typedef void (*belay_topology_cb)(belay_request_t *request, int status,
                                  const belay_topology_server_t *servers, size_t n);

/** Find the servers of the client's deployment, and query each on a temporary connection with the
 * same user, password and TLS. The function asks for the time `samples` times (1 to
 * BELAY_TOPOLOGY_SAMPLES_MAX), and computes distance and clock from all samples.
 *
 * With redis:// and unix:// there is one server. With other URLs the servers of the URL, the known
 * ones, and their primaries and replicas are found; no Sentinels. A server with two addresses
 * appears once if it reports its run id. The request ends after request.timeout_ms; a server
 * without a reply then appears with the known part. A name lookup cannot be canceled, so
 * belay_close() waits for it.
 *
 * @code
 * static void on_servers(belay_request_t *request, int status,
 *                        const belay_topology_server_t *servers, size_t n) {
 *   (void)request;
 *   if (status != 0)
 *     fprintf(stderr, "%s\n", belay_strerror(status));
 *   for (size_t i = 0; i < n; i++)
 *     printf("%s: %s, %lld us\n", servers[i].address, belay_role_name(servers[i].role),
 *            (long long)servers[i].rtt_median_us);
 * }
 *
 * int list_servers(belay_client_t *client, belay_request_t *request) {
 *   return belay_topology_read(client, request, 5, on_servers);
 * }
 * @endcode
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_topology_read(belay_client_t *client, belay_request_t *request,
                                  unsigned samples, belay_topology_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_TOPOLOGY_H */
