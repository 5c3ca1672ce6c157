#include "support/deployments/deployment.h"

#include <stdlib.h>
#include <string.h>

#include "support/base/unit.h"

deployment_t deployment(void) {
  static const char *const names[] = {[DEPLOYMENT_SINGLE] = "",
                                      [DEPLOYMENT_CLUSTER] = "cluster",
                                      [DEPLOYMENT_CLUSTER3] = "cluster3",
                                      [DEPLOYMENT_SENTINEL] = "sentinel",
                                      [DEPLOYMENT_REPLICAS] = "replicas"};
  const char *wanted = getenv("BELAY_TEST_DEPLOYMENT");
  for (size_t i = 0; wanted != NULL && i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], wanted) == 0)
      return (deployment_t)i;
  if (wanted != NULL)
    fail_msg("BELAY_TEST_DEPLOYMENT: %s is none of them", wanted);
  return DEPLOYMENT_SINGLE;
}

bool deployment_is_cluster(void) {
  return deployment() == DEPLOYMENT_CLUSTER || deployment() == DEPLOYMENT_CLUSTER3;
}

unsigned deployment_scouts(void) {
  return deployment() != DEPLOYMENT_SINGLE;
}

const char *deployment_publish(void) {
  return deployment_is_cluster() ? "SPUBLISH" : "PUBLISH";
}

const char *deployment_subscribe(void) {
  return deployment_is_cluster() ? "SSUBSCRIBE" : "SUBSCRIBE";
}

static void leave(const char *reason) {
  print_message("skipped: it needs %s\n", reason);
  skip();
}

void needs_one_server(const char *reason) {
  if (deployment_is_cluster())
    leave(reason);
}

void needs_quorum(void) {
  needs_one_server("a quorum, of which a cluster is no node");
}

void needs_one_process(const char *reason) {
  if (deployment() == DEPLOYMENT_CLUSTER3)
    leave(reason);
}
