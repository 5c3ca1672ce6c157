/* Chapter: a million users' permissions in one string, and two who change the same user's at once. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { READ = 1, WRITE = 2, INVITE = 4, USER = 1000000, GRANTERS = 2 };
static const char key[] = "forum";
static const char *const names[] = {"none", "reader", NULL, "author"};

typedef struct permission {
  demo_t *demo;
  belay_permission_t *of[GRANTERS]; /* each on a client of its own */
  belay_request_t request[GRANTERS];
  belay_permission_result_t result; /* the last */
  int status;
} permission_t;

static void on_result(belay_request_t *request, int status,
                      const belay_permission_result_t *results, size_t n) {
  permission_t *permission = request->data;
  if (status != 0)
    permission->status = status;
  if (n > 0)
    permission->result = results[0];
}

/* Until all answers are here. */
static void wait_for(permission_t *permission, int error) {
  if (error == 0)
    demo_run(permission->demo);
  if (error != 0 || permission->status != 0)
    demo_trouble(permission->demo, "asking for permissions",
                 error != 0 ? error : permission->status);
}

static int grant(permission_t *permission, unsigned who, uint64_t bits) {
  const belay_permission_field_t field = {.index = USER, .value = bits};
  return belay_permission_grant(permission->of[who], &permission->request[who], key, strlen(key),
                                &field, 1, on_result);
}

static void set(permission_t *permission, uint64_t expected, uint64_t value) {
  wait_for(permission,
           belay_permission_compare_and_set(permission->of[0], &permission->request[0], key,
                                            strlen(key), USER, expected, value, on_result));
}

static void play(permission_t *permission) {
  static const belay_permission_field_t both = {.index = USER, .value = READ | WRITE};
  demo_t *demo = permission->demo;
  int error = grant(permission, 0, READ);
  if (error == 0)
    error = grant(permission, 1, WRITE);
  wait_for(permission, error);
  wait_for(permission, belay_permission_has(permission->of[0], &permission->request[0], key,
                                            strlen(key), &both, 1, on_result));
  const belay_permission_result_t had = permission->result;
  const char *name = belay_permission_name(permission->of[0], had.value);
  demo_event(demo, 0, "A lets user %d read while B lets him write: he is \"%s\"", USER, name);
  set(permission, READ, 0);
  bool refused = !permission->result.yes && permission->result.value == (READ | WRITE);
  demo_event(demo, 0, "A takes it all away if he may only read: %s",
             refused ? "he may more, and keeps it" : "it is gone");
  set(permission, READ | WRITE, INVITE);
  demo_event(demo, 0, "and if he may read and write: he is \"%s\" now",
             belay_permission_name(permission->of[0], permission->result.value));
  term_print(&demo->term, "\n");
  demo_fact(demo, had.yes && strcmp(name, "author") == 0,
            "neither has undone what the other one did: bits are set one by one");
  demo_fact(demo, refused && permission->result.yes,
            "what was expected is changed, and nothing else");
}

static void clear(permission_t *permission) {
  wait_for(permission, belay_permission_clear(permission->of[0], &permission->request[0], key,
                                              strlen(key), on_result));
}

void chapter_permission(demo_t *demo) {
  permission_t permission = {.demo = demo};
  belay_permission_options_t options;
  belay_permission_options_init(&options);
  options.levels = 8;
  options.names = names;
  options.names_len = sizeof names / sizeof *names;
  options.ttl_ms = 60000;
  int error = 0;
  for (unsigned i = 0; i < GRANTERS && error == 0; i++) {
    error = belay_permission_new(demo->client[i], &options, &permission.of[i]);
    permission.request[i].data = &permission;
  }
  if (error != 0)
    demo_trouble(demo, "making permissions", error);
  if (error == 0) {
    play(&permission);
    clear(&permission);
  }
  for (unsigned i = 0; i < GRANTERS; i++)
    if (permission.of[i] != NULL)
      (void)belay_permission_close(permission.of[i], NULL);
  demo_run(demo);
}
