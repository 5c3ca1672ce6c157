/* What belay does for a command that it runs; what has to be done in time is the keeper's: supervisor.c.
 *
 *   start --> the keeper runs, and the command under it
 *               each renewal: a new deadline to the keeper
 *               a signal: to the command. SIGTSTP: to the command, and stops us; SIGCONT: it too
 *   the keeper's process, its channel and the command's output have ended --> handles are closed --> on_end
 *
 * The output may be open in what the command has left behind: that is waited for until its time is over, or a signal.
 *
 * The keeper is told two times: of the lease less the grace, and of --max-runtime, the earlier one counts.
 *
 * While belay is stopped it renews nothing, and the keeper ends the command at its deadline as always. */
#include "run/guarded_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS_NS INT64_C(1000000)
#define LOOK_MIN_MS 10
#define LOOK_MAX_MS 1000
#define KEEPER_ARGS 6

/* ---- how long ---- */

const char *errand_grace(int64_t ttl_ms, int64_t *grace_ms) {
  if (*grace_ms == 0)
    *grace_ms = ttl_ms / 6;
  if (ttl_ms < 3 * *grace_ms)
    return "--ttl is to be at least three times --grace: renewal begins when a third of it is over";
  return NULL;
}

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle) {
  errand_t *errand = handle->data;
  if (--errand->handles == 0)
    errand->on_end(errand);
}

static void close_handle(uv_handle_t *handle) {
  if (!uv_is_closing(handle))
    uv_close(handle, on_closed);
}

/* A ctrl-C goes to all that are in our group, and so does what timeout(1) sends: also to a keeper
 * that has not come to leaving it, or to blocking signals. It has not run anything then. */
static bool was_interrupted(const errand_t *errand) {
  static const int signums[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  for (size_t i = 0; i < sizeof signums / sizeof *signums; i++)
    if (errand->keeper_died_of == signums[i])
      return !errand->started;
  return false;
}

/* How it ended. If the keeper has not told it, the keeper was killed, and what it kept may be there
 * still. */
static void settle(errand_t *errand) {
  if (errand->told) {
    if (errand->timed_out && errand->started) {
      complain("ended: it ran for longer than --max-runtime");
      errand->status = STATUS_TIMED_OUT;
    }
    return;
  }
  if (was_interrupted(errand)) {
    errand->status = STATUS_SIGNAL + errand->keeper_died_of;
    return;
  }
  if (errand->command > 0)
    (void)kill(-errand->command, SIGKILL);
  errand->status = STATUS_TROUBLE;
  complain("the command was lost sight of, and killed: its keeper is gone");
}

static void ended_one(errand_t *errand) {
  if (--errand->waiting > 0)
    return;
  settle(errand);
  close_handle((uv_handle_t *)&errand->timer);
  for (size_t i = 0; i < ERRAND_SIGNALS; i++)
    close_handle((uv_handle_t *)&errand->signal[i]);
  if (uv_handle_get_type((uv_handle_t *)&errand->process) == UV_PROCESS)
    close_handle((uv_handle_t *)&errand->process);
  close_handle((uv_handle_t *)&errand->channel);
  if (errand->output != NULL)
    close_handle((uv_handle_t *)&errand->pipe);
}

/* Nothing is waited for any more but the output, which whoever has it open may never close; be it
 * that the keeper was killed before he could tell. */
static bool only_reads(const errand_t *errand) {
  return errand->waiting == 1 && errand->output != NULL &&
         uv_is_active((const uv_handle_t *)&errand->pipe);
}

static void give_up_reading(errand_t *errand) {
  errand->not_all = true;
  if (errand->hurried != 0 && errand->status == STATUS_YES)
    errand->status = STATUS_SIGNAL + errand->hurried;
  (void)uv_read_stop((uv_stream_t *)&errand->pipe);
  ended_one(errand);
}

bool errand_runs(const errand_t *errand) {
  return errand->waiting > 0;
}

void errand_lose(errand_t *errand, const char *why) {
  if (!errand->lost)
    complain("lost while the command ran: %s", why);
  errand->lost = true;
  errand->status = STATUS_LOST;
}

/* ---- belay to keeper ---- */

static void on_told(uv_write_t *write, int status);

/* What the channel has no room for is written once it has, and the rest behind it: the keeper may
 * be stopped. Where it is gone that is noticed elsewhere. */
static void tell_owed(errand_t *errand) {
  uv_stream_t *channel = (uv_stream_t *)&errand->channel;
  while (errand->owed_n > 0 && !errand->is_writing && !uv_is_closing((uv_handle_t *)channel)) {
    errand->writing = errand->owed[0];
    errand->owed_n--;
    memmove(errand->owed, errand->owed + 1, errand->owed_n * sizeof *errand->owed);
    uv_buf_t rest = uv_buf_init((char *)&errand->writing, sizeof errand->writing);
    int n = uv_try_write(channel, &rest, 1);
    if (n == (int)sizeof errand->writing)
      continue;
    if (n > 0)
      rest = uv_buf_init(rest.base + n, (unsigned)(rest.len - (size_t)n));
    errand->write.data = errand;
    errand->is_writing = uv_write(&errand->write, channel, &rest, 1, on_told) == 0;
  }
}

static void on_told(uv_write_t *write, int status) {
  errand_t *errand = write->data;
  errand->is_writing = false;
  if (status == 0)
    tell_owed(errand);
}

/* The same signal twice that nobody has looked at is one, as everywhere, and of limits the last
 * ones count. */
static void tell(errand_t *errand, keeper_note_t note) {
  size_t kept = 0;
  if (!errand_runs(errand))
    return;
  for (size_t i = 0; i < errand->owed_n; i++)
    if (errand->owed[i].word != note.word || errand->owed[i].number != note.number)
      errand->owed[kept++] = errand->owed[i];
  errand->owed[kept] = note;
  errand->owed_n = kept + 1;
  tell_owed(errand);
}

static keeper_note_t limits(const errand_t *errand, int64_t until) {
  int64_t grace = errand->grace_ms * MS_NS, term_at = until - grace;
  if (term_at > errand->run_until)
    term_at = errand->run_until;
  return (keeper_note_t){
      .word = KEEPER_LIMITS, .term_at = term_at, .kill_at = term_at + grace - grace / 10};
}

/* The keeper ends it: since its lease is nearly over, or since it has run for long enough. */
static void note_overdue(errand_t *errand) {
  int64_t term_at = errand->until - errand->grace_ms * MS_NS;
  if (errand->run_until <= term_at && keeper_now() >= errand->run_until)
    errand->timed_out = true;
  else
    errand->overdue = true;
}

/* The clock is read first: so the deadline is never too late. */
static int64_t read_until(const errand_t *errand) {
  int64_t now = keeper_now(), left = errand->left(errand->data);
  return now + (left < INT64_MAX / 2000 ? left * 1000 : INT64_MAX / 2 - now);
}

static void on_timer(uv_timer_t *timer);

/* The keeper would have ended it by now if nobody had stopped it: in half the time that is left
 * there. One that goes on only now, and has begun nothing, does not. */
static void guard(errand_t *errand, int64_t now) {
  int64_t margin = errand->grace_ms * MS_NS / 20;
  if (errand->told || now < limits(errand, errand->until).kill_at + margin)
    return;
  note_overdue(errand);
  if (errand->command > 0)
    (void)kill(-errand->command, SIGKILL);
  (void)uv_process_kill(&errand->process, SIGCONT);
}

/* What is lost all at once, since the server says that it is someone else's, leaves the grace to
 * tidy up. */
void errand_look(errand_t *errand) {
  int64_t now = keeper_now(), until = read_until(errand), end = now + errand->grace_ms * MS_NS;
  if (!errand_runs(errand))
    return;
  if (until <= now + MS_NS)
    until = errand->until < end ? errand->until : end;
  int64_t apart = until - errand->until;
  if (apart > MS_NS || apart < -MS_NS) {
    tell(errand, limits(errand, until));
    errand->until = until;
  }
  guard(errand, now);
  if (only_reads(errand) && (errand->hurried != 0 || now >= errand->until)) {
    give_up_reading(errand);
    return;
  }
  int64_t next = (errand->until - end) / MS_NS / 4;
  next = next < LOOK_MIN_MS ? LOOK_MIN_MS : next > LOOK_MAX_MS ? LOOK_MAX_MS : next;
  (void)uv_timer_start(&errand->timer, on_timer, (uint64_t)next, 0);
}

static void on_timer(uv_timer_t *timer) {
  errand_look(timer->data);
}

/* ---- signals ---- */

static bool is_to_end(int signum) {
  return signum != SIGUSR1 && signum != SIGUSR2 && signum != SIGWINCH && signum != SIGTSTP;
}

void errand_signal(errand_t *errand, int signum) {
  if (is_to_end(signum))
    errand->hurried = signum;
  if (only_reads(errand) && is_to_end(signum))
    give_up_reading(errand);
  else
    tell(errand, (keeper_note_t){.word = KEEPER_SIGNAL, .number = signum});
}

bool errand_take(errand_t *errand, int signum) {
  bool runs = errand_runs(errand), passes = !runs && errand->harness != NULL && !errand->urged;
  if (runs)
    errand_signal(errand, signum);
  errand->urged = errand->urged || passes;
  return runs || passes;
}

static void on_signal(uv_signal_t *watcher, int signum) {
  errand_t *errand = watcher->data;
  if (signum != SIGCONT)
    errand_signal(errand, signum);
  if (signum == SIGTSTP)
    harness_suspend();
  if (signum == SIGTSTP || signum == SIGCONT) { /* the system may not have stopped us */
    tell(errand, (keeper_note_t){.word = KEEPER_CONTINUE});
    errand_look(errand);
  }
}

static bool is_ignored(int signum) {
  struct sigaction now;
  return sigaction(signum, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* Bit N: signal N is ignored, as nohup(1) wants it. That of broken pipes is by ourselves. */
static long ignored_signals(void) {
  long mask = 0;
  for (int i = 1; i < 32; i++)
    if (i != SIGPIPE && is_ignored(i))
      mask |= 1L << i;
  return mask;
}

/* Those that the harness does not watch. */
static void watch_signals(errand_t *errand) {
  static const int signums[ERRAND_SIGNALS] = {SIGQUIT,  SIGUSR1, SIGUSR2,
                                              SIGWINCH, SIGTSTP, SIGCONT};
  for (size_t i = 0; i < ERRAND_SIGNALS; i++) {
    uv_signal_t *watcher = &errand->signal[i];
    (void)uv_signal_init(&errand->harness->loop, watcher);
    watcher->data = errand;
    errand->handles++;
    if (!is_ignored(signums[i]) && uv_signal_start(watcher, on_signal, signums[i]) != 0)
      complain("signal %d does not reach the command", signums[i]);
  }
}

/* ---- keeper to belay ---- */

static void on_failed(errand_t *errand, int error) {
  errand->told = true;
  errand->started = false;
  errand->status = error == ENOENT ? STATUS_NO_COMMAND : STATUS_CANNOT_RUN;
  complain("%s: %s", out_shown(errand->name, strlen(errand->name)), strerror(error));
}

static void on_note(errand_t *errand, const keeper_note_t *note) {
  switch (note->word) {
  case KEEPER_STARTED:
    errand->started = true;
    errand->command = note->number;
    break;
  case KEEPER_FAILED:
    on_failed(errand, note->number);
    break;
  /* and whoever else the terminal would have stopped, if it had not been lent */
  case KEEPER_STOPPED:
    (void)kill(0, SIGTSTP);
    break;
  case KEEPER_OVERDUE:
    note_overdue(errand);
    break;
  case KEEPER_ENDED:
    errand->told = true;
    errand->status = WIFEXITED(note->number) ? WEXITSTATUS(note->number)
                                             : STATUS_SIGNAL + WTERMSIG(note->number);
    break;
  default:
    break;
  }
}

static void on_note_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  (void)suggested;
  errand_t *errand = handle->data;
  *buf = uv_buf_init((char *)&errand->note + errand->len,
                     (unsigned)(sizeof errand->note - errand->len));
}

static void on_note_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  (void)buf;
  errand_t *errand = stream->data;
  if (n < 0) {
    (void)uv_read_stop(stream);
    ended_one(errand);
    return;
  }
  errand->len += (size_t)n;
  if (errand->len < sizeof errand->note)
    return;
  errand->len = 0;
  on_note(errand, &errand->note);
}

static void on_exit_status(uv_process_t *process, int64_t status, int signum) {
  errand_t *errand = process->data;
  (void)status;
  errand->keeper_died_of = signum;
  ended_one(errand);
}

/* ---- its output ---- */

static void on_output_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  (void)suggested;
  errand_t *errand = handle->data;
  *buf = uv_buf_init(errand->buffer, sizeof errand->buffer);
}

static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  errand_t *errand = stream->data;
  if (n < 0) {
    (void)uv_read_stop(stream);
    ended_one(errand);
    return;
  }
  if ((size_t)n > errand->output_max - errand->output->len) {
    errand->too_much = true;
    errand_signal(errand, SIGKILL);
    return;
  }
  text_add(errand->output, buf->base, (size_t)n);
}

/* ---- the beginning ---- */

const char *errand_own_path(void) {
  static char path[PATH_MAX] = "/proc/self/exe";
  size_t size = sizeof path;
  if (access(path, X_OK) != 0 && uv_exepath(path, &size) != 0)
    path[0] = '\0'; /* which cannot be started, and that is said */
  return path;
}

static int spawn(errand_t *errand, char **command, int channel) {
  char socket[24], ignored[24], term_at[24], kill_at[24];
  size_t n = 0;
  while (command[n] != NULL)
    n++;
  char **args = calloc(n + KEEPER_ARGS + 1, sizeof *args);
  if (args == NULL)
    return UV_ENOMEM;
  errand->until = read_until(errand);
  errand->run_until =
      errand->max_runtime_ms > 0 ? keeper_now() + errand->max_runtime_ms * MS_NS : INT64_MAX;
  keeper_note_t note = limits(errand, errand->until);
  (void)snprintf(socket, sizeof socket, "%d", channel);
  (void)snprintf(ignored, sizeof ignored, "%ld", ignored_signals());
  (void)snprintf(term_at, sizeof term_at, "%" PRId64, note.term_at);
  (void)snprintf(kill_at, sizeof kill_at, "%" PRId64, note.kill_at);
  char *first[KEEPER_ARGS] = {"belay", KEEPER_NAME, socket, ignored, term_at, kill_at};
  memcpy(args, first, sizeof first);
  memcpy(args + KEEPER_ARGS, command, n * sizeof *command);

  uv_stdio_container_t stdio[3];
  for (int i = 0; i < 3; i++)
    stdio[i] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = i};
  for (int i = 1; i < 3 && errand->capture != NULL; i++)
    stdio[i].data.fd = fileno(errand->capture->file[i - 1]);
  if (errand->output != NULL) {
    stdio[1].flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE);
    stdio[1].data.stream = (uv_stream_t *)&errand->pipe;
  }
  uv_process_options_t options = {
      .exit_cb = on_exit_status,
      .file = errand_own_path(),
      .args = args,
      .stdio_count = 3,
      .stdio = stdio,
  };
  errand->handles++; /* also if it fails */
  int error = uv_spawn(&errand->harness->loop, &errand->process, &options);
  free(args);
  return error;
}

static void open_handles(errand_t *errand) {
  uv_loop_t *loop = &errand->harness->loop;
  (void)uv_timer_init(loop, &errand->timer);
  (void)uv_pipe_init(loop, &errand->channel, 0);
  errand->timer.data = errand->channel.data = errand->process.data = errand;
  errand->handles += 2;
  if (errand->output == NULL)
    return;
  (void)uv_pipe_init(loop, &errand->pipe, 0);
  errand->pipe.data = errand;
  errand->handles++;
}

/* A socket of any number, instead of the first free ones: the command gets all files that belay was
 * given. */
static int begin(errand_t *errand, char **command) {
  uv_os_sock_t ends[2];
  int error = uv_socketpair(SOCK_STREAM, 0, ends, UV_NONBLOCK_PIPE, 0);
  if (error != 0)
    return error;
  error = uv_pipe_open(&errand->channel, ends[0]);
  if (error != 0)
    (void)close(ends[0]);
  (void)fcntl(ends[1], F_SETFD, 0);
  if (error == 0)
    error = spawn(errand, command, ends[1]);
  (void)close(ends[1]);
  return error;
}

void errand_start(errand_t *errand, harness_t *harness, char **command) {
  errand->harness = harness;
  errand->name = command[0];
  errand->waiting = errand->output != NULL ? 3 : 2;
  open_handles(errand);
  int error = errand->capture != NULL && !capture_open(errand->capture)
                  ? uv_translate_sys_error(errno)
                  : begin(errand, command);
  watch_signals(errand); /* behind it: what we ignore is looked at before */
  if (error == 0)
    error = uv_read_start((uv_stream_t *)&errand->channel, on_note_room, on_note_read);
  if (error == 0 && errand->output != NULL)
    error = uv_read_start((uv_stream_t *)&errand->pipe, on_output_room, on_output);
  if (error != 0) {
    complain("the command cannot be run: %s", uv_strerror(error));
    errand->told = true;
    errand->status = STATUS_TROUBLE;
    errand->waiting = 1;
    ended_one(errand);
    return;
  }
  errand_look(errand);
}
