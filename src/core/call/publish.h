/* Publishing: PUBLISH, or SPUBLISH where channels belong to slots. Only the connection decides
 * which one is needed. So a call is built for either, and the node selects one each time that it
 * hands the call to a connection. The publish command is the call's command, or an argument of the
 * call's script. */
#ifndef BELAY_CORE_CALL_PUBLISH_H
#define BELAY_CORE_CALL_PUBLISH_H

#include "core/call/call.h"

/* Build the publish command. */
void belay__publish_build(belay__call_t *call, const char *channel, size_t channel_len,
                          const void *message, size_t len);

/* Add the argument that tells a script which command to publish with; at most one per call.
 * publishes: false adds '', and the script publishes nothing. */
void belay__publish_arg(belay__call_t *call, bool publishes);

/* For the node, before it hands a call with a publish command (call->publisher is not 0) to a
 * connection: select SPUBLISH or PUBLISH. */
void belay__publish_as(belay__call_t *call, bool sharded);

#endif /* BELAY_CORE_CALL_PUBLISH_H */
