#include "support/contract/contract.h"

/* ---- active users ---- */

static void on_done(belay_request_t *request, int status) {
  rig_on_ended(request, status);
}
RIG_ANSWERS(on_active_counts, const int64_t *)
RIG_HANDLE(active)
RIG_MAKE(active, active, (void)o)

static int active_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_active_t *a = handle;
  belay_active_cb done = with_cb ? on_done : NULL;
  belay_active_count_cb counts = with_cb ? on_active_counts : NULL;
  const belay_bytes_t one = {"x", 1};
  const uint32_t span = 2;
  const int64_t now = BELAY_ACTIVE_NOW;
  return n == 0   ? belay_active_mark(a, r, belay_string("x"), now, done)
         : n == 1 ? belay_active_mark_many(a, r, &one, 1, now, done)
         : n == 2 ? belay_active_count(a, r, now, counts)
         : n == 3 ? belay_active_count_last(a, r, now, &span, 1, counts)
         : n == 4 ? belay_active_count_span(a, r, now, now, counts)
         : n == 5 ? belay_active_archive(a, r, now, now, belay_string("x"), counts)
         : n == 6 ? belay_active_count_archives(a, r, &one, 1, counts)
         : n == 7 ? belay_active_clear_archives(a, r, &one, 1, done)
                  : belay_active_clear(a, r, now, now, done);
}

/* ---- presence ---- */

RIG_ANSWERS(on_presence_is, const bool *)
RIG_ANSWER(on_number, int64_t)
RIG_HANDLE(presence)
RIG_MAKE(presence, presence, (void)o)
RIG_MAKE(presence, presence_window, o.window_ms = 60000)

static int presence_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_presence_t *p = handle;
  belay_presence_cb done = with_cb ? on_done : NULL;
  belay_presence_is_cb is = with_cb ? on_presence_is : NULL;
  const uint32_t id = 7;
  return n == 0   ? belay_presence_set(p, r, id, done)
         : n == 1 ? belay_presence_set_many(p, r, &id, 1, done)
         : n == 2 ? belay_presence_is(p, r, id, is)
         : n == 3 ? belay_presence_is_many(p, r, &id, 1, is)
         : n == 4 ? belay_presence_count(p, r, with_cb ? on_number : NULL)
         : n == 5 ? belay_presence_clear(p, r, id, done)
         : n == 6 ? belay_presence_clear_many(p, r, &id, 1, done)
                  : belay_presence_reset(p, r, done);
}

/* ---- permissions ---- */

static const char *const permission_names[] = {"none", "all"};

RIG_ANSWERS(on_permission, const belay_permission_result_t *)
RIG_HANDLE(permission)
RIG_MAKE(permission, permission, o.width = 3)
RIG_MAKE(permission, permission_ttl, o.width = 3; o.ttl_ms = 60000)
RIG_MAKE(permission, permission_names, o.names = (const char **)permission_names; o.names_len = 2)

static int permission_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_permission_t *p = handle;
  belay_permission_cb cb = with_cb ? on_permission : NULL;
  const belay_permission_field_t field = {1, 1};
  const uint64_t index = 1;
  return n == 0   ? belay_permission_get(p, r, belay_string("k"), &index, 1, cb)
         : n == 1 ? belay_permission_has(p, r, belay_string("k"), &field, 1, cb)
         : n == 2 ? belay_permission_set(p, r, belay_string("k"), &field, 1, cb)
         : n == 3 ? belay_permission_grant(p, r, belay_string("k"), &field, 1, cb)
         : n == 4 ? belay_permission_revoke(p, r, belay_string("k"), &field, 1, cb)
         : n == 5 ? belay_permission_compare_and_set(
                        p, r, belay_string("k"),
                        &(belay_permission_swap_t){.index = 1, .expected = 0, .value = 1}, cb)
                  : belay_permission_clear(p, r, belay_string("k"), cb);
}

/* ---- rankings ---- */

RIG_ANSWERS(on_ranking, const belay_ranking_entry_t *)
RIG_HANDLE(ranking)
RIG_MAKE(ranking, ranking, (void)o)
RIG_MAKE(ranking, ranking_by_time, o.ties = BELAY_RANKING_EARLIER_FIRST)

static int ranking_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_ranking_t *h = handle;
  belay_ranking_cb cb = with_cb ? on_ranking : NULL;
  belay_ranking_count_cb count = with_cb ? on_number : NULL;
  const belay_ranking_score_t item = {{"a", 1}, 1};
  const belay_bytes_t a = {"a", 1};
  return n == 0   ? belay_ranking_submit(h, r, belay_string("b"),
                                         &(belay_ranking_submission_t){
                                             .mode = BELAY_RANKING_SET, .items = &item, .n = 1},
                                         cb)
         : n == 1 ? belay_ranking_find(h, r, belay_string("b"), &a, 1, cb)
         : n == 2 ? belay_ranking_top(h, r, belay_string("b"), 1, cb)
         : n == 3 ? belay_ranking_page(h, r, belay_string("b"), &(belay_ranking_page_t){.n = 1}, cb)
         : n == 4
             ? belay_ranking_page(h, r, belay_string("b"),
                                  &(belay_ranking_page_t){.n = 1, .by_score = true, .max = 1}, cb)
         : n == 5 ? belay_ranking_around(h, r, belay_string("b"),
                                         &(belay_ranking_around_t){{"a", 1}, 1, 1}, cb)
         : n == 6 ? belay_ranking_count(h, r, belay_string("b"), count)
         : n == 7 ? belay_ranking_count_by_score(h, r, belay_string("b"), 0, 1, count)
         : n == 8 ? belay_ranking_trim(h, r, belay_string("b"), 1, count)
         : n == 9 ? belay_ranking_remove(h, r, belay_string("b"), &a, 1, count)
                  : belay_ranking_clear(h, r, belay_string("b"), count);
}

/* ---- sessions ---- */

RIG_ANSWER(on_session, const belay_session_state_t *)
RIG_HANDLE(session)
RIG_MAKE(session, session, (void)o)

static int session_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_session_t *s = handle;
  belay_session_cb cb = with_cb ? on_session : NULL;
  return n == 0   ? belay_session_touch(s, r, belay_string("u"), NULL, cb)
         : n == 1 ? belay_session_exists(s, r, belay_string("u"), cb)
         : n == 2 ? belay_session_read(s, r, belay_string("u"), 1, cb)
                  : belay_session_end(s, r, belay_string("u"), belay_bytes(NULL, 0), cb);
}

const contract_t contracts_of_data[] = {
    RIG_ROW(active, active, 9),
    RIG_ROW(presence, presence, 8),
    RIG_ROW(presence, presence_window, 8),
    RIG_ROW(permission, permission, 7),
    RIG_ROW(permission, permission_ttl, 7),
    RIG_ROW(permission, permission_names, 7),
    RIG_ROW(ranking, ranking, 11),
    RIG_ROW(ranking, ranking_by_time, 11),
    RIG_ROW(session, session, 4),
    {0},
};
