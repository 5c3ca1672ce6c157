/* A look at the servers of a deployment: each is visited by a client of its own, all of them at the same time.
 *
 *   a place is known --> MEETING --HELLO ... answered---> SAMPLING --TIME, as often as it was wanted--> LEAVING
 *                           |  it names others: they are visited too    ^   |                             |  |
 *                           |                                           +---+                             |  |
 *                           +--not reached; or it was met before, elsewhere; or nobody wants to know------+  |
 *                                                                                                            v
 *                                                                                 its client is closed: GONE
 *
 * When the last one is leaving it is told. When it was told, or who asked has left, and all are gone, so is the tour: a
 * client that looks a name up is closed when that is over, which may be long after. Who leaves ends the visits. All answers
 * end by one deadline, so that it needs no timer.
 *
 * Where no place is known the deployment's own client is asked for a sign of life first, for which it must find one. It may
 * find who is dead: so after a third of the time whoever it knows by then is visited, and only if that is nobody it has the
 * rest of it too. */
#include "admin/topology.h"

#include <string.h>

#include "core/client/request.h"
#include "core/client/lifecycle.h"

enum {
  MEETING,  /* made: HELLO, ROLE and INFO are sent */
  SAMPLING, /* met: TIME is sent, again and again */
  LEAVING,  /* all is known of it that will be: its client closes */
  GONE      /* there is no client, or none could be made */
};

#define QUESTIONS_MAX 3 /* at once, of one server */

typedef struct visit visit_t;
typedef struct tour tour_t;

struct visit {
  belay__list_t node; /* the tour's */
  tour_t *tour;
  belay_client_t *client; /* NULL: GONE */
  belay__task_t task;     /* what was asked is answered */
  size_t asked;           /* calls that are on the way */
  belay__call_t *calls[QUESTIONS_MAX];
  uint8_t state;
  bool twin; /* it was met before, by another address */
  bool mute; /* it does not tell the time */
  belay__sight_t sight;
};

struct tour {
  belay_t *belay;
  belay__pending_t *pending; /* NULL: it is over, or nobody wants to know any more */
  belay_client_t *client;    /* whose deployment it is, until then */
  belay__task_t task;        /* to begin, or to end */
  belay__list_t visits;
  size_t n, open; /* visits; those that are MEETING or SAMPLING */
  size_t holds;   /* who needs it: visits that are not GONE, and the request */
  unsigned samples;
  uint64_t deadline;
  int status; /* why nobody is known, or not everybody who was named */
  bool begun;
};

/* ---- the tour ------------------------------------------------------------------------------------------ */

static visit_t *visit_of(belay__list_t *node) {
  return BELAY__CONTAINER(node, visit_t, node);
}

static void free_tour(tour_t *tour) {
  for (belay__list_t *node; (node = belay__list_pop(&tour->visits)) != NULL;)
    belay__free(tour->belay, visit_of(node), sizeof(visit_t));
  belay__task_stop(tour->belay, &tour->task);
  belay__free(tour->belay, tour, sizeof *tour);
}

static void let_go(tour_t *tour) {
  if (--tour->holds == 0)
    free_tour(tour);
}

static void check_end(tour_t *tour) {
  if (tour->open == 0 && tour->begun && tour->pending != NULL)
    belay__defer(tour->belay, &tour->task);
}

static bool is_known(const tour_t *tour, const char *place) {
  for (belay__list_t *node = tour->visits.next; node != &tour->visits; node = node->next)
    if (strcmp(visit_of(node)->sight.address, place) == 0)
      return true;
  return false;
}

static void on_gone(belay_client_t *client, void *data);
static void on_visit(belay__task_t *task);

/* What is asked, of whom one meets, and then again and again. */
typedef struct question {
  const char *command, *argument;
} question_t;

static const question_t who[QUESTIONS_MAX] = {{"HELLO", NULL}, {"ROLE", NULL}, {"INFO", "stats"}};
static const question_t when[1] = {{"TIME", NULL}};

static bool ask(visit_t *visit, const question_t *questions, size_t n);

/* Visits that place, if that was not done. */
static void add(tour_t *tour, const char *place) {
  if (place[0] == '\0' || tour->n == BELAY_TOPOLOGY_SERVERS_MAX || is_known(tour, place))
    return;
  visit_t *visit = belay__alloc(tour->belay, sizeof *visit);
  if (visit == NULL) { /* there is not even room for what it would be told with */
    tour->status = BELAY_ENOMEM;
    return;
  }
  *visit = (visit_t){.tour = tour, .state = GONE};
  belay__task_init(&visit->task, on_visit);
  belay__sight_init(&visit->sight, place);
  int error = tour->client->node_ops->visit(tour->client, place, &visit->client);
  if (error == BELAY_ESINGLE) { /* it is another deployment's */
    belay__free(tour->belay, visit, sizeof *visit);
    return;
  }
  belay__list_push(&tour->visits, &visit->node);
  tour->n++;
  visit->sight.told.status = error;
  if (error != 0)
    return;
  visit->client->data = visit;
  visit->client->close_cb = on_gone;
  visit->state = MEETING;
  tour->open++;
  tour->holds++;
  if (!ask(visit, who, QUESTIONS_MAX))
    belay__defer(tour->belay, &visit->task);
}

static void begin(tour_t *tour) {
  char place[BELAY__PLACE_MAX];
  tour->begun = true;
  for (size_t i = 0; tour->client->node_ops->place(tour->client, i, place); i++) {
    if (i == 0)
      tour->status = 0; /* whoever has not answered */
    add(tour, place);
  }
  check_end(tour);
}

enum { TOUR, SERVERS }; /* of a request's values: the tour that is over; how many are told */

static void end(tour_t *tour) {
  belay__pending_t *pending = tour->pending;
  belay_topology_server_t *told = NULL;
  size_t n = 0;
  if (tour->status == 0)
    told = belay__request_room(pending, tour->n * sizeof *told);
  for (belay__list_t *node = tour->visits.next; told != NULL && node != &tour->visits;
       node = node->next) {
    visit_t *visit = visit_of(node);
    belay__sight_sum_up(&visit->sight);
    if (!visit->twin)
      told[n++] = visit->sight.told;
  }
  tour->pending = NULL;
  pending->values[TOUR] = (int64_t)(intptr_t)tour;
  pending->values[SERVERS] = (int64_t)n;
  belay__request_end(pending, tour->status == 0 && told == NULL ? BELAY_ENOMEM : tour->status);
}

/* It begins; or all are leaving. */
static void on_tour(belay__task_t *task) {
  tour_t *tour = BELAY__CONTAINER(task, tour_t, task);
  if (tour->begun)
    end(tour);
  else
    begin(tour);
}

/* ---- a visit ------------------------------------------------------------------------------------------- */

static void leave(visit_t *visit) {
  if (visit->state == LEAVING)
    return;
  visit->state = LEAVING;
  visit->tour->open--;
  if (!visit->client->closing)
    belay__client_start_close(visit->client, false);
  check_end(visit->tour);
}

/* It may be that somebody else has closed it: all of belay's clients. */
static void on_gone(belay_client_t *client, void *data) {
  visit_t *visit = data;
  (void)client;
  leave(visit);
  visit->state = GONE;
  visit->client = NULL;
  belay__task_stop(visit->tour->belay, &visit->task);
  let_go(visit->tour);
}

static void on_answer(belay__call_t *call, const belay__result_t *result);

/* Keeps the error, and what the client knows of it. */
static void fail(visit_t *visit, int error) {
  const belay__refused_t *refused = &visit->client->refused;
  visit->sight.told.status = error;
  if (refused->error == error)
    memcpy(visit->sight.detail, refused->text, sizeof visit->sight.detail);
}

static belay__call_t *new_call(visit_t *visit, const question_t *question) {
  belay__call_t *call = belay__call_new(visit->client, BELAY__LANE_LEASE);
  if (call == NULL)
    return NULL;
  belay__call_command(call, question->command, question->argument == NULL ? 1 : 2);
  if (question->argument != NULL)
    belay__call_arg_text(call, question->argument);
  call->deadline = visit->tour->deadline;
  call->done = on_answer;
  call->owner = visit;
  return call;
}

/* Sends them together; false if that cannot be. */
static bool ask(visit_t *visit, const question_t *questions, size_t n) {
  belay__call_t *calls[QUESTIONS_MAX];
  size_t made = 0;
  for (; made < n && (calls[made] = new_call(visit, &questions[made])) != NULL; made++)
    calls[made]->place = &visit->calls[made];
  int error = made == n ? belay__call_send(calls, n) : BELAY_ENOMEM;
  if (made < n)
    belay__calls_discard(calls, made);
  visit->asked = error == 0 ? n : 0;
  if (error != 0)
    fail(visit, error);
  return error == 0;
}

static void keep_run_id(visit_t *visit) {
  const belay__server_info_t *server =
      visit->client->node_ops->server(visit->client, BELAY__LANE_LEASE, 0);
  if (server != NULL)
    memcpy(visit->sight.run_id, server->run_id, server->run_id_len);
}

static void visit_others(visit_t *visit, const belay__reply_t *role) {
  char place[BELAY__PLACE_MAX];
  add(visit->tour, visit->sight.primary);
  for (size_t i = 0; belay__sight_replica(role, i, place); i++)
    add(visit->tour, place);
}

static void read_reply(visit_t *visit, const belay__call_t *call, const belay__reply_t *reply) {
  belay_t *belay = visit->tour->belay;
  size_t which = (size_t)(call->place - visit->calls);
  if (visit->state == SAMPLING) {
    int64_t wall_us = belay->host->wall_us(belay); /* first: what it takes to look is in `took` */
    uint64_t took = belay__now(belay) - call->first_sent;
    if (!belay__sight_read_time(&visit->sight, reply, took, wall_us))
      visit->sight.told.status = BELAY_EPROTO;
  } else if (which == 0) {
    belay__sight_read_hello(&visit->sight, reply);
  } else if (which == 2) {
    belay__sight_read_stats(&visit->sight, reply);
  } else {
    belay__sight_read_role(&visit->sight, reply);
    if (visit->tour->pending != NULL)
      visit_others(visit, reply);
  }
}

/* What its user may not ask is left out. */
static void on_answer(belay__call_t *call, const belay__result_t *result) {
  visit_t *visit = call->owner;
  bool refused = result->outcome == BELAY_OUTCOME_REFUSED && call->epoch != 0;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    read_reply(visit, call, result->reply);
  else if (refused && visit->state == SAMPLING)
    visit->mute = true;
  else if (!refused)
    fail(visit, result->error);
  if (--visit->asked == 0)
    belay__defer(visit->tour->belay, &visit->task);
}

static bool is_twin(const visit_t *visit) {
  const belay__list_t *all = &visit->tour->visits;
  for (const belay__list_t *node = all->next; node != all; node = node->next) {
    const visit_t *other = BELAY__CONTAINER(node, visit_t, node);
    if (other != visit && !other->twin && other->sight.run_id[0] != '\0' &&
        strcmp(other->sight.run_id, visit->sight.run_id) == 0)
      return true;
  }
  return false;
}

static bool goes_on(const visit_t *visit) {
  const tour_t *tour = visit->tour;
  return tour->pending != NULL && visit->sight.told.status == 0 && !visit->twin && !visit->mute &&
         visit->sight.told.samples < tour->samples;
}

/* All that was asked is answered: all transitions but the last. */
static void step(visit_t *visit) {
  switch (visit->state) {
  case MEETING:
    keep_run_id(visit);
    visit->twin = is_twin(visit);
    visit->state = SAMPLING;
    break;
  case SAMPLING:
    break;
  default: /* it is leaving anyway */
    return;
  }
  if (!goes_on(visit) || !ask(visit, when, 1))
    leave(visit);
}

static void on_visit(belay__task_t *task) {
  step(BELAY__CONTAINER(task, visit_t, task));
}

/* ---- who asks ------------------------------------------------------------------------------------------ */

static bool knows_somebody(const tour_t *tour) {
  char place[BELAY__PLACE_MAX];
  return tour->client->node_ops->place(tour->client, 0, place);
}

static int ask_sign(tour_t *tour, uint64_t deadline) {
  belay__call_t *call = belay__call_new(tour->client, BELAY__LANE_LEASE);
  belay__call_command(call, "PING", 1);
  tour->pending->deadline = deadline;
  return belay__request_send(tour->pending, call);
}

/* The deployment has given a sign of life, or none: what it knows now is where to go. */
static int read_sign(belay__pending_t *pending, const belay__call_t *call,
                     const belay__reply_t *reply) {
  tour_t *tour = pending->context;
  (void)call;
  (void)reply;
  belay__defer(tour->belay, &tour->task);
  return BELAY__REQUEST_PARK;
}

static int recover(belay__pending_t *pending, int status) {
  tour_t *tour = pending->context;
  bool early = pending->deadline < tour->deadline && belay__now(tour->belay) >= pending->deadline;
  tour->status = status;
  if (early && !knows_somebody(tour)) {
    int error = ask_sign(tour, tour->deadline);
    if (error == 0)
      return BELAY__REQUEST_PARK;
    tour->status = error;
  }
  belay__defer(tour->belay, &tour->task);
  return BELAY__REQUEST_PARK;
}

static void left(belay__pending_t *pending, bool sent) {
  tour_t *tour = pending->context;
  (void)sent;
  tour->pending = NULL;
  belay__task_stop(tour->belay, &tour->task);
  for (belay__list_t *node = tour->visits.next; node != &tour->visits; node = node->next)
    if (visit_of(node)->state != GONE)
      leave(visit_of(node));
  let_go(tour);
}

static void tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  tour_t *tour = (void *)(intptr_t)answer->values[TOUR];
  bool well = answer->status == 0;
  ((belay_topology_cb)cb)(request, answer->status, well ? answer->room : NULL,
                          well ? (size_t)answer->values[SERVERS] : 0);
  if (tour != NULL)
    let_go(tour);
}

static const belay__request_ops_t ops = {
    .read = read_sign, .recover = recover, .left = left, .tell = tell, .idempotent = true};

static int check(belay_client_t *client, const belay_request_t *request, unsigned samples,
                 bool has_cb) {
  int error = belay__client_check(client);
  if (error == 0)
    error = belay__request_check(client, request, has_cb);
  return error != 0
             ? error
             : belay__check_range(client->belay, "samples", samples, 1, BELAY_TOPOLOGY_SAMPLES_MAX);
}

/* Begins where somebody is known, or asks for a sign of life. */
static int start(tour_t *tour) {
  uint64_t now = belay__now(tour->belay);
  if (!knows_somebody(tour))
    return ask_sign(tour, now + (tour->deadline - now) / 3);
  belay__defer(tour->belay, &tour->task);
  return 0;
}

int belay_topology_read(belay_client_t *client, belay_request_t *request, unsigned samples,
                        belay_topology_cb cb) {
  int error = check(client, request, samples, cb != NULL);
  if (error != 0)
    return error;
  belay_t *belay = client->belay;
  tour_t *tour = belay__alloc(belay, sizeof *tour);
  if (tour == NULL)
    return BELAY_ENOMEM;
  *tour = (tour_t){.belay = belay, .client = client, .samples = samples, .holds = 1};
  belay__list_init(&tour->visits);
  belay__task_init(&tour->task, on_tour);
  tour->deadline = belay__after_ms(belay, belay__request_timeout_ms(client, request));
  error = belay__request_begin(client, request, &ops, tour, NULL, BELAY__CB(cb), &tour->pending);
  if (error == 0)
    error = belay__request_begun(tour->pending, start(tour));
  if (error != 0)
    free_tour(tour);
  return error;
}
