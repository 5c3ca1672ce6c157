#include "ui/screen.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "harness.h"

#define ENTER "\033[?1049h\033[?25l" /* another screen, without a cursor */
#define LEAVE "\033[?25h\033[?1049l"
#define TOP "\033[H"
#define LINE "\033[K" /* nothing is left of what stood there */
#define END "\033[J"  /* nor below it */

#define COLUMNS 80 /* of a terminal that does not say */
#define ROWS 24

bool screen_possible(void) {
  const char *type = getenv("TERM");
  return isatty(STDOUT_FILENO) && type != NULL && strcmp(type, "dumb") != 0;
}

static bool say(const char *text, size_t len) {
  return fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0;
}

static void measure(screen_t *screen) {
  struct winsize size = {0};
  (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  screen->columns = size.ws_col > 0 ? size.ws_col : COLUMNS;
  screen->rows = size.ws_row > 0 ? size.ws_row : ROWS;
}

static void enter(screen_t *screen) {
  if (screen->reads) {
    struct termios now = screen->before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    (void)tcsetattr(screen->terminal, TCSADRAIN, &now);
  }
  (void)say(ENTER, sizeof ENTER - 1);
  measure(screen);
}

static void leave(screen_t *screen) {
  (void)say(LEAVE, sizeof LEAVE - 1);
  if (screen->reads)
    (void)tcsetattr(screen->terminal, TCSADRAIN, &screen->before);
}

static void on_resized(uv_signal_t *watcher, int signum) {
  screen_t *screen = watcher->data;
  (void)signum;
  measure(screen);
  screen->on_changed(screen);
}

/* ctrl-Z: whoever gets the terminal meanwhile gets it as it was. */
static void on_suspended(uv_signal_t *watcher, int signum) {
  screen_t *screen = watcher->data;
  (void)signum;
  leave(screen);
  harness_suspend();
  enter(screen);
  screen->on_changed(screen);
}

/* ctrl-\ is ctrl-C: the screen is to be left. */
static void on_quit(uv_signal_t *watcher, int signum) {
  (void)watcher;
  (void)signum;
  (void)raise(SIGINT);
}

static void on_readable(uv_poll_t *poll, int status, int events) {
  screen_t *screen = poll->data;
  char key;
  (void)events;
  if (status != 0 || read(screen->terminal, &key, 1) != 1)
    (void)uv_poll_stop(poll); /* nobody types any more */
  else
    screen->on_key(screen, key);
}

static int watch(uv_loop_t *loop, uv_signal_t *watcher, screen_t *screen, uv_signal_cb cb,
                 int signum) {
  int error = uv_signal_init(loop, watcher);
  if (error != 0)
    return error;
  watcher->data = screen;
  error = uv_signal_start(watcher, cb, signum);
  uv_unref((uv_handle_t *)watcher);
  return error;
}

/* Opened by ourselves: libuv makes it one that does not wait, and standard output must not become so with it. */
static void read_keys(screen_t *screen, uv_loop_t *loop) {
  const char *name = ttyname(STDIN_FILENO);
  screen->terminal = name != NULL ? open(name, O_RDONLY | O_NOCTTY | O_CLOEXEC) : -1;
  screen->reads = screen->terminal >= 0 && tcgetattr(screen->terminal, &screen->before) == 0 &&
                  uv_poll_init(loop, &screen->keys, screen->terminal) == 0;
  if (!screen->reads)
    return;
  screen->keys.data = screen;
  (void)uv_poll_start(&screen->keys, UV_READABLE, on_readable);
  uv_unref((uv_handle_t *)&screen->keys);
}

int screen_open(screen_t *screen, uv_loop_t *loop) {
  int error = watch(loop, &screen->resized, screen, on_resized, SIGWINCH);
  if (error == 0)
    error = watch(loop, &screen->suspended, screen, on_suspended, SIGTSTP);
  if (error == 0)
    error = watch(loop, &screen->quit, screen, on_quit, SIGQUIT);
  if (error != 0)
    return error;
  read_keys(screen, loop);
  screen->open = true;
  enter(screen);
  return 0;
}

bool screen_draw(const screen_t *screen, const char *lines, size_t len) {
  const char *end = lines + len;
  bool drawn = screen->open && say(TOP, sizeof TOP - 1);
  for (size_t row = 0; drawn && lines < end && row < screen->rows; row++) {
    const char *next = memchr(lines, '\n', (size_t)(end - lines));
    next = next != NULL ? next : end;
    size_t line = (size_t)(next - lines);
    drawn =
        (row == 0 || putchar('\n') != EOF) && fputs(LINE, stdout) >= 0 &&
        fwrite(lines, 1, line, stdout) == line; /* no line end in the last row: it would scroll */
    lines = next + 1;
  }
  return drawn && say(END, sizeof END - 1);
}

static void on_keys_closed(uv_handle_t *handle) {
  screen_t *screen = handle->data;
  (void)close(screen->terminal);
}

void screen_close(screen_t *screen) {
  if (!screen->open)
    return;
  screen->open = false;
  leave(screen);
  uv_close((uv_handle_t *)&screen->resized, NULL);
  uv_close((uv_handle_t *)&screen->suspended, NULL);
  uv_close((uv_handle_t *)&screen->quit, NULL);
  if (screen->reads)
    uv_close((uv_handle_t *)&screen->keys, on_keys_closed);
}
