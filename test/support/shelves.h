/* Caches that are changed, and what is heard of it. */
#ifndef TEST_SHELVES_H
#define TEST_SHELVES_H

#include "cache/record.h"
#include "support/bed.h"
#include "support/relay.h"

/* A handle. */
typedef struct shelf {
  bed_t *bed;
  belay_cache_t *cache; /* NULL: closed */
  unsigned pending, closing, closed;
  void (*then)(struct shelf *shelf); /* runs at the end of each callback; NULL: nothing */
} shelf_t;

/* An operation, and what came of it. */
typedef struct edit {
  belay_request_t request;
  shelf_t *shelf;
  unsigned begun, ended;
  int status;
  bool applied;
  char detail[256];
} edit_t;

/* Without jitter. */
belay_cache_options_t shelf_options(void);

/* A handle of the bed's client; options may be NULL. The second one is of another client's. Its data are the shelf. */
void shelf_new(shelf_t *shelf, bed_t *bed, const belay_cache_options_t *options);
void shelf_of(shelf_t *shelf, bed_t *bed, belay_client_t *client,
              const belay_cache_options_t *options);

/* Begin it; what belay returned. If it is 0, the callback is counted. */
int edit_put(shelf_t *shelf, edit_t *edit, const char *key, const char *value);
int edit_put_bytes(shelf_t *shelf, edit_t *edit, const char *key, const void *value, size_t len,
                   int64_t ttl_ms);
int edit_touch(shelf_t *shelf, edit_t *edit, const char *key, int64_t ttl_ms);
int edit_invalidate(shelf_t *shelf, edit_t *edit, const char *key);
int edit_invalidate_tag(shelf_t *shelf, edit_t *edit, const char *tag);
int begin_close_shelf(shelf_t *shelf);

/* Whichever: a put, a touch, an invalidation of a key or of a tag. */
enum { CHANGES = 4 };
int edit_nth(shelf_t *shelf, edit_t *edit, int which, const char *key);

/* The callback of all of them. */
void on_edited(belay_request_t *request, int status, bool applied);

/* Waits for the end of what was begun: its status. */
int end_of_edit(edit_t *edit);

/* Begin it, wait for it, which must go well, and compare what comes of it. */
void shelf_put(shelf_t *shelf, const char *key, const char *value, bool applied);
void shelf_touch(shelf_t *shelf, const char *key, int64_t ttl_ms, bool applied);
void shelf_invalidate(shelf_t *shelf, const char *key);
void shelf_invalidate_tag(shelf_t *shelf, const char *tag);

/* What the server has under that key of its own, which must be a record; NULL if there is nothing. A reference for
 * the caller. */
belay__record_t *record_at(shelf_t *shelf, const char *key);
/* Its value must be that; NULL: there must be nothing. */
void expect_stored(shelf_t *shelf, const char *key, const char *value);

/* ---- the wire -------------------------------------------------------------------------------------------- */

/* A client far away, with a handle, and what happens to its calls. */
typedef struct wire {
  server_t *server;
  relay_t *relay;
  bed_t *bed;
  shelf_t shelf;
  const char *awaited; /* a command; "": none */
  bool tags;
  unsigned sent;    /* so often, since it is awaited */
  bool cuts, slows; /* when it is sent, the wire is cut, or gets long */
} wire_t;

/* What "page" has is "before". tags: each key has the tag "site". */
void wire_open(wire_t *wire, bool tags);
/* A new handle. */
void wire_shelf(wire_t *wire);
/* Everything must have a ttl. */
void wire_close(wire_t *wire);

/* From here on what is executed is answered after a while. */
void slow_down(wire_t *wire);

/* The answer of what has just been executed is on its way when the wire is cut. */
void lose_the_answer(wire_t *wire);

bool is_there(wire_t *wire, const char *key);

/* Runs the loop until that holds, which is looked at again and again: it may not hold for long. */
#define turn_until(wire, condition)                                                                \
  do {                                                                                             \
    int64_t since_ = clock_now();                                                                  \
    while (!(condition)) {                                                                         \
      uv_run(&(wire)->bed->loop, UV_RUN_NOWAIT);                                                   \
      if (clock_since_ms(since_) > 20000 * slow())                                                 \
        fail_msg("%s: never seen", #condition);                                                    \
    }                                                                                              \
  } while (0)

#endif /* TEST_SHELVES_H */
