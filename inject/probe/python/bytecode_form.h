/*
 * Byte code of our Python (python/sources.h), made outside so that the target need not compile: its
 * form in a DEBUG request and in a cache file.  Included by both sides; libc only.
 *
 * A head, the interpreter's sys.version, then of every source, in the table's order: its length (4
 * bytes) and marshalled bytes, a tuple with the code object of each piece.  check and build find
 * damage and other builds; they prove nothing about who made it: that is for who hands it on.
 */
#ifndef PRB_PROBE_PYTHON_BYTECODE_FORM_H
#define PRB_PROBE_PYTHON_BYTECODE_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRB_BYTECODE_MAX (4u << 20) /* bytes, whole */
#define PRB_BYTECODE_MARK "prbcode1"

struct prb_bytecode_head {
    char mark[8];
    uint64_t check;   /* of all bytes behind it */
    uint64_t build;   /* prb_bytecode_build() of who made it */
    uint8_t magic[4]; /* importlib.util.MAGIC_NUMBER */
    uint32_t version_len;
};

/* 64 bits of bytes, as FNV-1a but a word at a time; begin with 0, or go on with what came before. */
uint64_t prb_bytecode_hash(uint64_t before, const void *data, size_t len);
/* Of our sources and their names. */
uint64_t prb_bytecode_build(void);
/* Fill in mark, check and build of a blob of len bytes, which is otherwise whole. */
void prb_bytecode_seal(char *blob, size_t len);
/* Whether all of it is as it was made, by a build with our sources. */
bool prb_bytecode_sound(const char *blob, size_t len);
/* sys.version of a sound one, not terminated. */
const char *prb_bytecode_version(const char *blob, size_t *len_out);
/* Marshalled bytes of a source of a sound one, by its file; NULL: it has none. */
const char *prb_bytecode_find(const char *blob, const char *file, size_t *len_out);

#endif
