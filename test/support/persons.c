#include "support/persons.h"

/* ---- what is heard --------------------------------------------------------------------------------------- */

static void then(person_t *p, news_t event) {
  unsigned inside = p->bed->inside;
  p->bed->wrong += inside + (p->closed > (event == CLOSED));
  p->bed->inside = 0;
  if (p->then != NULL)
    p->then(p, event);
  p->bed->inside = inside;
}

static void on_campaigned(belay_election_t *election, int status) {
  person_t *p = belay_election_data(election);
  p->campaigned++;
  p->campaign_status = status;
  p->bed->wrong += p->campaigned > p->campaigns;
  then(p, CAMPAIGNED);
}

static void on_elected(belay_election_t *election, uint64_t term) {
  person_t *p = belay_election_data(election);
  p->elected++;
  p->bed->wrong += term <= p->term || p->campaigned != p->campaigns;
  p->term = term;
  then(p, ELECTED);
}

static void on_deposed(belay_election_t *election, belay_lost_t reason) {
  person_t *p = belay_election_data(election);
  p->deposed++;
  p->deposed_time = clock_now();
  p->reason = reason;
  p->bed->wrong += p->deposed > p->elected || belay_election_term(election) != 0;
  then(p, DEPOSED);
}

static void on_resigned(belay_election_t *election, int status) {
  person_t *p = belay_election_data(election);
  p->resigned++;
  p->resign_status = status;
  p->bed->wrong += p->resigned > p->resigns;
  then(p, RESIGNED);
}

static void on_observe(belay_election_t *election, int status, const belay_leader_t *leader) {
  person_t *p = belay_election_data(election);
  assert_true(p->sights < SIGHTS_MAX);
  sight_t *sight = &p->sight[p->sights++];
  *sight = (sight_t){.status = status};
  p->bed->wrong += (status == 0) != (leader != NULL);
  if (leader != NULL) {
    sight->term = leader->term;
    sight->ours = leader->ours;
    sight->remaining_ms = leader->remaining_ms;
    memcpy(sight->value, leader->value, leader->value_len);
  }
  then(p, OBSERVED);
}

static void on_closed(belay_election_t *election, void *data) {
  person_t *p = data;
  (void)election;
  p->closed++;
  p->bed->wrong += p->campaigned != p->campaigns || p->resigned != p->resigns;
  p->election = NULL;
  then(p, CLOSED);
}

/* ---- persons --------------------------------------------------------------------------------------------- */

belay_election_options_t election_options(int64_t ttl_ms, const char *value) {
  belay_election_options_t options;
  belay_election_options_init(&options);
  options.ttl_ms = ttl_ms;
  options.value = value;
  options.value_len = value == NULL ? 0 : strlen(value);
  return options;
}

person_t *person_of(bed_t *bed, belay_client_t *client, const belay_election_options_t *options) {
  person_t *p = calloc(1, sizeof *p);
  belay_election_options_t o = *options;
  p->bed = bed;
  o.on_elected = on_elected;
  o.on_deposed = on_deposed;
  o.on_observe = on_observe;
  o.data = p;
  int error = belay_election_new(&client, 1, "crown", 5, &o, &p->election);
  if (error != 0)
    fail_msg("belay_election_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  return p;
}

person_t *person_new(bed_t *bed, const char *value) {
  belay_election_options_t options = election_options(2000 * slow(), value);
  return person_of(bed, bed->client, &options);
}

int campaign(person_t *p) {
  p->bed->inside++;
  int error = belay_election_campaign(p->election, on_campaigned);
  p->bed->inside--;
  p->campaigns += error == 0;
  return error;
}

int begin_resign(person_t *p) {
  p->bed->inside++;
  int error = belay_election_resign(p->election, on_resigned);
  p->bed->inside--;
  p->resigns += error == 0;
  return error;
}

int resign(person_t *p) {
  int error = begin_resign(p);
  if (error == 0)
    bed_until(p->bed, p->resigned == p->resigns);
  return error != 0 ? error : p->resign_status;
}

int observe(person_t *p, int on) {
  p->bed->inside++;
  int error = belay_election_observe(p->election, on);
  p->bed->inside--;
  return error;
}

int begin_close_election(person_t *p) {
  p->bed->inside++;
  int error = belay_election_close(p->election, on_closed);
  p->bed->inside--;
  return error;
}

void lead(person_t *p) {
  unsigned before = p->elected;
  assert_error(campaign(p), 0);
  bed_until(p->bed, p->elected == before + 1);
  assert_error(p->campaign_status, 0);
  assert_true(belay_election_term(p->election) == p->term);
}

const sight_t *last_sight(const person_t *p) {
  static const sight_t none = {.status = 1};
  return p->sights == 0 ? &none : &p->sight[p->sights - 1];
}

bool sees(const person_t *p, uint64_t term) {
  return last_sight(p)->status == 0 && last_sight(p)->term == term;
}

void person_free(person_t *p) {
  free(p);
}
