/* The data of a refilled bucket that a refiller needs: the keys, and the handle to close with. */
#ifndef BELAY_LIMIT_REFILLER_BUCKET_H
#define BELAY_LIMIT_REFILLER_BUCKET_H

#include "belay/bucket.h"
#include "core/client/handle.h"

/* Check that a bucket can be used. Returns 0, BELAY_EINVAL (NULL), BELAY_ECLOSING or
 * BELAY_EFORK. */
int belay__bucket_check(const belay_bucket_t *bucket);

belay_client_t *belay__bucket_client(const belay_bucket_t *bucket);
int64_t belay__bucket_capacity(const belay_bucket_t *bucket);
int64_t belay__bucket_idle_ms(const belay_bucket_t *bucket);
int64_t belay__bucket_index_ms(const belay_bucket_t *bucket);

/* The prefix of all keys of the bucket: NAMESPACE::bucket::NAME::{. The escaped key follows,
 * then } for the tokens or BELAY__BUCKET_INDEX for the index. The prefix lives as long as the
 * bucket. */
#define BELAY__BUCKET_INDEX "}::index"
const char *belay__bucket_prefix(const belay_bucket_t *bucket, size_t *len);

#endif /* BELAY_LIMIT_REFILLER_BUCKET_H */
