/* A post: a handle that keeps a vigil. What a latch and a barrier share. awaitable.c has the diagram. */
#ifndef BELAY_SYNC_AWAITABLE_H
#define BELAY_SYNC_AWAITABLE_H

#include "belay/latch.h"
#include "sync/waiter.h"

typedef struct belay__post belay__post_t;

/* What the face is told; from a task but for the first. */
typedef struct belay__post_ops {
  void (*closing)(
      belay__post_t
          *post); /* it begins to close: what else is pending ends. NULL: nothing else is */
  void (*ended)(belay__post_t *post, int status); /* the wait; it may do anything */
  void (*closed)(belay__post_t *post);            /* the memory is the face's to free, now */
} belay__post_ops_t;

struct belay__post {
  belay__object_t object; /* in the client's list */
  const belay__post_ops_t *ops;
  belay__vigil_t vigil;
  belay__task_t task;
  belay__timer_t patience; /* closing: so long nobody is waited for */
  size_t key_len;          /* the channel begins with the key */
  bool pending;            /* a wait; its end was not told yet */
  bool over;               /* and that is known */
  bool closing;
};

/* Checks the options, NULL for the defaults, and a name; fills them in. 0, or BELAY_EINVAL with a detail. */
int belay__post_options(belay_client_t *client, const char *name, size_t name_len,
                        const belay_latch_options_t *options, unsigned count_max,
                        belay_latch_options_t *out);

/* The length of the channel's name, which is the key's with "::wake" behind it; written at out, if that is not
 * NULL. */
size_t belay__post_channel(const belay_client_t *client, const char *family, const char *name,
                           size_t name_len, char *out);

/* vigil_ops->over is belay__post_over. channel is the face's memory until ops->closed(). */
void belay__post_init(belay__post_t *post, const belay__post_ops_t *ops,
                      const belay__vigil_ops_t *vigil_ops, belay_client_t *client,
                      const belay__vigil_terms_t *terms, const char *channel, size_t channel_len);
void belay__post_over(belay__vigil_t *vigil);

/* What the public functions return: 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK, for a post that may be NULL. */
int belay__post_check(const belay__post_t *post);

/* Checks a wait: 0, BELAY_EINVAL or BELAY_ESTATE. And begins it; wait_ms as belay__vigil_start(). */
int belay__post_may_wait(const belay__post_t *post, int64_t wait_ms, bool has_cb);
void belay__post_wait(belay__post_t *post, int64_t wait_ms);

/* Ends a wait with BELAY_ECANCELED, or what it comes to meanwhile. 0 or BELAY_ESTATE. */
int belay__post_cancel(belay__post_t *post);

void belay__post_close(belay__post_t *post);

/* Adds the key to a call. */
void belay__post_put_key(const belay__post_t *post, belay__call_t *call, const char *part);

static inline belay_client_t *belay__post_client(const belay__post_t *post) {
  return post->vigil.client;
}

#endif /* BELAY_SYNC_AWAITABLE_H */
