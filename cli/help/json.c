/* probing help --json: the descriptors for programs, such as those that offer the commands to an agent. */
#include <stdio.h>
#include <string.h>

#include "cli/help/help.h"
#include "format/format.h"

static void print_text(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    prb_out_json_text(stdout, text, text ? strlen(text) : 0);
}

/* A list of words; NULL is null. */
static void print_words(const char *key, const char *words)
{
    printf(", \"%s\": %s", key, words ? "[" : "null");
    for (const char *at = words; at && *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        fputs(at == words ? "" : ", ", stdout);
        prb_out_json_text(stdout, at, length);
        at += length;
    }
    fputs(words ? "]" : "", stdout);
}

static void print_options(const struct prb_option *options)
{
    putchar('[');
    for (const struct prb_option *option = options; option && option->name; option++) {
        const char letter[] = {option->letter, '\0'};
        printf("%s\n  {\"name\": \"%s\"", option == options ? "" : ",", option->name);
        print_text("letter", option->letter ? letter : NULL);
        print_text("argument", option->argument);
        print_words("choices", option->choices);
        print_text("help", option->help);
        putchar('}');
    }
    putchar(']');
}

static void print_command(const struct prb_command *command)
{
    static const char *const target[] = {
        [PRB_USES_NO_TARGET] = "no",
        [PRB_USES_JOB_IF_GIVEN] = "job",
        [PRB_USES_TARGET_IF_GIVEN] = "optional",
        [PRB_USES_TARGET] = "required",
    };
    printf("\n {\"name\": \"%s\"", command->name);
    print_words("aliases", command->aliases);
    print_text("summary", command->summary);
    print_text("target", target[command->target]);
    print_text("arguments", command->arguments);
    print_words("words", command->words);
    printf(", \"arguments_min\": %zu, \"arguments_max\": %zu", command->arguments_min,
           command->arguments_max);
    print_text("description", command->description);
    print_text("examples", command->examples);
    fputs(", \"options\": ", stdout);
    print_options(command->options);
    putchar('}');
}

static void print_format(const struct prb_profile_format *format, bool first)
{
    printf("%s\n {\"name\": \"%s\"", first ? "" : ",", format->name);
    print_words("aliases", format->aliases);
    print_text("help", format->doc);
    print_words("suffixes", format->suffixes);
    putchar('}');
}

void prb_help_json(void)
{
    const char *meaning;
    int status;
    printf("{\"version\": \"%s\", \"options\": ", prb_version());
    print_options(prb_global_options);
    fputs(", \"commands\": [", stdout);
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        fputs(at == prb_commands ? "" : ",", stdout);
        print_command(*at);
    }
    fputs("],\n\"statuses\": [", stdout);
    for (size_t at = 0; prb_exit_status_next(&at, &status, &meaning);) {
        printf("%s\n {\"status\": %d", at == 1 ? "" : ",", status);
        print_text("meaning", meaning);
        putchar('}');
    }
    fputs("],\n\"profile_formats\": [", stdout);
    for (const struct prb_profile_format *const *at = prb_profile_formats(); *at; at++)
        print_format(*at, at == prb_profile_formats());
    fputs("]}\n", stdout);
}
