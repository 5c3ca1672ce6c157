/* The handle of presence; tests set its clock. */
#ifndef BELAY_DATA_PRESENCE_PRESENCE_H
#define BELAY_DATA_PRESENCE_PRESENCE_H

#include "belay/presence.h"
#include "core/client/server_time.h"

#define BELAY__PRESENCE_SEGMENT (UINT32_C(1) << 23) /* bits of a segment */

struct belay_presence {
  belay__handle_t handle; /* first */
  belay__servertime_t time;
  belay_presence_options_t options;
  int64_t slice_ms; /* Length of a slice of the window */
};

#endif /* BELAY_DATA_PRESENCE_PRESENCE_H */
