/* Completion for fish: a function that says which command the line has so far, and what may follow each. */
#include <stdio.h>
#include <string.h>

#include "shell/commands.h"
#include "shell/completion.h"
#include "shell/help.h"
#include "shell/options.h"

/* In single quotes. */
static void print_quoted(const char *text) {
  (void)putchar('\'');
  for (; *text != '\0'; text++) {
    if (*text == '\'' || *text == '\\')
      (void)putchar('\\');
    (void)putchar(*text);
  }
  (void)putchar('\'');
}

static void print_word(const char *path, const char *word, const char *what) {
  (void)printf("complete -c belay -n '__belay_at \"%s\"' -a %s", path, word);
  if (what != NULL) {
    (void)fputs(" -d ", stdout);
    print_quoted(what);
  }
  (void)putchar('\n');
}

static void print_option(const char *path, const option_t *option) {
  (void)printf("complete -c belay -n '__belay_at \"%s\"' -l %s", path, option->name);
  if (option->letter != 0)
    (void)printf(" -s %c", option->letter);
  if (option->value != NULL)
    (void)fputs(completion_is_file(option) ? " -r -F" : " -x", stdout);
  if (option->choices != NULL)
    (void)printf(" -a '%s'", option->choices);
  (void)fputs(" -d ", stdout);
  print_quoted(option->help);
  (void)putchar('\n');
}

static void print_branch(const command_t *command, const char *path) {
  option_set_t set = options_of(command);
  const char *word;
  for (size_t i = 0; i < set.n; i++)
    for (const option_t *o = set.table[i]; o->name != NULL; o++)
      print_option(path, o);
  for (size_t i = 0; command->words != NULL && (word = command->words(i)) != NULL; i++)
    print_word(path, word, NULL);
  if (command->runs != RUNS_NOTHING)
    (void)printf("complete -c belay -n '__belay_behind \"%s\"' -a '(__belay_command)'\n", path);
}

/* The command is the first word that is no option and no value of one; of one that has parts the next word too. */
static const char head[] = "# Completion of belay for fish.\n"
                           "function __belay_path\n"
                           "    set -l path\n"
                           "    set -l value 0\n"
                           "    for word in (commandline -opc)[2..-1]\n"
                           "        if test $value = 1\n"
                           "            set value 0\n"
                           "            continue\n"
                           "        end\n"
                           "        switch $word\n"
                           "            case --\n"
                           "                break\n"
                           "            case";

static const char middle[] = "\n"
                             "                set value 1\n"
                             "            case '-*'\n"
                             "                continue\n"
                             "            case '*'\n"
                             "                set path $path $word\n"
                             "                if test (count $path) -eq 2\n"
                             "                    break\n"
                             "                end\n"
                             "                if not contains -- $word";

static const char tail[] =
    "\n"
    "                    break\n"
    "                end\n"
    "        end\n"
    "    end\n"
    "    string join ' ' -- $path\n"
    "end\n"
    "function __belay_at\n"
    "    not contains -- -- (commandline -opc); and test \"$(__belay_path)\" = \"$argv[1]\"\n"
    "end\n"
    "function __belay_behind\n"
    "    contains -- -- (commandline -opc); and test \"$(__belay_path)\" = \"$argv[1]\"\n"
    "end\n"
    "function __belay_command\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    set -l at (contains -i -- -- $words)\n"
    "    complete -C (string join ' ' -- $words[(math $at + 1)..-1])\n"
    "end\n"
    "complete -c belay -f\n";

void completion_fish(void) {
  option_set_t set = options_of(&in_front);
  (void)fputs(head, stdout);
  for (size_t i = 0; i < set.n; i++)
    for (const option_t *o = set.table[i]; o->name != NULL; o++) {
      if (o->value != NULL)
        (void)printf(" --%s", o->name);
      if (o->value != NULL && o->letter != 0)
        (void)printf(" -%c", o->letter);
    }
  (void)fputs(middle, stdout);
  for (size_t i = 0; commands[i] != NULL; i++)
    if (commands[i]->parts != NULL)
      (void)printf(" %s", commands[i]->name);
  (void)fputs(tail, stdout);
  for (size_t i = 0; commands[i] != NULL; i++) {
    print_word("", commands[i]->name, commands[i]->summary);
    for (size_t j = 0; commands[i]->parts != NULL && commands[i]->parts[j] != NULL; j++)
      print_word(commands[i]->name, commands[i]->parts[j]->name, commands[i]->parts[j]->summary);
  }
  print_branch(&in_front, "");
  completion_each(print_branch);
}
