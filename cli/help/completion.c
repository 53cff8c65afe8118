/* probing completion: scripts for bash, zsh and fish, from the descriptors. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

/* A word that completes to process ids in all three. */
static const char list_pids[] = "probing list --color never 2>/dev/null";

static void print_quoted(const char *text)
{
    for (; *text; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, stdout);
}

/* Every way to write the options: "-f --format". */
static void print_option_words(const struct prb_option *options)
{
    for (const struct prb_option *option = options; option && option->name; option++) {
        if (option->letter)
            printf(" -%c", option->letter);
        printf(" --%s", option->name);
    }
}

static void print_command_words(const char *separator)
{
    for (const struct prb_command *const *at = prb_commands; *at; at++)
        printf("%s%s", at == prb_commands ? "" : separator, (*at)->name);
}

/* "backtrace|bt|b" */
static void print_names(const struct prb_command *command, char separator)
{
    fputs(command->name, stdout);
    for (const char *alias = command->aliases; *alias; alias += strspn(alias, " ")) {
        size_t n = strcspn(alias, " ");
        printf("%c%.*s", separator, (int)n, alias);
        alias += n;
    }
}

/* ---- bash ---- */

static void bash_choices(const struct prb_option *options)
{
    for (const struct prb_option *option = options; option && option->name; option++) {
        if (!option->choices)
            continue;
        if (option->letter)
            printf("        -%c|--%s)", option->letter, option->name);
        else
            printf("        --%s)", option->name);
        printf(" COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", option->choices);
    }
}

static void print_bash(void)
{
    puts("# bash completion for probing; made from the command descriptors\n"
         "_probing() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} command= i\n"
         "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "        case ${COMP_WORDS[i]} in");
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        fputs("        ", stdout);
        print_names(*at, '|');
        printf(") command=%s; break ;;\n", (*at)->name);
    }
    puts("        esac\n    done\n    case $last in");
    printf("        -t|--target|-p|--pid) COMPREPLY=($(compgen -W \"$(%s | awk 'NR > 1 { print $1 "
           "}')\" -- \"$word\"));"
           " [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n",
           list_pids);
    puts("        --exe|--sysroot) COMPREPLY=($(compgen -f -- \"$word\")); return ;;");
    bash_choices(prb_global_options);
    puts("    esac\n    case $command in");
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        printf("    %s)\n        case $last in\n", (*at)->name);
        bash_choices((*at)->options);
        fputs("        esac\n        COMPREPLY=($(compgen -W '", stdout);
        print_option_words((*at)->options);
        if (strcmp((*at)->name, "help") == 0)
            putchar(' '), print_command_words(" ");
        if ((*at)->words)
            printf(" %s", (*at)->words);
        puts("' -- \"$word\")) ;;");
    }
    fputs("    *) COMPREPLY=($(compgen -W '", stdout);
    print_command_words(" ");
    print_option_words(prb_global_options);
    puts("' -- \"$word\")) ;;\n    esac\n}\ncomplete -o default -F _probing probing");
}

/* ---- zsh ---- */

/* Brackets and colons mean something in _arguments' specifications. */
static void zsh_escape(const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            putchar('\\');
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, stdout);
    }
}

static void zsh_options(const struct prb_option *options, const char *indent)
{
    for (const struct prb_option *option = options; option && option->name; option++) {
        char names[2][40];
        snprintf(names[0], sizeof *names, "--%s", option->name);
        snprintf(names[1], sizeof *names, "-%c", option->letter);
        for (int i = 0; i < (option->letter ? 2 : 1); i++) {
            bool omit = option->argument && option->argument[0] == '[';
            printf("%s'%s%s[", indent, names[i],
                   option->argument && !omit && i == 0 ? "="
                   : omit && i == 0                    ? "=-"
                                                       : "");
            zsh_escape(option->help);
            putchar(']');
            if (option->argument && !(omit && i == 1)) {
                fputs(omit ? "::" : ":", stdout);
                zsh_escape(option->argument);
                if (option->choices)
                    printf(":(%s)", option->choices);
                else
                    fputs(":_files", stdout);
            }
            puts("' \\");
        }
    }
}

static void print_zsh(void)
{
    puts("#compdef probing\n"
         "# zsh completion for probing; made from the command descriptors\n"
         "_probing() {\n"
         "    local -a commands pids\n"
         "    local command= word\n"
         "    commands=(");
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        printf("        '%s:", (*at)->name);
        zsh_escape((*at)->summary);
        puts("'");
    }
    puts("    )\n"
         "    for word in ${words[2,CURRENT-1]}; do\n"
         "        case $word in");
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        fputs("        ", stdout);
        print_names(*at, '|');
        printf(") command=%s; break ;;\n", (*at)->name);
    }
    puts("        esac\n    done\n    case $command in");
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        printf("    %s)\n        _arguments \\\n", (*at)->name);
        zsh_options((*at)->options, "            ");
        if (strcmp((*at)->name, "help") == 0)
            fputs("            '*:command:(", stdout), print_command_words(" "), puts(")' ;;");
        else if ((*at)->words)
            printf("            ':word:(%s)' '*:argument:_files' ;;\n", (*at)->words);
        else
            puts("            '*:argument:_files' ;;");
    }
    puts("    *)\n        _arguments \\");
    zsh_options(prb_global_options, "            ");
    puts("            '*:command:->command'\n"
         "        if [[ $state == command ]]; then\n"
         "            _describe command commands");
    printf("            pids=(${(f)\"$(%s | awk 'NR > 1 { print $1 }')\"})\n", list_pids);
    puts("            (( $#pids )) && compadd -X 'Python process' -- $pids\n"
         "        fi ;;\n"
         "    esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _probing ]; then _probing \"$@\"; else compdef _probing "
         "probing; fi");
}

/* ---- fish ---- */

static void fish_options(const struct prb_option *options, const char *condition)
{
    for (const struct prb_option *option = options; option && option->name; option++) {
        printf("complete -c probing -n '%s' -l %s", condition, option->name);
        if (option->letter)
            printf(" -s %c", option->letter);
        if (option->argument && option->argument[0] != '[')
            fputs(" -r", stdout);
        if (option->choices)
            printf(" -f -a '%s'", option->choices);
        fputs(" -d '", stdout);
        for (const char *at = option->help; *at; at++)
            fputs(*at == '\'' ? "\\'" : (char[]){*at, '\0'}, stdout);
        puts("'");
    }
}

static void print_fish(void)
{
    puts("# fish completion for probing; made from the command descriptors");
    fputs("set -l probing_commands ", stdout);
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        print_names(*at, ' ');
        putchar(' ');
    }
    puts("\nfunction __probing_pids\n    probing list --color never 2>/dev/null | awk 'NR > 1 { "
         "print $1 }'\nend");
    puts("complete -c probing -n \"not __fish_seen_subcommand_from $probing_commands\" -f -a "
         "'(__probing_pids)' "
         "-d 'Python process'");
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        printf("complete -c probing -n \"not __fish_seen_subcommand_from $probing_commands\" -f -a "
               "%s -d '",
               (*at)->name);
        print_quoted((*at)->summary);
        puts("'");
    }
    for (const struct prb_command *const *at = prb_commands; *at; at++)
        if ((*at)->words)
            printf("complete -c probing -n '__fish_seen_subcommand_from %s' -a '%s'\n", (*at)->name,
                   (*at)->words);
    printf("complete -c probing -n '__fish_seen_subcommand_from help' -f -a '");
    print_command_words(" ");
    puts("'");
    fish_options(prb_global_options, "true");
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        char condition[96];
        snprintf(condition, sizeof condition, "__fish_seen_subcommand_from %s%s%s", (*at)->name,
                 *(*at)->aliases ? " " : "", (*at)->aliases);
        fish_options((*at)->options, condition);
    }
}

static bool run_completion(const struct prb_run *run, struct prb_error *err)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(run->arguments[0], shells[i].shell) == 0) {
            shells[i].print();
            return true;
        }
    }
    return prb_usage(run, err, "no completion for \"%s\": bash, zsh and fish have one",
                     run->arguments[0]);
}

const struct prb_command prb_command_completion = {
    .name = "completion",
    .aliases = "",
    .summary = "print the completion script of a shell",
    .arguments = "bash|zsh|fish",
    .words = "bash zsh fish",
    .arguments_min = 1,
    .arguments_max = 1,
    .target = PRB_USES_NO_TARGET,
    .description = "The scripts are installed with the program; print one for a shell that "
                   "searches elsewhere.",
    .examples = "source <(probing completion bash)\n",
    .run = run_completion,
};
