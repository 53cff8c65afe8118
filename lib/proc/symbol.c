/*
 * Symbols of an ELF file by name: through its hash table (generic ABI: SHT_HASH, GNU: SHT_GNU_HASH)
 * or, for what is not exported, through .symtab.
 */
#include <string.h>

#include "base/file.h"
#include "proc/symbol_table.h"

#define STRINGS_MAX (256u << 20) /* bytes of a string table that is read as a whole */

bool prb_symbol_table(struct prb_elf *elf, unsigned type, struct prb_symbol_table *out)
{
    const Elf64_Shdr *section = prb_elf_of_type(elf, type);
    return section && prb_elf_contents(elf, section, &out->symbols) &&
           prb_elf_contents(elf, prb_elf_section_at(elf, section->sh_link), &out->names);
}

size_t prb_symbol_block(const struct prb_elf *elf, const struct prb_symbol_table *table,
                        size_t first, Elf64_Sym block[PRB_SYMBOL_BLOCK])
{
    size_t count = prb_symbol_count(table), left = first < count ? count - first : 0;
    size_t wanted = left < PRB_SYMBOL_BLOCK ? left : PRB_SYMBOL_BLOCK;
    return prb_read_at(elf->fd, block, wanted * sizeof *block,
                       table->symbols.offset + first * sizeof *block) /
           sizeof *block;
}

static bool is_defined(const Elf64_Sym *symbol)
{
    return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) != STT_TLS;
}

static bool matches(struct prb_elf *elf, const struct prb_symbol_table *table, size_t i,
                    const char *name, struct prb_symbol *out)
{
    Elf64_Sym symbol;
    if (i >= prb_symbol_count(table) || !prb_symbol_get(elf, table, i, &symbol) ||
        !is_defined(&symbol) || !prb_elf_string_is(elf, &table->names, symbol.st_name, name))
        return false;
    const char *its = prb_arena_strdup(&elf->arena, name);
    *out = (struct prb_symbol){symbol.st_value, symbol.st_size, its};
    return its != NULL;
}

static uint32_t word_at(struct prb_elf *elf, const struct prb_extent *bytes, uint64_t index)
{
    uint32_t word = 0;
    if (index < bytes->len / sizeof word &&
        prb_elf_read(elf, bytes->offset + index * sizeof word, &word, sizeof word) != sizeof word)
        word = 0;
    return word;
}

/* Layout of .gnu.hash: 4 words of header, bloom filter of 64-bit words, buckets, hash values from
 * symbol `first` on. */
static bool by_gnu_hash(struct prb_elf *elf, const struct prb_extent *hash,
                        const struct prb_symbol_table *table, const char *name,
                        struct prb_symbol *out)
{
    uint32_t h = 5381;
    for (const char *c = name; *c; c++)
        h = h * 33 + (uint8_t)*c;
    uint64_t buckets = word_at(elf, hash, 0), first = word_at(elf, hash, 1),
             bloom = word_at(elf, hash, 2);
    uint32_t shift = word_at(elf, hash, 3) & 31;
    if (buckets == 0 || bloom == 0)
        return false;
    uint64_t at = 4 + (h / 64 % bloom) * 2;
    uint64_t filter = word_at(elf, hash, at) | (uint64_t)word_at(elf, hash, at + 1) << 32;
    if (!(filter >> (h % 64) & filter >> (h >> shift) % 64 & 1))
        return false;
    uint64_t chains = 4 + bloom * 2 + buckets, words = hash->len / 4;
    uint64_t i = word_at(elf, hash, 4 + bloom * 2 + h % buckets);
    if (i < first)
        return false;
    for (; chains + i - first < words; i++) {
        uint32_t its = word_at(elf, hash, chains + i - first);
        if ((its | 1) == (h | 1) && matches(elf, table, i, name, out))
            return true;
        if (its & 1)
            return false;
    }
    return false;
}

/* Layout of .hash: number of buckets, number of chains, the buckets, the chains. */
static bool by_sysv_hash(struct prb_elf *elf, const struct prb_extent *hash,
                         const struct prb_symbol_table *table, const char *name,
                         struct prb_symbol *out)
{
    uint32_t h = 0;
    for (const char *c = name; *c; c++) {
        h = (h << 4) + (uint8_t)*c;
        h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
    }
    uint64_t buckets = word_at(elf, hash, 0), chains = word_at(elf, hash, 1);
    if (buckets == 0)
        return false;
    uint64_t i = word_at(elf, hash, 2 + h % buckets);
    /* A chain is no longer than there are symbols, or it loops. */
    for (size_t step = prb_symbol_count(table); i && step; step--) {
        if (matches(elf, table, i, name, out))
            return true;
        i = i < chains ? word_at(elf, hash, 2 + buckets + i) : 0;
    }
    return false;
}

/* A name that is looked for, and where it stands in a string table: linkers let names share their
 * ends, so it may be the end of others, and stands there seldom more than once or twice. */
#define PLACES_MAX 64
#define PIECE 16384

struct wanted {
    const char *name;
    size_t len; /* with its NUL */
    struct prb_symbol *out;
    uint64_t places[PLACES_MAX]; /* ascending */
    size_t count;
};

static void find_in_piece(struct wanted *wanted, const char *piece, size_t len, uint64_t at)
{
    const char *end = piece + len, *hit = piece;
    for (; (hit = memmem(hit, (size_t)(end - hit), wanted->name, wanted->len)); hit++) {
        uint64_t place = at + (uint64_t)(hit - piece);
        /* The end of the last piece is seen twice. */
        if (wanted->count && place <= wanted->places[wanted->count - 1])
            continue;
        if (wanted->count == PLACES_MAX)
            break;
        wanted->places[wanted->count++] = place;
    }
}

static void find_places(struct prb_elf *elf, const struct prb_extent *strings,
                        struct wanted *wanted, size_t count)
{
    size_t longest = 1, kept = 0;
    for (size_t i = 0; i < count; i++) {
        wanted[i].count = 0;
        longest = wanted[i].len > longest ? wanted[i].len : longest;
    }
    PRB_AUTO_FREE char *piece = malloc(PIECE + longest);
    for (uint64_t at = 0; piece && at < strings->len;) {
        size_t asked = strings->len - at < PIECE ? (size_t)(strings->len - at) : PIECE;
        size_t got = prb_read_at(elf->fd, piece + kept, asked, strings->offset + at);
        for (size_t i = 0; i < count; i++)
            find_in_piece(&wanted[i], piece, kept + got, at - kept);
        if (got < asked)
            break;
        at += got;
        /* A name may stand across two pieces. */
        size_t tail = kept + got < longest - 1 ? kept + got : longest - 1;
        memmove(piece, piece + kept + got - tail, tail);
        kept = tail;
    }
}

static bool stands_at(const struct wanted *wanted, uint64_t place)
{
    for (size_t i = 0; i < wanted->count; i++)
        if (wanted->places[i] == place)
            return true;
    return false;
}

/* Find names in a table without a hash, in one pass for all.  How many are still missing: those are
 * moved to the front. */
static size_t by_scan(struct prb_elf *elf, unsigned type, struct wanted *wanted, size_t count)
{
    struct prb_symbol_table table;
    if (!count || !elf || !prb_symbol_table(elf, type, &table))
        return count;
    find_places(elf, &table.names, wanted, count);
    uint64_t filter = 0; /* bit n: a place with this number modulo 64 */
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < wanted[i].count; k++)
            filter |= UINT64_C(1) << wanted[i].places[k] % 64;
    PRB_AUTO_FREE Elf64_Sym *block = filter ? malloc(PRB_SYMBOL_BLOCK * sizeof *block) : NULL;
    size_t n;
    for (size_t first = 0; block && count && (n = prb_symbol_block(elf, &table, first, block));
         first += n)
        for (size_t k = first == 0; k < n; k++) {
            if (!(filter >> block[k].st_name % 64 & 1))
                continue;
            for (size_t i = count; i-- > 0;)
                if (stands_at(&wanted[i], block[k].st_name) &&
                    matches(elf, &table, first + k, wanted[i].name, wanted[i].out))
                    wanted[i] = wanted[--count];
        }
    return count;
}

/* Through the hash table of exported symbols; *hashed_out: whether there is one. */
static bool exported(struct prb_elf *elf, const char *name, struct prb_symbol *out,
                     bool *hashed_out)
{
    struct prb_symbol_table table;
    struct prb_extent hash;
    *hashed_out = true;
    if (!prb_symbol_table(elf, SHT_DYNSYM, &table))
        return false;
    if (prb_elf_contents(elf, prb_elf_of_type(elf, SHT_GNU_HASH), &hash))
        return by_gnu_hash(elf, &hash, &table, name, out);
    if (prb_elf_contents(elf, prb_elf_of_type(elf, SHT_HASH), &hash))
        return by_sysv_hash(elf, &hash, &table, name, out);
    return *hashed_out = false;
}

bool prb_elf_symbols(struct prb_elf *elf, const char *const *names, size_t count,
                     struct prb_symbol *out, struct prb_error *err)
{
    PRB_AUTO_FREE struct wanted *wanted = malloc((count + 1) * sizeof *wanted);
    size_t missing = 0;
    bool hashed = true;
    if (!wanted)
        return prb_nomem(err);
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct prb_symbol){0};
        if (exported(elf, names[i], &out[i], &hashed))
            continue;
        wanted[missing].name = names[i];
        wanted[missing].len = strlen(names[i]) + 1;
        wanted[missing++].out = &out[i];
    }
    if (!hashed)
        missing = by_scan(elf, SHT_DYNSYM, wanted, missing);
    missing = by_scan(elf, SHT_SYMTAB, wanted, missing);
    by_scan(elf->debug, SHT_SYMTAB, wanted, missing);
    return true;
}

bool prb_elf_symbol(struct prb_elf *elf, const char *name, struct prb_symbol *out,
                    struct prb_error *err)
{
    if (!prb_elf_symbols(elf, &name, 1, out, err))
        return false;
    return out->name || prb_fail(err, PRB_NOT_FOUND, "no symbol %s", name);
}

/* A whole string table, in memory that lives as long as the elf, with a NUL behind it; *len_out is
 * as much as could be read. */
static const char *all_strings(struct prb_elf *elf, const struct prb_extent *strings,
                               size_t *len_out)
{
    char *all =
        strings->len <= STRINGS_MAX ? prb_arena_alloc(&elf->arena, (size_t)strings->len + 1) : NULL;
    if (!all)
        return NULL;
    *len_out = prb_read_at(elf->fd, all, (size_t)strings->len, strings->offset);
    all[*len_out] = '\0';
    return all;
}

struct prb_symbol *prb_elf_exports(struct prb_elf *elf, size_t *count_out, struct prb_error *err)
{
    struct prb_symbol_table table;
    if (!prb_symbol_table(elf, SHT_DYNSYM, &table))
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "a library without exported symbols"));
    size_t symbols = prb_symbol_count(&table), count = 0, n, len;
    PRB_AUTO_FREE Elf64_Sym *block = malloc(PRB_SYMBOL_BLOCK * sizeof *block);
    PRB_AUTO_FREE struct prb_symbol *exports = malloc((symbols + 1) * sizeof *exports);
    const char *names = all_strings(elf, &table.names, &len);
    if (!block || !exports || !names)
        return PRB_NULL(prb_nomem(err));
    for (size_t first = 0; (n = prb_symbol_block(elf, &table, first, block)); first += n)
        for (size_t k = first == 0; k < n; k++) {
            unsigned type = ELF64_ST_TYPE(block[k].st_info);
            if (is_defined(&block[k]) && (type == STT_FUNC || type == STT_GNU_IFUNC))
                exports[count++] =
                    (struct prb_symbol){block[k].st_value, block[k].st_size,
                                        block[k].st_name < len ? names + block[k].st_name : ""};
        }
    *count_out = count;
    return PRB_STEAL(exports);
}
