#include "sim/actors/data.h"

#include <string.h>

enum { REQUEST };

/* ---- rules ---- */

static void check_executed(sim_server_t *server, sim_data_shared_t *shared, unsigned number) {
  sim_data_request_t *request = &shared->request[number];
  const char *fault = NULL;
  if (request->unsent)
    fault = "which was reported as not sent, or refused";
  if (request->executed > 0 && (request->subject->how & SIM_ONCE) != 0)
    fault = "for the second time";
  if (fault != NULL)
    sim_violation(server->world, "truth: %s executes %s #%u %s", server->name,
                  request->subject->name, number, fault);
  if (request->executed++ == 0 && request->subject->executed != NULL)
    request->subject->executed(shared, request);
}

/* Finds the next tag in a word, from there on; 0: there is none. */
static unsigned next_tag(engine_bytes_t word, size_t *at) {
  for (; *at < word.len; ++*at) {
    size_t end = *at + 1;
    unsigned number = 0;
    if (word.at[*at] != '#')
      continue;
    for (; end < word.len && end < *at + 7 && word.at[end] >= '0' && word.at[end] <= '9'; end++)
      number = number * 10 + (unsigned)(word.at[end] - '0');
    if (end == *at + 1 || end == word.len || word.at[end] != '#' || number >= SIM_DATA_REQUESTS)
      continue;
    *at = end + 1;
    return number;
  }
  return 0;
}

static void on_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                        engine_bytes_t reply) {
  sim_data_shared_t *shared = sim_shared(server->world, sizeof *shared);
  unsigned last = 0;
  if (reply.len == 0 || reply.at[0] == '-')
    return;
  for (size_t i = 1; i < argc; i++) {
    size_t at = 0;
    if (i == 2 && sim_bytes_are(argv[0], "EVAL"))
      continue;
    for (unsigned number; (number = next_tag(argv[i], &at)) != 0;) {
      if (number <= shared->requests && number != last)
        check_executed(server, shared, number);
      last = number; /* a command may have it several times */
    }
  }
}

/* ---- callbacks ---- */

static void report(const sim_data_t *self, int status, const char *fault) {
  sim_violation(self->base.world, "truth: %s, %s #%u ends with %s: %s", self->base.who,
                self->subject->name, self->number, belay_err_name(status), fault);
}

static void check_status(sim_data_t *self, int status, const char *fault) {
  sim_data_request_t *request = sim_data_request(self);
  if (status == 0 && fault != NULL)
    report(self, status, fault);
  if (status == 0 && request->executed == 0 && (self->subject->how & SIM_SILENT) == 0)
    report(self, status, "and no server has executed it");
  if (status == 0) {
    sim_actor_granted(&self->base);
  } else if (status == BELAY_EUNKNOWN || status == BELAY_ECANCELED) {
    request->unknown = true;
  } else if (!request->unknown) {
    request->unsent = true;
    if (request->executed > 0)
      report(self, status, "and a server has executed it");
  }
}

void sim_data_ended(sim_data_t *self, int status, const char *fault) {
  sim_actor_t *actor = &self->base;
  sim_actor_ended(actor, REQUEST, status);
  if (status == BELAY_ETIMEDOUT && (self->subject->how & SIM_SILENT) == 0)
    sim_violation(actor->world, "callbacks: %s: %s must not time out", actor->who,
                  self->subject->name);
  check_status(self, status, fault);
  actor->served |= actor->healing && status == 0;
  self->again =
      status == BELAY_EUNKNOWN && (self->subject->how & SIM_AGAIN) != 0 ? self->number : 0;
  self->number = 0;
}

/* ---- actions ---- */

static const sim_data_subject_t *choose_subject(sim_actor_t *actor) {
  const sim_scenario_t *scenario = actor->world->scenario;
  bool users = scenario->kind == SIM_USERS;
  const sim_data_subject_t *subjects = users ? sim_data_users : sim_data_subjects;
  size_t len = users ? sim_data_users_len : sim_data_subjects_len, i = 0;
  if (scenario->subject == NULL)
    return &subjects[sim_actor_between(actor, 0, len - 1)];
  while (strcmp(subjects[i].name, scenario->subject) != 0)
    i++;
  return &subjects[i];
}

static int make(sim_actor_t *actor) {
  sim_data_t *self = (sim_data_t *)actor;
  self->subject = choose_subject(actor);
  self->last = 0;
  self->known = self->again = 0;
  return self->subject->make(self);
}

static int close_subject(sim_actor_t *actor) {
  return ((sim_data_t *)actor)->subject->close(actor);
}

/* A new request, or one that is to be sent again; 0: there are no numbers left. */
static unsigned choose_number(sim_data_t *self) {
  sim_actor_t *actor = &self->base;
  sim_data_shared_t *shared = sim_data_shared(self);
  unsigned most = actor->healing ? SIM_DATA_REQUESTS : SIM_DATA_REQUESTS - SIM_DATA_REQUESTS / 16;
  if (self->again != 0 && sim_actor_chance(actor, 700))
    return self->again;
  if (shared->requests + 1 >= most)
    return 0;
  unsigned number = ++shared->requests;
  shared->request[number].subject = self->subject;
  shared->request[number].key = (uint8_t)sim_actor_between(actor, 0, SIM_DATA_KEYS - 1);
  return number;
}

static void ask(sim_actor_t *actor) {
  static const char *const keys[SIM_DATA_KEYS] = {"k0", "k1", "k2"};
  sim_data_t *self = (sim_data_t *)actor;
  self->number = choose_number(self);
  if (self->number == 0)
    return;
  sim_data_request_t *request = sim_data_request(self);
  int len = snprintf(self->text, sizeof self->text, "#%u#", self->number);
  self->tag = belay_bytes(self->text, (size_t)len);
  self->key = belay_bytes(keys[request->key], 2);
  int64_t timeout_ms = sim_actor_request(actor, REQUEST)->timeout_ms;
  if (SIM_CALL(actor, self->text, BELAY_EBUSY, self->subject->ask(self))) {
    sim_actor_expect(actor, REQUEST, timeout_ms);
    return;
  }
  request->unsent |= !request->unknown;
  self->number = 0;
}

const sim_actor_type_t sim_data_type = {
    .size = sizeof(sim_data_t),
    .op = {"request", "close"},
    .ends = {[REQUEST] = {BELAY_ETIMEDOUT}},
    .make = make,
    .close = close_subject,
    .act = sim_actor_send_requests,
    .ask = ask,
    .executed = on_executed,
};
