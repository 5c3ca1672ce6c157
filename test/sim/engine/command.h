/* A command and its replies. */
#ifndef TEST_SIM_ENGINE_COMMAND_H
#define TEST_SIM_ENGINE_COMMAND_H

#include "engine.h"
#include "store.h"

#include <string.h>

typedef struct engine_command engine_command_t;

struct engine {
  engine_options_t options; /* its strings are not good; these are: */
  char run_id[41], data_id[41];
  engine_table_t keys;   /* of engine_object_t */
  engine_buffer_t was;   /* the former value of the open string; */
  bool was_there;        /* if there was one */
  engine_table_t topics; /* channels that have subscribers: pubsub.c */
  uint8_t *scripts;      /* which are loaded: a bit for each that script.c has compiled */
  size_t scripts_cap;    /* in bytes */
  uint64_t writes;       /* commands that write, in scripts too */
};

/* One command on its way. */
struct engine_call {
  engine_t *engine;
  engine_conn_t *conn;
  const engine_command_t *command;
  const engine_bytes_t *argv; /* argv[0] is the name */
  size_t argc;
  engine_buffer_t *out; /* takes exactly one reply (SUBSCRIBE and its kin: more) */
  uint64_t now_us;      /* the wall clock, since 1970 */
  int64_t now_ms;
  bool in_script;
  engine_object_t *object; /* ENGINE_OF: NULL if the key does not exist */
  int64_t number[2];       /* ENGINE_INTEGER_2, ENGINE_INTEGER_3 */
};

/* Replies once, by the functions below, whatever happens. */
typedef void engine_command_fn(engine_call_t *call);

enum {
  ENGINE_WRITES = 1,     /* counted by engine_writes() */
  ENGINE_NO_SCRIPT = 2,  /* no script may call it */
  ENGINE_SUBSCRIBED = 4, /* also permitted to a subscribed connection */
  ENGINE_SECOND = 8,     /* the second of two commands that share a function */
  /* Arguments that are checked before the function is called: first the integers argv[2] and
   * argv[3], then the type of the key argv[1]. */
  ENGINE_INTEGER_2 = 16,
  ENGINE_INTEGER_3 = 32,
  ENGINE_MAKES = 64, /* with ENGINE_OF: an empty value is made if the key does not exist */
  ENGINE_TYPE_SHIFT = 8
};
#define ENGINE_OF(type) ((unsigned)(ENGINE_##type + 1) << ENGINE_TYPE_SHIFT)

struct engine_command {
  const char *name; /* upper case */
  engine_command_fn *run;
  int arity; /* words, with the name; negative: at least that many. The handler need not check it */
  unsigned flags;
  /* Subcommands such as SETNAME of CLIENT: rows as here, whose arity is that of the whole command;
   * the handler of CLIENT itself is NULL. */
  const engine_command_t *parts;
};

/* Each ends with a row without a name. */
extern const engine_command_t engine_key_commands[];
extern const engine_command_t engine_expiry_commands[];
extern const engine_command_t engine_string_commands[];
extern const engine_command_t engine_hash_commands[];
extern const engine_command_t engine_list_commands[];
extern const engine_command_t engine_sketch_commands[];
extern const engine_command_t engine_zset_commands[];
extern const engine_command_t engine_union_commands[];
extern const engine_command_t engine_bit_commands[];
extern const engine_command_t engine_pubsub_commands[];
extern const engine_command_t engine_script_commands[];
extern const engine_command_t engine_server_commands[];

/* NULL: there is none of that name, in upper or in lower case. */
const engine_command_t *engine_command_find(engine_bytes_t name);

/* Finds, checks and runs a command of a connection or a script. */
void engine_run(engine_call_t *call);

/* ---- replies (reply.c) ---- */

void engine_reply_integer(engine_call_t *call, int64_t value);
void engine_reply_bulk(engine_call_t *call, const char *at, size_t len);
void engine_reply_bytes(engine_call_t *call, engine_bytes_t word);
void engine_reply_text(engine_call_t *call, const char *text); /* as a bulk */
void engine_reply_nil(engine_call_t *call);                    /* $-1 */
void engine_reply_array(engine_call_t *call, size_t count);    /* number of replies that follow */
void engine_reply_map(engine_call_t *call, size_t pairs);      /* number of pairs that follow */
void engine_reply_set(engine_call_t *call, size_t count);
void engine_reply_push(engine_call_t *call, size_t count);   /* a message, or a part of it */
void engine_reply_double(engine_call_t *call, double value); /* a score */
void engine_reply_verbatim(engine_call_t *call, const char *at, size_t len); /* as a bulk */
void engine_reply_ok(engine_call_t *call);
void engine_reply_status(engine_call_t *call, const char *text);
void engine_reply_status_bytes(engine_call_t *call, const char *at, size_t len);

/* True if the reply is one of RESP3. Then nil, maps, sets, pushes, doubles and verbatim texts
 * have types of their own; in RESP2 they are bulks and arrays. */
bool engine_is_resp3(const engine_call_t *call);

/* With its code but without a '-': "ERR syntax error". Line ends in it become blanks. */
void engine_reply_error(engine_call_t *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void engine_reply_error_bytes(engine_call_t *call, const char *at, size_t len);
void engine_reply_syntax_error(engine_call_t *call);
void engine_reply_wrongtype(engine_call_t *call);
/* The error of a wrong number of arguments. whole: call->command, or its parent command. */
void engine_reply_wrong_number(engine_call_t *call, const engine_command_t *whole);
void engine_reply_not_an_integer(engine_call_t *call); /* "… or out of range" */

/* ---- words (word.c) ---- */

/* In upper or lower case; text is in upper case. */
bool engine_bytes_is(engine_bytes_t word, const char *text);
bool engine_bytes_equal(engine_bytes_t a, engine_bytes_t b);

/* As Redis reads an integer: "-5", but no "+5", " 5", "05". */
bool engine_bytes_integer(engine_bytes_t word, int64_t *value);

/* As Redis reads a score: "1e3", "inf", but no " 5", "nan". */
bool engine_bytes_double(engine_bytes_t word, double *value);

/* False: it is no such number, and the error is the reply. */
bool engine_get_integer(engine_call_t *call, engine_bytes_t word, int64_t *value);
bool engine_get_double(engine_call_t *call, engine_bytes_t word, double *value);

static inline engine_bytes_t engine_text(const char *text) {
  return (engine_bytes_t){text, strlen(text)};
}

static inline engine_bytes_t engine_buffer_bytes(const engine_buffer_t *buffer) {
  return (engine_bytes_t){buffer->at != NULL ? buffer->at : "", buffer->len};
}

/* ---- when keys end (expiry.c) ---- */

/* Converts a time in milliseconds, from now or from 1970, to that of an engine_object_t. False:
 * it does not fit, and the error is the reply. name: of the command, in lower case. */
bool engine_to_end(engine_call_t *call, const char *name, int64_t value, bool from_now,
                   int64_t *ends_ms);

/* ---- integers as text (strings.c) ---- */

enum { ENGINE_NUMBER_MAX = 24 };

/* False: the sum overflows, and the error is the reply. */
bool engine_add(engine_call_t *call, int64_t value, int64_t step, int64_t *sum);
engine_bytes_t engine_print_integer(char text[ENGINE_NUMBER_MAX], int64_t value);

/* ---- the parts ---- */

/* pubsub.c: deletes a connection's subscriptions; and the engine's state. */
void engine_pubsub_leave(engine_t *engine, engine_conn_t *conn);
void engine_pubsub_free(engine_t *engine);

/* script.c */
void engine_scripts_forget(engine_t *engine); /* SCRIPT FLUSH */
void engine_scripts_shutdown(void);

#endif /* TEST_SIM_ENGINE_COMMAND_H */
