/* Shared by the files of permissions. */
#ifndef BELAY_DATA_PERMISSION_PERMISSION_H
#define BELAY_DATA_PERMISSION_PERMISSION_H

#include "belay/permission.h"
#include "core/client/handle.h"

/* The names of values: texts, and where they begin; one piece of memory. */
typedef struct belay__names {
  size_t size;  /* bytes of all this */
  size_t count; /* of names */
  const char *text[];
} belay__names_t;

struct belay_permission {
  belay__handle_t handle; /* first */
  belay__names_t *names;  /* NULL: there are none */
  unsigned width;
  char tail[16]; /* of its keys: "}::u5" */
  uint64_t max_index;
  int64_t ttl_ms;
};

/* Check levels, names and max_index against the width; set a width of 0 by levels or names. Returns 0, or BELAY_EINVAL
 * with a detail. */
int belay__permission_check_options(belay_t *belay, belay_permission_options_t *options);

/* Copies the names of options that were checked. False: memory was out. */
bool belay__permission_copy_names(belay_t *belay, const belay_permission_options_t *options,
                                  belay__names_t **out);
void belay__permission_free_names(belay_t *belay, belay__names_t *names);

#endif /* BELAY_DATA_PERMISSION_PERMISSION_H */
