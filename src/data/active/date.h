/* Dates: days counted from 1970-01-01 in the Gregorian calendar, extended in both directions. */
#ifndef BELAY_DATA_ACTIVE_DATE_H
#define BELAY_DATA_ACTIVE_DATE_H

#include <stdint.h>

#define BELAY__HOUR_MS INT64_C(3600000)
#define BELAY__DAY_MS INT64_C(86400000)

/* Return n / by, rounded down. by is above 0. */
int64_t belay__date_floor(int64_t n, int64_t by);

/* Return the date of a day as a decimal number such as 20261121. The year must be 1 to 9999. */
int32_t belay__date_of(int64_t days);

#endif /* BELAY_DATA_ACTIVE_DATE_H */
