/* A symbol table of an ELF file, for the two that read it: symbol.c and symbol_name.c. */
#ifndef PRB_PROC_SYMBOL_TABLE_H
#define PRB_PROC_SYMBOL_TABLE_H

#include <string.h>

#include "proc/elf_file.h"

/* With its names, which end within it. */
struct prb_symbol_table {
    struct prb_bytes symbols, names;
};

/* The table of that type (SHT_DYNSYM, SHT_SYMTAB); false: the file has none. */
bool prb_symbol_table(struct prb_elf *elf, unsigned type, struct prb_symbol_table *out);

static inline size_t prb_symbol_count(const struct prb_symbol_table *table)
{
    return table->symbols.len / sizeof(Elf64_Sym);
}

static inline void prb_symbol_get(const struct prb_symbol_table *table, size_t i, Elf64_Sym *out)
{
    memcpy(out, table->symbols.data + i * sizeof *out, sizeof *out);
}

static inline const char *prb_symbol_name(const struct prb_symbol_table *table,
                                          const Elf64_Sym *symbol)
{
    return symbol->st_name < table->names.len ? (const char *)table->names.data + symbol->st_name
                                              : "";
}

#endif
