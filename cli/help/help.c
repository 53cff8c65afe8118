/* probing help: from the descriptors, as text, or as the man page. */
#include "cli/help/help.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/help/man.h"
#include "cli/print/out.h"

#define TEXT_COLUMNS 80
#define USAGE_COLUMNS 27 /* of "-f, --format FORMAT" */
#define NAMES_COLUMNS 20 /* of "list (ls l)", and a space */

/* Words of text, wrapped, each line after the first indented. */
static void wrap(const char *text, unsigned indent)
{
    unsigned column = indent;
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, " \n");
        if (column > indent && column + 1 + n > TEXT_COLUMNS) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        fwrite(at, 1, n, stdout);
        column += prb_out_width(at, n);
        at += n;
        if (strncmp(at, "\n\n", 2) == 0) {
            printf("\n\n%*s", (int)indent, "");
            column = indent;
        }
        at += strspn(at, " \n");
    }
    putchar('\n');
}

static void title(const char *text)
{
    prb_out_style(stdout, PRB_STYLE_TITLE);
    printf("\n%s\n", text);
    prb_out_style(stdout, PRB_STYLE_PLAIN);
}

static void print_options(const struct prb_option *options)
{
    for (const struct prb_option *option = options; option && option->name; option++) {
        char usage[64];
        prb_option_usage(option, usage, sizeof usage);
        printf("  %s%-*s ", option->letter ? "" : "    ",
               option->letter ? USAGE_COLUMNS : USAGE_COLUMNS - 4, usage);
        wrap(option->help, USAGE_COLUMNS + 3);
    }
}

static void print_formats(const struct prb_command *command)
{
    struct prb_file_format format;
    for (size_t i = 0; command->format(i, &format); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s (%.*s)", format.name, (int)strcspn(format.suffixes, " "),
                 format.suffixes);
        printf("  %-*s ", USAGE_COLUMNS, name);
        wrap(format.doc, USAGE_COLUMNS + 3);
    }
}

static void print_examples(const char *examples)
{
    for (const char *at = examples; at && *at;) {
        size_t line = strcspn(at, "\n");
        const char *note = memmem(at, line, "  # ", 4);
        size_t command = note ? (size_t)(note - at) : line;
        printf("  %.*s\n", (int)command, at);
        if (note) {
            prb_out_style(stdout, PRB_STYLE_SUBTLE);
            printf("      %.*s\n", (int)(line - command - 4), note + 4);
            prb_out_style(stdout, PRB_STYLE_PLAIN);
        }
        at += line + (at[line] == '\n');
    }
}

static void print_command(const struct prb_command *command)
{
    printf("probing %s: %s\n", command->name, command->summary);
    if (*command->aliases)
        printf("Also: %s\n", command->aliases);
    title("Usage");
    printf("  %s %s%s%s%s\n", prb_command_usage(command), command->name,
           command->options ? " [OPTION]..." : "", *command->arguments ? " " : "",
           command->arguments);
    putchar('\n');
    wrap(command->description, 0);
    if (command->options) {
        title("Options");
        print_options(command->options);
    }
    if (command->format) {
        title("Formats");
        print_formats(command);
    }
    if (command->examples) {
        title("Examples");
        print_examples(command->examples);
    }
}

static void print_all(void)
{
    const char *meaning;
    int status;
    printf("probing looks inside a running Python process, a core file or a snapshot of one.\n");
    title("Usage");
    printf("  probing [OPTION]... [TARGET] COMMAND [ARGUMENT]...\n"
           "  probing PID COMMAND; probing -t TARGET COMMAND; probing -n TEXT COMMAND\n");
    title("Commands");
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        char names[80];
        int length =
            snprintf(names, sizeof names, "%s%s%s%s", (*at)->name, *(*at)->aliases ? " (" : "",
                     (*at)->aliases, *(*at)->aliases ? ")" : "");
        printf("  %-*s%s", NAMES_COLUMNS, names, length < NAMES_COLUMNS ? "" : "\n  ");
        printf("%*s%s\n", length < NAMES_COLUMNS ? 0 : NAMES_COLUMNS, "", (*at)->summary);
    }
    title("Options");
    print_options(prb_global_options);
    title("Exit status");
    for (size_t at = 0; prb_exit_status_next(&at, &status, &meaning);)
        printf("  %3d  %s\n", status, meaning);
    printf("\n`probing help COMMAND` explains a command; `man probing` has all.\n");
}

enum { MAN, JSON };

static const struct prb_option options[] = {
    [MAN] = {0, "man", NULL, "print the man page, in roff", NULL},
    [JSON] = {'j', "json", NULL, "print all commands, options and exit statuses as JSON", NULL},
    {0},
};

static bool run_help(const struct prb_run *run, struct prb_error *err)
{
    if (run->command == &prb_command_help && run->options[MAN].count) {
        prb_man_print();
        return true;
    }
    if (run->command == &prb_command_help && run->options[JSON].count) {
        prb_help_json();
        return true;
    }
    if (run->argument_count == 0) {
        print_all();
        return true;
    }
    const char *word = run->arguments[0];
    const struct prb_command *command = prb_command_find(word);
    if (!command)
        return prb_unknown_command(word, err);
    print_command(command);
    return true;
}

const struct prb_command prb_command_help = {
    .name = "help",
    .aliases = "",
    .summary = "explain a command",
    .arguments = "[COMMAND]",
    .arguments_max = 1,
    .target = PRB_USES_TARGET_IF_GIVEN,
    .description = "Without an argument: the commands, the options that go before all of them, the "
                   "exit statuses.",
    .options = options,
    .run = run_help,
};
