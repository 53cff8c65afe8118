/*
 * Source lines by libdw: the unit by .debug_aranges, or by asking each unit where that is left out
 * (clang), then the unit's line table.
 */
#include <dwarf.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "native/libraries.h"
#include "native/source.h"

#define UNITS_MAX 20000 /* compilation units asked one by one */

struct prb_source {
    const struct prb_libdw *dw;
    int fd;
    Dwarf *dwarf;
};

static struct prb_source *from_file(int fd)
{
    if (fd < 0)
        return NULL;
    const struct prb_libdw *dw = prb_libdw(NULL);
    Dwarf *dwarf = dw ? dw->dwarf_begin(fd, DWARF_C_READ) : NULL;
    struct prb_source *source = dwarf ? malloc(sizeof *source) : NULL;
    if (!source) {
        if (dwarf)
            dw->dwarf_end(dwarf);
        close(fd);
        return NULL;
    }
    *source = (struct prb_source){dw, fd, dwarf};
    return source;
}

/* Debian, Fedora and others install /usr/lib/debug/.build-id/ab/cdef….debug; looked for in the
 * target's own root. */
static struct prb_source *from_build_id(struct prb_proc *proc, struct prb_elf *elf)
{
    uint8_t id[64];
    size_t len = prb_elf_build_id(elf, id);
    if (len < 2 || !prb_proc_exists(proc))
        return NULL;
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    prb_buf_addf(&path, "/proc/%d/root/usr/lib/debug/.build-id/%02x/", (int)prb_proc_pid(proc),
                 id[0]);
    for (size_t i = 1; i < len && i < sizeof id; i++)
        prb_buf_addf(&path, "%02x", id[i]);
    prb_buf_adds(&path, ".debug");
    return prb_buf_ok(&path) ? from_file(open(path.data, O_RDONLY | O_CLOEXEC)) : NULL;
}

struct prb_source *prb_source_open(struct prb_proc *proc, struct prb_module *module,
                                   struct prb_elf *elf)
{
    struct prb_source *source = from_file(prb_proc_open_map(proc, module->first, NULL));
    return source ? source : from_build_id(proc, elf);
}

void prb_source_close(struct prb_source *source)
{
    if (!source)
        return;
    source->dw->dwarf_end(source->dwarf);
    close(source->fd);
    free(source);
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

/* Where functions were inlined, the line table tells the innermost one's line, but the symbol is
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
