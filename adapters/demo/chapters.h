/* The chapters. Each makes its handles, shows what they do, checks facts, and closes the
 * handles. */
#ifndef BELAY_DEMO_CHAPTERS_H
#define BELAY_DEMO_CHAPTERS_H

#include "demo/scene.h"

/* X(name, title, text): chapter_NAME() plays it. */
#define CHAPTERS(X)                                                                                \
  X(counter, "Five processes and one counter",                                                     \
    "  Five processes add to one number in a file: they read it, work for a\n"                     \
    "  moment, and write it back, one higher. First without the lock, then with it.")              \
  X(killed, "A holder is killed",                                                                  \
    "  A process is killed while it holds the lock, and releases nothing. But a lock\n"            \
    "  is a lease: it ends when its time to live, the ttl, is over.")                              \
  X(watchdog, "Work that takes longer than the ttl",                                               \
    "  A has the lock for 0.4 s, but works for 1.2 s. The watchdog renews the lease\n"             \
    "  every third of the ttl, as long as A's loop runs and the server answers.\n"                 \
    "  B waits for the lock all the while.")                                                       \
  X(stalled, "A holder stands still",                                                              \
    "  A has the lock for 0.5 s, and stands still for 0.8 s: a blocking call, a\n"                 \
    "  debugger, a machine that swaps. No callback can run. So a holder asks before\n"             \
    "  each step that needs the lock how long it still runs: the answer is computed.\n"            \
    "  A's late release must not touch the lock of B.")                                            \
  X(quorum, "Five servers, and three of them make a lock",                                         \
    "  The five servers are independent; a client that three of them grant the lock\n"             \
    "  has it. A server that has just been started may have forgotten a lock that is\n"            \
    "  still held: it has no vote until all leases from before are over.")                         \
  X(rate, "Two at once, then two a second",                                                        \
    "  A token bucket: two tokens a second, burst 2. Five requests for a token are made\n"         \
    "  at the same time, and each is called back when it has one.")                                \
  X(windows, "Three limits at once",                                                               \
    "  Three limits, all of which must allow a call: 3 in 0.3 s, 5 in 0.6 s (a sliding\n"          \
    "  window), 8 in 5 s. The client calls as fast as it may: when it is denied it\n"              \
    "  waits for exactly the time that the answer names.")                                         \
  X(address, "Ten calls by one address",                                                           \
    "  Each address has three calls a minute. One of them calls ten times. The first\n"            \
    "  denial says until when it holds; until then no call needs to ask the server.")              \
  X(refillers, "A refiller is killed",                                                             \
    "  A bucket that does not fill by itself: five tokens are put in five times a\n"               \
    "  second. Of four processes two are elected to do that, so that one is left if\n"             \
    "  the other is killed. The bucket's index lets only one of them fill it each time.")          \
  X(bloom, "Which addresses had this letter?",                                                     \
    "  A Bloom filter remembers an address with ten bits. It can report false\n"                   \
    "  positives, never false negatives.")                                                         \
  X(tally, "A hundred thousand views, and ten seats",                                              \
    "  A page is seen a hundred thousand times: the client adds that up, and sends one\n"          \
    "  number. Ten seats are sold to more than ten buyers: one by an order that comes\n"           \
    "  twice, because its answer was lost, the others to the first that come.")                    \
  X(ids, "Numbers for users, orders and parcels",                                                  \
    "  A and B number what they sell. Users: a thousand ids are fetched at a time, and\n"          \
    "  given from memory. Orders: each is asked for. Parcels: made from the time, and\n"           \
    "  from a worker's number that is leased.")                                                    \
  X(dedup, "Delivered three times, worked on once",                                                \
    "  A queue delivers at least once: each of 200 orders comes three times to each of\n"          \
    "  two workers. A worker marks an order first; the answer says whether it is new.")            \
  X(once, "An order that is sent three times",                                                     \
    "  An order is sent again when its sender gets no answer. Under its key the server\n"          \
    "  keeps which process works on it, until when, and then the result.")                         \
  X(active, "How many came in a month",                                                            \
    "  The users of a month; some come every day. The server counts the different users\n"         \
    "  of the last days, in little space.")                                                        \
  X(presence, "Which users are online",                                                            \
    "  Each user is a bit. It stays until the user logs out; or, with a window, for as\n"          \
    "  long as the user was seen recently.")                                                       \
  X(ranking, "Three places, and two with the same score",                                          \
    "  Players send in their results as they come. The best of each counts; of equal\n"            \
    "  ones the earlier; and the board keeps the best three.")                                     \
  X(permission, "Two clients change one user's permissions",                                       \
    "  The rights of a million users of a forum: three bits for each, 375 kB in\n"                 \
    "  one string. Two clients change the same user's at the same time.")                          \
  X(session, "A visitor clicks, goes, and comes back",                                             \
    "  The clicks of a visitor belong to one session for as long as it does not stay\n"            \
    "  away: a second here, half an hour on a site.")                                              \
  X(stampede, "A thousand ask for the same page",                                                  \
    "  A page takes 200 ms to load, and a thousand requests ask for it, in four\n"                 \
    "  processes: by hand (what is not found is loaded), and then through a cache. Then\n"         \
    "  it expires while they ask. In the end they ask for pages that do not exist.")               \
  X(sweep, "Keys that were left behind are swept up",                                              \
    "  Two thousand guests have left two keys each behind. A sweep goes through the\n"             \
    "  namespace a page at a time, with rests in between: first it only looks.")

#define CHAPTER_FUNCTION(name, title, text) void chapter_##name(demo_t *demo);
CHAPTERS(CHAPTER_FUNCTION)
#undef CHAPTER_FUNCTION

/* Roles of child processes: see main.c. args begins with the owner. */
void holder_run(demo_t *demo, char **args);
void worker_run(demo_t *demo, char **args); /* args[1]: the file; args[2]: "locked" or "free" */
void refiller_run(demo_t *demo, char **args);
void visitors_run(demo_t *demo, char **args); /* args[1]: the number of the process */

#endif /* BELAY_DEMO_CHAPTERS_H */
