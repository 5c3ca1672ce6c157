#include "demo/contender.h"

#include <string.h>

static void on_ended(belay_lock_t *lock, int status) {
  contender_t *contender = belay_lock_data(lock);
  contender->at = uv_hrtime();
  contender->ended = true;
  contender->status = status;
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  contender_t *contender = belay_lock_data(lock);
  contender->lost = uv_hrtime();
  contender->reason = reason;
}

void contender_options(contender_t *contender, belay_lock_options_t *options, int64_t ttl_ms,
                       bool watchdog) {
  belay_lock_options_init(options);
  options->ttl_ms = ttl_ms;
  options->watchdog = watchdog ? BELAY_WATCHDOG_ON : BELAY_WATCHDOG_OFF;
  options->on_lost = on_lost;
  options->data = contender;
}

bool contender_open(contender_t *contender, demo_t *demo, demo_who_t who, int64_t ttl_ms,
                    bool watchdog) {
  belay_lock_options_t options;
  *contender = (contender_t){.demo = demo, .who = who};
  contender_options(contender, &options, ttl_ms, watchdog);
  return demo_check(
      demo, "making a lock",
      belay_lock_new(demo->client[who], belay_string(demo->name), &options, &contender->lock));
}

static void on_closed(belay_lock_t *lock, void *data) {
  contender_t *contender = data;
  (void)lock;
  contender->lock = NULL;
  demo_done(contender->demo, 0);
}

void contender_close(contender_t *contender) {
  if (contender->lock != NULL)
    (void)demo_await(contender->demo, "closing the lock",
                     belay_lock_close(contender->lock, on_closed));
}

bool contender_start(contender_t *contender, int64_t wait_ms) {
  contender->ended = false;
  contender->asked = uv_hrtime();
  return demo_check(contender->demo, "acquiring the lock",
                    belay_lock_acquire(contender->lock, wait_ms, on_ended));
}

bool contender_wait(contender_t *contender) {
  DEMO_WAIT(contender->demo, CONTENDER_PATIENCE_MS, contender->ended);
  return demo_check(contender->demo, "waiting for the lock",
                    contender->ended ? contender->status : BELAY_ETIMEDOUT);
}

bool contender_acquire(contender_t *contender) {
  return contender_start(contender, CONTENDER_PATIENCE_MS) && contender_wait(contender);
}

bool contender_release(contender_t *contender) {
  contender->ended = false;
  return demo_check(contender->demo, "releasing the lock",
                    belay_lock_release(contender->lock, BELAY_DEFAULT, on_ended)) &&
         contender_wait(contender);
}

void contender_event(contender_t *contender, uint64_t at, const char *what) {
  demo_event(contender->demo, at, "%s %s", contender->who == DEMO_A ? "A" : "B", what);
}
