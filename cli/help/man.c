/* probing.1: the build runs `probing help --man`, so that the page always says what the descriptors
 * say. */
#include "cli/help/man.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/help/help.h"

/* roff's special characters out of plain text; a line must not begin with a point or apostrophe. */
static void text(const char *plain, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = plain[i];
        if ((c == '.' || c == '\'') && (i == 0 || plain[i - 1] == '\n'))
            fputs("\\&", stdout);
        if (c == '\\')
            fputs("\\e", stdout);
        else if (c == '-')
            fputs("\\-", stdout);
        else if (c == '`' || c == '\'')
            fputs(c == '`' ? "\\(ga" : "\\(aq", stdout);
        else if (strncmp(plain + i, "…", strlen("…")) == 0)
            fputs("...", stdout), i += strlen("…") - 1;
        else
            putchar(c);
    }
}

static void paragraph(const char *plain)
{
    for (const char *at = plain; *at;) {
        const char *end = strstr(at, "\n\n");
        size_t n = end ? (size_t)(end - at) : strlen(at);
        text(at, n);
        putchar('\n');
        at += n;
        if (*at) {
            puts(".PP");
            at += 2;
        }
    }
}

static void print_options(const struct prb_option *options)
{
    for (const struct prb_option *option = options; option && option->name; option++) {
        char usage[64];
        prb_option_usage(option, usage, sizeof usage);
        fputs(".TP\n.B ", stdout);
        text(usage, strlen(usage));
        putchar('\n');
        text(option->help, strlen(option->help));
        putchar('\n');
    }
}

static void print_formats(const struct prb_command *command)
{
    struct prb_file_format format;
    for (size_t i = 0; command->format(i, &format); i++) {
        fputs(".TP\n.BR ", stdout);
        text(format.name, strlen(format.name));
        fputs(" \" (", stdout);
        text(format.suffixes, strcspn(format.suffixes, " "));
        fputs(")\"\n", stdout);
        text(format.doc, strlen(format.doc));
        putchar('\n');
    }
}

static void print_examples(const char *examples)
{
    puts(".PP\n.EX");
    text(examples, strlen(examples));
    puts(".EE");
}

static void print_command(const struct prb_command *command)
{
    printf(".SS %s", command->name);
    for (const char *alias = command->aliases; *alias; alias += strspn(alias, " ")) {
        size_t n = strcspn(alias, " ");
        printf(", %.*s", (int)n, alias);
        alias += n;
    }
    printf("\n.B %s %s\n", prb_command_usage(command), command->name);
    printf("%s", command->options ? ".RI [ option ]...\n" : "");
    if (*command->arguments) {
        fputs(".I ", stdout);
        text(command->arguments, strlen(command->arguments));
        putchar('\n');
    }
    puts(".PP");
    paragraph(command->description);
    print_options(command->options);
    if (command->format) {
        puts(".PP\nFormats:");
        print_formats(command);
    }
    if (command->examples)
        print_examples(command->examples);
}

static const char intro[] =
    ".SH NAME\n"
    "probing \\- look inside a running Python process\n"
    ".SH SYNOPSIS\n"
    ".B probing\n.RI [ option ]...\n.RI [ target ]\n.I command\n.RI [ argument ]...\n"
    ".SH DESCRIPTION\n"
    "Probing reads the Python and native stacks, variables and state of a live CPython process "
    "from outside.\n"
    "The process needs no preparation; for reading, nothing is loaded into it and, unless an "
    "option says so, it is not stopped.\n"
    "The same commands read core files and snapshots.\n"
    "To run code inside (eval, repl) a small library, the probe, is loaded into it.\n"
    ".PP\n"
    "A target is a process id, the path of a core or snapshot file or of a probe's socket, or a "
    "unique part of a Python process's\n"
    "command line. A number alone, before the command, is a process id:\n"
    ".BR \"probing 12345 backtrace\" .\n"
    "Options that go before the command may follow it, unless the command has its own of that "
    "name.\n";

static const char outro[] =
    ".PP\n"
    "An error is one message on standard error, with what can be done about it; standard output "
    "stays empty.\n"
    ".SH PERMISSIONS\n"
    "The kernel lets a process be read by its own user, under\n"
    ".I /proc/sys/kernel/yama/ptrace_scope\n"
    "0; with 1 (Debian's and Ubuntu's usual value) by its parents and by those with "
    "CAP_SYS_PTRACE, such as root;\n"
    "with 2 by the latter only; with 3 by nobody.\n"
    "In a container the capability must be given to the container (\\-\\-cap\\-add SYS_PTRACE); "
    "from outside, root sees\n"
    "the processes of all containers under the process ids that\n"
    ".B probing list\n"
    "shows.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n.B NO_COLOR\nwhen set and not empty: no colours, unless \\-\\-color always.\n"
    ".TP\n.B COLUMNS, LINES\nthe size of the terminal, instead of its own answer.\n"
    ".TP\n.B PROBING_AUTO_INJECT\noff, here or in the target's environment: commands that need "
    "the probe do not load it.\n"
    ".TP\n.B PROBING_PLUGINS\nshared objects with SQL tables of their own, separated by colons.\n"
    ".TP\n.B XDG_STATE_HOME\nwhere repl keeps its history, in probing/history; ~/.local/state "
    "when unset.\n"
    ".SH SEE ALSO\n"
    ".BR gdb (1),\n.BR core (5),\n.BR proc (5),\n.BR ptrace (2)\n";

void prb_man_print(void)
{
    const char *meaning;
    int status;
    printf(".\\\" Made from the command descriptors by `probing help --man`.\n");
    printf(".TH PROBING 1 \"\" \"probing %s\" \"User Commands\"\n", prb_version());
    fputs(intro, stdout);
    puts(".SH OPTIONS");
    print_options(prb_global_options);
    puts(".SH COMMANDS");
    for (const struct prb_command *const *at = prb_commands; *at; at++)
        print_command(*at);
    puts(".SH EXIT STATUS");
    for (size_t at = 0; prb_exit_status_next(&at, &status, &meaning);)
        printf(".TP\n.B %d\n%s\n", status, meaning);
    fputs(outro, stdout);
}
