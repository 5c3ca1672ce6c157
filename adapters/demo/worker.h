/* The processes that a demo is played with, and how they tell it what they do. */
#ifndef BELAY_DEMO_WORKER_H
#define BELAY_DEMO_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "belay/client.h"

/* The environment variable that hands the URL down. A command line, with its passwords, is for all to see. */
#define WORKER_URL "BELAY_DEMO_URL"

/* The namespace of all demos; that of one is below it. */
#define WORKER_NAMESPACE "belay-demo"

/* What a worker says, in a line: a word, when (uv_hrtime(), the same for all processes), a number. */
typedef struct news {
  char word[16];
  uint64_t at;
  int64_t number;
} news_t;

/* The words, and what the number is with them. */
#define NEWS_ASKS "asks"         /* it wants the lock; 0 */
#define NEWS_WON "won"           /* it has the lock; how often it asked the server for it */
#define NEWS_WORKED "worked"     /* it did what it wanted the lock for; the counter now, or 0 */
#define NEWS_RELEASED "released" /* it gave the lock back; 0 */
#define NEWS_ELECTED "elected"   /* a refiller has a place; 0 */
#define NEWS_DEPOSED "deposed"   /* it has none any more; 0 */
#define NEWS_FAILED "failed"     /* it cannot go on; an error of belay's, or 0 */

/* Says one, in such a process; ends it if nobody listens any more. */
void news_tell(const char *word, int64_t number);

bool news_parse(const char *line, news_t *out);

/* The options of every client of one run of the demo; owner is who it is. parts is filled and used. */
void worker_client_options(belay_client_options_t *options, const char *parts[2], const char *run,
                           const char *owner);

/* The counter that the workers share: a number in a file. Both return whether it worked. */
bool counter_read(const char *path, uint64_t *value);
bool counter_write(const char *path, uint64_t value);

/* The hidden subcommand that works under a lock: PARENT RUN OWNER LOCK TTL ROUNDS WORK FILE. Each round takes
 * the lock ("-": works without one) for TTL ms (0: the default), works for WORK ms, adds one to the counter in
 * the file ("-": there is none), and gives it back. */
int run_worker(int argc, char **argv);

#endif /* BELAY_DEMO_WORKER_H */
