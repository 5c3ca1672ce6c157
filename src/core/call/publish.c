#include "core/call/publish.h"

#include <assert.h>
#include <string.h>

#include "core/client/client.h"

/* Both commands in the wire format. */
static const char sharded_word[] = "$8\r\nSPUBLISH\r\n", plain_word[] = "$7\r\nPUBLISH\r\n";

#define WORD_LEN(sharded) ((sharded) ? sizeof sharded_word - 1 : sizeof plain_word - 1)

/* Store the offset of the publish command, which was added last. The command is the longer of the
 * two, so that there is room for either. */
static void note_word(belay__call_t *call) {
  if (call == NULL)
    return;
  assert(call->publisher == 0);
  if (!call->broken)
    call->publisher = (uint32_t)(call->len - WORD_LEN(true));
}

void belay__publish_build(belay__call_t *call, const char *channel, size_t channel_len,
                          const void *message, size_t len) {
  belay__call_command(call, "SPUBLISH", 3);
  note_word(call);
  belay__call_arg(call, channel, channel_len);
  belay__call_arg(call, message, len);
}

void belay__publish_arg(belay__call_t *call, bool publishes) {
  belay__call_arg(call, "SPUBLISH", publishes ? 8 : 0);
  if (publishes)
    note_word(call);
}

void belay__publish_as(belay__call_t *call, bool sharded) {
  char *word = call->data + call->publisher;
  bool is_sharded = word[1] == '8'; /* length of the word */
  if (sharded == is_sharded)
    return;
  size_t from = WORD_LEN(is_sharded), to = WORD_LEN(sharded);
  assert(call->len - from + to < belay__call_cap(call));
  /* with the terminating 0 */
  memmove(word + to, word + from, call->len - call->publisher - from + 1);
  memcpy(word, sharded ? sharded_word : plain_word, to);
  if (call->script == NULL)
    call->command = sharded ? "SPUBLISH" : "PUBLISH";
  call->len = (uint32_t)(call->len - from + to);
  if (call->state != BELAY__CALL_BUILDING)
    call->client->stats.pending_bytes += to - from;
}
