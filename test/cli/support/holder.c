/* Holds an object for tests of lists and breaks: holder KIND NAME LABEL URL..., where KIND is
 * lock, fair, reader, writer, semaphore (2 of 3 permits) or election. Prints "held" after the
 * grant and "lost" after a loss. On SIGTERM it releases the object and ends. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include <belay.h>

#define CLIENTS_MAX 8
#define TTL_MS 60000

static uv_loop_t loop;
static uv_signal_t end_signal;
static belay_t *belay;
static belay_client_t *clients[CLIENTS_MAX];
static belay_lock_t *lock;
static belay_election_t *election;
static int status;

static void say(const char *what) {
  (void)puts(what);
  (void)fflush(stdout);
}

static void end(uv_signal_t *watcher, int signum) {
  (void)signum;
  uv_close((uv_handle_t *)watcher, NULL);
  (void)belay_close(belay, NULL);
}

static void fail(const char *what, int error) {
  (void)fprintf(stderr, "holder: %s: %s: %s\n", what, belay_strerror(error), belay_detail(belay));
  status = 1;
  if (!uv_is_closing((uv_handle_t *)&end_signal))
    end(&end_signal, 0);
}

static void on_acquired(belay_lock_t *which, int error) {
  (void)which;
  if (error == 0)
    say("held");
  else if (error != BELAY_ECANCELED)
    fail("acquire", error);
}

static void on_lost(belay_lock_t *which, belay_lost_t reason) {
  (void)which;
  (void)reason;
  say("lost");
}

static void on_elected(belay_election_t *which, uint64_t term) {
  (void)which;
  (void)term;
  say("held");
}

static int make(const char *kind, const char *name, size_t n) {
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.ttl_ms = TTL_MS;
  options.watchdog = BELAY_WATCHDOG_OFF;
  options.fair = strcmp(kind, "fair") == 0;
  options.fencing = strcmp(kind, "lock") == 0;
  options.quarantine = BELAY_QUARANTINE_OFF; /* its servers are young */
  options.on_lost = on_lost;
  size_t len = strlen(name);
  if (strcmp(kind, "election") == 0) {
    belay_election_options_t campaign;
    belay_election_options_init(&campaign);
    campaign.ttl_ms = TTL_MS;
    campaign.on_elected = on_elected;
    int error = belay_election_new(clients[0], belay_bytes(name, len), &campaign, &election);
    return error != 0 ? error : belay_election_campaign(election, NULL);
  }
  int error = 0;
  if (strcmp(kind, "reader") == 0 || strcmp(kind, "writer") == 0)
    error =
        belay_rwlock_new(clients, n, belay_bytes(name, len),
                         *kind == 'r' ? BELAY_RWLOCK_READ : BELAY_RWLOCK_WRITE, &options, &lock);
  else if (strcmp(kind, "semaphore") == 0)
    error =
        belay_semaphore_new(clients, n, belay_bytes(name, len),
                            &(belay_semaphore_size_t){.limit = 3, .permits = 2}, &options, &lock);
  else if (n > 1)
    error = belay_redlock_new(clients, n, belay_bytes(name, len), &options, &lock);
  else
    error = belay_lock_new(clients[0], belay_bytes(name, len), &options, &lock);
  return error != 0 ? error : belay_lock_acquire(lock, BELAY_FOREVER, on_acquired);
}

int main(int argc, char **argv) {
  belay_client_options_t options;
  int error = 0;
  size_t n = 0;
  if (argc < 5 || argc > 4 + CLIENTS_MAX || uv_loop_init(&loop) != 0 ||
      belay_open(&loop, NULL, &belay) != 0)
    return 2;
  (void)uv_signal_init(&loop, &end_signal);
  (void)uv_signal_start(&end_signal, end, SIGTERM);
  belay_client_options_init(&options);
  options.owner = argv[3];
  for (; error == 0 && n < (size_t)argc - 4; n++)
    error = belay_connect(belay, argv[4 + n], &options, &clients[n]);
  if (error == 0)
    error = make(argv[1], argv[2], n);
  if (error != 0)
    fail("start", error);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  return status;
}
