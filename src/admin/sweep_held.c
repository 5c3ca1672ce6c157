/* A sweep that lists held objects. It queries the holders for each key that has the form of a key
 * of a held object. */
#include "admin/held.h"
#include "admin/sweep.h"

static bool accepts(const belay_sweep_t *sweep, const char *key, size_t len) {
  belay__held_key_t parsed;
  return belay__held_parse(sweep->handle.client, key, len, &parsed);
}

static belay__held_key_t parse(const belay_sweep_t *sweep, const belay_bytes_t *key) {
  belay__held_key_t parsed;
  (void)belay__held_parse(sweep->handle.client, key->data, key->len, &parsed);
  return parsed;
}

static belay__call_t *make_query(belay_sweep_t *sweep, const belay_bytes_t *key) {
  belay__held_key_t parsed = parse(sweep, key);
  return belay__held_call(sweep->handle.client, BELAY__CLASS_BULK, &parsed, BELAY_HELD_LISTED_MAX);
}

/* Reads the holders of an object. Skips an object without holders, and the alternate key of an
 * rwlock that a writer holds: the main key exists too, and the rwlock is reported once. */
static int read_held(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  belay_sweep_t *sweep = operation->context;
  belay__held_key_t key = parse(sweep, &sweep->page.keys[sweep->page.next + operation->index]);
  belay_t *belay = sweep->handle.client->belay;
  belay__held_t *held;
  (void)call;
  int error = belay__held_make(belay, &key, reply, &held);
  if (error != 0)
    return error;
  if (held->held.holders_len == 0 || (key.alternate && held->held.holders[0].writes))
    belay__free(belay, held, held->size);
  else
    belay__list_push(&sweep->held, &held->node);
  return 0;
}

/* values of a request: an error of one of its keys, except BELAY_EWRONGTYPE; 0: none */
enum { ERROR };

static void on_key_failed(belay__operation_t *operation, int status) {
  int64_t *error = &operation->values[ERROR];
  if (status != BELAY_EWRONGTYPE && (*error == 0 || status == BELAY_EUNKNOWN))
    *error = status;
}

/* Returns the status of a request with failed calls. A call with BELAY_EWRONGTYPE is no error of
 * the request: its key has another type than belay's, and is skipped. */
static int recover(belay__operation_t *operation, int status) {
  return status == BELAY_EWRONGTYPE ? (int)operation->values[ERROR] : status;
}

const belay__sweep_work_t belay__sweep_reading = {.accepts = accepts,
                                                  .call = make_query,
                                                  .ops = {.read = read_held,
                                                          .failed = on_key_failed,
                                                          .recover = recover,
                                                          .notify = belay__sweep_notify,
                                                          .idempotent = true}};

static belay__held_t *pop(belay_sweep_t *sweep) {
  belay__list_t *node = belay__list_pop(&sweep->held);
  return node == NULL ? NULL : BELAY__CONTAINER(node, belay__held_t, node);
}

/* Passes the results to the callback one by one. If the callback ends the run, on_task() of sweep.c
 * drops the other results. */
void belay__sweep_report_held(belay_sweep_t *sweep) {
  const uint8_t state = sweep->state;
  for (belay__held_t *held; sweep->state == state && (held = pop(sweep)) != NULL;) {
    sweep->options.on_held(sweep, &held->held);
    belay__free(sweep->handle.client->belay, held, held->size);
  }
}

void belay__sweep_drop_held(belay_sweep_t *sweep) {
  for (belay__held_t *held; (held = pop(sweep)) != NULL;)
    belay__free(sweep->handle.client->belay, held, held->size);
}
