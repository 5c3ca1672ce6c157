#include "ui/out.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ui/text.h"
#include "shell/units.h"

#define SHOWN_BUFFERS 8

static struct {
  out_form_t form;
  bool verbose, said;
  bool ignored_pipe;        /* SIGPIPE was ignored at the start */
  unsigned members, listed; /* of this line, or of an object in its list; of this list */
  unsigned outside;         /* in such an object: members of the line */
  int error;                /* errno of the first failed write; 0: none */
  const char *name;
  text_t line;
} out;

void out_init(out_form_t form) {
  static bool begun;
  void (*before)(int) = signal(SIGPIPE, SIG_IGN);
  if (!begun)
    out.ignored_pipe = before == SIG_IGN;
  begun = true;
  out.form = form;
}

void out_leave(void) {
  if (!out.ignored_pipe)
    (void)signal(SIGPIPE, SIG_DFL);
}

out_form_t out_form(void) {
  return out.form;
}

/* ---- a result ---- */

void out_begin(void) {
  text_clear(&out.line);
  out.members = 0;
  out.said = false;
  if (out.form == OUT_JSON)
    text_add(&out.line, "{", 1);
}

/* Add the name of a member. */
static void begin_member(const char *name) {
  if (out.form == OUT_JSON) {
    if (out.members > 0)
      text_add(&out.line, ",", 1);
    text_add_json(&out.line, name, strlen(name));
    text_add(&out.line, ":", 1);
  } else if (out.members > 0)
    text_add(&out.line, "\t", 1);
  out.members++;
}

/* Returns true if members are written. */
static bool is_shown(void) {
  return out.form == OUT_JSON || (out.form == OUT_PLAIN && !out.said);
}

static void add_text(const void *bytes, size_t len) {
  if (out.form == OUT_JSON)
    text_add_json(&out.line, bytes, len);
  else
    text_add_shown(&out.line, bytes, len);
}

void out_text(const char *name, const void *bytes, size_t len) {
  if (!is_shown())
    return;
  begin_member(name);
  add_text(bytes, len);
}

void out_string(const char *name, const char *text) {
  if (text == NULL)
    out_null(name);
  else
    out_text(name, text, strlen(text));
}

/* Add a member with a value for each form. */
static void add_plain(const char *name, const char *json, const char *plain) {
  if (!is_shown())
    return;
  begin_member(name);
  const char *value = out.form == OUT_JSON ? json : plain;
  text_add(&out.line, value, strlen(value));
}

void out_number(const char *name, int64_t value) {
  char digits[24];
  (void)snprintf(digits, sizeof digits, "%" PRId64, value);
  add_plain(name, digits, digits);
}

void out_wide(const char *name, int64_t value) {
  char json[26], plain[24];
  (void)snprintf(plain, sizeof plain, "%" PRId64, value);
  (void)snprintf(json, sizeof json, "\"%s\"", plain);
  add_plain(name, json, plain);
}

void out_fraction(const char *name, double value) {
  char digits[340];
  if (!isfinite(value)) { /* JSON has no such number */
    out_null(name);
    return;
  }
  int n = snprintf(digits, sizeof digits, "%.6f", value);
  while (digits[n - 1] == '0')
    n--;
  digits[digits[n - 1] == '.' ? n - 1 : n] = '\0';
  add_plain(name, digits, digits);
}

void out_bool(const char *name, bool value) {
  add_plain(name, value ? "true" : "false", value ? "yes" : "no");
}

void out_null(const char *name) {
  add_plain(name, "null", "-");
}

void out_duration(const char *name, int64_t ms) {
  char digits[24], shown[UNITS_DURATION_MAX];
  (void)snprintf(digits, sizeof digits, "%" PRId64, ms);
  if (ms < 0)
    out_null(name);
  else
    add_plain(name, digits, units_show_duration(shown, ms));
}

void out_number_if(const char *name, bool known, int64_t value) {
  if (known)
    out_number(name, value);
  else
    out_null(name);
}

void out_wide_if(const char *name, bool known, int64_t value) {
  if (known)
    out_wide(name, value);
  else
    out_null(name);
}

void out_list_begin(const char *name) {
  out.listed = 0;
  if (!is_shown())
    return;
  begin_member(name);
  if (out.form == OUT_JSON)
    text_add(&out.line, "[", 1);
}

void out_list_text(const void *bytes, size_t len) {
  if (!is_shown())
    return;
  if (out.listed++ > 0)
    text_add(&out.line, out.form == OUT_JSON ? "," : " ", 1);
  add_text(bytes, len);
}

void out_list_end(void) {
  if (out.form == OUT_JSON)
    text_add(&out.line, "]", 1);
}

void out_object_begin(void) {
  if (out.form != OUT_JSON)
    return;
  if (out.listed++ > 0)
    text_add(&out.line, ",", 1);
  text_add(&out.line, "{", 1);
  out.outside = out.members;
  out.members = 0;
}

void out_object_end(void) {
  if (out.form != OUT_JSON)
    return;
  text_add(&out.line, "}", 1);
  out.members = out.outside;
}

void out_say(const char *format, ...) {
  if (out.form != OUT_PLAIN)
    return;
  va_list args;
  va_start(args, format);
  text_clear(&out.line);
  text_vprint(&out.line, format, args);
  out.said = true;
  va_end(args);
}

/* Maximum time for writing a message. A message may be lost; a lease must not expire because of
 * a slow reader. */
#define MESSAGE_MS 20

/* Write bytes to a file at once. If the file is full (it may be the non-blocking standard input)
 * wait for patience_ms; -1: without limit. Returns 0 or an errno. */
static int write_bytes(int file, const char *bytes, size_t len, int patience_ms) {
  struct pollfd room = {.fd = file, .events = POLLOUT};
  while (len > 0) {
    ssize_t n = write(file, bytes, len);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (poll(&room, 1, patience_ms) == 0)
        return EAGAIN;
    } else if (n < 0 && errno != EINTR)
      return errno;
    else if (n > 0) {
      bytes += n;
      len -= (size_t)n;
    }
  }
  return 0;
}

static bool write_out(const void *bytes, size_t len) {
  if (out.error == 0)
    out.error = write_bytes(STDOUT_FILENO, bytes, len, -1);
  return out.error == 0;
}

bool out_end(void) {
  if (out.form == OUT_NONE)
    return true;
  if (out.form == OUT_JSON)
    text_add(&out.line, "}", 1);
  text_add(&out.line, "\n", 1);
  if (out.line.spoiled) {
    out.error = ENOMEM;
    return false;
  }
  return write_out(out.line.bytes, out.line.len);
}

bool out_raw(const void *bytes, size_t len) {
  return out.form != OUT_PLAIN || write_out(bytes, len);
}

const char *out_shown(const void *bytes, size_t len) {
  static char buffers[SHOWN_BUFFERS][OUT_SHOWN_MAX];
  static unsigned turn;
  char *buffer = buffers[turn++ % SHOWN_BUFFERS];
  text_t text = {0};
  text_add_shown(&text, bytes, len < OUT_SHOWN_MAX ? len : OUT_SHOWN_MAX);
  if (text.bytes == NULL)
    return "";
  bool whole = text.len < OUT_SHOWN_MAX;
  (void)snprintf(buffer, OUT_SHOWN_MAX - (whole ? 0 : 3), "%s", text.bytes);
  if (!whole) {
    size_t n = strlen(buffer);
    while (n > 0 && ((unsigned char)buffer[n - 1] & 0xc0) == 0x80) /* whole characters only */
      n--;
    if (n > 0 && (unsigned char)buffer[n - 1] >= 0x80)
      n--;
    memcpy(buffer + n, "...", 4);
  }
  text_free(&text);
  return buffer;
}

bool out_finish(void) {
  if (fflush(stdout) != 0 || ferror(stdout))
    out.error = out.error != 0 ? out.error : errno != 0 ? errno : EIO;
  text_free(&out.line);
  if (out.error != 0 && out.error != EPIPE) /* head(1) closes the pipe on purpose */
    complain("the output could not be written: %s", strerror(out.error));
  return out.error == 0;
}

/* ---- messages ---- */

void out_name(const char *name) {
  out.name = name;
}

static void print_message(const char *format, va_list args) {
  text_t text = {0};
  if (out.name != NULL)
    text_print(&text, "belay: %s: ", out.name);
  else
    text_print(&text, "belay: ");
  text_vprint(&text, format, args);
  text_add(&text, "\n", 1);
  if (text.bytes != NULL)
    (void)write_bytes(STDERR_FILENO, text.bytes, text.len,
                      MESSAGE_MS); /* one write: lines of several processes stay lines */
  text_free(&text);
}

void complain(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_message(format, args);
  va_end(args);
}

void out_verbose(bool verbose) {
  out.verbose = verbose;
}

void remark(const char *format, ...) {
  if (!out.verbose)
    return;
  va_list args;
  va_start(args, format);
  print_message(format, args);
  va_end(args);
}
