/* What the two kinds of sites of `belay online` share: members with numbers (presence), and members with names (dedup). */
#ifndef BELAY_CLI_COMMANDS_ONLINE_H
#define BELAY_CLI_COMMANDS_ONLINE_H

#include "harness.h"

#define ONLINE_MEMBERS_MAX ((size_t)16384) /* in one command */

typedef struct online_options {
  int64_t window_ms; /* 0: a member stays until it leaves */
  int64_t slices, ttl_ms, max_id;
} online_options_t;

/* The operations of one kind. open() makes the handle; false: something was said. The others are called once, after it,
 * and end the command. The site is argument 0, members are those behind it. */
typedef struct online_kind {
  bool (*open)(harness_t *h, const online_options_t *options);
  void (*beat)(harness_t *h);
  void (*leave)(harness_t *h);
  void (*reset)(harness_t *h);
  void (*is)(harness_t *h);
  void (*count)(harness_t *h);
  void (*list)(harness_t *h);
} online_kind_t;

extern const online_kind_t online_ids, online_names;

/* What both write: the end of a change, an answer about member i of n (its members were written before), a count. */
void online_changed(harness_t *h, int status);
void online_counted(harness_t *h, int status, int64_t count);

#endif /* BELAY_CLI_COMMANDS_ONLINE_H */
