#include "core/client/server_time.h"

/* Milliseconds after a reply to TIME: until FRESH_MS no operation asks, from OLD_MS on each one
 * does. In between one operation asks, and another one AGAIN_MS later if there is no reply. After a
 * round trip of more than NEAR_MS, AGAIN_MS takes the place of FRESH_MS. */
#define FRESH_MS 60000
#define OLD_MS 600000
#define AGAIN_MS 5000
#define NEAR_MS 100
#define TIME_MAX_US INT64_C(253370764799999000) /* the end of the year 9998 */

/* true if calls of this handle now use the connection of the last TIME, or if they have no
 * connection. */
static bool is_same_server(const belay__servertime_t *time, const belay__handle_t *handle) {
  const belay_client_t *client = handle->client;
  const belay__server_info_t *server =
      client->node_ops->server(client, time->conn_class, handle->route);
  return server == NULL || server->epoch == time->epoch;
}

bool belay__servertime_known(belay__servertime_t *time, const belay__handle_t *handle,
                             uint64_t now) {
  if (time->learnt == 0 || now - time->learnt >= OLD_MS * BELAY__MS ||
      !is_same_server(time, handle))
    return false;
  if (now < time->ask_at)
    return true;
  time->ask_at = now + AGAIN_MS * BELAY__MS;
  return false;
}

int64_t belay__servertime_ms_at(const belay__servertime_t *time, uint64_t now) {
  /* negative if the answer arrived after `now` */
  int64_t since_us = (int64_t)(now - time->learnt) / 1000;
  return (time->us + time->shift_us + since_us) / 1000;
}

int64_t belay__servertime_ms(const belay__servertime_t *time, const belay__handle_t *handle) {
  return belay__servertime_ms_at(time, belay__now(handle->client->belay));
}

belay__call_t *belay__servertime_call(const belay__servertime_t *time,
                                      const belay__handle_t *handle) {
  belay__call_t *call = belay__call_new(handle->client, time->conn_class);
  belay__call_command(call, "TIME", 1);
  if (call != NULL)
    call->route = handle->route;
  return call;
}

int belay__servertime_read(belay__servertime_t *time, const belay__call_t *call,
                           const belay__reply_t *reply) {
  uint64_t seconds, us, now = belay__now(call->client->belay);
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 2 ||
      !belay__reply_number(reply->items[0], 1, TIME_MAX_US / 1000000, &seconds) ||
      !belay__reply_number(reply->items[1], 0, 999999, &us))
    return BELAY_EPROTO;
  /* The server read its clock between first_sent and now. The middle is wrong by at most half of
   * the difference. */
  uint64_t took = now - call->first_sent;
  time->learnt = call->first_sent + took / 2;
  time->us = (int64_t)(seconds * 1000000 + us);
  time->ask_at = now + (took <= NEAR_MS * BELAY__MS ? FRESH_MS : AGAIN_MS) * BELAY__MS;
  time->epoch = call->epoch;
  return 0;
}

int belay__servertime_begin(belay__servertime_t *time, const belay__handle_t *handle,
                            belay__operation_t *operation, bool needed) {
  operation->asks_time =
      needed && !belay__servertime_known(time, handle, belay__now(operation->client->belay));
  int error = operation->asks_time
                  ? belay__request_send(operation, belay__servertime_call(time, handle))
                  : operation->ops->next(operation);
  return belay__request_begun(operation, error == BELAY__REQUEST_PARK ? 0 : error);
}

bool belay__servertime_learn(belay__servertime_t *time, belay__operation_t *operation,
                             const belay__call_t *call, const belay__reply_t *reply, int *status) {
  if (!operation->asks_time)
    return false;
  operation->asks_time = false;
  *status = belay__servertime_read(time, call, reply);
  return true;
}
