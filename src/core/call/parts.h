/* What a call of a script is made of, for who puts several into one command. */
#ifndef BELAY_CORE_CALL_PARTS_H
#define BELAY_CORE_CALL_PARTS_H

#include "core/call/call.h"

typedef struct belay__call_parts {
  const char *keys, *args; /* as they go over the wire; valid until the call changes */
  size_t keys_len, args_len;
  size_t keys_count, args_count;
} belay__call_parts_t;

/* Of a call of a script. */
belay__call_parts_t belay__call_parts(const belay__call_t *call);

#endif /* BELAY_CORE_CALL_PARTS_H */
