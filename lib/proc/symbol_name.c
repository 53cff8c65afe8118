/*
 * Names for addresses in an ELF file: one pass over its symbol tables for many addresses, and, when
 * a file is asked again and again, an index that saves the passes (symbol_index.h).
 */
#include <string.h>

#include "proc/symbol_table.h"

/* How well a symbol names the function at an address: the higher the better. */
struct claim {
    bool sized;     /* it says where it ends, and covers the address */
    uint64_t value; /* the nearer its start the better */
    bool global;
    int underscores; /* fewer, for "poll" before "__GI___poll" */
};

static bool better(const struct claim *now, const struct claim *before)
{
    if (now->sized != before->sized)
        return now->sized;
    if (now->value != before->value)
        return now->value > before->value;
    if (now->global != before->global)
        return now->global;
    return now->underscores < before->underscores;
}

/* The first of ascending addrs that is not below value. */
static size_t first_from(const uint64_t *addrs, size_t count, uint64_t value)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (addrs[middle] < value)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* A symbol without a size names at most so many bytes: assembler routines. */
#define UNSIZED_MAX 65536

static bool names_code(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && !symbol->st_size));
}

/* Addresses to be named, ascending, and the best found so far. */
struct wanted {
    size_t count;
    const uint64_t *addrs;
    struct prb_symbol *symbols;
    struct claim *claims;
};

/* One symbol against the wanted addresses. */
static void name_by(struct prb_elf *elf, const struct prb_symbol_table *table,
                    const Elf64_Sym *symbol, struct wanted *wanted)
{
    const uint64_t *addrs = wanted->addrs;
    uint64_t size = symbol->st_size ? symbol->st_size : UNSIZED_MAX, end;
    if (symbol->st_value > addrs[wanted->count - 1] || !names_code(symbol) ||
        __builtin_add_overflow(symbol->st_value, size, &end) || end <= addrs[0])
        return;
    size_t i = first_from(addrs, wanted->count, symbol->st_value);
    if (i == wanted->count || addrs[i] >= end)
        return;
    char begin[16] = "";
    if (symbol->st_name >= table->names.len ||
        !prb_elf_read(elf, table->names.offset + symbol->st_name, begin, sizeof begin - 1))
        return;
    struct claim claim = {symbol->st_size != 0, symbol->st_value,
                          ELF64_ST_BIND(symbol->st_info) != STB_LOCAL, (int)strspn(begin, "_")};
    /* "$x" and the like mark kinds of code on some architectures. */
    if (!*begin || *begin == '$')
        return;
    const char *name = NULL;
    for (; i < wanted->count && addrs[i] < end; i++) {
        if (wanted->symbols[i].name && !better(&claim, &wanted->claims[i]))
            continue;
        if (!name && !(name = prb_elf_string(elf, &table->names, symbol->st_name)))
            return;
        wanted->claims[i] = claim;
        wanted->symbols[i] = (struct prb_symbol){symbol->st_value, symbol->st_size, name};
    }
}

static bool all_covered(const struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->count; i++)
        if (!wanted->claims[i].sized)
            return false;
    return true;
}

#define FURTHER (8 * PRB_SYMBOL_BLOCK)

/* whole: read all symbols for the best names, else only until each address is covered. */
static void name_by_pass(struct prb_elf *elf, const struct prb_symbol_table *table, bool whole,
                         struct wanted *wanted)
{
    PRB_AUTO_FREE Elf64_Sym *block = malloc(PRB_SYMBOL_BLOCK * sizeof *block);
    size_t n;
    for (size_t first = 0; block && (n = prb_symbol_block(elf, table, first, block)); first += n) {
        for (size_t k = 0; k < n; k++)
            name_by(elf, table, &block[k], wanted);
        /* A little further, for the best of a function's names, which stand near each other. */
        if (!whole && first % FURTHER == FURTHER - PRB_SYMBOL_BLOCK && all_covered(wanted))
            return;
    }
}

/* Passes over one table after which an index of it pays: a profile names program counters one by
 * one, a backtrace all at once. */
#define PASSES_MAX 4

typedef void each_fn(void *context, const Elf64_Sym *symbol, size_t number);

static void each_code(struct prb_elf *elf, const struct prb_symbol_table *table, each_fn *each,
                      void *context)
{
    PRB_AUTO_FREE Elf64_Sym *block = malloc(PRB_SYMBOL_BLOCK * sizeof *block);
    size_t n;
    for (size_t first = 0; block && (n = prb_symbol_block(elf, table, first, block)); first += n)
        for (size_t k = 0; k < n; k++)
            if (names_code(&block[k]))
                each(context, &block[k], first + k);
}

struct extent {
    size_t count;
    uint64_t lowest;
};

static void measure(void *context, const Elf64_Sym *symbol, size_t number)
{
    struct extent *extent = context;
    (void)number;
    extent->count++;
    if (symbol->st_value < extent->lowest)
        extent->lowest = symbol->st_value;
}

static void add_to_index(void *context, const Elf64_Sym *symbol, size_t number)
{
    prb_symbol_index_add(context, symbol->st_value, symbol->st_size ? symbol->st_size : UNSIZED_MAX,
                         (uint32_t)number);
}

static void build_index(struct prb_elf *elf, const struct prb_symbol_table *table,
                        struct prb_symbol_passes *passes)
{
    struct prb_symbol_index *index = &passes->index;
    struct extent extent = {0, UINT64_MAX};
    passes->tried = true;
    if (prb_symbol_count(table) > UINT32_MAX)
        return;
    each_code(elf, table, measure, &extent);
    if (!extent.count || !prb_symbol_index_begin(index, extent.count, extent.lowest))
        return;
    each_code(elf, table, add_to_index, index);
    if (!prb_symbol_index_end(index))
        prb_symbol_index_deinit(index);
}

static void name_by_index(struct prb_elf *elf, const struct prb_symbol_table *table,
                          const struct prb_symbol_index *index, struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        size_t at = SIZE_MAX;
        uint32_t number;
        struct wanted one = {1, &wanted->addrs[i], &wanted->symbols[i], &wanted->claims[i]};
        while (prb_symbol_index_next(index, wanted->addrs[i], &at, &number)) {
            Elf64_Sym symbol;
            if (prb_symbol_get(elf, table, number, &symbol))
                name_by(elf, table, &symbol, &one);
        }
    }
}

static void name_from(struct prb_elf *elf, const struct prb_symbol_table *table,
                      struct prb_symbol_passes *passes, bool whole, struct wanted *wanted)
{
    if (!passes->tried && ++passes->count > PASSES_MAX)
        build_index(elf, table, passes);
    if (passes->index.items)
        name_by_index(elf, table, &passes->index, wanted);
    else
        name_by_pass(elf, table, whole, wanted);
}

/* What is exported is in .dynsym.  The others are in .symtab, of the file or of its debug file, a
 * table many times as long: passed over for those alone that are not covered yet. */
static void name_the_others(struct prb_elf *elf, const struct wanted *all)
{
    struct prb_elf *holder = elf;
    struct prb_symbol_table table;
    if (!prb_symbol_table(elf, SHT_SYMTAB, &table)) {
        holder = elf->debug;
        if (!holder || !prb_symbol_table(holder, SHT_SYMTAB, &table))
            return;
    }
    PRB_AUTO_FREE size_t *places = malloc(all->count * sizeof *places);
    PRB_AUTO_FREE uint64_t *addrs = malloc(all->count * sizeof *addrs);
    PRB_AUTO_FREE struct prb_symbol *symbols = malloc(all->count * sizeof *symbols);
    PRB_AUTO_FREE struct claim *claims = malloc(all->count * sizeof *claims);
    struct wanted others = {0, addrs, symbols, claims};
    if (!places || !addrs || !symbols || !claims)
        return;
    for (size_t i = 0; i < all->count; i++)
        if (!all->claims[i].sized) {
            places[others.count] = i;
            addrs[others.count] = all->addrs[i];
            symbols[others.count] = all->symbols[i];
            claims[others.count++] = all->claims[i];
        }
    if (others.count)
        name_from(holder, &table, &holder->all, false, &others);
    for (size_t k = 0; k < others.count; k++)
        all->symbols[places[k]] = symbols[k];
}

void prb_elf_name(struct prb_elf *elf, const uint64_t *addrs, size_t count, struct prb_symbol *out)
{
    memset(out, 0, count * sizeof *out);
    PRB_AUTO_FREE struct claim *claims = calloc(count ? count : 1, sizeof *claims);
    if (count == 0 || !claims)
        return;
    struct wanted wanted = {count, addrs, out, claims};
    struct prb_symbol_table table;
    if (prb_symbol_table(elf, SHT_DYNSYM, &table))
        name_from(elf, &table, &elf->exported, true, &wanted);
    if (!all_covered(&wanted))
        name_the_others(elf, &wanted);
}
