/* Rankings: boards of members with scores, and the rank of each member. */
#ifndef BELAY_RANKING_H
#define BELAY_RANKING_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rankings (leaderboards): boards of one kind, any number of them, each with its own key. A board
 * is a sorted set of members (bytes) with scores (whole numbers). Ranks begin at 0, the best.
 *
 * Use it for high scores, best times and top lists. For counts without ranks, use belay/counter.h.
 *
 * All programs that share a board should use the same options. The order is not part of the key: a
 * program with the other order ranks the same members by that order, or gets BELAY_EMISMATCH if
 * ties are by time. belay/config.h turns a different order, or different ties, into an error.
 *
 * Ties: members with the same score are ranked by their bytes (the default), or by the time at
 * which they reached the score. By time, each change of a score gets the next number of the board,
 * so clocks do not matter. It costs a hash about as large as the sorted set, and every operation is
 * a script. Boards with and without ties by time have different keys and do not see each other.
 *
 * @code
 * static void on_top(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
 *                    size_t n) {
 *   (void)request;
 *   for (size_t i = 0; status == 0 && i < n; i++)
 *     printf("%lld. %.*s: %lld\n", (long long)entries[i].rank + 1, (int)entries[i].member.len,
 *            (const char *)entries[i].member.data, (long long)entries[i].score);
 * }
 *
 * static void on_submitted(belay_request_t *request, int status,
 *                          const belay_ranking_entry_t *entries, size_t n) {
 *   (void)entries, (void)n;
 *   if (status == 0)
 *     belay_ranking_top(request->data, request, belay_string("today"), 10, on_top);
 * }
 *
 * int submit(belay_ranking_t *ranking, belay_request_t *request, int64_t points) {
 *   belay_ranking_score_t item = {.member = belay_string("ada"), .score = points};
 *   belay_ranking_submission_t scores = {.mode = BELAY_RANKING_BEST, .items = &item, .n = 1};
 *   request->data = ranking;
 *   return belay_ranking_submit(ranking, request, belay_string("today"), &scores, on_submitted);
 * }
 * @endcode */
typedef struct belay_ranking belay_ranking_t;

#define BELAY_RANKING_BOARD_MAX ((size_t)1024)             /**< bytes of a board's key */
#define BELAY_RANKING_MEMBER_MAX ((size_t)1024)            /**< bytes of a member */
#define BELAY_RANKING_SCORE_MAX ((INT64_C(1) << 53) - 1)   /**< largest score or addend */
#define BELAY_RANKING_SCORE_MIN (-BELAY_RANKING_SCORE_MAX) /**< smallest score or addend */
#define BELAY_RANKING_ITEMS_MAX ((size_t)8192)             /**< members in one operation */
#define BELAY_RANKING_PAGE_MAX ((size_t)1024)              /**< members of a page */
#define BELAY_RANKING_SIZE_MAX ((INT64_C(1) << 32) - 1)    /**< members of a board */

/** Order of scores. */
typedef enum belay_ranking_order {
  BELAY_RANKING_HIGH_FIRST, /**< the highest score is the best: points */
  BELAY_RANKING_LOW_FIRST   /**< the lowest score is the best: seconds, strokes */
} belay_ranking_order_t;

/** Order of members with the same score. */
typedef enum belay_ranking_ties {
  /** By the members' bytes: from the smallest with BELAY_RANKING_LOW_FIRST, from the largest with
   * BELAY_RANKING_HIGH_FIRST. */
  BELAY_RANKING_BY_MEMBER,
  BELAY_RANKING_EARLIER_FIRST, /**< the member that reached the score first is better */
  BELAY_RANKING_LATER_FIRST    /**< the member that reached the score last is better */
} belay_ranking_ties_t;

/** Options; belay_ranking_options_init() sets the defaults. */
typedef struct belay_ranking_options {
  /** Name of the boards, 0 to 128 bytes; copied. It is part of the keys:
   * NAMESPACE::ranking::NAME::{BOARD}. Default: no name. */
  belay_bytes_t name;
  /** Order of scores. Default BELAY_RANKING_HIGH_FIRST. */
  belay_ranking_order_t order;
  /** Order of members with the same score. Default BELAY_RANKING_BY_MEMBER. */
  belay_ranking_ties_t ties;
  /** Lifetime of a board after the last submit, in milliseconds: 1,000 to 31,536,000,000. Default
   * 2,592,000,000, 30 days. 0: no end; a submit then also removes the ttl that a board has. */
  int64_t ttl_ms;
  /** Maximum number of members of a board, at most BELAY_RANKING_SIZE_MAX. Each submit removes the
   * worst members above it, at most 1,024 of an older, larger board. Default 0: no limit. */
  int64_t max_members;
  /** Pointer of the caller, returned by belay_ranking_data(). Default NULL. */
  void *data;
} belay_ranking_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_ranking_options_init(belay_ranking_options_t *options);

/** Make a handle. It sends nothing to the server. options may be NULL for the defaults.
 *
 * Returns 0, BELAY_EINVAL (belay_detail() names the option), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_ranking_new(belay_client_t *client, const belay_ranking_options_t *options,
                                belay_ranking_t **out);

/** A member and a score of a submit. */
typedef struct belay_ranking_score {
  belay_bytes_t member; /**< member, 1 to BELAY_RANKING_MEMBER_MAX bytes */
  int64_t score;        /**< score, BELAY_RANKING_SCORE_MIN to BELAY_RANKING_SCORE_MAX */
} belay_ranking_score_t;

/** Position of a member. */
typedef struct belay_ranking_entry {
  /** Member, not terminated. Valid until the callback returns. */
  belay_bytes_t member;
  /** Score of the member. 0 if it is not on the board; after a submit that left no place for the
   * member: the score that it would have. */
  int64_t score;
  /** Rank of the member. 0: the best. -1: it is not on the board. */
  int64_t rank;
  /** Of a submit: true if the member got another score, or its first one, even if that left no
   * place for it. */
  bool changed;
} belay_ranking_entry_t;

/** Receives n entries; n is 0 if status is not 0. CALLBACKS in belay/request.h has the common rules
 * and errors. Other values of status, for all operations:
 *
 *   BELAY_EUNKNOWN       sent and not answered; it may have been executed. Reads are retried until
 *                        the deadline. A submit is not, because a retry could not report what
 *                        changed. The caller may repeat a submit with BELAY_RANKING_SET or
 *                        BELAY_RANKING_BEST
 *   BELAY_EOVERFLOW      a score would leave its range: nothing was done, for none of the members
 *   BELAY_EMISMATCH      the board holds a score that is not a whole number, or is of another kind
 *   BELAY_ELOST          ties by time: the server has lost a part of the board, for example by
 *                        eviction. belay_ranking_clear() makes it usable again */
typedef void (*belay_ranking_cb)(belay_request_t *request, int status,
                                 const belay_ranking_entry_t *entries, size_t n);

/** Receives a number; 0 if status is not 0. The rules of belay_ranking_cb apply. */
typedef void (*belay_ranking_count_cb)(belay_request_t *request, int status, int64_t count);

/* ---- operations ----
 *
 * Each function returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY,
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not run. board is
 * the key of a board, 1 to BELAY_RANKING_BOARD_MAX bytes. Arguments are copied. */

/** Effect of a submitted score. */
typedef enum belay_ranking_mode {
  BELAY_RANKING_SET, /**< it replaces the member's score */
  BELAY_RANKING_ADD, /**< it is added to the member's score; a missing member has 0 */
  BELAY_RANKING_BEST /**< it replaces the member's score if it is better, or if there is none */
} belay_ranking_mode_t;

/** Content of a submit. */
typedef struct belay_ranking_submission {
  belay_ranking_mode_t mode;          /**< effect of each score */
  const belay_ranking_score_t *items; /**< members and scores */
  size_t n;                           /**< number of items, 1 to BELAY_RANKING_ITEMS_MAX */
} belay_ranking_submission_t;

/** Submit scores, one after the other, all in one step or none. ttl_ms starts again. The callback
 * gets an entry for each item, in this order, with the position after all of them. With ties by
 * time, a member that submits its present score keeps its rank. Not retried. */
BELAY_API int belay_ranking_submit(belay_ranking_t *ranking, belay_request_t *request,
                                   belay_bytes_t board,
                                   const belay_ranking_submission_t *submission,
                                   belay_ranking_cb cb);

/** Read the positions of n members, 1 to BELAY_RANKING_ITEMS_MAX. The callback gets an entry for
 * each, in this order. Retried if the reply is lost. A replica may answer
 * (belay_client_options_t.read_from). */
BELAY_API int belay_ranking_find(belay_ranking_t *ranking, belay_request_t *request,
                                 belay_bytes_t board, const belay_bytes_t *members, size_t n,
                                 belay_ranking_cb cb);

/** Read the best n members, 1 to BELAY_RANKING_PAGE_MAX, the best one first; or fewer, if the board
 * has fewer. Retried if the reply is lost. A replica may answer
 * (belay_client_options_t.read_from). */
BELAY_API int belay_ranking_top(belay_ranking_t *ranking, belay_request_t *request,
                                belay_bytes_t board, size_t n, belay_ranking_cb cb);

/** End of a board from which it is read. */
typedef enum belay_ranking_from {
  BELAY_RANKING_FROM_BEST, /**< the best member first */
  BELAY_RANKING_FROM_WORST /**< the worst member first; ranks do not change */
} belay_ranking_from_t;

/** A part of a board. {.n = 10}: the best ten. */
typedef struct belay_ranking_page {
  /** End of the board from which skip and n count. */
  belay_ranking_from_t from;
  /** Number of members before the page, 0 to BELAY_RANKING_SIZE_MAX. */
  int64_t skip;
  /** Maximum number of members of the page, 1 to BELAY_RANKING_PAGE_MAX. */
  size_t n;
  /** true if only members with a score from min to max count, for skip and n too. Ranks are those
   * on the whole board. */
  bool by_score;
  /** With by_score: lowest score, included. */
  int64_t min;
  /** With by_score: highest score, included; at least min. */
  int64_t max;
} belay_ranking_page_t;

/** Read a part of a board. With by_score the server's work grows with skip. Retried if the reply is
 * lost. A replica may answer (belay_client_options_t.read_from). */
BELAY_API int belay_ranking_page(belay_ranking_t *ranking, belay_request_t *request,
                                 belay_bytes_t board, const belay_ranking_page_t *page,
                                 belay_ranking_cb cb);

/** A member and its neighbours. */
typedef struct belay_ranking_around {
  /** Member, 1 to BELAY_RANKING_MEMBER_MAX bytes. */
  belay_bytes_t member;
  /** Maximum number of better neighbours. The sum before + 1 + after is at most
   * BELAY_RANKING_PAGE_MAX. */
  size_t before;
  /** Maximum number of worse neighbours. The sum before + 1 + after is at most
   * BELAY_RANKING_PAGE_MAX. */
  size_t after;
} belay_ranking_around_t;

/** Read a member and its neighbours, in the order of their ranks. n is 0 if the member is not on
 * the board. Retried if the reply is lost. A replica may answer
 * (belay_client_options_t.read_from). */
BELAY_API int belay_ranking_around(belay_ranking_t *ranking, belay_request_t *request,
                                   belay_bytes_t board, const belay_ranking_around_t *around,
                                   belay_ranking_cb cb);

/** Count the members of a board. Retried if the reply is lost. A replica may answer
 * (belay_client_options_t.read_from). */
BELAY_API int belay_ranking_count(belay_ranking_t *ranking, belay_request_t *request,
                                  belay_bytes_t board, belay_ranking_count_cb cb);

/** Count the members with a score from min to max, both included. max below min is BELAY_EINVAL.
 * Retried if the reply is lost. A replica may answer (belay_client_options_t.read_from). */
BELAY_API int belay_ranking_count_by_score(belay_ranking_t *ranking, belay_request_t *request,
                                           belay_bytes_t board, int64_t min, int64_t max,
                                           belay_ranking_count_cb cb);

/** Remove n members, 1 to BELAY_RANKING_ITEMS_MAX. count is the number of members that were on the
 * board. Not retried; the caller may repeat it. */
BELAY_API int belay_ranking_remove(belay_ranking_t *ranking, belay_request_t *request,
                                   belay_bytes_t board, const belay_bytes_t *members, size_t n,
                                   belay_ranking_count_cb cb);

/** Remove the worst members until at most `size` are left, 0 to BELAY_RANKING_SIZE_MAX. count is
 * the number of members that are left. It works in steps of 8,192 members, each with the request's
 * timeout. If a step fails, the earlier ones stay done. Retried if a reply is lost. */
BELAY_API int belay_ranking_trim(belay_ranking_t *ranking, belay_request_t *request,
                                 belay_bytes_t board, int64_t size, belay_ranking_count_cb cb);

/** Delete a board, whatever its keys hold, and its configuration record (belay/config.h). The
 * server frees the memory in the background. count is 0. Retried if the reply is lost. */
BELAY_API int belay_ranking_clear(belay_ranking_t *ranking, belay_request_t *request,
                                  belay_bytes_t board, belay_ranking_count_cb cb);

/** Return options.data. */
BELAY_API void *belay_ranking_data(const belay_ranking_t *ranking);

/** Runs once, on the loop, after a close. See CLOSING in belay/loop.h. */
typedef void (*belay_ranking_close_cb)(belay_ranking_t *ranking, void *data);

/** Close the handle, as CLOSING in belay/loop.h says. Boards stay on the server. Returns 0,
 * BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_ranking_close(belay_ranking_t *ranking, belay_ranking_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_RANKING_H */
