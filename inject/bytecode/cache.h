/*
 * Byte code kept on disk: $XDG_CACHE_HOME/probing, else ~/.cache/probing; a file for each
 * interpreter and build, found by what stat(2) says of its program and its libpython, so that a new
 * one of either gets a new file.
 *
 * Only what belongs to the user who asks and nobody else may write is read; its check finds damage.
 * What is in it is as trusted as that user's own files.
 */
#ifndef PRB_INJECT_BYTECODE_CACHE_H
#define PRB_INJECT_BYTECODE_CACHE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* The key of a process's interpreter; 0: it has none. */
uint64_t prb_bytecode_key(pid_t pid);
/* Append a sound one; false: there is none. */
bool prb_bytecode_load(uint64_t key, struct prb_buf *out);
/* Whole or not at all; beyond 32 files the oldest goes. */
void prb_bytecode_store(uint64_t key, const struct prb_buf *blob);

#endif
