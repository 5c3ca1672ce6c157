/* The chapters. Each makes its handles, shows their effect, checks facts, and closes the
 * handles. */
#ifndef BELAY_DEMO_CHAPTERS_H
#define BELAY_DEMO_CHAPTERS_H

#include "demo/scene.h"

/* X(name, title, text): chapter_NAME() runs the chapter. */
#define CHAPTERS(X)                                                                                \
  X(counter, "Five processes and one counter",                                                     \
    "  Five processes add to one number in a file: they read it, work for a\n"                     \
    "  moment, and write it back, one higher. First without the lock, then with it.")              \
  X(killed, "A holder is killed",                                                                  \
    "  A process is killed while it holds the lock, and releases nothing. But a lock\n"            \
    "  is a lease: it ends when its time to live, the ttl, is over.")                              \
  X(watchdog, "Work that takes longer than the ttl",                                               \
    "  A has the lock for 0.4 s, but works for 1.2 s. The watchdog renews the lease\n"             \
    "  every third of the ttl, as long as A's loop runs and the server answers.")                  \
  X(stalled, "A holder that does not run",                                                         \
    "  A has the lock for 0.5 s, and blocks its loop for 0.8 s, so that no callback can\n"         \
    "  run. Then it asks for the remaining time of the lock, which is computed.")                  \
  X(quorum, "Five servers, and three of them make a lock",                                         \
    "  The five servers are independent; a client that three of them grant the lock\n"             \
    "  has it. A server that has just been started may have forgotten a lock that is\n"            \
    "  still held: it has no vote until all leases from before are over.")                         \
  X(address, "Ten calls by one address",                                                           \
    "  Each address has three calls a minute. One of them calls ten times. The first\n"            \
    "  denial says until when it holds; until then no call needs to ask the server.")              \
  X(tally, "A hundred thousand views, and ten seats",                                              \
    "  A page is seen a hundred thousand times: the client adds that up, and sends one\n"          \
    "  number. Ten seats are sold to 25 buyers, and one order is sent twice.")                     \
  X(once, "An order that is sent three times",                                                     \
    "  An order is sent again when its sender gets no answer. Under its key the server\n"          \
    "  keeps which process works on it, until when, and then the result.")                         \
  X(stampede, "A thousand requests for one page",                                                  \
    "  A page takes 200 ms to load, and a thousand requests ask for it, in four\n"                 \
    "  processes: by hand (each request loads), then through a cache, then through a\n"            \
    "  cache with a lock. Finally the page expires while they ask.")                               \
  X(sweep, "Keys that were left behind are deleted",                                               \
    "  Two thousand guests have left two keys each behind. A sweep visits the namespace a\n"       \
    "  page at a time, with rests in between. First it only counts.")

#define CHAPTER_FUNCTION(name, title, text) void chapter_##name(demo_t *demo);
CHAPTERS(CHAPTER_FUNCTION)
#undef CHAPTER_FUNCTION

/* Roles of child processes: see main.c. */
void holder_run(demo_t *demo, char **args);
void worker_run(demo_t *demo, char **args);  /* args: the file; "locked" or "free" */
void visitor_run(demo_t *demo, char **args); /* args: the number of the process */

#endif /* BELAY_DEMO_CHAPTERS_H */
