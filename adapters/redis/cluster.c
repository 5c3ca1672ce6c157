#include "redis/node.h"
const belay__deployment_t belay__cluster = {0};
