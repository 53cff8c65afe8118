/* What the last word of an unfinished command line may become, for the shells' completion. */
#ifndef PRB_CLI_CANDIDATES_H
#define PRB_CLI_CANDIDATES_H

#include "cli/command.h"

enum prb_shell { PRB_SHELL_BASH, PRB_SHELL_ZSH, PRB_SHELL_FISH };

/*
 * Print what the last of the words (those behind "probing") may become.  The first line says what
 * the shell offers itself: any of "files", "folders" and "programs", "join" (no space behind the
 * word), or "-".  Then one candidate a line: for bash the word, for zsh "word:text", for fish
 * "word\ttext".  Only bash gets none but those that begin with the last word: the other two have
 * matchers that the user may set.
 */
bool prb_candidates_print(enum prb_shell shell, const char **words, size_t count,
                          struct prb_error *err);

#endif
