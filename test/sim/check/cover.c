/* Counts internal events of the library: functions that the linker wraps (--wrap). */
#include <string.h>

#include "lease/machine/machine.h"
#include "sim/world/process.h"
#include "sim/world/world.h"

void __real_belay__lease_step(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg);
void __wrap_belay__lease_step(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg);

_Static_assert(BELAY__LEASE_CLOSED + 1 == SIM_STATES, "one row for each state");
_Static_assert(BELAY__EV_UNDONE + 1 == SIM_EVENTS, "one column for each event");

/* Counts transitions. No lease steps another one, or itself, inside a transition. */
void __wrap_belay__lease_step(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg) {
  static bool inside;
  sim_process_t *process = sim_process_of(belay__lease_belay(lease));
  process->world->figures.steps[lease->state][event]++;
  if (inside)
    sim_violation(process->world, "callbacks: a lease of %s is stepped inside a transition",
                  process->name);
  inside = true;
  __real_belay__lease_step(lease, event, arg);
  inside = false;
}

belay__verdict_t __real_belay__call_reply(belay__call_t *call, const belay__reply_t *reply);
belay__verdict_t __wrap_belay__call_reply(belay__call_t *call, const belay__reply_t *reply);

/* A script that the server does not know is sent again with its text, unless its caller has
 * left: then the undo may be under way already. */
belay__verdict_t __wrap_belay__call_reply(belay__call_t *call, const belay__reply_t *reply) {
  static const char noscript[] = "NOSCRIPT";
  sim_world_t *world = sim_process_of(call->client->belay)->world;
  bool unknown = reply->type == BELAY__REPLY_ERROR && reply->len > sizeof noscript &&
                 memcmp(reply->str, noscript, sizeof noscript - 1) == 0;
  belay__verdict_t verdict = __real_belay__call_reply(call, reply);
  if (unknown)
    sim_count(world, verdict == BELAY__VERDICT_RESEND ? SIM_RESEND : SIM_RESEND_LEFT);
  return verdict;
}

void __real_belay__call_sent(belay__call_t *call, uint32_t epoch);
void __wrap_belay__call_sent(belay__call_t *call, uint32_t epoch);

void __wrap_belay__call_sent(belay__call_t *call, uint32_t epoch) {
  if (call->tries > 0)
    sim_count(sim_process_of(call->client->belay)->world, SIM_RETRIED);
  __real_belay__call_sent(call, epoch);
}

void __real_belay__leave(belay_t *belay);
void __wrap_belay__leave(belay_t *belay);

void __wrap_belay__leave(belay_t *belay) {
  sim_process_t *process = sim_process_of(belay);
  process->telling = true;
  __real_belay__leave(belay);
  process->telling = false;
}
