/* The whole terminal, for as long as something lives on it: what was there is back when it is closed. */
#ifndef BELAY_CLI_UI_SCREEN_H
#define BELAY_CLI_UI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>
#include <uv.h>

typedef struct screen screen_t;

/* The callbacks and data are set; the rest is 0. */
struct screen {
  void (*on_key)(screen_t *, char key);
  void (*on_changed)(screen_t *); /* its size, or what stood on it: it is to be drawn anew */
  void *data;
  size_t columns, rows; /* as they are now */

  bool open, reads; /* it is ours; keys are read */
  int terminal;
  struct termios before;
  uv_signal_t resized, suspended, quit;
  uv_poll_t keys;
};

/* Whether standard output is one that can do that. */
bool screen_possible(void);

/* Takes it. ctrl-C is a signal as ever, and ctrl-\ is as ctrl-C. Returns 0 or an error of libuv's. */
int screen_open(screen_t *screen, uv_loop_t *loop);

/* Draws lines, each with a line end and none wider than the screen, as many as it has rows; what is below them is empty.
 * false: it cannot be written. */
bool screen_draw(const screen_t *screen, const char *lines, size_t len);

/* Gives it back as it was; if it is open. */
void screen_close(screen_t *screen);

#endif /* BELAY_CLI_UI_SCREEN_H */
