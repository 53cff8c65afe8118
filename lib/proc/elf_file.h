/* The inside of struct prb_elf, for the files that read ELF: elf.c, symbol.c, module.c, the core
 * reader. */
#ifndef PRB_PROC_ELF_FILE_H
#define PRB_PROC_ELF_FILE_H

#include <elf.h>

#include "proc/elf.h"
#include "proc/symbol_index.h"

/* How often a symbol table was passed over for names, and the index that then saves the passes. */
struct prb_symbol_passes {
    unsigned count;
    bool tried; /* whether there can be an index */
    struct prb_symbol_index index;
};

/* Pieces of the file that were read last, each at the place that its number gives it. */
#define PRB_ELF_WINDOW 1024
#define PRB_ELF_WINDOWS 32

struct prb_elf {
    int fd;
    uint64_t size; /* when it was opened: it may be shorter now */
    Elf64_Shdr *sections;
    Elf64_Phdr *segments;
    size_t section_count, segment_count;
    size_t section_names;              /* the number of the section that names sections */
    uint64_t numbers[PRB_ELF_WINDOWS]; /* of the windows, from 1 */
    uint16_t lens[PRB_ELF_WINDOWS];
    uint8_t *windows[PRB_ELF_WINDOWS];      /* each made when first used */
    struct prb_arena arena;                 /* names that were asked for */
    struct prb_symbol_passes exported, all; /* of .dynsym and .symtab */
    struct prb_elf *debug;                  /* its separate debug file, or NULL; owned */
};

/* A part of the file. */
struct prb_extent {
    uint64_t offset, len;
};

/* The first section of a type, or NULL. */
const Elf64_Shdr *prb_elf_of_type(const struct prb_elf *elf, unsigned type);
/* A section by its number, or NULL. */
const Elf64_Shdr *prb_elf_section_at(const struct prb_elf *elf, size_t number);
/* Where the file holds what is in a section, as it lies there; false when it holds nothing. */
bool prb_elf_contents(const struct prb_elf *elf, const Elf64_Shdr *section, struct prb_extent *out);
/* The bytes at a place of the file: how many there are, fewer where it ends or cannot be read.
 * Through the windows: for a few bytes here and there. */
size_t prb_elf_read(struct prb_elf *elf, uint64_t offset, void *out, size_t len);
/* A string of a string section, owned by the elf; NULL: there is none. */
const char *prb_elf_string(struct prb_elf *elf, const struct prb_extent *strings, uint64_t at);
/* Whether that string is this one. */
bool prb_elf_string_is(struct prb_elf *elf, const struct prb_extent *strings, uint64_t at,
                       const char *text);
/* Debug information alone, as an ELF file in memory of its own for libdw; freed by the caller.
 * NULL: there is none, it is longer than DEBUG_MAX, or cannot be read. */
void *prb_elf_debug_image(struct prb_elf *elf, size_t *len_out);
/* Search symbols there after the file's own tables; elf owns it from now on. */
void prb_elf_add_debug(struct prb_elf *elf, struct prb_elf *debug);

/* The separate file with symbols and debug information that distributions keep below
 * /usr/lib/debug/.build-id, by the build id; NULL: there is none. */
struct prb_elf *prb_elf_open_debug(struct prb_proc *proc, struct prb_elf *elf);

/* Whether [offset, offset + len) of the file lies (also) in a segment that is written to, page by
 * page. */
bool prb_elf_written(struct prb_elf *elf, uint64_t offset, uint64_t len);

/* A note, elf(5), "Notes". */
struct prb_note {
    uint32_t type;
    const char *name; /* not terminated */
    size_t name_len;
    const uint8_t *desc;
    size_t desc_len;
};
/* The note at *at, which moves behind it; false at the end, or where the bytes cannot be parsed. */
bool prb_note_next(const uint8_t *notes, size_t size, size_t *at, struct prb_note *out);
bool prb_note_is(const struct prb_note *note, const char *name, uint32_t type);
/* The build id among notes: its length, or 0. */
size_t prb_note_build_id(const uint8_t *notes, size_t size, uint8_t out[64]);

#endif
