/* The bucket handle, which a refiller also uses. */
#ifndef BELAY_LIMIT_REFILLER_BUCKET_H
#define BELAY_LIMIT_REFILLER_BUCKET_H

#include "belay/bucket.h"
#include "core/client/handle.h"

#define BELAY__BUCKET_INDEX "}::index" /* end of the name of the key that holds the index */

struct belay_bucket {
  belay__handle_t handle; /* first */
  int64_t capacity, idle_ms, index_ms;
  bool full;
};

#endif /* BELAY_LIMIT_REFILLER_BUCKET_H */
