/* The handle of active users; tests set its clock. */
#ifndef BELAY_DATA_ACTIVE_ACTIVE_H
#define BELAY_DATA_ACTIVE_ACTIVE_H

#include "belay/active.h"
#include "core/client/server_time.h"

struct belay_active {
  belay__handle_t handle; /* first */
  belay__servertime_t time;
  belay_active_options_t options;
  int64_t unit_ms;
};

#endif /* BELAY_DATA_ACTIVE_ACTIVE_H */
