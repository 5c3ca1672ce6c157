/* `belay completion SHELL`: what a shell completes a command line by, out of the commands' tables. Here that of bash. */
#include <stdio.h>
#include <string.h>

#include "shell/commands.h"
#include "shell/completion.h"
#include "shell/help.h"
#include "shell/options.h"
#include "ui/out.h"
#include "ui/status.h"

/* Only spaces are between words, and nothing that a shell takes for anything else is in them: names of ours. */
static void print_names(const command_t *const *list) {
  for (size_t i = 0; list[i] != NULL; i++)
    (void)printf("%s%s", i == 0 ? "" : " ", list[i]->name);
}

typedef bool (*option_test_fn)(const option_t *option);

static bool is_any(const option_t *option) {
  return option->name != NULL;
}

static bool takes_value(const option_t *option) {
  return option->value != NULL;
}

bool completion_is_file(const option_t *option) {
  return option->value != NULL &&
         (strcmp(option->value, "FILE") == 0 || strcmp(option->value, "FOLDER") == 0);
}

void completion_each(void (*print)(const command_t *command, const char *path)) {
  for (size_t i = 0; commands[i] != NULL; i++) {
    if (commands[i]->parts == NULL)
      print(commands[i], command_full_name(commands[i]));
    for (size_t j = 0; commands[i]->parts != NULL && commands[i]->parts[j] != NULL; j++)
      print(commands[i]->parts[j], command_full_name(commands[i]->parts[j]));
  }
}

/* Each with a space before and behind it. */
static void print_options(const command_t *command, option_test_fn wanted) {
  option_set_t set = options_of(command);
  for (size_t i = 0; i < set.n; i++) {
    for (const option_t *o = set.table[i]; o->name != NULL; o++) {
      if (!wanted(o))
        continue;
      (void)printf(" --%s", o->name);
      if (o->letter != 0 && wanted != is_any)
        (void)printf(" -%c", o->letter);
    }
  }
  (void)putchar(' ');
}

/* Options whose values are some words. */
static void print_choices(const command_t *command) {
  option_set_t set = options_of(command);
  (void)fputs("    case $prev in\n", stdout);
  for (size_t i = 0; i < set.n; i++)
    for (const option_t *o = set.table[i]; o->name != NULL; o++) {
      if (o->choices == NULL)
        continue;
      (void)printf("    --%s", o->name);
      if (o->letter != 0)
        (void)printf(" | -%c", o->letter);
      (void)printf(") choices='%s' ;;\n", o->choices);
    }
  (void)fputs("    *) ;;\n    esac\n", stdout);
}

/* One branch for each command: its options, which of them have values, which of those are files, and its words. */
static void print_branch(const command_t *command, const char *path) {
  const char *word;
  (void)printf("  '%s')\n    options='", path);
  print_options(command, is_any);
  (void)fputs("'\n    values='", stdout);
  print_options(command, takes_value);
  (void)fputs("'\n    files='", stdout);
  print_options(command, completion_is_file);
  (void)fputs("'\n    words='", stdout);
  for (size_t i = 0; command->words != NULL && (word = command->words(i)) != NULL; i++)
    (void)printf("%s ", word);
  (void)printf("'\n    runs=%s\n", command->runs != RUNS_NOTHING ? "yes" : "");
  print_choices(command);
  (void)fputs("    ;;\n", stdout);
}

static const char head[] =
    "# Completion of belay for bash.\n"
    "_belay() {\n"
    "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "  local path='' parts='' options='' values='' files='' words='' runs='' choices='' i at\n"
    "  local commands='";

/* The command is the first word that is one's name, and no value of an option in front of it. */
static const char seek[] = "  COMPREPLY=()\n"
                           "  for ((at = 1; at < COMP_CWORD; at++)); do\n"
                           "    if [[ \" $commands \" == *\" ${COMP_WORDS[at]} \"* && $values != "
                           "*\" ${COMP_WORDS[at - 1]} "
                           "\"* ]]; then\n"
                           "      path=${COMP_WORDS[at]}\n"
                           "      break\n"
                           "    fi\n"
                           "  done\n"
                           "  case $path in\n";

static const char middle[] = "  esac\n"
                             "  if [[ $parts ]] && ((COMP_CWORD > at + 1)); then\n"
                             "    path=\"$path ${COMP_WORDS[at + 1]}\"\n"
                             "    parts=''\n"
                             "  fi\n"
                             "  case $path in\n";

static const char tail[] = "  esac\n"
                           "  if [[ ! $path ]]; then\n"
                           "    words=$commands\n"
                           "  fi\n"
                           "  for ((i = at + 1; i < COMP_CWORD; i++)); do\n"
                           "    if [[ $runs && ${COMP_WORDS[i]} == -- ]]; then\n"
                           "      if declare -F _command_offset >/dev/null; then\n"
                           "        _command_offset $((i + 1))\n"
                           "      else\n"
                           "        mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
                           "      fi\n"
                           "      return\n"
                           "    fi\n"
                           "  done\n"
                           "  if [[ $files == *\" $prev \"* ]]; then\n"
                           "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                           "  elif [[ $choices ]]; then\n"
                           "    mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$cur\")\n"
                           "  elif [[ $values == *\" $prev \"* ]]; then\n"
                           "    return\n"
                           "  elif [[ $cur == -* ]]; then\n"
                           "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
                           "  else\n"
                           "    mapfile -t COMPREPLY < <(compgen -W \"$words$parts\" -- \"$cur\")\n"
                           "  fi\n"
                           "}\n"
                           "complete -F _belay belay\n";

static void print_bash(void) {
  (void)fputs(head, stdout);
  print_names(commands);
  (void)fputs("'\n  values='", stdout);
  print_options(&in_front, takes_value);
  (void)printf("'\n%s", seek);
  for (size_t i = 0; commands[i] != NULL; i++) {
    if (commands[i]->parts == NULL)
      continue;
    (void)printf("  %s) parts='", commands[i]->name);
    print_names(commands[i]->parts);
    (void)fputs("' ;;\n", stdout);
  }
  (void)fputs(middle, stdout);
  print_branch(&in_front, "");
  completion_each(print_branch);
  (void)fputs(tail, stdout);
}

static const struct {
  const char *name;
  void (*print)(void);
} shells[] = {{"bash", print_bash}, {"fish", completion_fish}, {"zsh", completion_zsh}};
#define SHELLS (sizeof shells / sizeof *shells)

static const char *shell(size_t i) {
  return i < SHELLS ? shells[i].name : NULL;
}

static int run(const arguments_t *arguments) {
  for (size_t i = 0; i < SHELLS; i++)
    if (strcmp(arguments->item[0], shells[i].name) == 0) {
      shells[i].print();
      return STATUS_YES;
    }
  complain("there is none for that shell: bash, fish or zsh");
  return STATUS_USAGE;
}

const command_t completion_command = {
    .name = "completion",
    .arguments = "SHELL",
    .summary = "print what a shell completes command lines by",
    .examples =
        (const example_t[]){{"In ~/.bashrc, where belay was not installed for all",
                             "source <(belay completion bash)"},
                            {"In ~/.zshrc, behind compinit", "source <(belay completion zsh)"},
                            {"In ~/.config/fish/config.fish", "belay completion fish | source"},
                            {0}},
    .words = shell,
    .least = 1,
    .most = 1,
    .run = run,
};
