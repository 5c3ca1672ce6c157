/* Completion for zsh: a function that compinit loads. */
#include <stdio.h>
#include <string.h>

#include "shell/commands.h"
#include "shell/completion.h"
#include "shell/help.h"
#include "shell/options.h"

/* In single quotes. */
static void print_quoted(const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '\'')
      (void)fputs("'\\''", stdout);
    else
      (void)putchar(*text);
  }
}

static void print_described(const char *dashes, const char *name, const char *what) {
  (void)printf(" '%s%s:", dashes, name);
  print_quoted(what);
  (void)putchar('\'');
}

static void print_names(const command_t *const *list) {
  for (size_t i = 0; list[i] != NULL; i++)
    print_described("", list[i]->name, list[i]->summary);
}

static void print_options(const command_t *command) {
  option_set_t set = options_of(command);
  (void)fputs("      options=(", stdout);
  for (size_t i = 0; i < set.n; i++)
    for (const option_t *o = set.table[i]; o->name != NULL; o++)
      print_described("--", o->name, o->help);
  (void)fputs(" )\n", stdout);
}

/* What the value of each option is: a file, one of some words, or anything. */
static void print_values(const command_t *command) {
  option_set_t set = options_of(command);
  (void)fputs("      case $before in\n", stdout);
  for (size_t i = 0; i < set.n; i++)
    for (const option_t *o = set.table[i]; o->name != NULL; o++) {
      if (o->value == NULL)
        continue;
      (void)printf("        --%s", o->name);
      if (o->letter != 0)
        (void)printf("|-%c", o->letter);
      if (completion_is_file(o))
        (void)fputs(") _files; return ;;\n", stdout);
      else if (o->choices != NULL)
        (void)printf(") compadd -- %s; return ;;\n", o->choices);
      else
        (void)fputs(") _message ${before}; return ;;\n", stdout);
    }
  (void)fputs("      esac\n", stdout);
}

static void print_branch(const command_t *command, const char *path) {
  const char *word;
  (void)printf("    '%s')\n", path);
  print_options(command);
  print_values(command);
  (void)fputs("      given=(", stdout);
  for (size_t i = 0; command->words != NULL && (word = command->words(i)) != NULL; i++)
    (void)printf(" %s", word);
  (void)printf(" )\n      runs=%s\n      ;;\n", command->runs != RUNS_NOTHING ? "yes" : "");
}

static const char head[] = "#compdef belay\n"
                           "# Completion of belay for zsh.\n"
                           "_belay() {\n"
                           "  local before=${words[CURRENT-1]} command='' runs='' i at\n"
                           "  local -a commands parts options given values\n"
                           "  commands=(";

static const char seek[] =
    "  for ((at = 2; at < CURRENT; at++)); do\n"
    "    if [[ -n ${commands[(r)${(b)words[at]}:*]} && -z ${values[(re)${words[at-1]}]} ]]; then\n"
    "      command=${words[at]}\n"
    "      break\n"
    "    fi\n"
    "  done\n"
    "  case $command in\n";

static const char middle[] = "  esac\n"
                             "  if (( $#parts && CURRENT > at + 1 )); then\n"
                             "    command=\"$command ${words[at+1]}\"\n"
                             "    parts=()\n"
                             "  fi\n"
                             "  for ((i = at + 1; i < CURRENT; i++)); do\n"
                             "    if [[ ${words[i]} == -- ]]; then\n"
                             "      case $command in\n"
                             "        ";

static const char behind[] = ")\n"
                             "          shift $i words\n"
                             "          (( CURRENT -= i ))\n"
                             "          _normal\n"
                             "          ;;\n"
                             "      esac\n"
                             "      return\n"
                             "    fi\n"
                             "  done\n"
                             "  case $command in\n";

static const char tail[] = "  esac\n"
                           "  if [[ ${words[CURRENT]} == -* ]]; then\n"
                           "    _describe -o option options\n"
                           "  elif [[ -z $command ]]; then\n"
                           "    _describe command commands\n"
                           "  elif (( $#parts )); then\n"
                           "    _describe command parts\n"
                           "  else\n"
                           "    compadd -- $given\n"
                           "  fi\n"
                           "}\n"
                           "if [[ $funcstack[1] == _belay ]]; then\n"
                           "  _belay \"$@\"\n"
                           "else\n"
                           "  compdef _belay belay\n"
                           "fi\n";

/* The commands that run others, as a pattern. */
static void print_runner(const command_t *command, const char *path) {
  static bool some;
  if (command->runs == RUNS_NOTHING)
    return;
  (void)printf("%s'%s'", some ? "|" : "", path);
  some = true;
}

void completion_zsh(void) {
  option_set_t set = options_of(&in_front);
  (void)fputs(head, stdout);
  print_names(commands);
  (void)fputs(" )\n  values=(", stdout);
  for (size_t i = 0; i < set.n; i++)
    for (const option_t *o = set.table[i]; o->name != NULL; o++) {
      if (o->value != NULL)
        (void)printf(" --%s", o->name);
      if (o->value != NULL && o->letter != 0)
        (void)printf(" -%c", o->letter);
    }
  (void)printf(" )\n%s", seek);
  for (size_t i = 0; commands[i] != NULL; i++) {
    if (commands[i]->parts == NULL)
      continue;
    (void)printf("    %s) parts=(", commands[i]->name);
    print_names(commands[i]->parts);
    (void)fputs(" ) ;;\n", stdout);
  }
  (void)fputs(middle, stdout);
  completion_each(print_runner);
  (void)fputs(behind, stdout);
  print_branch(&in_front, "");
  completion_each(print_branch);
  (void)fputs(tail, stdout);
}
