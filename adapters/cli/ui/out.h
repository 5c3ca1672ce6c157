/* Output of commands: results on standard output, messages on standard error. */
#ifndef BELAY_CLI_UI_OUT_H
#define BELAY_CLI_UI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The form of results. */
typedef enum out_form {
  OUT_PLAIN, /* lines for people */
  OUT_JSON,  /* an object in each line */
  OUT_NONE   /* no output */
} out_form_t;

/* Call before any output. From then on a closed pipe is an ordinary error. */
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
void out_number(const char *name, int64_t value);    /* always below 2^53 */
/* A number of a kind that may pass 2^53: ids, counters, scores, fencing tokens. In JSON it is a
 * string of digits, because many readers of JSON round numbers to doubles. */
void out_wide(const char *name, int64_t value);
void out_fraction(const char *name, double value); /* at most six digits behind the point */
void out_bool(const char *name, bool value);       /* for people: yes, no */
void out_null(const char *name);                   /* for people: - */
void out_duration(const char *name, int64_t ms);   /* for people: 1m30s; negative: as out_null() */

/* As out_number() and out_wide() if the value is known, else as out_null(). */
void out_number_if(const char *name, bool known, int64_t value);
void out_wide_if(const char *name, bool known, int64_t value);

/* The texts of the member `name`: a JSON array, in plain output separated by spaces. Call no
 * function for other members in between. */
void out_list_begin(const char *name);
void out_list_text(const void *bytes, size_t len);
void out_list_end(void);

/* Objects in a list, instead of texts, with their members between these calls. In JSON only. */
void out_object_begin(void);
void out_object_end(void);

/* The line of plain output, without a line end, instead of the members' values. Pass texts of other
 * programs through out_shown() first. */
void out_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Write the line at once. Returns false if this or an earlier line could not be written; a long
 * command can end then. */
bool out_end(void);

/* Write bytes unchanged, in plain output only. Returns as out_end(). */
bool out_raw(const void *bytes, size_t len);

/* Return bytes in printable form: unprintable ones as a backslash, x and two hexadecimal digits.
 * The result is one of eight buffers in turn, with at most OUT_SHOWN_MAX - 1 bytes; "..." ends a
 * shortened text. */
#define OUT_SHOWN_MAX 512
const char *out_shown(const void *bytes, size_t len);

/* Flush, at the end. Returns true if everything could be written; otherwise prints an error. */
bool out_finish(void);

/* Restore SIGPIPE for a command that replaces this process. */
void out_leave(void);

/* ---- messages ---- */

/* The command's name in every message, "count add"; must be valid to the end of the process. */
void out_name(const char *name);

/* Print "belay: NAME: what" on standard error, with a line end. Never a secret. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with --verbose only. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
void out_verbose(bool verbose);

#endif /* BELAY_CLI_UI_OUT_H */
