/* Definitions for all headers: visibility, and the two special values of times. */
#ifndef BELAY_EXPORT_H
#define BELAY_EXPORT_H

#include <stdint.h>

/** Marks a public function. All other symbols of the library are hidden. */
#if defined(__GNUC__)
#define BELAY_API __attribute__((visibility("default")))
#else
#define BELAY_API
#endif

/** Value of a time in milliseconds: the default that its comment names. */
#define BELAY_DEFAULT ((int64_t)-1)

/** Value of a time in milliseconds: no limit. Allowed where the comment says so. */
#define BELAY_FOREVER INT64_MAX

#endif /* BELAY_EXPORT_H */
