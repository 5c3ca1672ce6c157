/* The options of a set, which a record on the server stores (belay/config.h). A later command need
 * not repeat them, and cannot contradict them.
 *
 *   record_begin --read--> merged with the command line --contradiction--> error
 *                            |
 *                            +--> check() --RECORD_ADDS--> opened --> go()
 *                                    +-----otherwise-----------------> go() */
#ifndef BELAY_CLI_QUERY_RECORD_H
#define BELAY_CLI_QUERY_RECORD_H

#include "belay/config.h"
#include "harness.h"

/* One option, and its field. Either number or text points to the variable that the option sets.
 * Before the merge it has the value `unset` (a text: NULL) unless the command line gave it; after
 * the merge it has the value that counts. */
typedef struct record_field {
  const char *name;   /* of the field */
  const char *option; /* "--width", for messages */
  int64_t *number;
  int64_t unset;
  int64_t usual; /* the default, if neither the command line nor the record has a value */
  const char **text;
  const char *usual_text; /* NULL: none; then the field is not recorded */
  belay_config_rule_t rule;
  bool duration; /* number is in milliseconds; BELAY_FOREVER becomes 0 */
} record_field_t;

/* A field of each type. A text follows the rule BELAY_CONFIG_SAME. */
#define RECORD_TEXT(name_, option_, to_, usual_)                                                   \
  { .name = (name_), .option = (option_), .text = (to_), .usual_text = (usual_) }
#define RECORD_NUMBER(name_, option_, to_, unset_, usual_, rule_)                                  \
  {                                                                                                \
    .name = (name_), .option = (option_), .number = (to_), .unset = (unset_), .usual = (usual_),   \
    .rule = (rule_)                                                                                \
  }
#define RECORD_DURATION(name_, option_, to_, unset_, usual_, rule_)                                \
  {                                                                                                \
    .name = (name_), .option = (option_), .number = (to_), .unset = (unset_), .usual = (usual_),   \
    .rule = (rule_), .duration = true                                                              \
  }

/* The effect of a command on the set. */
typedef enum record_use {
  RECORD_READS,
  RECORD_ADDS, /* it creates the record, or renews its life */
  /* ends with STATUS_NO without a record and without an option that locates the set */
  RECORD_REMOVES
} record_use_t;

/* One command of a family: `data` of its table, or the first member of that. */
typedef struct record_operation {
  record_use_t use;
  void (*go)(harness_t *h);
} record_operation_t;

/* The options of a family of commands. Argument 0 names the set: a key, board or site. */
typedef struct record {
  belay_config_kind_t kind;
  const char **name; /* to the handle's name, or to NULL for ""; NULL: argument 0 is the name */
  const record_field_t *fields;
  size_t n;
  const int64_t *life_ms; /* time that the set lives after a change; 0: for ever */
  /* Check the other arguments, and open the handle. Returns false after printing an error. */
  bool (*check)(harness_t *h);
} record_t;

/* Call go() of the command's operation once, or end the command. `record` must stay valid. */
void record_begin(harness_t *h, const record_t *record);

#endif /* BELAY_CLI_QUERY_RECORD_H */
