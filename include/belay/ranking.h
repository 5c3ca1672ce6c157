/* Rankings: members with scores, and who stands where. */
#ifndef BELAY_RANKING_H
#define BELAY_RANKING_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Boards of one kind, any number of them, each with a key of its own: a sorted set. A member is some bytes, a score a
 * whole number. Ranks begin at 0, which is the best. All who share a board should say the same options;
 * belay/config.h makes another order, or other ties, an error.
 *
 * Who has the same score stands in the order of the members' bytes (from the smallest up where low scores are best, from
 * the largest down where high ones are), as a sorted set has it; or of the time at which the scores were reached. For
 * that each change of a score takes the next number of the board's own, whatever clocks say, and all scores may be used;
 * it costs a hash beside the sorted set, about as large again, and all operations are scripts. The two kinds have keys
 * of their own: a board of one is not seen by the other.
 *
 * @code
 * static void on_top(belay_request_t *request, int status, const belay_ranking_entry_t *entries, size_t n) {
 *   (void)request;
 *   for (size_t i = 0; status == 0 && i < n; i++)
 *     printf("%d. %.*s: %lld\n", (int)entries[i].rank + 1, (int)entries[i].member.len,
 *            (const char *)entries[i].member.data, (long long)entries[i].score);
 * }
 *
 * static void on_submitted(belay_request_t *request, int status, const belay_ranking_entry_t *entries, size_t n) {
 *   (void)entries, (void)n;
 *   if (status == 0)
 *     belay_ranking_top(request->data, request, belay_string("today"), 10, on_top);
 * }
 *
 * int submit(belay_ranking_t *ranking, belay_request_t *request, int64_t points) {
 *   belay_ranking_score_t item = {.member = {"ada", 3}, .score = points};
 *   request->data = ranking;
 *   belay_ranking_submission_t scores = {.mode = BELAY_RANKING_BEST, .items = &item, .n = 1};
 *   return belay_ranking_submit(ranking, request, belay_string("today"), &scores, on_submitted);
 * }
 * @endcode */
typedef struct belay_ranking belay_ranking_t;

#define BELAY_RANKING_BOARD_MAX ((size_t)1024)             /**< bytes of a board's key */
#define BELAY_RANKING_MEMBER_MAX ((size_t)1024)            /**< bytes of a member */
#define BELAY_RANKING_SCORE_MAX ((INT64_C(1) << 53) - 1)   /**< of a score, and of what is added */
#define BELAY_RANKING_SCORE_MIN (-BELAY_RANKING_SCORE_MAX) /**< the least of both */
#define BELAY_RANKING_ITEMS_MAX ((size_t)8192)             /**< members in one operation */
#define BELAY_RANKING_PAGE_MAX ((size_t)1024)           /**< members in one answer about a board */
#define BELAY_RANKING_SIZE_MAX ((INT64_C(1) << 32) - 1) /**< members of a board */

/** Which score is the best. */
typedef enum belay_ranking_order {
  BELAY_RANKING_HIGH_FIRST, /**< the highest: points */
  BELAY_RANKING_LOW_FIRST   /**< the lowest: seconds, strokes */
} belay_ranking_order_t;

/** Who of several with the same score is the better. */
typedef enum belay_ranking_ties {
  BELAY_RANKING_BY_MEMBER,     /**< as the members' bytes have it */
  BELAY_RANKING_EARLIER_FIRST, /**< who reached the score first */
  BELAY_RANKING_LATER_FIRST    /**< who reached it last */
} belay_ranking_ties_t;

/** Options; belay_ranking_options_init() sets the defaults. */
typedef struct belay_ranking_options {
  /** Part of the keys, NAMESPACE::ranking::NAME::{BOARD}; at most 128 bytes; copied. */
  belay_bytes_t name;
  belay_ranking_order_t order; /**< default BELAY_RANKING_HIGH_FIRST */
  belay_ranking_ties_t ties;   /**< default BELAY_RANKING_BY_MEMBER */
  /** A board is gone when nothing was submitted to it for so long: 1,000 to 31,536,000,000; default 30 days. 0: it
   * stays for ever, and so does one that had a ttl when somebody submits to it. */
  int64_t ttl_ms;
  /** How many members a board may have: each submit takes those off that are beyond it, the worst. At most
   * BELAY_RANKING_SIZE_MAX; default 0: any number. Of a board that is far beyond it, because it had a larger one, each
   * submit takes 1,024 off. */
  int64_t max_members;
  void *data; /**< belay_ranking_data() */
} belay_ranking_options_t;

BELAY_API void belay_ranking_options_init(belay_ranking_options_t *options);

/** Sends nothing. options: NULL for the defaults. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_ranking_new(belay_client_t *client, const belay_ranking_options_t *options,
                                belay_ranking_t **out);

/** What a submit is given. */
typedef struct belay_ranking_score {
  belay_bytes_t member; /**< 1 to BELAY_RANKING_MEMBER_MAX bytes */
  int64_t score;        /**< BELAY_RANKING_SCORE_MIN to BELAY_RANKING_SCORE_MAX */
} belay_ranking_score_t;

/** Where a member stands. */
typedef struct belay_ranking_entry {
  belay_bytes_t member; /**< its bytes, and no 0 behind them */
  int64_t
      score; /**< 0 if it is not there; what it would have, after a submit that left no place for it */
  int64_t rank; /**< 0: it is the best; -1: it is not there */
  bool changed; /**< of a submit: it gave the member another score, or its first */
} belay_ranking_entry_t;

/** A callback of the shape of belay/request.h. entries: n of them; n is 0 unless status is 0.
 * status:
 *
 *   0                    the server answered
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, and not answered: it may have been executed. What only asks is sent again until its
 *                        deadline, a submit is not: whether it changed anything could not be told any more.
 *                        To submit the same once more is safe with BELAY_RANKING_SET and BELAY_RANKING_BEST
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EOVERFLOW      a score would leave its range: nothing was done, for none of the members
 *   BELAY_EMISMATCH      the board holds a score that is no such number, or is of another kind
 *   BELAY_ELOST          where ties are broken by time: the server has lost a part of the board, as by an eviction;
 *                        belay_ranking_clear() makes it of use again
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE */
typedef void (*belay_ranking_cb)(belay_request_t *request, int status,
                                 const belay_ranking_entry_t *entries, size_t n);

/** The same for what is answered by a number, which is 0 unless status is 0. */
typedef void (*belay_ranking_count_cb)(belay_request_t *request, int status, int64_t count);

/* All that follow return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. A board has 1 to BELAY_RANKING_BOARD_MAX bytes; all that is given is copied. */

/** What is done with a score. */
typedef enum belay_ranking_mode {
  BELAY_RANKING_SET, /**< it is the member's now */
  BELAY_RANKING_ADD, /**< it is added to the member's, which is 0 if it is not there */
  BELAY_RANKING_BEST /**< it is the member's, if it is better than what it has */
} belay_ranking_mode_t;

/** What one submission writes. */
typedef struct belay_ranking_submission {
  belay_ranking_mode_t mode;          /**< what a score does to the member's score */
  const belay_ranking_score_t *items; /**< 1 to BELAY_RANKING_ITEMS_MAX members and scores */
  size_t n;                           /**< number of items */
} belay_ranking_submission_t;

/** Gives members scores, n (1 to BELAY_RANKING_ITEMS_MAX) of them one after the other, all in one step or none; the ttl
 * begins anew. The answer has an entry for each, in this order, of how it stands when all is done. Where ties are broken
 * by time, who submits the score that he has stays where he is. Never sent again. */
BELAY_API int belay_ranking_submit(belay_ranking_t *ranking, belay_request_t *request,
                                   belay_bytes_t board,
                                   const belay_ranking_submission_t *submission,
                                   belay_ranking_cb cb);

/** Where members stand, 1 to BELAY_RANKING_ITEMS_MAX of them; an entry for each, in this order. Sent again. A
 * replica may answer (read_from), here and in all that follows up to the counts. */
BELAY_API int belay_ranking_find(belay_ranking_t *ranking, belay_request_t *request,
                                 belay_bytes_t board, const belay_bytes_t *members, size_t n,
                                 belay_ranking_cb cb);

/** The best n, 1 to BELAY_RANKING_PAGE_MAX, or as many as there are; the best one first. Sent again. */
BELAY_API int belay_ranking_top(belay_ranking_t *ranking, belay_request_t *request,
                                belay_bytes_t board, size_t n, belay_ranking_cb cb);

/** From which end a board is read. */
typedef enum belay_ranking_from {
  BELAY_RANKING_FROM_BEST, /**< the best one first */
  BELAY_RANKING_FROM_WORST /**< the worst one first; ranks are what they are */
} belay_ranking_from_t;

/** A part of a board. {.n = 10}: the best ten. */
typedef struct belay_ranking_page {
  belay_ranking_from_t from; /**< the end of the board where it begins */
  int64_t skip;              /**< members that come before it, 0 to BELAY_RANKING_SIZE_MAX */
  size_t n;                  /**< members that it has at most, 1 to BELAY_RANKING_PAGE_MAX */
  bool by_score; /**< true: members with a score from min to max alone, for skip and n too */
  int64_t min;   /**< the lowest score, included */
  int64_t max;   /**< the highest score, included; at least min */
} belay_ranking_page_t;

/** Reads a part of a board. With by_score the server's work grows with skip. Sent again. */
BELAY_API int belay_ranking_page(belay_ranking_t *ranking, belay_request_t *request,
                                 belay_bytes_t board, const belay_ranking_page_t *page,
                                 belay_ranking_cb cb);

/** A member and its neighbours. */
typedef struct belay_ranking_around {
  belay_bytes_t member; /**< 1 to BELAY_RANKING_MEMBER_MAX bytes */
  size_t before;        /**< members that are better, at most */
  size_t after; /**< members that are worse, at most; all three at most BELAY_RANKING_PAGE_MAX */
} belay_ranking_around_t;

/** Reads a member and its neighbours, in the order of their ranks. No entries: the member is not there. Sent again. */
BELAY_API int belay_ranking_around(belay_ranking_t *ranking, belay_request_t *request,
                                   belay_bytes_t board, const belay_ranking_around_t *around,
                                   belay_ranking_cb cb);

/** How many members there are. Sent again. */
BELAY_API int belay_ranking_count(belay_ranking_t *ranking, belay_request_t *request,
                                  belay_bytes_t board, belay_ranking_count_cb cb);

/** How many have a score from min to max, both of them included. Sent again. */
BELAY_API int belay_ranking_count_by_score(belay_ranking_t *ranking, belay_request_t *request,
                                           belay_bytes_t board, int64_t min, int64_t max,
                                           belay_ranking_count_cb cb);

/** Takes members off, 1 to BELAY_RANKING_ITEMS_MAX of them: how many were there. Never sent again; to remove them once
 * more is safe. */
BELAY_API int belay_ranking_remove(belay_ranking_t *ranking, belay_request_t *request,
                                   belay_bytes_t board, const belay_bytes_t *members, size_t n,
                                   belay_ranking_count_cb cb);

/** Takes the worst off until there are no more than size, 0 to BELAY_RANKING_SIZE_MAX: how many there are then. In steps
 * of 8,192, each with the request's timeout; those that were done stay done if a later one fails. Sent again. */
BELAY_API int belay_ranking_trim(belay_ranking_t *ranking, belay_request_t *request,
                                 belay_bytes_t board, int64_t size, belay_ranking_count_cb cb);

/** Forgets a board, whatever its keys hold, and its configuration record (belay/config.h), in the background of the
 * server; the count is 0. Sent again. */
BELAY_API int belay_ranking_clear(belay_ranking_t *ranking, belay_request_t *request,
                                  belay_bytes_t board, belay_ranking_count_cb cb);

BELAY_API void *belay_ranking_data(const belay_ranking_t *ranking);

/** Runs once when belay_ranking_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_ranking_close_cb)(belay_ranking_t *ranking, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_ranking_close(belay_ranking_t *ranking, belay_ranking_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_RANKING_H */
