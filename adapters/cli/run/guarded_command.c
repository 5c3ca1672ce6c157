/* Guarded commands, the part in belay. The supervisor ends the command in time: see supervisor.c.
 *
 *   start --> the supervisor runs, and the command under it
 *               each renewal: send a new deadline to the supervisor
 *               a signal: forward it to the command; after SIGTSTP stop belay too
 *   supervisor, channel and output have ended --> handles are closed --> on_end
 *
 * A process that the command left behind may keep the output open. belay reads on until the lease
 * is over or a signal comes.
 *
 * While belay is stopped it renews nothing, and the supervisor ends the command at its deadline. */
#include "run/guarded_command.h"

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
#define CHECK_MIN_MS 10
#define CHECK_MAX_MS 1000
#define SUPERVISOR_ARGS 6

/* ---- the grace ---- */

const char *guarded_set_grace(int64_t ttl_ms, int64_t *grace_ms) {
  if (*grace_ms == 0)
    *grace_ms = ttl_ms / 6;
  if (ttl_ms < 3 * *grace_ms)
    return "--ttl must be at least three times --grace: renewals start after a third of --ttl";
  return NULL;
}

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle) {
  guarded_t *guarded = handle->data;
  if (--guarded->handles == 0)
    guarded->on_end(guarded);
}

static void close_handle(uv_handle_t *handle) {
  if (!uv_is_closing(handle))
    uv_close(handle, on_closed);
}

/* Returns true if a signal to the process group of belay ended the supervisor before it had started
 * the command. Ctrl-C and timeout(1) signal the whole group, which includes a supervisor that has
 * not yet left the group or blocked signals. */
static bool was_interrupted(const guarded_t *guarded) {
  static const int signums[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  for (size_t i = 0; i < sizeof signums / sizeof *signums; i++)
    if (guarded->supervisor_signal == signums[i])
      return !guarded->started;
  return false;
}

/* Set the status. If the supervisor did not send it, the supervisor was killed, and processes of
 * the command may still run. */
static void set_status(guarded_t *guarded) {
  if (guarded->has_status)
    return;
  if (was_interrupted(guarded)) {
    guarded->status = STATUS_SIGNAL + guarded->supervisor_signal;
    return;
  }
  if (guarded->command > 0)
    (void)kill(-guarded->command, SIGKILL);
  guarded->status = STATUS_TROUBLE;
  complain("the supervisor of the command is gone, so the command was killed");
}

static void source_ended(guarded_t *guarded) {
  if (--guarded->waiting > 0)
    return;
  set_status(guarded);
  close_handle((uv_handle_t *)&guarded->timer);
  for (size_t i = 0; i < GUARDED_SIGNALS; i++)
    close_handle((uv_handle_t *)&guarded->signal[i]);
  if (uv_handle_get_type((uv_handle_t *)&guarded->process) == UV_PROCESS)
    close_handle((uv_handle_t *)&guarded->process);
  close_handle((uv_handle_t *)&guarded->channel);
  if (guarded->output != NULL)
    close_handle((uv_handle_t *)&guarded->pipe);
}

/* Returns true if only the output is still open. A process that keeps it open may never close it.
 * The supervisor may also have been killed before it could send the status. */
static bool only_reads(const guarded_t *guarded) {
  return guarded->waiting == 1 && guarded->output != NULL &&
         uv_is_active((const uv_handle_t *)&guarded->pipe);
}

static void give_up_reading(guarded_t *guarded) {
  guarded->not_all = true;
  if (guarded->end_signal != 0 && guarded->status == STATUS_YES)
    guarded->status = STATUS_SIGNAL + guarded->end_signal;
  (void)uv_read_stop((uv_stream_t *)&guarded->pipe);
  source_ended(guarded);
}

bool guarded_is_running(const guarded_t *guarded) {
  return guarded->waiting > 0;
}

void guarded_set_lost(guarded_t *guarded, const char *why) {
  if (!guarded->lost)
    complain("lost while the command ran: %s", why);
  guarded->lost = true;
  guarded->status = STATUS_LOST;
}

/* ---- belay to supervisor ---- */

static void on_note_written(uv_write_t *write, int status);

/* Send the queued notes. If the supervisor is stopped, the channel may be full: the rest is sent
 * when it has room. If the supervisor is gone, on_exit_status() reports that. */
static void send_queued(guarded_t *guarded) {
  uv_stream_t *channel = (uv_stream_t *)&guarded->channel;
  while (guarded->queued_n > 0 && !guarded->is_writing && !uv_is_closing((uv_handle_t *)channel)) {
    guarded->writing = guarded->queued[0];
    guarded->queued_n--;
    memmove(guarded->queued, guarded->queued + 1, guarded->queued_n * sizeof *guarded->queued);
    uv_buf_t rest = uv_buf_init((char *)&guarded->writing, sizeof guarded->writing);
    int n = uv_try_write(channel, &rest, 1);
    if (n == (int)sizeof guarded->writing)
      continue;
    if (n > 0)
      rest = uv_buf_init(rest.base + n, (unsigned)(rest.len - (size_t)n));
    guarded->write.data = guarded;
    guarded->is_writing = uv_write(&guarded->write, channel, &rest, 1, on_note_written) == 0;
  }
}

static void on_note_written(uv_write_t *write, int status) {
  guarded_t *guarded = write->data;
  guarded->is_writing = false;
  if (status == 0)
    send_queued(guarded);
}

/* Queue a note. It replaces an unsent note of the same kind: of two equal signals one is sent, and
 * of two limits the later one. */
static void queue_note(guarded_t *guarded, supervisor_note_t note) {
  size_t kept = 0;
  if (!guarded_is_running(guarded))
    return;
  for (size_t i = 0; i < guarded->queued_n; i++)
    if (guarded->queued[i].word != note.word || guarded->queued[i].number != note.number)
      guarded->queued[kept++] = guarded->queued[i];
  guarded->queued[kept] = note;
  guarded->queued_n = kept + 1;
  send_queued(guarded);
}

static supervisor_note_t limits(const guarded_t *guarded, int64_t until) {
  int64_t grace = guarded->grace_ms * MS_NS;
  return (supervisor_note_t){
      .word = SUPERVISOR_LIMITS, .term_at = until - grace, .kill_at = until - grace / 10};
}

/* Read the clock first, so that the deadline is never too late. */
static int64_t read_until(const guarded_t *guarded) {
  int64_t now = supervisor_now(), left = guarded->left(guarded->data);
  return now + (left < INT64_MAX / 2000 ? left * 1000 : INT64_MAX / 2 - now);
}

static void on_timer(uv_timer_t *timer);

/* Kill the command if a supervisor that is stopped has missed kill_at by the margin, half of the
 * rest of the lease. A supervisor that continues later, before it has started the command, does not
 * start it. */
static void kill_overdue(guarded_t *guarded, int64_t now) {
  int64_t margin = guarded->grace_ms * MS_NS / 20;
  if (guarded->has_status || now < limits(guarded, guarded->until).kill_at + margin)
    return;
  guarded->overdue = true;
  if (guarded->command > 0)
    (void)kill(-guarded->command, SIGKILL);
  (void)uv_process_kill(&guarded->process, SIGCONT);
}

/* If the lease was lost at once, because the server reports another owner, the command gets the
 * full grace to end. */
void guarded_check_limits(guarded_t *guarded) {
  int64_t now = supervisor_now(), until = read_until(guarded),
          end = now + guarded->grace_ms * MS_NS;
  if (!guarded_is_running(guarded))
    return;
  if (until <= now + MS_NS)
    until = guarded->until < end ? guarded->until : end;
  int64_t change = until - guarded->until;
  if (change > MS_NS || change < -MS_NS) {
    queue_note(guarded, limits(guarded, until));
    guarded->until = until;
  }
  kill_overdue(guarded, now);
  if (only_reads(guarded) && (guarded->end_signal != 0 || now >= guarded->until)) {
    give_up_reading(guarded);
    return;
  }
  int64_t next = (guarded->until - end) / MS_NS / 4;
  next = next < CHECK_MIN_MS ? CHECK_MIN_MS : next > CHECK_MAX_MS ? CHECK_MAX_MS : next;
  (void)uv_timer_start(&guarded->timer, on_timer, (uint64_t)next, 0);
}

static void on_timer(uv_timer_t *timer) {
  guarded_check_limits(timer->data);
}

/* ---- signals ---- */

static bool is_to_end(int signum) {
  return signum != SIGUSR1 && signum != SIGUSR2 && signum != SIGWINCH && signum != SIGTSTP;
}

void guarded_signal(guarded_t *guarded, int signum) {
  if (is_to_end(signum))
    guarded->end_signal = signum;
  if (only_reads(guarded) && is_to_end(signum))
    give_up_reading(guarded);
  else
    queue_note(guarded, (supervisor_note_t){.word = SUPERVISOR_SIGNAL, .number = signum});
}

bool guarded_on_signal(guarded_t *guarded, int signum) {
  bool runs = guarded_is_running(guarded),
       passes = !runs && guarded->harness != NULL && !guarded->ignored_one;
  if (runs)
    guarded_signal(guarded, signum);
  guarded->ignored_one = guarded->ignored_one || passes;
  return runs || passes;
}

static void on_signal(uv_signal_t *watcher, int signum) {
  guarded_t *guarded = watcher->data;
  if (signum != SIGCONT)
    guarded_signal(guarded, signum);
  if (signum == SIGTSTP)
    harness_suspend();
  if (signum == SIGTSTP || signum == SIGCONT) { /* the system may not have stopped belay */
    queue_note(guarded, (supervisor_note_t){.word = SUPERVISOR_CONTINUE});
    guarded_check_limits(guarded);
  }
}

static bool is_ignored(int signum) {
  struct sigaction now;
  return sigaction(signum, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* Bit N is set if signal N is ignored, as under nohup(1). SIGPIPE is left out, because belay itself
 * ignores it. */
static long ignored_signals(void) {
  long mask = 0;
  for (int i = 1; i < 32; i++)
    if (i != SIGPIPE && is_ignored(i))
      mask |= 1L << i;
  return mask;
}

/* Watch the signals that the harness does not watch. */
static void watch_signals(guarded_t *guarded) {
  static const int signums[GUARDED_SIGNALS] = {SIGQUIT,  SIGUSR1, SIGUSR2,
                                               SIGWINCH, SIGTSTP, SIGCONT};
  for (size_t i = 0; i < GUARDED_SIGNALS; i++) {
    uv_signal_t *watcher = &guarded->signal[i];
    (void)uv_signal_init(&guarded->harness->loop, watcher);
    watcher->data = guarded;
    guarded->handles++;
    if (!is_ignored(signums[i]) && uv_signal_start(watcher, on_signal, signums[i]) != 0)
      complain("signal %d does not reach the command", signums[i]);
  }
}

/* ---- supervisor to belay ---- */

static void on_failed(guarded_t *guarded, int error) {
  guarded->has_status = true;
  guarded->started = false;
  guarded->status = error == ENOENT ? STATUS_NO_COMMAND : STATUS_CANNOT_RUN;
  complain("%s: %s", out_shown(guarded->name, strlen(guarded->name)), strerror(error));
}

static void on_note(guarded_t *guarded, const supervisor_note_t *note) {
  switch (note->word) {
  case SUPERVISOR_STARTED:
    guarded->started = true;
    guarded->command = note->number;
    break;
  case SUPERVISOR_FAILED:
    on_failed(guarded, note->number);
    break;
  /* stop the whole group of belay, which the terminal would have stopped without the supervisor's
   * own group */
  case SUPERVISOR_STOPPED:
    (void)kill(0, SIGTSTP);
    break;
  case SUPERVISOR_OVERDUE:
    guarded->overdue = true;
    break;
  case SUPERVISOR_ENDED:
    guarded->has_status = true;
    guarded->status = WIFEXITED(note->number) ? WEXITSTATUS(note->number)
                                              : STATUS_SIGNAL + WTERMSIG(note->number);
    break;
  default:
    break;
  }
}

static void on_note_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  (void)suggested;
  guarded_t *guarded = handle->data;
  *buf = uv_buf_init((char *)&guarded->note + guarded->len,
                     (unsigned)(sizeof guarded->note - guarded->len));
}

static void on_note_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  (void)buf;
  guarded_t *guarded = stream->data;
  if (n < 0) {
    (void)uv_read_stop(stream);
    source_ended(guarded);
    return;
  }
  guarded->len += (size_t)n;
  if (guarded->len < sizeof guarded->note)
    return;
  guarded->len = 0;
  on_note(guarded, &guarded->note);
}

static void on_exit_status(uv_process_t *process, int64_t status, int signum) {
  guarded_t *guarded = process->data;
  (void)status;
  guarded->supervisor_signal = signum;
  source_ended(guarded);
}

/* ---- output of the command ---- */

static void on_output_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  (void)suggested;
  guarded_t *guarded = handle->data;
  *buf = uv_buf_init(guarded->buffer, sizeof guarded->buffer);
}

static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  guarded_t *guarded = stream->data;
  if (n < 0) {
    (void)uv_read_stop(stream);
    source_ended(guarded);
    return;
  }
  if ((size_t)n > guarded->output_max - guarded->output->len) {
    guarded->too_much = true;
    guarded_signal(guarded, SIGKILL);
    return;
  }
  text_add(guarded->output, buf->base, (size_t)n);
}

/* ---- the beginning ---- */

static void set_variable(const char *name, uint64_t value) {
  char digits[24];
  (void)snprintf(digits, sizeof digits, "%" PRIu64, value);
  if (value != 0)
    (void)setenv(name, digits, 1);
  else
    (void)unsetenv(name);
}

void guarded_set_environment(const char *name, uint64_t fence, uint64_t deadline) {
  (void)setenv("BELAY_NAME", name, 1);
  set_variable("BELAY_FENCE", fence);
  set_variable("BELAY_DEADLINE", deadline);
}

const char *guarded_own_path(void) {
  static char path[PATH_MAX] = "/proc/self/exe";
  size_t size = sizeof path;
  if (access(path, X_OK) != 0 && uv_exepath(path, &size) != 0)
    path[0] = '\0'; /* the start fails then, and is reported */
  return path;
}

static int spawn(guarded_t *guarded, char **command, int channel) {
  char socket[24], ignored[24], term_at[24], kill_at[24];
  size_t n = 0;
  while (command[n] != NULL)
    n++;
  char **args = calloc(n + SUPERVISOR_ARGS + 1, sizeof *args);
  if (args == NULL)
    return UV_ENOMEM;
  guarded->until = read_until(guarded);
  supervisor_note_t note = limits(guarded, guarded->until);
  (void)snprintf(socket, sizeof socket, "%d", channel);
  (void)snprintf(ignored, sizeof ignored, "%ld", ignored_signals());
  (void)snprintf(term_at, sizeof term_at, "%" PRId64, note.term_at);
  (void)snprintf(kill_at, sizeof kill_at, "%" PRId64, note.kill_at);
  char *first[SUPERVISOR_ARGS] = {"belay", SUPERVISOR_NAME, socket, ignored, term_at, kill_at};
  memcpy(args, first, sizeof first);
  memcpy(args + SUPERVISOR_ARGS, command, n * sizeof *command);

  uv_stdio_container_t stdio[3];
  for (int i = 0; i < 3; i++)
    stdio[i] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = i};
  if (guarded->output != NULL) {
    stdio[1].flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE);
    stdio[1].data.stream = (uv_stream_t *)&guarded->pipe;
  }
  uv_process_options_t options = {
      .exit_cb = on_exit_status,
      .file = guarded_own_path(),
      .args = args,
      .stdio_count = 3,
      .stdio = stdio,
  };
  guarded->handles++; /* uv_spawn() initializes the handle even if it fails */
  int error = uv_spawn(&guarded->harness->loop, &guarded->process, &options);
  free(args);
  return error;
}

static void open_handles(guarded_t *guarded) {
  uv_loop_t *loop = &guarded->harness->loop;
  (void)uv_timer_init(loop, &guarded->timer);
  (void)uv_pipe_init(loop, &guarded->channel, 0);
  guarded->timer.data = guarded->channel.data = guarded->process.data = guarded;
  guarded->handles += 2;
  if (guarded->output == NULL)
    return;
  (void)uv_pipe_init(loop, &guarded->pipe, 0);
  guarded->pipe.data = guarded;
  guarded->handles++;
}

/* Open the channel and start the supervisor. The channel is an inherited socket with any number,
 * because the command inherits the low numbers from belay's caller. */
static int open_and_spawn(guarded_t *guarded, char **command) {
  uv_os_sock_t ends[2];
  int error = uv_socketpair(SOCK_STREAM, 0, ends, UV_NONBLOCK_PIPE, 0);
  if (error != 0)
    return error;
  error = uv_pipe_open(&guarded->channel, ends[0]);
  if (error != 0)
    (void)close(ends[0]);
  (void)fcntl(ends[1], F_SETFD, 0);
  if (error == 0)
    error = spawn(guarded, command, ends[1]);
  (void)close(ends[1]);
  return error;
}

void guarded_start(guarded_t *guarded, harness_t *harness, char **command) {
  guarded->harness = harness;
  guarded->name = command[0];
  guarded->waiting = guarded->output != NULL ? 3 : 2;
  open_handles(guarded);
  int error = open_and_spawn(guarded, command);
  watch_signals(guarded); /* after spawn(), which reads the ignored signals */
  if (error == 0)
    error = uv_read_start((uv_stream_t *)&guarded->channel, on_note_room, on_note_read);
  if (error == 0 && guarded->output != NULL)
    error = uv_read_start((uv_stream_t *)&guarded->pipe, on_output_room, on_output);
  if (error != 0) {
    complain("the command cannot be run: %s", uv_strerror(error));
    guarded->has_status = true;
    guarded->status = STATUS_TROUBLE;
    guarded->waiting = 1;
    source_ended(guarded);
    return;
  }
  guarded_check_limits(guarded);
}
