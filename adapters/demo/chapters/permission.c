/* Chapter: a million users' permissions in one string, and two clients that change the same user's
 * at once. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { READ = 1, WRITE = 2, INVITE = 4, USER = 1000000 };
static const char key[] = "forum";
static const char *const names[] = {"none", "reader", NULL, "author"};

static void on_result(belay_request_t *request, int status,
                      const belay_permission_result_t *results, size_t n) {
  demo_t *demo = request->data;
  if (n > 0)
    *(belay_permission_result_t *)demo->out = results[0];
  demo_done(demo, status);
}

static belay_permission_result_t set(demo_t *demo, belay_permission_t *permission,
                                     uint64_t expected, uint64_t value) {
  belay_permission_result_t result = {0};
  demo->out = &result;
  (void)demo_await(
      demo, "setting permissions",
      belay_permission_compare_and_set(
          permission, &demo->request, belay_string(key),
          &(belay_permission_swap_t){.index = USER, .expected = expected, .value = value},
          on_result));
  return result;
}

static void play(demo_t *demo, belay_permission_t *a, belay_permission_t *b) {
  static const belay_permission_field_t reads = {.index = USER, .value = READ},
                                        writes = {.index = USER, .value = WRITE},
                                        both = {.index = USER, .value = READ | WRITE};
  belay_permission_result_t had = {0};
  belay_request_t other = {.data = demo};
  demo->out = &had;
  int error = belay_permission_grant(a, &demo->request, belay_string(key), &reads, 1, on_result);
  if (error == 0)
    error = belay_permission_grant(b, &other, belay_string(key), &writes, 1, on_result);
  if (error != 0)
    demo_trouble(demo, "granting permissions", error);
  demo_run(demo);
  (void)demo_await(demo, "reading permissions",
                   belay_permission_has(a, &demo->request, belay_string(key), &both, 1, on_result));
  const char *name = belay_permission_name(a, had.value);
  demo_event(demo, 0, "A grants read to user %d while B grants write: the user is \"%s\"", USER,
             name);
  belay_permission_result_t refused = set(demo, a, READ, 0);
  demo_event(demo, 0, "A takes all away if the user may only read: %s",
             refused.answer ? "it is gone" : "the user may more, and keeps it");
  belay_permission_result_t changed = set(demo, a, READ | WRITE, INVITE);
  demo_event(demo, 0, "and if the user may read and write, A changes that to invite");
  demo_print("\n");
  demo_fact(demo, had.answer && strcmp(name, "author") == 0,
            "neither has undone what the other one did: bits are set one by one");
  demo_fact(demo,
            !refused.answer && refused.value == (READ | WRITE) && changed.answer &&
                changed.value == INVITE,
            "a change happens if the old value is the expected one, else not");
}

void chapter_permission(demo_t *demo) {
  belay_permission_t *of[DEMO_CONTENDERS];
  belay_permission_options_t options;
  belay_permission_options_init(&options);
  options.levels = 8;
  options.names = names;
  options.names_len = sizeof names / sizeof *names;
  for (unsigned i = 0; i < DEMO_CONTENDERS; i++)
    if (!demo_made(demo, "permissions", belay_permission_new(demo->client[i], &options, &of[i])))
      return;
  play(demo, of[DEMO_A], of[DEMO_B]);
  for (unsigned i = 0; i < DEMO_CONTENDERS; i++)
    (void)belay_permission_close(of[i], NULL);
}
