#include "support/views.h"

#include <stdio.h>

typedef struct answer {
  bed_t *bed;
  unsigned told;
  int status;
  view_t *view;
  belay_broken_t *broken;
} answer_t;

void view_copy(view_t *view, const belay_held_t *held) {
  view->held = *held;
  assert_true(held->holders_len <= VIEW_HOLDERS_MAX && held->name_len < VIEW_TEXT_MAX);
  assert_int_equal(held->name[held->name_len], '\0');
  memcpy(view->name, held->name, held->name_len + 1);
  view->held.name = view->name;
  assert_true((held->owner == NULL) == (held->owner_len == 0));
  if (held->owner != NULL) {
    assert_int_equal(held->owner[held->owner_len], '\0');
    memcpy(view->owner, held->owner, held->owner_len + 1);
    view->held.owner = view->owner;
  }
  assert_true((held->holders == NULL) == (held->holders_len == 0));
  assert_true(held->holders_len <= held->holders_count);
  for (size_t i = 0; held->holders != NULL && i < held->holders_len; i++) {
    view->holders[i] = held->holders[i];
    if (held->holders[i].label == NULL)
      continue;
    assert_true(snprintf(view->label[i], sizeof view->label[i], "%s", held->holders[i].label) <
                (int)sizeof view->label[i]);
    view->holders[i].label = view->label[i];
  }
  if (held->holders != NULL)
    view->held.holders = view->holders;
}

static bool is_unknown(const belay_held_t *held) {
  return held->name_len == 0 && held->name[0] == '\0' && held->holders == NULL &&
         held->holders_len + held->holders_count == 0 && held->listening == -1 &&
         held->owner == NULL;
}

static void on_held(belay_request_t *request, int status, const belay_held_t *held) {
  answer_t *answer = request->data;
  answer->told++;
  answer->status = status;
  answer->bed->wrong +=
      answer->told > 1 || answer->bed->inside > 0 || (status != 0 && !is_unknown(held));
  if (status == 0 && answer->view != NULL)
    view_copy(answer->view, held);
}

int view_held_of(bed_t *bed, belay_client_t *client, belay_held_kind_t kind, const char *name,
                 view_t *view) {
  answer_t answer = {.bed = bed, .view = view};
  belay_request_t request = {.data = &answer};
  bed->inside++;
  int error = belay_held_read(client, &request, kind, name, strlen(name), on_held);
  bed->inside--;
  if (error != 0)
    return error;
  bed_until(bed, answer.told == 1);
  return answer.status;
}

int view_held(bed_t *bed, belay_held_kind_t kind, const char *name, view_t *view) {
  return view_held_of(bed, bed->client, kind, name, view);
}

static void on_broken(belay_request_t *request, int status, const belay_broken_t *broken) {
  answer_t *answer = request->data;
  answer->told++;
  answer->status = status;
  answer->bed->wrong += answer->told > 1 || answer->bed->inside > 0 ||
                        (status != 0 && memcmp(broken, &(belay_broken_t){0}, sizeof *broken) != 0);
  if (status == 0)
    *answer->broken = *broken;
}

int break_held(bed_t *bed, const belay_held_t *held, belay_broken_t *broken) {
  answer_t answer = {.bed = bed, .broken = broken};
  belay_request_t request = {.data = &answer};
  bed->inside++;
  int error = belay_held_break(bed->client, &request, held, on_broken);
  bed->inside--;
  if (error != 0)
    return error;
  bed_until(bed, answer.told == 1);
  return answer.status;
}

void assert_holder(const view_t *view, size_t i, const char *label, int64_t most_ms) {
  assert_true(i < view->held.holders_len);
  const belay_holder_t *holder = &view->held.holders[i];
  if (label == NULL)
    assert_null(holder->label);
  else
    assert_string_equal(holder->label, label);
  if (most_ms == -1)
    assert_int_equal(holder->remaining_ms, -1);
  else
    assert_true(holder->remaining_ms > most_ms / 2 && holder->remaining_ms <= most_ms);
}
