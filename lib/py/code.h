/*
 * Code objects: names, positions.  Read once, saved, and checked again when a new reading of the
 * target begins (addresses are reused).
 */
#ifndef PRB_PY_CODE_H
#define PRB_PY_CODE_H

#include "py/py.h"

struct prb_code_object {
    prb_addr addr;
    const char *name, *qualname, *filename; /* qualname: NULL where the version has none */
    int first_line;
    int argcount, posonlyargcount, kwonlyargcount;
    uint32_t flags;       /* CO_VARARGS 4, CO_VARKEYWORDS 8 … (Include/cpython/code.h) */
    const uint8_t *lines; /* the line table's bytes */
    size_t lines_len;
    prb_addr bytecode;     /* address of the first instruction, 3.11+ */
    uint64_t bytecode_len; /* bytes; 0: not known */
    /* fast locals, then cells, then free variables, as in the frame's localsplus */
    const char **variables;
    uint8_t *variable_kinds; /* PRB_VARIABLE_* */
    size_t variable_count;
};
enum {
    PRB_VARIABLE_LOCAL = 1,
    PRB_VARIABLE_CELL = 2,
    PRB_VARIABLE_FREE = 4,
    PRB_VARIABLE_HIDDEN = 8,
    PRB_VARIABLE_ARG = 16
};

struct prb_position {
    int line, column, end_line, end_column; /* line 0, column -1: unknown */
};

/* Names and line table, or also the variables.  Borrowed until the runtime is freed.  CORRUPT when
 * it is not a code object. */
const struct prb_code_object *prb_code_get(struct prb_py *py, prb_addr code, bool variables,
                                           struct prb_error *err);
/* So many will be asked for: bring in what is not known of them in a few calls. */
void prb_codes_expect(struct prb_py *py, const prb_addr *codes, size_t count);
/* Where an instruction of this code stands in the source; instruction in bytes, -1: not begun. */
struct prb_position prb_code_position(struct prb_py *py, const struct prb_code_object *code,
                                      int instruction);
/* A new reading of the target begins: entries are read again and compared before their next use. */
void prb_codes_new_reading(struct prb_py *py);
/*
 * For callers that read the same code objects again and again: the same as prb_code_get(py, code,
 * false, …), checked by what view has of its identity, of its name and of its line table's
 * beginning.  The caller has refreshed view since the chain that names the code was read, and
 * begins each reading with prb_codes_next_sample. *fresh_out: before this reading it was unknown or
 * another one: read the chain once more, to prove that it names this one.
 */
const struct prb_code_object *prb_code_watched(struct prb_py *py, struct prb_view *view,
                                               prb_addr code, bool *fresh_out,
                                               struct prb_error *err);
/* none_ended: of all code objects, since the sample before; then what was proven remains so. */
void prb_codes_next_sample(struct prb_py *py, bool none_ended);
/* Before view is refreshed: it is to bring in what prb_code_watched will compare. */
void prb_code_prefetch(struct prb_py *py, struct prb_view *view, prb_addr code);
/* Code objects read so far that the cache holds, replaced ones too; and an end to all of them,
 * and to their texts. */
size_t prb_codes_count(const struct prb_py *py);
void prb_codes_drop(struct prb_py *py);
void prb_code_cache_free(struct prb_code_cache *cache);

/*
 * The position of an instruction (bytes from the start of the code; -1: not begun). Pure: works
 * on the table's bytes alone, so that it can be fuzzed.  Columns in UTF-8 bytes, as
 * co_positions() gives them. Source: Objects/lnotab_notes.txt, Objects/locations.md (3.11+:
 * InternalDocs/code_objects.md), PEP 626, PEP 657.
 */
struct prb_position prb_line_lookup(enum prb_line_table kind, const uint8_t *table, size_t len,
                                    int first_line, int instruction);

#endif
