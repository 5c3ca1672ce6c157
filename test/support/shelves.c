#include "support/shelves.h"

#include <stdio.h>

#include "support/scripts.h"

belay_cache_options_t shelf_options(void) {
  belay_cache_options_t options;
  belay_cache_options_init(&options);
  options.jitter_percent = 0;
  return options;
}

void shelf_of(shelf_t *shelf, bed_t *bed, belay_client_t *client,
              const belay_cache_options_t *options) {
  *shelf = (shelf_t){.bed = bed};
  belay_cache_options_t o = options != NULL ? *options : shelf_options();
  o.data = shelf;
  int error = belay_cache_new(client, &o, &shelf->cache);
  if (error != 0)
    fail_msg("belay_cache_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_cache_data(shelf->cache), shelf);
}

void shelf_new(shelf_t *shelf, bed_t *bed, const belay_cache_options_t *options) {
  shelf_of(shelf, bed, bed->client, options);
}

/* ---- callbacks ------------------------------------------------------------------------------------------- */

static void then(shelf_t *shelf) {
  unsigned inside = shelf->bed->inside;
  shelf->bed->wrong += inside;
  shelf->bed->inside = 0;
  if (shelf->then != NULL)
    shelf->then(shelf);
  shelf->bed->inside = inside;
}

void on_edited(belay_request_t *request, int status, bool applied) {
  edit_t *edit = request->data;
  shelf_t *shelf = edit->shelf;
  assert_true(status == 0 || !applied);
  edit->ended++;
  edit->status = status;
  edit->applied = applied;
  snprintf(edit->detail, sizeof edit->detail, "%s", belay_detail(shelf->bed->belay));
  shelf->bed->wrong += edit->ended > edit->begun || shelf->closed > 0;
  shelf->pending--;
  then(shelf);
}

static void on_shelf_closed(belay_cache_t *cache, void *data) {
  shelf_t *shelf = data;
  assert_ptr_equal(cache, shelf->cache);
  shelf->closed++;
  shelf->bed->wrong += shelf->pending > 0 || shelf->closed > shelf->closing;
  shelf->cache = NULL;
  then(shelf);
}

/* ---- operations ------------------------------------------------------------------------------------------ */

static belay_request_t *begin(shelf_t *shelf, edit_t *edit) {
  edit->shelf = shelf;
  edit->request.data = edit;
  shelf->bed->inside++;
  return &edit->request;
}

static int begun(shelf_t *shelf, edit_t *edit, int error) {
  shelf->bed->inside--;
  shelf->pending += error == 0;
  edit->begun += error == 0;
  return error;
}

int edit_put_bytes(shelf_t *shelf, edit_t *edit, const char *key, const void *value, size_t len,
                   int64_t ttl_ms) {
  belay_request_t *request = begin(shelf, edit);
  return begun(
      shelf, edit,
      belay_cache_put(shelf->cache, request, key, strlen(key), value, len, ttl_ms, on_edited));
}

int edit_put(shelf_t *shelf, edit_t *edit, const char *key, const char *value) {
  return edit_put_bytes(shelf, edit, key, value, strlen(value), BELAY_DEFAULT);
}

int edit_touch(shelf_t *shelf, edit_t *edit, const char *key, int64_t ttl_ms) {
  belay_request_t *request = begin(shelf, edit);
  return begun(shelf, edit,
               belay_cache_touch(shelf->cache, request, key, strlen(key), ttl_ms, on_edited));
}

int edit_invalidate(shelf_t *shelf, edit_t *edit, const char *key) {
  belay_request_t *request = begin(shelf, edit);
  return begun(shelf, edit,
               belay_cache_invalidate(shelf->cache, request, key, strlen(key), on_edited));
}

int edit_invalidate_tag(shelf_t *shelf, edit_t *edit, const char *tag) {
  belay_request_t *request = begin(shelf, edit);
  return begun(shelf, edit,
               belay_cache_invalidate_tag(shelf->cache, request, tag, strlen(tag), on_edited));
}

int edit_nth(shelf_t *shelf, edit_t *edit, int which, const char *key) {
  return which == 0   ? edit_put(shelf, edit, key, "value")
         : which == 1 ? edit_touch(shelf, edit, key, BELAY_DEFAULT)
         : which == 2 ? edit_invalidate(shelf, edit, key)
                      : edit_invalidate_tag(shelf, edit, key);
}

int begin_close_shelf(shelf_t *shelf) {
  shelf->bed->inside++;
  int error = belay_cache_close(shelf->cache, on_shelf_closed);
  shelf->bed->inside--;
  shelf->closing += error == 0;
  return error;
}

int end_of_edit(edit_t *edit) {
  bed_until(edit->shelf->bed, edit->ended == edit->begun);
  return edit->status;
}

static void expect(edit_t *edit, int error, bool applied) {
  assert_error(error, 0);
  assert_error(end_of_edit(edit), 0);
  assert_int_equal(edit->applied, applied);
}

void shelf_put(shelf_t *shelf, const char *key, const char *value, bool applied) {
  edit_t edit = {0};
  expect(&edit, edit_put(shelf, &edit, key, value), applied);
}

void shelf_touch(shelf_t *shelf, const char *key, int64_t ttl_ms, bool applied) {
  edit_t edit = {0};
  expect(&edit, edit_touch(shelf, &edit, key, ttl_ms), applied);
}

void shelf_invalidate(shelf_t *shelf, const char *key) {
  edit_t edit = {0};
  expect(&edit, edit_invalidate(shelf, &edit, key), true);
}

void shelf_invalidate_tag(shelf_t *shelf, const char *tag) {
  edit_t edit = {0};
  expect(&edit, edit_invalidate_tag(shelf, &edit, tag), true);
}

/* ---- what the server has --------------------------------------------------------------------------------- */

belay__record_t *record_at(shelf_t *shelf, const char *key) {
  belay__record_t *record;
  const resp_t *reply = server_ask(shelf->bed->server, "GET", key, NULL);
  if (reply->type == RESP_NIL)
    return NULL;
  assert_int_equal(reply->type, RESP_STRING);
  assert_error(
      belay__record_read(shelf->bed->belay, reply->str, reply->len, BELAY_CACHE_VALUE_MAX, &record),
      0);
  return record;
}

void expect_stored(shelf_t *shelf, const char *key, const char *value) {
  belay__record_t *record = record_at(shelf, key);
  assert_int_equal(record != NULL, value != NULL);
  if (record == NULL)
    return;
  assert_int_equal(record->kind, BELAY__RECORD_VALUE);
  assert_int_equal(record->len, strlen(value));
  assert_memory_equal(record->bytes, value, record->len);
  belay__record_drop(shelf->bed->belay, record);
}

/* ---- the wire -------------------------------------------------------------------------------------------- */

void slow_down(wire_t *wire) {
  relay_delay(wire->relay, 150);
}

static void on_trace(void *ctx, const belay_trace_t *trace) {
  wire_t *wire = ctx;
  if (trace->event != BELAY_TRACE_SENT || strcmp(trace->command, wire->awaited) != 0)
    return;
  wire->sent++;
  if (wire->cuts)
    relay_cut(wire->relay);
  if (wire->slows)
    slow_down(wire);
  wire->cuts = wire->slows = false;
}

static size_t one_tag(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                      void *arg) {
  (void)key, (void)key_len, (void)arg;
  tags[0] = (belay_bytes_t){"site", 4};
  return 1;
}

void wire_shelf(wire_t *wire) {
  belay_cache_options_t options = shelf_options();
  options.tags = wire->tags ? one_tag : NULL;
  shelf_new(&wire->shelf, wire->bed, &options);
}

void wire_open(wire_t *wire, bool tags) {
  *wire = (wire_t){.server = server_start(NULL), .awaited = "", .tags = tags};
  wire->relay = relay_start(server_path(wire->server));
  belay_client_options_t options = relay_client_options();
  options.trace = on_trace;
  options.trace_ctx = wire;
  wire->bed = bed_open_at(relay_url(wire->relay), &options);
  wire->bed->server = wire->server;
  wire_shelf(wire);
  shelf_put(&wire->shelf, "page", "before", true);
}

void wire_close(wire_t *wire) {
  expect_ttls(wire->server);
  relay_delay(wire->relay, 0);
  bed_close(wire->bed);
  relay_stop(wire->relay);
}

bool is_there(wire_t *wire, const char *key) {
  return server_integer(wire->server, "EXISTS", key, NULL) == 1;
}

void lose_the_answer(wire_t *wire) {
  relay_cut(wire->relay);
  relay_delay(wire->relay, 0);
}
