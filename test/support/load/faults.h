/* Servers that fail, one after another, never more than a maximum at a time. */
#ifndef TEST_SUPPORT_LOAD_FAULTS_H
#define TEST_SUPPORT_LOAD_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "support/servers/server.h"

enum { FAULTS_NODES_MAX = 15 };

typedef enum fault { KILLED, STOPPED, RESTARTED, KEPT, FAULTS } fault_t;

typedef struct node {
  server_t *server;
  bool away; /* stricken, not mended */
  fault_t fault;
  int64_t back_at, sound_at; /* by clock_now() */
} node_t;

typedef struct faults {
  unsigned n, most;   /* nodes, and how many of them may have failed */
  int64_t forgets_ms; /* time for which a node counts as failed after a restart */
  node_t node[FAULTS_NODES_MAX];
  unsigned struck[FAULTS];
  unsigned step;     /* in the program of faults */
  int64_t ambush_at; /* by clock_now(): began; 0: there is none at present */
  node_t *ambush_on; /* the node that is about to forget */
} faults_t;

/* Starts n servers. */
faults_t *faults_open(unsigned n, unsigned most, int64_t forgets_ms);

/* Makes a random one fail, in one way or another. Where as many as may have failed already, one
 * of those stands still for a while; where none has, it begins an ambush. False: not now. */
bool faults_strike(faults_t *faults);

/* Brings back those whose time has come, or all; goes on with an ambush. To be called all the
 * time. */
void faults_mend(faults_t *faults, bool all);

/* Prints how many there were of each kind. */
void faults_tell(const faults_t *faults);

/* Stops the servers. */
void faults_close(faults_t *faults);

#endif /* TEST_SUPPORT_LOAD_FAULTS_H */
