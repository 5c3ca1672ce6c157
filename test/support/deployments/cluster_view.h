/* A node's view of its cluster: the reply to CLUSTER NODES. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_CLUSTER_VIEW_H
#define TEST_SUPPORT_DEPLOYMENTS_CLUSTER_VIEW_H

#include <stdbool.h>

enum { CLUSTER_ID_SIZE = 41 };

/* About one of them. */
typedef struct cluster_line {
  char id[CLUSTER_ID_SIZE], flags[64], primary[CLUSTER_ID_SIZE], link[16];
  unsigned long long epoch;
  char slots[2048]; /* "0-5460 5462 "; without slots that are being moved */
} cluster_line_t;

/* Reads the first line; where the next one begins, NULL if there is none. */
const char *cluster_read_line(const char *text, cluster_line_t *line);

/* Finds the one about that node; false also if there is no text. */
bool cluster_look_up(const char *text, const char *id, cluster_line_t *line);

bool cluster_has_slot(const cluster_line_t *line, unsigned slot);
bool cluster_is_primary(const cluster_line_t *line);

#endif /* TEST_SUPPORT_DEPLOYMENTS_CLUSTER_VIEW_H */
