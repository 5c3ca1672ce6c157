/* `belay completion SHELL` prints a script for a shell. All scripts ask this program for the
 * candidates. */
#include "shell/completion.h"

#include <stdio.h>
#include <string.h>

#include "shell/commands.h"
#include "shell/options.h"
#include "ui/out.h"
#include "ui/status.h"

/* ---- candidates ---- */

/* The position of the last word. */
typedef struct place {
  const command_t *command; /* NULL: no command is named yet */
  const option_t *option;   /* the last word is the value of this option; NULL: no value */
  size_t program;           /* index of the first word behind "--"; 0: there is no "--" */
} place_t;

static place_t find_place(size_t n, char **words) {
  place_t at = {.command = n > 1 ? command_named(words[0]) : NULL};
  for (size_t i = 1; i + 1 < n && at.command != NULL; i++) {
    const option_set_t set = options_of(at.command);
    bool next = false;
    if (at.option != NULL) {
      at.option = NULL;
    } else if (strcmp(words[i], "--") == 0 && at.command->runs != RUNS_NOTHING) {
      at.program = i + 2; /* behind "--", and "belay" is word 0 */
      break;
    } else if (words[i][0] == '-') {
      const option_t *option = option_of_word(&set, words[i], &next);
      at.option = next ? option : NULL;
    } else if (command_find_subcommand(at.command, words[i]) != NULL) {
      at.command = command_find_subcommand(at.command, words[i]);
    }
  }
  return at;
}

static void offer_value(const option_t *option) {
  const char *value = option_value_name(option);
  if (strcmp(value, "FILE") == 0 || strcmp(value, "FOLDER") == 0)
    (void)puts(":files");
  for (const char *word = option->choices; word != NULL && *word != '\0';) {
    size_t len = strcspn(word, " ");
    (void)printf("%.*s\n", (int)len, word);
    word += len + strspn(word + len, " ");
  }
}

static void offer_options(const command_t *command) {
  const option_set_t set = options_of(command);
  const option_t *o;
  for (size_t i = 0; (o = option_nth(&set, i)) != NULL; i++)
    (void)printf("--%s\t%s\n", o->name, o->help);
}

static void offer_words(const command_t *command) {
  const char *word;
  for (size_t i = 0; command == NULL && commands[i] != NULL; i++)
    (void)printf("%s\t%s\n", commands[i]->name, commands[i]->summary);
  if (command == NULL)
    return;
  for (const command_t *sub = command->subcommands; sub != NULL && sub->name != NULL; sub++)
    (void)printf("%s\t%s\n", sub->name, sub->summary);
  for (size_t i = 0; command->words != NULL && (word = command->words(i)) != NULL; i++)
    (void)puts(word);
}

int completion_words(size_t n, char **words) {
  const place_t at = find_place(n, words);
  if (at.program > 0)
    (void)printf(":command %zu\n", at.program);
  else if (at.option != NULL)
    offer_value(at.option);
  else if (n > 1 && at.command != NULL && words[n - 1][0] == '-')
    offer_options(at.command);
  else
    offer_words(at.command);
  return fflush(stdout) == 0 ? STATUS_YES : STATUS_TROUBLE;
}

/* ---- scripts ---- */

static const char bash[] =
    "# Completion of belay for bash.\n"
    "_belay() {\n"
    "  local said cur=${COMP_WORDS[COMP_CWORD]}\n"
    "  said=$(belay " COMPLETE_NAME " \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "  case $said in\n"
    "  :files) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
    "  :command*)\n"
    "    if declare -F _command_offset >/dev/null; then\n"
    "      _command_offset \"${said#:command }\"\n"
    "    else\n"
    "      mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
    "    fi\n"
    "    ;;\n"
    "  *) mapfile -t COMPREPLY < <(compgen -W \"$(cut -f 1 <<<\"$said\")\" -- \"$cur\") ;;\n"
    "  esac\n"
    "}\n"
    "complete -F _belay belay\n";

static const char fish[] =
    "# Completion of belay for fish.\n"
    "function __belay_complete\n"
    "    set -l words (commandline -opc) \"$(commandline -ct)\"\n"
    "    set -l said (belay " COMPLETE_NAME " $words[2..-1] 2>/dev/null)\n"
    "    switch \"$said[1]\"\n"
    "        case :files\n"
    "            __fish_complete_path $words[-1]\n"
    "        case ':command *'\n"
    "            set -l at (string split ' ' -- $said[1])[2]\n"
    "            complete -C (string join ' ' -- $words[(math $at + 1)..-1])\n"
    "        case '*'\n"
    "            string join \\n -- $said\n"
    "    end\n"
    "end\n"
    "complete -c belay -f -a '(__belay_complete)'\n";

static const char zsh[] =
    "#compdef belay\n"
    "# Completion of belay for zsh.\n"
    "_belay() {\n"
    "  local -a said\n"
    "  said=(${(f)\"$(belay " COMPLETE_NAME " \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
    "  case ${said[1]} in\n"
    "    '') ;;\n"
    "    :files) _files ;;\n"
    "    :command*)\n"
    "      local at=${said[1]#:command }\n"
    "      shift $at words\n"
    "      (( CURRENT -= at ))\n"
    "      _normal\n"
    "      ;;\n"
    "    *)\n"
    "      said=(\"${(@)said/$'\\t'/:}\")\n"
    "      _describe value said\n"
    "      ;;\n"
    "  esac\n"
    "}\n"
    "if [[ $funcstack[1] == _belay ]]; then\n"
    "  _belay \"$@\"\n"
    "else\n"
    "  compdef _belay belay\n"
    "fi\n";

static const struct {
  const char *name, *script;
} shells[] = {{"bash", bash}, {"fish", fish}, {"zsh", zsh}};
#define SHELLS (sizeof shells / sizeof *shells)

static const char *shell(size_t i) {
  return i < SHELLS ? shells[i].name : NULL;
}

static int run(const arguments_t *arguments) {
  for (size_t i = 0; i < SHELLS; i++)
    if (strcmp(arguments->item[0], shells[i].name) == 0) {
      (void)fputs(shells[i].script, stdout);
      return STATUS_YES;
    }
  complain("no completion for that shell: bash, fish or zsh");
  return STATUS_USAGE;
}

const command_t completion_command = {
    .name = "completion",
    .arguments = "SHELL",
    .summary = "print the completion script of a shell",
    .examples = EXAMPLES(
        {"In ~/.bashrc, where belay was not installed for all", "source <(belay completion bash)"},
        {"In ~/.zshrc, behind compinit", "source <(belay completion zsh)"},
        {"In ~/.config/fish/config.fish", "belay completion fish | source"}),
    .words = shell,
    .plain = true,
    .run = run,
};
