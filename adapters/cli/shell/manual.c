/* `belay manual`: print the manual page belay(1), made from the tables of the commands. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "belay/version.h"
#include "shell/commands.h"
#include "shell/common.h"
#include "shell/help.h"
#include "ui/status.h"

typedef struct section {
  const char *heading, *text;
} section_t;

/* Sections that are not in the tables. */
static const section_t before[] = {
    {"DESCRIPTION",
     "belay makes the belay library available to shells and cron: locks, limits, counters, ids "
     "and other things that many machines share, on a Redis or Valkey server.\n\n"
     "Options may stand anywhere behind the command's name, as --name VALUE or --name=VALUE. "
     "Options that commands share are listed at the end. Words behind -- are not options."},
};
static const section_t behind[] = {
    {"SERVERS",
     "redis://[user[:password]@]host[:port][/db], unix://[user[:password]@]/path[?db=n], "
     "redis+replicas://host,host[/db], redis+sentinel://host,host/master[/db], "
     "redis+cluster://host,host[/db]. All but unix can use TLS, with rediss instead of redis. "
     "User, password and path may be percent-encoded.\n\n"
     "belay uses one deployment. If several servers form a quorum, give one --url for each."},
    {"UNITS", "Durations: 250ms, 90s, 1m30s, 1.5h, 24h, 7d, 2w, from large units to small "
              "ones. A number without a unit is not a duration. Rates: 10/s, 100/min, 5/h, "
              "1000/d, 3/10s."},
    {"RESULTS", "Each result is one line on standard output; with --json it is an object on "
                "one line. In JSON, texts in UTF-8 are unchanged. Other texts are read as "
                "Latin-1: each byte from 0x80 on becomes \\u0080 to \\u00ff. Terminal control "
                "characters become \\uXXXX. In plain output, unprintable bytes become \\xXX.\n\n"
                "Errors are reported on standard error. Each message begins with `belay: "
                "COMMAND: `."},
    {"SETTINGS",
     "Each option of THE SERVER above that has a value can be set on the command line, in the "
     "environment, and in files. The command line takes precedence, then the environment. "
     "--tls-ca is BELAY_TLS_CA in the environment, and a line `tls-ca = FILE` in a file. "
     "BELAY_URL may have several URLs, separated by spaces; in a file each has its own line. "
     "No file can set --config.\n\n"
     "A file has lines `name = value`, empty lines, and comments, which begin with #. Without "
     "--config and BELAY_CONFIG, belay reads the user's file first, and takes missing settings "
     "from the system's file. A file that does not exist, or that the user may not read, is "
     "skipped."},
    {"PASSWORDS",
     "There is no option for a password, because all users of the machine can read a command "
     "line (/proc/PID/cmdline). The password can be in BELAY_PASSWORD; in the first line of "
     "the file that --password-file or BELAY_PASSWORD_FILE names; as `password = TEXT` in a "
     "settings file; or in the URL, if the URL is in one of those places. A file with a "
     "password that all users can read is refused. The password of a URL takes precedence."},
};
static const section_t last[] = {
    {"FILES", "$XDG_CONFIG_HOME/belay/config, or ~/.config/belay/config: the user's "
              "settings.\n\n"
              "/etc/belay/config: the settings of all users."},
    {"SEE ALSO", "redis-cli(1), flock(1)"},
};

/* ---- roff ---- */

/* Print text in which no character is a roff request. */
static void print_text(const char *text, size_t len) {
  static const struct {
    char character;
    const char *roff;
  } escapes[] = {{'\\', "\\e"},   {'-', "\\-"},   {'`', "\\(ga"},
                 {'\'', "\\(aq"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  for (size_t i = 0; i < len; i++) {
    size_t escape = 0;
    while (escape < sizeof escapes / sizeof *escapes && escapes[escape].character != text[i])
      escape++;
    if (text[i] == '.' && (i == 0 || text[i - 1] == '\n'))
      (void)fputs("\\&", stdout);
    if (escape < sizeof escapes / sizeof *escapes)
      (void)fputs(escapes[escape].roff, stdout);
    else
      (void)putchar(text[i]);
  }
}

static void print_string(const char *text) {
  print_text(text, strlen(text));
}

static void print_line(const char *text) {
  print_string(text);
  (void)putchar('\n');
}

static void print_paragraphs(const char *text) {
  while (text != NULL) {
    const char *end = strstr(text, "\n\n");
    print_text(text, end != NULL ? (size_t)(end - text) : strlen(text));
    (void)putchar('\n');
    if (end != NULL)
      (void)puts(".PP");
    text = end != NULL ? end + 2 : NULL;
  }
}

/* Print a term in bold, and its text. */
static void print_entry(const char *term, const char *what) {
  (void)fputs(".TP\n\\fB", stdout);
  print_string(term);
  (void)fputs("\\fR\n", stdout);
  print_line(what);
}

static void print_options(const option_t *options) {
  for (const option_t *o = options; o != NULL && o->name != NULL; o++)
    print_entry(help_option(o), o->help);
}

static void print_sections(const section_t *sections, size_t n) {
  for (size_t i = 0; i < n; i++) {
    (void)printf(".SH %s\n", sections[i].heading);
    print_paragraphs(sections[i].text);
  }
}

/* ---- the page ---- */

static void print_sentence(const char *text) {
  (void)putchar(toupper((unsigned char)*text));
  print_string(text + 1);
  (void)puts(".");
}

static void print_command(const command_t *command) {
  const char *word;
  (void)printf(".SS ");
  print_line(command_usage(command));
  print_sentence(command->summary);
  if (command->text != NULL) {
    (void)puts(".PP");
    print_paragraphs(command->text);
  }
  if (command->words != NULL) {
    (void)printf(".PP\n%s:", command->arguments);
    for (size_t i = 0; (word = command->words(i)) != NULL; i++) {
      (void)putchar(' ');
      print_string(word);
    }
    (void)putchar('\n');
  }
  print_options(command->options);
  for (const example_t *e = command->examples; e != NULL && e->line != NULL; e++) {
    (void)puts(".PP");
    print_string(e->what);
    (void)puts(":\n.PP\n.nf\n.RS");
    print_line(e->line);
    (void)puts(".RE\n.fi");
  }
  for (const command_t *sub = command->subcommands; sub != NULL && sub->name != NULL; sub++)
    print_command(sub);
}

static void print_statuses(void) {
  (void)puts(".SH EXIT STATUS");
#define PRINT_STATUS(name, value, text) print_entry(#value, text);
  STATUSES(PRINT_STATUS)
#undef PRINT_STATUS
}

static void print_environment(void) {
  (void)puts(".SH ENVIRONMENT");
  print_entry("BELAY_URL, BELAY_NAMESPACE, BELAY_PASSWORD, ...", "see SETTINGS");
  print_entry("BELAY_CONFIG", "the settings file, as --config");
}

static int run(const arguments_t *arguments) {
  (void)arguments;
  (void)puts(".TH BELAY 1 \"\" \"belay " BELAY_VERSION_STRING "\" \"User Commands\"\n"
             ".nh\n.ad l\n"
             ".SH NAME\n"
             "belay \\- locks, limits, counters and other things that machines share, on Redis\n"
             ".SH SYNOPSIS\n"
             "\\fBbelay\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...");
  print_sections(before, sizeof before / sizeof *before);
  (void)puts(".SH COMMANDS");
  for (size_t i = 0; commands[i] != NULL; i++)
    print_command(commands[i]);
  (void)puts(".SH OPTIONS\n.SS All commands");
  print_options(common_options);
  (void)puts(".SS Commands that report");
  print_options(common_report_options);
  (void)puts(".SS The server");
  print_options(common_server_options);
  print_sections(behind, sizeof behind / sizeof *behind);
  print_statuses();
  print_environment();
  print_sections(last, sizeof last / sizeof *last);
  return STATUS_YES;
}

const command_t manual_command = {
    .name = "manual",
    .summary = "print the manual page, as roff",
    .examples = EXAMPLES({"Read it, where it was not installed", "belay manual | man -l -"}),
    .run = run,
    .plain = true,
};
