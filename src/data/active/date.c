/* The Gregorian calendar. Here a year begins with March, so that a leap day is its last day. An era
 * is 400 years, which always have the same number of days. */
#include "data/active/date.h"

#define ERA_DAYS 146097   /* days in an era */
#define EPOCH_DAYS 719468 /* days from 0000-03-01 to 1970-01-01 */

int64_t belay__date_floor(int64_t n, int64_t by) {
  return n / by - (n % by < 0);
}

int32_t belay__date_of(int64_t days) {
  int64_t from_march = days + EPOCH_DAYS, era = belay__date_floor(from_march, ERA_DAYS);
  int64_t in_era = from_march - era * ERA_DAYS; /* 0 to 146096 */
  int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365; /* 0 to 399 */
  int64_t in_year = in_era - (365 * year + year / 4 - year / 100);                  /* 0 to 365 */
  int64_t month = (5 * in_year + 2) / 153;               /* 0: March, 11: February */
  int64_t day = in_year - (153 * month + 2) / 5 + 1;     /* 1 to 31 */
  int64_t calendar = month < 10 ? month + 3 : month - 9; /* 1: January */
  int64_t calendar_year = year + era * 400 + (calendar <= 2 ? 1 : 0);
  return (int32_t)(calendar_year * 10000 + calendar * 100 + day);
}
