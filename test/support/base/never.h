/* What may not happen, however slow the machine is. A test that fails because of its time may be run again; one that fails
 * by this is not (tools/tally.py looks for the word). */
#ifndef TEST_SUPPORT_BASE_NEVER_H
#define TEST_SUPPORT_BASE_NEVER_H

#include "support/base/unit.h"

#define assert_never(wrong)                                                                        \
  do {                                                                                             \
    if (wrong)                                                                                     \
      fail_msg("NEVER: %s", #wrong);                                                               \
  } while (0)

#endif /* TEST_SUPPORT_BASE_NEVER_H */
