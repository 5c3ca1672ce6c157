#include "support/scene.h"

#include <stdio.h>

#include "support/acl.h"

int scene_port(const scene_t *scene, int server) {
  return server_port(scene->server[server]);
}

void scene_set_up(scene_t *scene, unsigned oracles, const oracle_options_t *options) {
  size_t n = 0;
  *scene = (scene_t){.bed = NULL};
  for (int i = 0; i < 2; i++)
    scene->server[i] = server_start(&(server_options_t){.address = "127.0.0.1"});
  n += (size_t)snprintf(scene->url, sizeof scene->url, "redis+sentinel://%s",
                        acl_login(&(server_options_t){0}));
  for (unsigned i = 0; i < oracles; i++) {
    scene->oracle[i] = oracle_start(options);
    oracle_name(scene->oracle[i], "127.0.0.1", scene_port(scene, 0), 1);
    n += (size_t)snprintf(scene->url + n, sizeof scene->url - n, "%s127.0.0.1:%d", i > 0 ? "," : "",
                          oracle_port(scene->oracle[i]));
  }
  snprintf(scene->url + n, sizeof scene->url - n, "/" ORACLE_MASTER);
}

bed_t *scene_open(scene_t *scene, const belay_client_options_t *options) {
  return scene->bed = bed_open_at(scene->url, options);
}

void scene_end_oracle(scene_t *scene, unsigned i) {
  oracle_stop(scene->oracle[i]);
  scene->oracle[i] = NULL;
}

void scene_tear_down(scene_t *scene) {
  if (scene->bed != NULL)
    bed_close(scene->bed);
  for (unsigned i = 0; i < SCENE_ORACLES; i++)
    if (scene->oracle[i] != NULL)
      scene_end_oracle(scene, i);
  for (int i = 0; i < 2; i++)
    server_stop(scene->server[i]);
}

int scene_answering(scene_t *scene) {
  int64_t before[2], came = -1;
  for (int i = 0; i < 2; i++)
    before[i] = server_calls(scene->server[i], "ping");
  if (pong(scene->bed, NULL) != 0)
    return -1;
  for (int i = 0; i < 2; i++)
    if (server_calls(scene->server[i], "ping") > before[i])
      came = i;
  return (int)came;
}

void scene_await(scene_t *scene, int server) {
  int64_t began = clock_now();
  while (scene_answering(scene) != server)
    assert_true(clock_since_ms(began) < 15000 * slow());
}

void scene_name(scene_t *scene, int server, uint64_t epoch) {
  for (unsigned i = 0; i < SCENE_ORACLES; i++)
    if (scene->oracle[i] != NULL)
      oracle_name(scene->oracle[i], "127.0.0.1", scene_port(scene, server), epoch);
}

void scene_hint(scene_t *scene, unsigned oracle, const char *master) {
  char text[128];
  snprintf(text, sizeof text, "%s 127.0.0.1 %d 127.0.0.1 %d", master, scene_port(scene, 0),
           scene_port(scene, 1));
  oracle_publish(scene->oracle[oracle], text);
}

unsigned scene_questions(scene_t *scene) {
  unsigned n = 0;
  for (unsigned i = 0; i < SCENE_ORACLES; i++)
    n += scene->oracle[i] == NULL ? 0 : oracle_questions(scene->oracle[i]);
  return n;
}
