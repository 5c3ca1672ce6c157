/* Assertions that hold on a machine of any speed. A failed test may be run again if its time is
 * the cause; after assert_never() it is not (tools/tally.py looks for the word). */
#ifndef TEST_SUPPORT_BASE_NEVER_H
#define TEST_SUPPORT_BASE_NEVER_H

#include "support/base/unit.h"

#define assert_never(wrong)                                                                        \
  do {                                                                                             \
    if (wrong)                                                                                     \
      fail_msg("NEVER: %s", #wrong);                                                               \
  } while (0)

#endif /* TEST_SUPPORT_BASE_NEVER_H */
