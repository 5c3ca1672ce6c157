/* One command, its process group, and when it has to be gone.
 *
 *   RUNNING: forked; whether the program is there may take long to know, and is one more thing that is waited for
 *   RUNNING --term_at, or belay is gone--> ENDING: SIGTERM, and SIGCONT in case it is stopped
 *   RUNNING, ENDING --kill_at--> KILLED: SIGKILL; on Linux to all that it has started, in whatever group: descendants.h
 *   RUNNING --the command has ended--> OVER
 *   RUNNING, ENDING, KILLED --it cannot be run--> OVER
 *   ENDING, KILLED --the command has ended--> OVER, and what is left of its group is killed, on Linux of all that it
 *                                             has started, and waited for: first what can be killed, then the rest
 *
 * Belay moves both times with each renewal, until the first of them has come: what it has written is read first, and
 * the clock then. A belay that is stopped or hangs moves nothing, and the keeper ends the command at these times. If belay
 * was killed the keeper ends the command at once, with the grace between the two times, but no later than kill_at: the
 * lease may be another's then. If the keeper itself is killed the command dies with it where the system can do that (Linux: PR_SET_PDEATHSIG),
 * and belay, which notices, kills the group.
 *
 * The keeper is in a process group of its own: what is sent to belay's whole group (by timeout(1), or a shell) does not
 * take it away. And so is the command, so that all that it has started ends with it. What is typed at a
 * terminal (ctrl-C) therefore goes to belay alone, which hands it on: the command gets it once. The terminal is lent
 * to the command when it wants to read from it, and only then: in `belay exec ... | less` it is the pager's. From then
 * on the command gets what is typed, and belay nothing. */
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
#define LAST_SIGNAL 31 /* of those that can be ignored and handed on */

static struct {
  /* KILLED: nothing is waited for any more but its end */
  enum { RUNNING, ENDING, KILLED, OVER } state;
  int channel;
  int exec_result; /* ends when the command's program runs, or tells why it cannot; -1: it has */
  int alarm;       /* readable when there is something to do; -1: none */
  int tty;         /* the terminal that belay and the command have; -1: none */
  pid_t home;      /* belay's process group */
  pid_t command;   /* the command, and its group */
  bool lent, was_lent; /* the terminal is the command's; was, or was wanted, when it was stopped */
  bool has_modes;
  struct termios modes; /* the terminal's when it was lent */
  bool stopping;        /* belay knows that it is being stopped, and is itself */
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
               sizeof note); /* if belay is gone that is noticed elsewhere */
}

/* To the command, and to all that it has started. */
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

/* Who was killed had no time to leave it as it was. */
static void take_terminal_back(bool killed) {
  if (supervisor.lent && tcgetpgrp(supervisor.tty) == supervisor.command) {
    if (killed && supervisor.has_modes)
      (void)tcsetattr(supervisor.tty, TCSANOW, &supervisor.modes);
    (void)tcsetpgrp(supervisor.tty, supervisor.home);
  }
  supervisor.lent = false;
}

/* SIGSTOP comes from somebody who wants this process stopped and nothing else. */
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

/* Whoever waits for belay, a script in a loop say, would have been interrupted too if the terminal
 * had not been lent. */
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
    signal_group(SIGKILL); /* at once: to look for the others takes longer the more there are */
    descendants_signal(supervisor.command,
                       SIGKILL); /* the command may be one that cannot be killed */
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

/* Of several limits the last ones count, however long we could not look. */
static void read_notes(void) {
  while (is_readable(supervisor.channel))
    read_note();
}

/* What execvp() has come to. */
static void read_exec_result(void) {
  int error = 0;
  if (!is_readable(supervisor.exec_result))
    return;
  bool failed = read(supervisor.exec_result, &error, sizeof error) == (ssize_t)sizeof error;
  (void)close(supervisor.exec_result);
  supervisor.exec_result = -1;
  if (!failed)
    return;
  (void)kill(supervisor.command, SIGKILL); /* it may have been stopped on its way out */
  (void)waitpid(supervisor.command, NULL, 0);
  step(CANNOT_BE_RUN, 0);
  send_note(SUPERVISOR_FAILED, error);
}

/* The command has ended. It is left a zombie until its group is dealt with: so long the number is
 * nobody else's. */
static void on_ended(const siginfo_t *info) {
  int status = 0;
  read_exec_result(); /* there is nobody any more who could not tell */
  if (supervisor.state == OVER)
    return;
  read_notes();
  if (supervisor_now() >= supervisor.kill_at) /* the machine has slept */
    step(TIME_TO_KILL, 0);
  bool in_time = supervisor.state == RUNNING;
  step(COMMAND_ENDED, info->si_code == CLD_EXITED ? 0 : info->si_status);
  (void)waitpid(supervisor.command, &status, 0);
  if (!in_time)
    descendants_end();
  while (!in_time && waitpid(-supervisor.command, NULL, 0) > 0) {
    /* the rest of its group, really gone: adopted, see command_supervisor() */
  }
  send_note(SUPERVISOR_ENDED, status);
}

/* What has become of the command, and of others that it has left to us. */
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

/* Why it cannot be run, as an errno; 0: it will be, or read_birth() tells. */
static int start(char **command, long ignored) {
  int ends[2], error = 0;
  pid_t parent = getpid();
  if (pipe(ends) != 0)
    return errno;
  for (int i = 0; i < 2; i++)
    (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC); /* closed once another program runs */
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

/* A timer of pselect()'s stands still while the machine sleeps; this one is over when it wakes
 * up. */
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

/* Does what there is to do, and waits until there is more. Where there is no alarm it looks up each
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
  if (time_left > SECOND_NS || time_left <= 0) /* there is none any more */
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
              1); /* whoever loses its parent is ours, so that we can wait for it */
#endif
  supervisor.home = getpgrp();
  (void)setpgid(0, 0); /* who stops or kills belay's whole group lets us do what we are here for */
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
                supervisor.command); /* as it does itself: who is first is not known */
  send_note(SUPERVISOR_STARTED, (int)supervisor.command);
  while (supervisor.state != OVER)
    run_once(&all_but_child);
  return STATUS_YES;
}
