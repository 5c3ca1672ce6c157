#include "support/models/rw_scripts.h"

#include <stdio.h>

actor_t actor(unsigned i) {
  actor_t a;
  snprintf(a.token, sizeof a.token, "token %u", i);
  snprintf(a.ticket, sizeof a.ticket, "%016x", i);
  return a;
}

const acquire_args_t usual = {"60000", "50000", false, true, ""};

script_input_t acquire_input(const belay__script_t *script, const actor_t *a, acquire_args_t how) {
  const char *memory = how.counted ? "600000" : NULL;
  bool reads = script == read_script;
  return (script_input_t){{LOCK, READERS, WAITING, WRITERS, ADMITTED, how.counted ? FENCE : NULL},
                          {a->token, how.ttl, how.waits ? a->ticket : "", how.place,
                           reads ? how.host : memory, reads ? memory : NULL}};
}

script_input_t extend_input(const actor_t *a, const char *ttl, const char *retake,
                            const char *mode) {
  return (script_input_t){{LOCK, READERS, WAITING, WRITERS, ADMITTED},
                          {a->token, ttl, retake, mode, "PUBLISH"}};
}

script_input_t release_input(const actor_t *a, bool ticket) {
  return (script_input_t){{LOCK, READERS, WAITING, WRITERS, ADMITTED},
                          {a->token, "PUBLISH", ticket ? a->ticket : ""}};
}

int64_t acquire_as(server_t *server, const belay__script_t *script, unsigned i,
                   acquire_args_t how) {
  actor_t a = actor(i);
  script_input_t input = acquire_input(script, &a, how);
  return script_integer(server, script, &input);
}

int64_t read_as(server_t *server, unsigned i) {
  return acquire_as(server, read_script, i, usual);
}

int64_t write_as(server_t *server, unsigned i) {
  return acquire_as(server, write_script, i, usual);
}

int64_t extend_as(server_t *server, unsigned i, const char *ttl, const char *mode) {
  actor_t a = actor(i);
  script_input_t input = extend_input(&a, ttl, "0", mode);
  return script_integer(server, extend_script, &input);
}

int64_t release_as(server_t *server, unsigned i) {
  actor_t a = actor(i);
  script_input_t input = release_input(&a, true);
  return script_integer(server, release_script, &input);
}
