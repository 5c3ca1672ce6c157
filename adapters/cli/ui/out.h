/* What commands write: results on standard output, everything else on standard error. */
#ifndef BELAY_CLI_UI_OUT_H
#define BELAY_CLI_UI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How results are written. */
typedef enum out_form {
  OUT_PLAIN, /* lines for people */
  OUT_JSON,  /* an object in each line */
  OUT_NONE   /* not at all */
} out_form_t;

/* Call once, before any output. From then on a closed pipe is an ordinary error. */
void out_init(out_form_t form);
out_form_t out_form(void);

/* ---- a result ---- */

/* Members of a result, between out_begin() and out_end(), which writes a line: with --json an
 * object of the members; otherwise their values, separated by tabs, or the text of out_say().
 * Names must stay valid until out_end().
 *
 * Texts may contain any bytes. JSON output reads invalid UTF-8 as Latin-1 (\u00XX for each
 * byte), and escapes unprintable characters with four hexadecimal digits. Other output escapes
 * unprintable bytes with two. */
void out_begin(void);
void out_text(const char *name, const void *bytes, size_t len);
void out_string(const char *name, const char *text); /* NULL: as out_null() */
void out_number(const char *name, int64_t value);    /* a small one: below 2^53 whatever happens */
/* A number that may pass 2^53, or that belongs to a kind of which others may: ids, counters,
 * scores, fencing tokens. In JSON it is a string of digits: many readers of JSON keep numbers as
 * doubles, and round it. */
void out_wide(const char *name, int64_t value);
void out_fraction(const char *name, double value); /* with at most six digits behind the point */
void out_bool(const char *name, bool value);       /* for people: yes, no */
void out_null(const char *name);                   /* for people: - */
void out_duration(const char *name, int64_t ms);   /* for people: 1m30s; negative: as out_null() */

/* As out_number() and out_wide() if the value is known, else as out_null(). */
void out_number_if(const char *name, bool known, int64_t value);
void out_wide_if(const char *name, bool known, int64_t value);

/* Texts of the member `name`, a JSON array; for people apart by spaces. Other members do not stand
 * between. */
void out_list_begin(const char *name);
void out_list_text(const void *bytes, size_t len);
void out_list_end(void);

/* In a list, instead of texts: objects, with members between these. For JSON only: people want it
 * said otherwise. */
void out_object_begin(void);
void out_object_end(void);

/* The line for people, without a line end, instead of the members' values. What comes from
 * elsewhere is to go through out_shown() first. */
void out_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the line, at once. false: it could not be written, now or before; a command that goes on
 * for long can end. */
bool out_end(void);

/* Bytes as they are: a command's own output. Not with --quiet or --json. Returns as out_end(). */
bool out_raw(const void *bytes, size_t len);

/* Writes bytes to a file at once. If the file is full (it may be the non-blocking standard
 * input) it waits for patience_ms; -1: without limit. Returns 0 or an errno. */
int out_write(int file, const char *bytes, size_t len, int patience_ms);

/* Returns bytes in printable form: unprintable ones as a backslash, x and two hexadecimal
 * digits. Returns one of eight buffers in turn, with at most OUT_SHOWN_MAX - 1 bytes; "..." ends
 * a shortened text. */
#define OUT_SHOWN_MAX 512
const char *out_shown(const void *bytes, size_t len);

/* Whether all could be written; says on standard error if not. At the end. */
bool out_finish(void);

/* Restores the terminal and files for a command that replaces this process. */
void out_leave(void);

/* ---- beside results ---- */

/* The command's name, which every message begins with, "count add"; valid to the end of the
 * process. */
void out_name(const char *name);

/* "belay: NAME: what" on standard error, with a line end behind it. Never a secret. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with --verbose only. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
void out_verbose(bool verbose);

#endif /* BELAY_CLI_UI_OUT_H */
