/* What a refiller needs of a refilled bucket: where its keys are, and to close with it. */
#ifndef BELAY_LIMIT_REFILLER_BUCKET_H
#define BELAY_LIMIT_REFILLER_BUCKET_H

#include "belay/bucket.h"
#include "core/client/handle.h"

/* 0, BELAY_EINVAL for NULL, BELAY_ECLOSING or BELAY_EFORK. */
int belay__bucket_check(const belay_bucket_t *bucket);

belay_client_t *belay__bucket_client(const belay_bucket_t *bucket);
int64_t belay__bucket_capacity(const belay_bucket_t *bucket);
int64_t belay__bucket_idle_ms(const belay_bucket_t *bucket);
int64_t belay__bucket_index_ms(const belay_bucket_t *bucket);

/* What all its keys begin with: NAMESPACE::bucket::NAME::{ and then the key, escaped; } for the tokens, and
 * BELAY__BUCKET_INDEX for the index. It lives as long as the bucket. */
#define BELAY__BUCKET_INDEX "}::index"
const char *belay__bucket_prefix(const belay_bucket_t *bucket, size_t *len);

#endif /* BELAY_LIMIT_REFILLER_BUCKET_H */
