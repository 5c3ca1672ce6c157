/* What belay_topology_read() tells. */
#ifndef TEST_TOURS_H
#define TEST_TOURS_H

#include "support/bed.h"

enum { TOUR_SERVERS_MAX = 16, TOUR_TEXT_MAX = 280 };

/* A copy of what was told. */
typedef struct tour_report {
  unsigned told;
  int status;
  size_t n;
  belay_topology_server_t server[TOUR_SERVERS_MAX]; /* what these point to is here: */
  char text[TOUR_SERVERS_MAX][5][TOUR_TEXT_MAX];
  belay_request_t request;
  bed_t *bed;
} tour_report_t;

/* Asks; what belay returned. */
int begin_tour(bed_t *bed, tour_report_t *report, unsigned samples, int64_t timeout_ms);

/* Asks, and waits: the status. */
int tour(bed_t *bed, tour_report_t *report, unsigned samples, int64_t timeout_ms);

/* Checks what is said of one that was reached: all of it is there, and its clock is this machine's. */
void assert_reached(const belay_topology_server_t *server, belay_role_t role, unsigned samples);

/* The one that listens on that port; NULL: it is not told. */
const belay_topology_server_t *toured(const tour_report_t *report, int port);

#endif /* TEST_TOURS_H */
