/* belay: distributed primitives over Redis and Valkey, for programs on a libuv loop.
 *
 * This header includes all headers of this build. A program may include single ones instead: each
 * family has a header in belay/. belay/features.h says which optional parts the build has.
 *
 * Start with belay/loop.h (belay_open(), and the conventions of all headers), then belay/client.h
 * (belay_connect()), then the header of a primitive, such as belay/lock.h. */
#ifndef BELAY_H
#define BELAY_H

#include "belay/active.h"
#include "belay/bloom.h"
#include "belay/bucket.h"
#include "belay/bytes.h"
#include "belay/cache.h"
#include "belay/client.h"
#include "belay/config.h"
#include "belay/counter.h"
#include "belay/dedup.h"
#include "belay/election.h"
#include "belay/error.h"
#include "belay/features.h"
#include "belay/fence.h"
#include "belay/held.h"
#include "belay/idempotency.h"
#include "belay/idgen.h"
#include "belay/latch.h"
#include "belay/limiter.h"
#include "belay/lock.h"
#include "belay/loop.h"
#include "belay/multilock.h"
#include "belay/permission.h"
#include "belay/presence.h"
#include "belay/ranking.h"
#include "belay/redlock.h"
#include "belay/refiller.h"
#include "belay/request.h"
#include "belay/rwlock.h"
#include "belay/semaphore.h"
#include "belay/session.h"
#include "belay/sweep.h"
#include "belay/tls.h"
#include "belay/topic.h"
#include "belay/uuid.h"
#include "belay/version.h"

#if BELAY_HAS_ACL
#include "belay/acl.h"
#endif
#if BELAY_HAS_TOPOLOGY
#include "belay/topology.h"
#endif

#endif /* BELAY_H */
