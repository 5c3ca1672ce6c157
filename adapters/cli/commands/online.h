/* Shared by the two kinds of sites of `belay online`: members that are numbers (presence), and
 * members that are names (dedup). */
#ifndef BELAY_CLI_COMMANDS_ONLINE_H
#define BELAY_CLI_COMMANDS_ONLINE_H

#include "harness.h"

#define ONLINE_MEMBERS_MAX ((size_t)16384) /* in one command */

typedef struct online_options {
  int64_t window_ms; /* 0: a member stays until it leaves */
  int64_t slices, ttl_ms, max_id;
} online_options_t;

/* Open the handle of a site. Returns false if the command has ended instead. */
bool online_ids_open(harness_t *h, const online_options_t *options);
bool online_names_open(harness_t *h, const online_options_t *options);

/* The subcommands, for an open site. Argument 0 is the site, the others are members. Each function
 * ends the command. */
void online_ids_beat(harness_t *h);
void online_ids_count(harness_t *h);
void online_ids_is(harness_t *h);
void online_ids_leave(harness_t *h);
void online_ids_list(harness_t *h);
void online_ids_reset(harness_t *h);
void online_names_beat(harness_t *h);
void online_names_count(harness_t *h);
void online_names_is(harness_t *h);
void online_names_leave(harness_t *h);
void online_names_list(harness_t *h);
void online_names_reset(harness_t *h);

/* Callbacks that end the command with output for a change, or for a count. */
void online_changed(belay_request_t *request, int status);
void online_counted(belay_request_t *request, int status, int64_t count);

#endif /* BELAY_CLI_COMMANDS_ONLINE_H */
