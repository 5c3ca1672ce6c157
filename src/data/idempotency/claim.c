/* The claim of a begin. A claim whose caller gets no good status, and that may have been
 * executed, is abandoned:
 *
 *    begun --reported, or never sent--> freed
 *      +--else: an abandon is sent, and the handle waits for its end--> freed */
#include <string.h>

#include "core/key/key.h"

#include "data/idempotency/idempotency.h"
#include "scripts.gen.h"

#define TOKEN_TEXT ((size_t)2 * BELAY__TOKEN_BYTES)

/* ---- calls --------------------------------------------------------------------------------------------- */

void belay__idempotency_key(const belay_idempotency_t *records, belay__call_t *call,
                            const char *key, size_t key_len) {
  if (!records->exact_keys) {
    belay__handle_arg(&records->handle, call, key, key_len, "}");
  } else if (call != NULL) {
    belay__call_arg(call, key, key_len);
    call->route = belay__key_route(key, key_len);
  }
}

belay__call_t *belay__idempotency_call(const belay_idempotency_t *records, const char *key,
                                       size_t key_len, const belay__order_t *order) {
  const belay_client_t *client = records->handle.client;
  char token[BELAY__TOKEN_TEXT_MAX];
  belay__token_t bytes;
  if (order->token != NULL)
    (void)belay__token_text(token, memcpy(&bytes, order->token, sizeof bytes), "", 0);
  belay__call_t *call = belay__handle_script(&records->handle, &belay__script_idempotency, 1, 6);
  belay__idempotency_key(records, call, key, key_len);
  belay__call_arg_text(call, order->verb);
  belay__call_arg(call, token, order->token != NULL ? TOKEN_TEXT : 0);
  belay__call_arg_int(call, order->ms);
  belay__call_arg_int(call, order->keep_ms);
  belay__call_arg(call, order->len == 0 ? "" : order->text, order->len);
  belay__call_arg(call, client->owner, client->owner_len);
  return call;
}

/* ---- claims -------------------------------------------------------------------------------------------- */

void belay__claim_free(belay__claim_t *claim) {
  belay__free(claim->records->handle.client->belay, claim, sizeof *claim + claim->key_len);
}

int belay__claim_new(belay_idempotency_t *records, const char *key, size_t key_len,
                     belay__claim_t **out) {
  belay_t *belay = records->handle.client->belay;
  belay__claim_t *claim = *out = belay__alloc(belay, sizeof *claim + key_len);
  if (claim == NULL)
    return BELAY_ENOMEM;
  *claim = (belay__claim_t){.records = records, .key_len = key_len};
  memcpy(claim->key, key, key_len);
  int error = belay->host->random(belay, &claim->token, sizeof claim->token);
  if (error != 0)
    belay__claim_free(claim);
  return error;
}

/* It comes behind the begin, if the two share a connection; else the deadline is left. */
void belay__claim_undo(belay__claim_t *claim) {
  belay_idempotency_t *records = claim->records;
  const belay__order_t order = {
      .verb = "abandon", .token = &claim->token, .ms = 0, .keep_ms = records->grace_ms};
  belay__handle_give_back(&records->handle,
                          belay__idempotency_call(records, claim->key, claim->key_len, &order));
  belay__claim_free(claim);
}
