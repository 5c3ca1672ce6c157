/* belay_client_ping(): a request embedded in the client. */
#include "core/client/request.h"

static int read_pong(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  (void)operation;
  (void)call;
  return belay__reply_is(reply, "PONG", 4) ? 0 : BELAY_EPROTO;
}

static void notify_caller(belay_request_t *request, void (*cb)(void),
                          const belay__answer_t *answer) {
  (void)request;
  ((belay_client_cb)cb)(answer->client, answer->status);
}

static const belay__request_ops_t ops = {.read = read_pong, .notify = notify_caller};

int belay_client_ping(belay_client_t *client, int64_t timeout_ms, belay_client_cb cb) {
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  if (timeout_ms == BELAY_DEFAULT)
    timeout_ms = client->timeout_ms;
  if (cb == NULL || timeout_ms < 1 || timeout_ms > 600000)
    return belay__invalid(client->belay,
                          cb == NULL ? "cb: NULL" : "timeout_ms: not from 1 to 600000");
  belay__call_t *call = belay__call_new(client, BELAY__CLASS_LEASE);
  if (call == NULL)
    return BELAY_ENOMEM;
  belay__call_command(call, "PING", 1);
  client->ping.timeout_ms = timeout_ms;
  return belay__request_start(&client->ping, call, &ops, NULL, NULL, (void (*)(void))cb);
}
