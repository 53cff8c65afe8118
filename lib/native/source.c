/*
 * Source lines by libdw: the unit by .debug_aranges, or by asking each unit where that is left out
 * (clang), then the unit's line table.
 */
#include <dwarf.h>
#include <limits.h>
#include <string.h>

#include "native/libraries.h"
#include "native/source.h"
#include "proc/elf_file.h"

#define UNITS_MAX 20000 /* compilation units asked one by one */

struct prb_source {
    const struct prb_libdw *dw;
    void *image; /* all that libdw sees: a copy, since it and libelf believe what they read twice */
    Elf *elf;
    Dwarf *dwarf;
};

void prb_source_close(struct prb_source *source)
{
    if (!source)
        return;
    if (source->dwarf)
        source->dw->dwarf_end(source->dwarf);
    if (source->elf)
        source->dw->elf_end(source->elf);
    free(source->image);
    free(source);
}
PRB_DEFINE_AUTO_PTR(prb_source, struct prb_source, prb_source_close)

static struct prb_source *from_elf(struct prb_elf *elf)
{
    size_t len;
    PRB_AUTO_FREE void *image = elf ? prb_elf_debug_image(elf, &len) : NULL;
    const struct prb_libdw *dw = image ? prb_libdw(NULL) : NULL;
    PRB_AUTO(prb_source) struct prb_source *source = dw ? calloc(1, sizeof *source) : NULL;
    if (!source)
        return NULL;
    source->dw = dw;
    source->image = PRB_STEAL(image);
    dw->elf_version(EV_CURRENT);
    source->elf = dw->elf_memory(source->image, len);
    source->dwarf = source->elf ? dw->dwarf_begin_elf(source->elf, DWARF_C_READ, NULL) : NULL;
    return source->dwarf ? PRB_STEAL(source) : NULL;
}

struct prb_source *prb_source_open(struct prb_proc *proc, struct prb_elf *elf)
{
    struct prb_source *source = from_elf(elf);
    if (!source && elf->debug)
        return from_elf(elf->debug);
    PRB_AUTO(prb_elf) struct prb_elf *debug = source ? NULL : prb_elf_open_debug(proc, elf);
    return source ? source : from_elf(debug);
}

static bool find_unit(const struct prb_libdw *dw, Dwarf *dwarf, uint64_t addr, Dwarf_Die *out)
{
    if (dw->dwarf_addrdie(dwarf, addr, out))
        return true;
    Dwarf_CU *unit = NULL;
    for (int units = 0; units < UNITS_MAX; units++) {
        Dwarf_Die die;
        if (dw->dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) != 0)
            return false;
        if (dw->dwarf_haspc(&die, addr) == 1) {
            *out = die;
            return true;
        }
    }
    return false;
}

/* Where functions were inlined, the line table gives the innermost one's line, but the symbol is
 * the outermost one's: its line is where it called the first of them.  False: nothing was inlined
 * here. */
static bool find_call_site(const struct prb_libdw *dw, Dwarf_Die *unit, uint64_t addr,
                           const char **file_out, int *line_out)
{
    Dwarf_Die *scopes = NULL;
    int count = dw->dwarf_getscopes(unit, addr, &scopes), outer = -1;
    for (int i = 0; i < count && dw->dwarf_tag(&scopes[i]) != DW_TAG_subprogram; i++)
        if (dw->dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine)
            outer = i;
    Dwarf_Attribute attribute;
    Dwarf_Word file, line;
    Dwarf_Files *files;
    const char *name = NULL;
    if (outer >= 0 &&
        dw->dwarf_formudata(dw->dwarf_attr(&scopes[outer], DW_AT_call_file, &attribute), &file) ==
            0 &&
        dw->dwarf_formudata(dw->dwarf_attr(&scopes[outer], DW_AT_call_line, &attribute), &line) ==
            0 &&
        dw->dwarf_getsrcfiles(unit, &files, NULL) == 0 && line <= INT_MAX)
        name = dw->dwarf_filesrc(files, file, NULL, NULL);
    free(scopes);
    if (!name)
        return false;
    *file_out = name;
    *line_out = (int)line;
    return true;
}

static bool find_line(const struct prb_libdw *dw, Dwarf_Die *unit, uint64_t addr,
                      const char **file_out, int *line_out)
{
    Dwarf_Line *line = dw->dwarf_getsrc_die(unit, addr);
    *file_out = line ? dw->dwarf_linesrc(line, NULL, NULL) : NULL;
    return *file_out && dw->dwarf_lineno(line, line_out) == 0;
}

void prb_source_line(struct prb_source *source, uint64_t addr, struct prb_arena *arena,
                     const char **file_out, int *line_out)
{
    Dwarf_Die unit;
    const char *file;
    int line;
    *file_out = NULL;
    *line_out = 0;
    const struct prb_libdw *dw = source->dw;
    if (!find_unit(dw, source->dwarf, addr, &unit) ||
        (!find_call_site(dw, &unit, addr, &file, &line) &&
         !find_line(dw, &unit, addr, &file, &line)))
        return;
    *file_out = prb_arena_strdup(arena, file);
    *line_out = line;
}
