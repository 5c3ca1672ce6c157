/* The parts of a script call, for the code that batches several calls into one command. */
#ifndef BELAY_CORE_CALL_PARTS_H
#define BELAY_CORE_CALL_PARTS_H

#include "core/call/call.h"

typedef struct belay__call_parts {
  const char *keys, *args; /* In the wire format; valid until the call changes */
  size_t keys_len, args_len;
  size_t keys_count, args_count;
} belay__call_parts_t;

/* The call must be a script call. */
belay__call_parts_t belay__call_parts(const belay__call_t *call);

#endif /* BELAY_CORE_CALL_PARTS_H */
