/*
 * Byte code cached on disk: $XDG_CACHE_HOME/probing, else ~/.cache/probing.  One file for each
 * interpreter and build: its name comes from stat(2) of the program and its libpython, so a new
 * version of either gets a new file.
 *
 * Only files that the user owns and nobody else may write are read; a check sum finds damage.  They
 * are trusted like that user's other files.
 */
#ifndef PRB_INJECT_BYTECODE_CACHE_H
#define PRB_INJECT_BYTECODE_CACHE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* The key of a process's interpreter; 0: it has none. */
uint64_t prb_bytecode_key(pid_t pid);
/* Append the cached byte code if it is intact; false: there is none. */
bool prb_bytecode_load(uint64_t key, struct prb_buf *out);
/* Save it, whole or not at all; with more than 32 files the oldest is removed. */
void prb_bytecode_store(uint64_t key, const struct prb_buf *blob);

#endif
