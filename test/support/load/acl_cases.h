/* Access-rule cases: all operations of a family, by a user with exactly the rules of
 * belay_acl_rules(); and again without each single rule. */
#ifndef TEST_SUPPORT_LOAD_ACL_CASES_H
#define TEST_SUPPORT_LOAD_ACL_CASES_H

#include "support/fixtures/env.h"

/* Does everything once at least, and the scripts twice, with the env's client; answers must be
 * right. Returns 0, or the first status that is not, at once. */
typedef int (*acl_case_fn)(env_t *env);

#define MUST(operation)                                                                            \
  do {                                                                                             \
    int status_ = (operation);                                                                     \
    if (status_ != 0)                                                                              \
      return status_;                                                                              \
  } while (0)

typedef struct acl_case {
  const char *names; /* as belay_acl_options_t takes them, apart by spaces */
  acl_case_fn run;
  const char *spared;    /* rules whose absence has no visible effect: belay works without them */
  const char *elsewhere; /* words that another test is about; NULL: none */
  const char *covered;   /* names whose own cases are about all of their words; NULL: none */
  unsigned more;         /* servers beside the first: for a quorum */
} acl_case_t;

/* Starts the servers, and checks of the acl_case that
 *   - the words that the first server has executed for it are the words of the rules, all of them,
 *     and no others;
 *   - without any one of them it ends with BELAY_EPERM and a detail that names it; or well, if the
 *     word is spared;
 *   - it makes no more connections than a handful. */
void acl_case_check(const acl_case_t *acl_case);

/* Whether what only this word is needed for is done: it is the one that is missing, or nothing
 * is. */
bool acl_case_allows(const char *word);

/* Of the acl_case's servers beside the first one: the env's client of it. */
belay_client_t *acl_case_node(env_t *env, unsigned i);

/* Waits for a subscriber of "KEY::wake"; returns at once if a right is missing. */
void acl_case_await_subscriber(env_t *env, const char *key);

/* ---- by hand ---- */

/* Creates the user "worker" with the rules, or with those of these names, less one word (NULL:
 * none). */
void acl_user_set_rules(server_t *server, const char *rules, const char *less);
void acl_user_set_features(server_t *server, const char *names, const char *less);

/* Where the server is for that user. Valid until the next time. */
const char *acl_user_url(const server_t *server);

#endif /* TEST_SUPPORT_LOAD_ACL_CASES_H */
