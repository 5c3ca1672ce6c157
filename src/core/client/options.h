/* The options of a client. */
#ifndef BELAY_CORE_CLIENT_OPTIONS_H
#define BELAY_CORE_CLIENT_OPTIONS_H

#include "core/client/client.h"

/* Check the ranges of the options. Returns 0, or BELAY_EINVAL with a detail. */
int belay__client_options_check(belay_t *belay, const belay_client_options_t *options);

#endif /* BELAY_CORE_CLIENT_OPTIONS_H */
