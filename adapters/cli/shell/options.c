#include "shell/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "belay/export.h"
#include "shell/commands.h"
#include "shell/common.h"
#include "ui/out.h"

#define SHOWN_MAX 24 /* longer than any name */

/* The position in the line. */
typedef struct reading {
  const command_t *command;
  option_set_t set;
  char **next, **end;
  arguments_t *out;
} reading_t;

option_set_t options_of(const command_t *command) {
  option_set_t set = {0};
  if (command->options != NULL)
    set.table[set.n++] = command->options;
  if (command_urls(command) > 0)
    set.table[set.n++] = common_server_options;
  if (!command->plain)
    set.table[set.n++] = common_report_options;
  set.table[set.n++] = common_options;
  return set;
}

const option_t *option_nth(const option_set_t *set, size_t i) {
  for (size_t table = 0; table < set->n; table++)
    for (const option_t *o = set->table[table]; o->name != NULL; o++)
      if (i-- == 0)
        return o;
  return NULL;
}

const char *option_value_name(const option_t *option) {
  static const char *const names[] = {[OPTION_TEXT] = "TEXT",
                                      [OPTION_TEXTS] = "TEXT",
                                      [OPTION_NUMBER] = "N",
                                      [OPTION_DURATION] = "DURATION",
                                      [OPTION_RATE] = "RATE"};
  if (option->bare)
    return "[DURATION]";
  return option->value != NULL ? option->value : names[option->kind];
}

const option_t *option_find(const option_set_t *set, const char *name, size_t len) {
  const option_t *o;
  for (size_t i = 0; (o = option_nth(set, i)) != NULL; i++)
    if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
      return o;
  return NULL;
}

static const option_t *find_letter(const option_set_t *set, char letter) {
  const option_t *o;
  for (size_t i = 0; (o = option_nth(set, i)) != NULL; i++)
    if (o->letter != 0 && o->letter == letter)
      return o;
  return NULL;
}

const option_t *option_of_word(const option_set_t *set, const char *word, bool *next) {
  size_t len = strcspn(word, "=");
  bool is_long = word[0] == '-' && word[1] == '-', attached = word[len] == '=';
  const option_t *option = is_long ? option_find(set, word + 2, len - 2) : NULL;
  for (const char *letter = word + 1; !is_long && *letter != '\0'; letter++) {
    option = find_letter(set, *letter);
    attached = letter[1] != '\0';
    if (option == NULL || option->kind != OPTION_FLAG)
      break;
  }
  *next = option != NULL && option->kind != OPTION_FLAG && !attached;
  return option;
}

/* ---- values ---- */

static bool in_range(const option_t *option, int64_t value) {
  return (option->min == 0 && option->max == 0) || (value >= option->min && value <= option->max);
}

static const char *wrong_range(const option_t *option) {
  static char text[96];
  char min[UNITS_DURATION_MAX], max[UNITS_DURATION_MAX];
  if (option->kind == OPTION_DURATION)
    (void)snprintf(text, sizeof text, "is not from %s to %s", units_show_exactly(min, option->min),
                   units_show_exactly(max, option->max));
  else
    (void)snprintf(text, sizeof text, "is not from %" PRId64 " to %" PRId64, option->min,
                   option->max);
  return text;
}

static const char *set_duration(const option_t *option, const char *value) {
  int64_t ms;
  if (value == NULL) {
    *option->to.number = option->max;
    return NULL;
  }
  if (option->forever && strcmp(value, "forever") == 0) {
    *option->to.number = BELAY_FOREVER;
    return NULL;
  }
  if (!units_duration(value, &ms))
    return "is not a duration such as 90s, 1m30s, 250ms, 24h or 7d";
  if (!in_range(option, ms))
    return wrong_range(option);
  *option->to.number = ms;
  return NULL;
}

static const char *set_number(const option_t *option, const char *value) {
  int64_t number;
  if (!units_number(value, &number))
    return "is not a whole number";
  if (!in_range(option, number))
    return wrong_range(option);
  *option->to.number = number;
  return NULL;
}

static const char *set_rate(const option_t *option, const char *value) {
  rate_t rate;
  if (!units_rate(value, &rate))
    return "is not a rate such as 10/s, 100/min, 5/h, 1000/d or 3/10s";
  if (!in_range(option, rate.count))
    return wrong_range(option);
  *option->to.rate = rate;
  return NULL;
}

static bool is_choice(const char *choices, const char *value) {
  size_t len = strlen(value);
  for (const char *word = choices; word != NULL && *word != '\0';) {
    size_t word_len = strcspn(word, " ");
    if (word_len == len && memcmp(word, value, len) == 0)
      return true;
    word += word_len + strspn(word + word_len, " ");
  }
  return choices == NULL;
}

static const char *wrong_choice(const option_t *option) {
  static char text[128];
  (void)snprintf(text, sizeof text, "is not one of these: %s", option->choices);
  return text;
}

const char *option_set_value(const option_t *option, const char *value) {
  texts_t *texts = option->to.texts;
  if (value != NULL && !is_choice(option->choices, value))
    return wrong_choice(option);
  switch (option->kind) {
  case OPTION_FLAG:
    *option->to.flag = true;
    return NULL;
  case OPTION_TEXT:
    *option->to.text = value;
    return NULL;
  case OPTION_TEXTS:
    if (texts->n == TEXTS_MAX)
      return "is given too many times";
    texts->item[texts->n++] = value;
    return NULL;
  case OPTION_NUMBER:
    return set_number(option, value);
  case OPTION_DURATION:
    return set_duration(option, value);
  case OPTION_RATE:
    return set_rate(option, value);
  }
  return "has no type";
}

/* ---- the line ---- */

/* Repeat only words that look like names: a value in the wrong place may be a password. */
static bool no_option(const reading_t *r, const char *name, size_t len) {
  bool plain = len <= SHOWN_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz-") >= len;
  complain("there is no option%s%.*s: see belay %s --help", plain ? " --" : "",
           plain ? (int)len : 0, name, command_full_name(r->command));
  return false;
}

/* The last value of a repeated option counts, so that aliases may contain options. */
static bool take(reading_t *r, const option_t *option, const char *value) {
  if (option->to.texts == &common.urls && command_urls(r->command) == 1)
    common.urls.n = 0;
  const char *wrong = option_set_value(option, value);
  if (wrong != NULL)
    complain("--%s %s", option->name, wrong);
  return wrong == NULL;
}

/* value: the attached value; NULL: none. A value that may be missing is the next word if that is a
 * duration. */
static bool take_next(reading_t *r, const option_t *option, const char *value) {
  if (option->kind == OPTION_FLAG) {
    if (value == NULL)
      return take(r, option, NULL);
    complain("--%s takes no value", option->name);
    return false;
  }
  int64_t ms;
  bool bare = option->bare && (r->next == r->end || !units_duration(*r->next, &ms));
  if (value != NULL || bare)
    return take(r, option, value);
  if (r->next != r->end)
    return take(r, option, *r->next++);
  complain("--%s lacks its %s", option->name, option_value_name(option));
  return false;
}

static bool read_long(reading_t *r, const char *word) {
  size_t len = strcspn(word, "=");
  const option_t *option = option_find(&r->set, word, len);
  if (option == NULL)
    return no_option(r, word, len);
  return take_next(r, option, word[len] == '=' ? word + len + 1 : NULL);
}

static bool read_letters(reading_t *r, const char *letters) {
  while (*letters != '\0') {
    const option_t *option = find_letter(&r->set, *letters);
    if (option == NULL) {
      complain("there is no such short option: see belay %s --help", command_full_name(r->command));
      return false;
    }
    letters++;
    if (option->kind != OPTION_FLAG)
      return take_next(r, option, *letters != '\0' ? letters : NULL);
    if (!take(r, option, NULL))
      return false;
  }
  return true;
}

/* Returns true for words that are no options; "-" and negative numbers are none. */
static bool is_argument(const char *word) {
  return word[0] != '-' || word[1] == '\0' || (word[1] >= '0' && word[1] <= '9');
}

/* Name the missing arguments as usage does: "ID and PERMISSION are missing". */
static const char *missing(const command_t *command, size_t there, size_t least) {
  static char text[SHOWN_MAX * 8];
  size_t len = 0, n = 0;
  const char *word = command->arguments;
  text[0] = '\0';
  for (size_t i = 0; i < least && word != NULL && *word != '\0'; i++) {
    size_t name = strcspn(word, " ."), size = sizeof text - len;
    if (i >= there && name < size - 32) {
      const char *between = n == 0 ? "" : i + 1 == least ? " and " : ", ";
      len += (size_t)snprintf(text + len, size, "%s%.*s", between, (int)name, word);
      n++;
    }
    word += strcspn(word, " ");
    word += strspn(word, " ");
  }
  (void)snprintf(text + len, sizeof text - len, n == 1 ? " is missing" : " are missing");
  return text;
}

static bool enough(const reading_t *r) {
  const command_t *command = r->command;
  const arguments_t *out = r->out;
  const char *wrong = NULL;
  size_t most, least = command_arguments(command, &most);
  if (out->n < least)
    wrong = missing(command, out->n, least);
  else if (out->n > most)
    wrong = command->runs != RUNS_NOTHING && out->command == NULL
                ? "too many arguments: the command to be run stands behind --"
                : "too many arguments";
  else if (out->command == NULL && command->runs == RUNS_ALWAYS)
    wrong = "the command to be run is missing: -- COMMAND...";
  else if (out->command != NULL && *out->command == NULL)
    wrong = "there is nothing behind --";
  if (wrong != NULL)
    complain("%s\nusage: %s", wrong, command_usage(command));
  return wrong == NULL;
}

/* Move a word behind the earlier arguments, in front of the options: the line keeps its meaning. */
static void take_argument(reading_t *r, char *word) {
  char **to = r->out->item + r->out->n++;
  memmove(to + 1, to, (size_t)(r->next - 1 - to) * sizeof *to);
  *to = word;
}

bool options_read(const command_t *command, int argc, char **argv, arguments_t *out) {
  reading_t r = {
      .command = command, .set = options_of(command), .next = argv, .end = argv + argc, .out = out};
  *out = (arguments_t){.item = argv};
  bool only_arguments = false;
  while (r.next < r.end && !common.help) {
    char *word = *r.next++;
    bool well = true;
    if (only_arguments || is_argument(word))
      take_argument(&r, word);
    else if (strcmp(word, "--") != 0)
      well = word[1] == '-' ? read_long(&r, word + 2) : read_letters(&r, word + 1);
    else if (command->runs == RUNS_NOTHING)
      only_arguments = true;
    else {
      out->command = r.next;
      break;
    }
    if (!well)
      return false;
  }
  return common.help || enough(&r);
}
