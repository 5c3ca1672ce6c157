/* `belay top`: what it has seen (top.c), and how that is said (top_view.c). */
#ifndef BELAY_CLI_COMMANDS_TOP_H
#define BELAY_CLI_COMMANDS_TOP_H

#include "query/listing.h"
#include "ui/screen.h"
#include "ui/term.h"

#define TOP_THINGS_MAX 10000 /* that are kept */

typedef struct top {
  harness_t *h;
  screen_t screen;
  term_t term;
  seen_list_t seen; /* by the last look to which anybody has answered */
  uint64_t seen_at; /* when that was: uv_hrtime() */
  size_t more;      /* what was held beside that, and is not kept */
  bool whole;       /* nothing is missing in it */
  int64_t waiting;
  size_t taken,
      gone; /* holds that came and went since the look before; 0 if one of the two was not whole */
  double commands; /* in a second, at all servers; negative: unknown */
  int error;       /* of the last look; 0: all have answered */
} top_t;

/* The live view. false: it cannot be written. */
bool top_draw(const top_t *top);

/* A line, and one before it for each change to what was seen before. false: it cannot be written. */
bool top_write(const top_t *top, const seen_list_t *before);

/* Calls back for each hold that is in one list and not in the other; both are sorted. */
typedef void (*top_hold_fn)(const top_t *top, const seen_t *seen, const belay_holder_t *holder);
size_t top_differ(const top_t *top, const seen_list_t *in, const seen_list_t *not_in,
                  top_hold_fn hold);

#endif /* BELAY_CLI_COMMANDS_TOP_H */
