/*
 * A subcommand of probing is one file: a constant descriptor and the function that runs it.
 * Help, man page, shell completion and JSON are printed from the descriptors, and the parser reads
 * them.
 *
 * To add one:
 *   1. NAME.c in the folder of its subject (cli/look, cli/probe, ...), with
 *      `const struct prb_command prb_command_NAME`.
 *   2. The file in CLI_COMMANDS (cli/local.mk), at its place in the help.
 *   3. A case in tests/cli/test_cli.py.
 *   4. `make -C build docs` renews the list of commands in cli/README.md.
 */
#ifndef PRB_CLI_COMMAND_H
#define PRB_CLI_COMMAND_H

#include "base/cleanup.h"
#include "probing.h"

#define PRB_OPTIONS_MAX 32
#define PRB_REPEATS_MAX 32 /* times that an option with an argument may be given */
#define PRB_WORDS_MAX 4096 /* arguments_max of a command that takes any number */

struct prb_option {
    char letter;          /* short form, or 0 */
    const char *name;     /* long form */
    const char *argument; /* its name; "[SECONDS]": optional, as --name=… only; NULL: a flag */
    const char *help;     /* one line, lower case, no final stop */
    const char *choices;  /* allowed arguments, separated by spaces; NULL: any */
};

/* What the user gave for an option; at the index of the option in its table. */
struct prb_option_value {
    unsigned count;                     /* how often */
    const char *text;                   /* the last argument, or NULL */
    const char *texts[PRB_REPEATS_MAX]; /* all, in order */
};

enum prb_target_use {
    PRB_USES_NO_TARGET,
    PRB_USES_JOB_IF_GIVEN, /* -t @JOB, and no other */
    PRB_USES_TARGET_IF_GIVEN,
    PRB_USES_TARGET
};

struct prb_command;

/* One run of the command line: what a command gets. */
struct prb_run {
    const struct prb_command *command;
    struct prb_option_value options[PRB_OPTIONS_MAX]; /* as command->options */
    struct prb_option_value globals[PRB_OPTIONS_MAX]; /* as prb_global_options */
    const char **arguments;
    size_t argument_count;
    struct prb_wanted_target *target;
    const char *server; /* that is asked instead of looking here; NULL: none */
    bool verbose;
    int *status; /* exit status when it is not 0 or that of the error; 0 at first */
};

/* A kind of file that a command writes: for its help, and for completion. */
struct prb_file_format {
    const char *name, *doc;
    const char *suffixes; /* of file names, separated by spaces */
};

struct prb_command {
    const char *name;
    const char *aliases;   /* separated by spaces, or "" */
    const char *summary;   /* one line, no final stop */
    const char *arguments; /* as in the usage line: "[TID]", or "" */
    const char *words;     /* what the first of them may be, for completion; NULL: anything */
    size_t arguments_min, arguments_max;
    bool program; /* what follows the first argument is that program's, options too */
    enum prb_target_use target;
    const char *description;          /* paragraphs, separated by empty lines */
    const struct prb_option *options; /* ends with name NULL; NULL: none */
    /* What --format may be: the one at index; false: there are no more.  NULL: it has no files. */
    bool (*format)(size_t index, struct prb_file_format *out);
    const char *examples; /* lines "command  # what it does", or NULL */
    /* Prints to standard output only once nothing can fail any more. */
    bool (*run)(const struct prb_run *run, struct prb_error *err);
};

#define COMMAND(name) extern const struct prb_command prb_command_##name;
#include "cli/commands.inc"
#undef COMMAND
/* All commands; ends with NULL. */
extern const struct prb_command *const prb_commands[];
/* By name or alias, or NULL. */
const struct prb_command *prb_command_find(const char *word);
/* The command whose name or alias is nearest to a misspelt word, or NULL. */
const struct prb_command *prb_command_nearest(const char *word);

/* Fill err with the nearest name as the remedy; false. */
bool prb_unknown_command(const char *word, struct prb_error *err);

enum prb_global_option {
    PRB_GLOBAL_TARGET,
    PRB_GLOBAL_PID,
    PRB_GLOBAL_NAME,
    PRB_GLOBAL_EXE,
    PRB_GLOBAL_SYSROOT,
    PRB_GLOBAL_BUS,
    PRB_GLOBAL_TIMEOUT,
    PRB_GLOBAL_STRICT,
    PRB_GLOBAL_COLOR,
    PRB_GLOBAL_VERBOSE,
    PRB_GLOBAL_HELP,
    PRB_GLOBAL_VERSION,
};
extern const struct prb_option prb_global_options[];

/* Fill err as USAGE, with "see probing help COMMAND" as the remedy; false. */
bool prb_usage(const struct prb_run *run, struct prb_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* As prb_usage: the first argument is none of the command's words. */
bool prb_usage_word(const struct prb_run *run, struct prb_error *err);
/* The same of --format, which is none of the command's formats. */
bool prb_usage_format(const struct prb_run *run, const char *format, struct prb_error *err);
/* "a, b, c" of words separated by spaces. */
#define PRB_LISTED 200
const char *prb_listed(const char *words, char out[PRB_LISTED]);
/* Fill err; false.  The remedy may be "". */
bool prb_cli_fail(struct prb_error *err, enum prb_code code, const char *remedy, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

/* ---- targets (target.c) ---- */

/* One word of the command line that names a target; how: PRB_GLOBAL_TARGET, _PID or _NAME. */
bool prb_wanted_target_add(struct prb_wanted_target **wanted, const char *word,
                           enum prb_global_option how, struct prb_error *err);
/* Those that -t, -p and -n name. */
bool prb_run_take_target_options(struct prb_run *run, struct prb_error *err);
void prb_wanted_target_free(struct prb_wanted_target *wanted);
/* Whether a word is a target by its form: pids, or, as the first one, a path or HOST:PORT. */
bool prb_word_is_target(const char *word, bool first);
/* Whether a word means a server of ours: HOST:PORT, http://…, the path of its socket. */
bool prb_word_is_server(const char *word);
/* The target as the user named it, a pid or a part of a command line; both NULL: none. */
bool prb_run_target_words(const struct prb_run *run, const char **pid_out, const char **name_out,
                          struct prb_error *err);
/* Digits only. */
bool prb_word_is_pid(const char *word);
/* Open what the user named; NULL with err. */
struct prb_target *prb_run_open(const struct prb_run *run, struct prb_error *err) PRB_MUST_CHECK;
bool prb_run_has_target(const struct prb_run *run);
/* The pid of a process that ended, or a folder, when the user named one as the target; else
 * NULL. */
const char *prb_run_ended(const struct prb_run *run);
/* The word of -t or -n, when one target was named and it is not a process id; else NULL. */
const char *prb_run_word(const struct prb_run *run);
/* The address when the target is a job, "@JOB:RANKS" (cli/fleet/job.h opens it); else NULL. */
const char *prb_run_job(const struct prb_run *run);
/* The path of a saved profile, when the user named one as the target; else NULL. */
const char *prb_run_profile(const struct prb_run *run);
/* The process that the user named, without looking into it; for -t SOCKET 0, and the path. */
bool prb_run_process(const struct prb_run *run, pid_t *pid_out, const char **socket_out,
                     struct prb_error *err);
/* The same; whole_job: all of its job is asked about, so nothing is said of which one a name
 * takes. */
bool prb_run_process_or_job(const struct prb_run *run, bool whole_job, pid_t *pid_out,
                            const char **socket_out, struct prb_error *err);
PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)
PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)

/* ---- parts that commands share ---- */

/* Whether a word means a thread: by the kernel's number, threading.get_ident() or its name, which
 * several may have. */
bool prb_thread_is(const struct prb_thread *thread, pid_t pid, const char *word);

/* Backtrace's work with the given options (look/backtrace.c); debug --dump is the same. */
bool prb_backtrace(const struct prb_run *run, const struct prb_stack_options *options,
                   struct prb_error *err);
/* Run SQL and print the rows in one of PRB_ROW_FORMATS (look/query.c). */
bool prb_query_print(const struct prb_run *run, const char *sql, const char *format, bool reveal,
                     struct prb_error *err);
/* The same, of all the processes that --ranks and --subprocesses mean. */
bool prb_query_print_of(const struct prb_run *run, const char *sql, const char *format, bool ranks,
                        bool subprocesses, bool reveal, struct prb_error *err);

#endif
