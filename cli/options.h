/* The parser of option tables: POSIX and GNU forms, options and arguments mixed, nearest name for a
 * wrong one. */
#ifndef PRB_CLI_OPTIONS_H
#define PRB_CLI_OPTIONS_H

#include "cli/command.h"

/* A table of options and where their values go. */
struct prb_option_set {
    const struct prb_option *options; /* ends with name NULL; may be NULL */
    struct prb_option_value *values;
};

/* The words that are left; sets in order of preference. */
struct prb_scan {
    char **words; /* ends with NULL */
    const struct prb_option_set *sets;
    size_t set_count;
    bool ended; /* "--" was seen: only arguments follow */
    /* For completion: the word that is still being typed, which is an argument even with "-", and
     * the option whose argument it is. */
    const char *unfinished;
    const struct prb_option *wanted;
};

/*
 * The next argument that is not an option, options on the way stored; NULL at the end (*ok true) or
 * on a wrong option
 * (*ok false, err filled).
 */
const char *prb_scan_next(struct prb_scan *scan, bool *ok, struct prb_error *err);

/* The bounds of a number of seconds that has no others. */
#define PRB_SECONDS_LEAST 1e-3
#define PRB_SECONDS_MOST 1e7

/* The number given for an option of the command, from least to most; *out is unchanged when none
 * was given. */
bool prb_run_number(const struct prb_run *run, int option, double least, double most, double *out,
                    struct prb_error *err);

/* Whether word is one of a list separated by spaces. */
bool prb_word_in(const char *list, const char *word);

#endif
