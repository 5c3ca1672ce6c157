/* A scene: two real servers, which know nothing of each other, and sentinels that only pretend. */
#ifndef TEST_SCENE_H
#define TEST_SCENE_H

#include "support/bed.h"
#include "support/oracle.h"
#include "support/secure.h"

enum { SCENE_ORACLES = 3 };

typedef struct scene {
  server_t *server[2];
  oracle_t *oracle[SCENE_ORACLES]; /* NULL: there is none */
  bed_t *bed;
  char url[256]; /* of all sentinels; a test may change it before it opens the bed */
} scene_t;

/* So many sentinels, which name the first server, under the epoch 1. The options are the sentinels'; NULL: none. */
void scene_set_up(scene_t *scene, unsigned oracles, const oracle_options_t *options);
void scene_tear_down(scene_t *scene);

bed_t *scene_open(scene_t *scene, const belay_client_options_t *options);

/* A sentinel that dies: nobody listens at its port any more. */
void scene_end_oracle(scene_t *scene, unsigned i);

int scene_port(const scene_t *scene, int server);

/* All sentinels name that server from now on. */
void scene_name(scene_t *scene, int server, uint64_t epoch);

/* A sentinel says that the primary of that name has moved from the first server to the second. */
void scene_hint(scene_t *scene, unsigned oracle, const char *master);

/* How often sentinels were asked where the primary is. */
unsigned scene_questions(scene_t *scene);

/* Which of the servers the client's calls come to; -1: none. And waits until it is that one. */
int scene_answering(scene_t *scene);
void scene_await(scene_t *scene, int server);

#endif /* TEST_SCENE_H */
