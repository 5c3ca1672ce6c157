/* One command, its process group, and the time by which all its processes must have ended.
 *
 *   RUNNING: forked. The result of execvp() may come late; it is an event like the others.
 *   RUNNING --term_at, or belay is gone--> ENDING: SIGTERM, and SIGCONT in case it is stopped
 *   RUNNING, ENDING --kill_at--> KILLED: SIGKILL; on Linux to all descendants: descendants.h
 *   RUNNING --the command has ended--> OVER
 *   RUNNING, ENDING, KILLED --it cannot be run--> OVER
 *   ENDING, KILLED --the command has ended--> OVER. The rest of its group is killed, on Linux all
 *                                             descendants, and the supervisor waits for them
 *
 * belay moves both times with each renewal, until the first of them has come. The supervisor reads
 * notes before it reads the clock. If belay is stopped or hangs, it moves nothing, and the
 * supervisor ends the command at these times. If belay was killed, the supervisor ends the command
 * at once, with the grace between the two times, but no later than kill_at: another process may
 * hold the lease then. If the supervisor itself is killed, the command dies with it if the system
 * supports that (Linux: PR_SET_PDEATHSIG). belay notices the end of the supervisor and kills the
 * group.
 *
 * The supervisor has its own process group, so that a signal to belay's whole group (by timeout(1),
 * or a shell) does not reach it. The command has its own group too, so that all its processes can
 * be ended together. Therefore keys of the terminal (Ctrl-C) signal only belay, which forwards the
 * signal: the command gets it once. The supervisor lends the terminal to the command when the
 * command wants to read from it, and only then: in `belay exec ... | less` the terminal belongs to
 * the pager. While it is lent, signals of the terminal go to the command, and not to belay. */
#include "run/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/timerfd.h>
#endif

#include "run/descendants.h"
#include "ui/status.h"

#define SECOND_NS INT64_C(1000000000)
#define LAST_SIGNAL 31 /* the last signal that can be ignored and forwarded */

static struct {
  /* KILLED: only the end of the command is still awaited */
  enum { RUNNING, ENDING, KILLED, OVER } state;
  int channel;
  int exec_result; /* pipe that execvp() closes, or that reports its error; -1: closed */
  int alarm;       /* timer file, readable at the next deadline; -1: none */
  int tty;         /* the controlling terminal of belay and the command; -1: none */
  pid_t home;      /* belay's process group */
  pid_t command;   /* process and process group of the command */
  /* true if the terminal is lent to the command; if it was lent or wanted when the command was
   * stopped */
  bool lent, was_lent;
  bool has_modes;
  struct termios modes; /* modes of the terminal when it was lent */
  bool stopping;        /* true if belay is stopping itself, and expects no SUPERVISOR_STOPPED */
  int64_t term_at, kill_at;
} supervisor;

int64_t supervisor_now(void) {
#ifdef CLOCK_BOOTTIME
  const clockid_t clock = CLOCK_BOOTTIME;
#else
  const clockid_t clock = CLOCK_MONOTONIC;
#endif
  struct timespec now;
  (void)clock_gettime(clock, &now);
  return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void send_note(supervisor_word_t word, int number) {
  supervisor_note_t note = {.word = (int32_t)word, .number = number};
  (void)!write(supervisor.channel, &note,
               sizeof note); /* if belay is gone, the channel's end reports it */
}

/* Send a signal to the process group of the command. */
static void signal_group(int signum) {
  (void)kill(-supervisor.command, signum);
}

/* ---- the terminal ---- */

static bool lend_terminal(void) {
  if (supervisor.tty < 0 || tcgetpgrp(supervisor.tty) != supervisor.home ||
      tcsetpgrp(supervisor.tty, supervisor.command) != 0)
    return false;
  supervisor.lent = true;
  supervisor.has_modes = tcgetattr(supervisor.tty, &supervisor.modes) == 0;
  return true;
}

/* Take the terminal back. A command that a signal has killed could not restore the modes of the
 * terminal. */
static void take_terminal_back(bool killed) {
  if (supervisor.lent && tcgetpgrp(supervisor.tty) == supervisor.command) {
    if (killed && supervisor.has_modes)
      (void)tcsetattr(supervisor.tty, TCSANOW, &supervisor.modes);
    (void)tcsetpgrp(supervisor.tty, supervisor.home);
  }
  supervisor.lent = false;
}

/* Handle a stop of the command. SIGSTOP was sent to this one process on purpose, and is left
 * alone. */
static void on_stopped(int signum) {
  bool wants_terminal = signum == SIGTTIN || signum == SIGTTOU;
  if (signum == SIGSTOP || supervisor.state != RUNNING)
    return;
  if (wants_terminal && lend_terminal()) {
    signal_group(SIGCONT);
    return;
  }
  supervisor.was_lent = supervisor.lent || wants_terminal;
  take_terminal_back(false);
  if (!supervisor.stopping)
    send_note(SUPERVISOR_STOPPED, signum);
}

static void on_continued(void) {
  if (supervisor.was_lent)
    (void)lend_terminal();
  supervisor.was_lent = supervisor.stopping = false;
  signal_group(SIGCONT);
}

/* Send the SIGINT of a terminal that was lent to belay's group too. Without the loan a caller of
 * belay, such as a loop in a script, would have got it. */
static void pass_interrupt(int died_of) {
  if (supervisor.lent && died_of == SIGINT)
    (void)kill(-supervisor.home, SIGINT);
}

/* ---- the machine ---- */

typedef enum event {
  TIME_TO_TERM,
  TIME_TO_KILL,
  BELAY_IS_GONE,
  COMMAND_ENDED,
  CANNOT_BE_RUN
} event_t;

static void shorten_kill_at(int64_t kill_at) {
  if (kill_at < supervisor.kill_at)
    supervisor.kill_at = kill_at;
}

static void step(event_t event, int died_of) {
  switch (event) {
  case TIME_TO_TERM:
    if (supervisor.state != RUNNING)
      return;
    supervisor.state = ENDING;
    send_note(SUPERVISOR_OVERDUE, 0);
    descendants_signal(supervisor.command, SIGTERM);
    signal_group(SIGTERM);
    signal_group(SIGCONT);
    return;
  case BELAY_IS_GONE:
    if (supervisor.state != RUNNING)
      return;
    shorten_kill_at(supervisor_now() + supervisor.kill_at - supervisor.term_at);
    step(TIME_TO_TERM, 0);
    return;
  case TIME_TO_KILL:
    if (supervisor.state == KILLED || supervisor.state == OVER)
      return;
    if (supervisor.state == RUNNING)
      send_note(SUPERVISOR_OVERDUE, 0);
    supervisor.state = KILLED;
    signal_group(SIGKILL); /* first the group: a search for the descendants takes time */
    descendants_signal(supervisor.command,
                       /* the command itself may ignore its end, such as a process of another
                        * user */
                       SIGKILL);
    return;
  case COMMAND_ENDED:
    if (supervisor.state != RUNNING)
      signal_group(SIGKILL);
    pass_interrupt(died_of);
    take_terminal_back(died_of != 0);
    supervisor.state = OVER;
    return;
  case CANNOT_BE_RUN:
    supervisor.state = OVER;
  }
}

static void on_note(const supervisor_note_t *note) {
  switch (note->word) {
  case SUPERVISOR_LIMITS:
    if (supervisor.state == RUNNING) {
      supervisor.term_at = note->term_at;
      supervisor.kill_at = note->kill_at;
    }
    break;
  case SUPERVISOR_SIGNAL:
    supervisor.stopping = supervisor.stopping || note->number == SIGTSTP;
    signal_group(note->number);
    break;
  case SUPERVISOR_CONTINUE:
    on_continued();
    break;
  default:
    break;
  }
}

static bool is_readable(int file) {
  struct pollfd one = {.fd = file, .events = POLLIN};
  return file >= 0 && poll(&one, 1, 0) > 0;
}

static void read_note(void) {
  supervisor_note_t note;
  size_t n = 0;
  while (n < sizeof note) {
    ssize_t got = read(supervisor.channel, (char *)&note + n, sizeof note - n);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0) {
      (void)close(supervisor.channel);
      supervisor.channel = -1;
      step(BELAY_IS_GONE, 0);
      return;
    }
    n += (size_t)got;
  }
  on_note(&note);
}

/* Read all notes: of several limits the last ones count. */
static void read_notes(void) {
  while (is_readable(supervisor.channel))
    read_note();
}

/* Read the result of execvp(). */
static void read_exec_result(void) {
  int error = 0;
  if (!is_readable(supervisor.exec_result))
    return;
  bool failed = read(supervisor.exec_result, &error, sizeof error) == (ssize_t)sizeof error;
  (void)close(supervisor.exec_result);
  supervisor.exec_result = -1;
  if (!failed)
    return;
  (void)kill(supervisor.command, SIGKILL); /* it may have been stopped before it could exit */
  (void)waitpid(supervisor.command, NULL, 0);
  step(CANNOT_BE_RUN, 0);
  send_note(SUPERVISOR_FAILED, error);
}

/* The command has ended. It stays a zombie until its group is handled, so that its number is not
 * reused. */
static void on_ended(const siginfo_t *info) {
  int status = 0;
  read_exec_result(); /* the result is complete, because the process has ended */
  if (supervisor.state == OVER)
    return;
  read_notes();
  if (supervisor_now() >= supervisor.kill_at) /* the machine may have slept */
    step(TIME_TO_KILL, 0);
  bool in_time = supervisor.state == RUNNING;
  step(COMMAND_ENDED, info->si_code == CLD_EXITED ? 0 : info->si_status);
  (void)waitpid(supervisor.command, &status, 0);
  if (!in_time)
    descendants_end();
  while (!in_time && waitpid(-supervisor.command, NULL, 0) > 0) {
    /* the rest of its group, which the subreaper option of command_supervisor() has made children
     * of this process */
  }
  send_note(SUPERVISOR_ENDED, status);
}

/* Handle state changes of the command and of adopted descendants. */
static void check_children(void) {
  siginfo_t info = {0};
  while (supervisor.state != OVER &&
         waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0) {
    bool stopped = info.si_code == CLD_STOPPED;
    if (info.si_pid == supervisor.command && !stopped) {
      on_ended(&info);
      return;
    }
    (void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WSTOPPED | WNOHANG);
    if (info.si_pid == supervisor.command)
      on_stopped(info.si_status);
    info = (siginfo_t){0};
  }
}

/* ---- the beginning ---- */

static void exec_command(char **command, long ignored, pid_t parent, int failed) {
  sigset_t none;
  (void)setpgid(0, 0);
#ifdef __linux__
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
    _exit(STATUS_TROUBLE);
#else
  (void)parent;
#endif
  for (int i = 1; i <= LAST_SIGNAL; i++)
    if ((ignored >> i & 1) != 0)
      (void)signal(i, SIG_IGN);
  (void)sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, NULL);
  (void)execvp(command[0], command);
  int error = errno;
  (void)!write(failed, &error, sizeof error);
  _exit(STATUS_NO_COMMAND);
}

/* Start the command. Returns 0 or an errno; read_exec_result() reports the errors of execvp(). */
static int start(char **command, long ignored) {
  int ends[2], error = 0;
  pid_t parent = getpid();
  if (pipe(ends) != 0)
    return errno;
  for (int i = 0; i < 2; i++)
    (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC); /* execvp() closes it */
  supervisor.command = ends[0] < FD_SETSIZE ? fork() : -1;
  if (supervisor.command == 0)
    exec_command(command, ignored, parent, ends[1]);
  if (supervisor.command < 0)
    error = ends[0] < FD_SETSIZE ? errno : EMFILE;
  (void)close(ends[1]);
  supervisor.exec_result = ends[0];
  return error;
}

static void on_child(int signum) {
  (void)signum; /* it is enough that pselect() returns */
}

/* Open a timer file. The timeout of pselect() does not count while the machine sleeps; this timer
 * does. */
static void open_alarm(void) {
  supervisor.alarm = -1;
#ifdef __linux__
  supervisor.alarm = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (supervisor.alarm >= FD_SETSIZE) {
    (void)close(supervisor.alarm);
    supervisor.alarm = -1;
  }
#endif
}

static void set_alarm(int64_t at) {
#ifdef __linux__
  struct itimerspec when = {.it_value = {.tv_sec = at / SECOND_NS, .tv_nsec = at % SECOND_NS}};
  if (supervisor.alarm >= 0)
    (void)timerfd_settime(supervisor.alarm, TFD_TIMER_ABSTIME, &when, NULL);
#else
  (void)at;
#endif
}

/* Handle all events, then wait for the next one. Without the timer file the wait lasts at most a
 * second. */
static void run_once(const sigset_t *mask) {
  read_notes();
  read_exec_result();
  check_children();
  if (supervisor.state == OVER)
    return;
  int64_t now = supervisor_now();
  if (now >= supervisor.kill_at)
    step(TIME_TO_KILL, 0);
  else if (now >= supervisor.term_at)
    step(TIME_TO_TERM, 0);
  int64_t next = supervisor.state == RUNNING ? supervisor.term_at : supervisor.kill_at,
          time_left = next - now;
  if (time_left > SECOND_NS || time_left <= 0) /* no deadline is left */
    time_left = SECOND_NS;
  struct timespec wait = {.tv_sec = time_left / SECOND_NS, .tv_nsec = time_left % SECOND_NS};
  int files[] = {supervisor.channel, supervisor.exec_result, next > now ? supervisor.alarm : -1},
      highest = -1;
  fd_set readable;
  FD_ZERO(&readable);
  if (next > now)
    set_alarm(next);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    if (files[i] >= 0)
      FD_SET(files[i], &readable);
    highest = files[i] > highest ? files[i] : highest;
  }
  (void)pselect(highest + 1, &readable, NULL, NULL, &wait, mask);
}

int command_supervisor(int argc, char **argv) {
  sigset_t all, all_but_child;
  if (argc < 7)
    return STATUS_USAGE;
  (void)sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, NULL);
  (void)sigfillset(&all_but_child);
  (void)sigdelset(&all_but_child, SIGCHLD);
  (void)signal(SIGCHLD, on_child);

  supervisor.channel = (int)strtol(argv[2], NULL, 10);
  if (supervisor.channel >= FD_SETSIZE)
    return STATUS_TROUBLE;
  (void)fcntl(supervisor.channel, F_SETFD, FD_CLOEXEC);
  supervisor.term_at = strtoll(argv[4], NULL, 10);
  supervisor.kill_at = strtoll(argv[5], NULL, 10);
#ifdef __linux__
  (void)prctl(PR_SET_CHILD_SUBREAPER,
              /* orphaned descendants become children of this process, so that it can wait for
               * them */
              1);
#endif
  supervisor.home = getpgrp();
  (void)setpgid(0, 0); /* signals that stop or kill belay's group must not reach the supervisor */
  open_alarm();
  supervisor.tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

  if (supervisor_now() >= supervisor.term_at) { /* belay was stopped meanwhile */
    send_note(SUPERVISOR_STARTED, 0);
    send_note(SUPERVISOR_OVERDUE, 0);
    send_note(SUPERVISOR_ENDED, SIGTERM);
    return STATUS_YES;
  }
  int error = start(argv + 6, strtol(argv[3], NULL, 10));
  if (error != 0) {
    send_note(SUPERVISOR_FAILED, error);
    return STATUS_NO_COMMAND;
  }
  (void)setpgid(supervisor.command,
                supervisor.command); /* the command does so too: either process may be first */
  send_note(SUPERVISOR_STARTED, (int)supervisor.command);
  while (supervisor.state != OVER)
    run_once(&all_but_child);
  return STATUS_YES;
}
