/* What a refiller needs of a refilled bucket: where its keys are, and to close with it. */
#ifndef BELAY_LIMIT_BUCKET_H
#define BELAY_LIMIT_BUCKET_H

#include "belay/bucket.h"
#include "core/client.h"

/* Something that belongs to a bucket, closes with it, and is gone before it. */
typedef struct belay__bucket_part belay__bucket_part_t;

struct belay__bucket_part {
  belay__list_t node;
  /* Begin to end; called once. It may leave at once; no other part leaves in it, and nothing that is an object of the
   * client's goes: both lists are being walked. */
  void (*close)(belay__bucket_part_t *part);
};

/* 0, BELAY_EINVAL for NULL, BELAY_ECLOSING or BELAY_EFORK. */
int belay__bucket_check(const belay_bucket_t *bucket);

/* Of one that is not closing. part->close is set. */
void belay__bucket_join(belay_bucket_t *bucket, belay__bucket_part_t *part);

/* The part touches the bucket no more. A bucket that closes is gone some time after the last of them has left, and
 * never inside this. */
void belay__bucket_leave(belay_bucket_t *bucket, belay__bucket_part_t *part);

belay_client_t *belay__bucket_client(const belay_bucket_t *bucket);
int64_t belay__bucket_capacity(const belay_bucket_t *bucket);
int64_t belay__bucket_idle_ms(const belay_bucket_t *bucket);
int64_t belay__bucket_index_ms(const belay_bucket_t *bucket);

/* What all its keys begin with: NAMESPACE::bucket::NAME::{ and then the key, escaped; } for the tokens, and
 * BELAY__BUCKET_INDEX for the index. It lives as long as the bucket. */
#define BELAY__BUCKET_INDEX "}::index"
const char *belay__bucket_prefix(const belay_bucket_t *bucket, size_t *len);

#endif /* BELAY_LIMIT_BUCKET_H */
