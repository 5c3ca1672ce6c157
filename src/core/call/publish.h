/* Publishing: PUBLISH, or SPUBLISH where channels belong to slots. Which of the two it is, is only known when there
 * is a connection: so a call is built for either, whether the word is its command or an argument of its script, and
 * the node has the last word each time that it hands the call over. */
#ifndef BELAY_CORE_CALL_PUBLISH_H
#define BELAY_CORE_CALL_PUBLISH_H

#include "core/call/call.h"

/* Builds the command. */
void belay__publish_build(belay__call_t *call, const char *channel, size_t channel_len,
                          const void *message, size_t len);

/* Adds the argument that tells a script which command to publish with, one in a call; '': it does not. */
void belay__publish_arg(belay__call_t *call, bool publishes);

/* For the node, before it hands over a call that has such a word: makes it the one that this is. */
void belay__publish_as(belay__call_t *call, bool sharded);

#endif /* BELAY_CORE_CALL_PUBLISH_H */
