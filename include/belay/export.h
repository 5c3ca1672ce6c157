/* What every other header needs: visibility, C linkage, and the two special values of a time. */
#ifndef BELAY_EXPORT_H
#define BELAY_EXPORT_H

#include <stdint.h>

/** Marks a function that a program may call. Everything else in the library is hidden. */
#if defined(__GNUC__)
#define BELAY_API __attribute__((visibility("default")))
#else
#define BELAY_API
#endif

/** Where a time in milliseconds is asked for: the default that its comment names. */
#define BELAY_DEFAULT ((int64_t)-1)

/** Where a comment allows it: no limit. */
#define BELAY_FOREVER INT64_MAX

#endif /* BELAY_EXPORT_H */
