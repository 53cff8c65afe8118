/*
 * Source lines by libdw: the unit by .debug_aranges, or by asking each unit where that is left out
 * (clang), then the unit's line table.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "native/source.h"

#define UNITS_MAX 20000 /* compilation units asked one by one */

struct prb_source {
    int fd;
    Dwarf *dwarf;
};

static struct prb_source *from_file(int fd)
{
    if (fd < 0)
        return NULL;
    Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
    struct prb_source *source = dwarf ? malloc(sizeof *source) : NULL;
    if (!source) {
        if (dwarf)
            dwarf_end(dwarf);
        close(fd);
        return NULL;
    }
    *source = (struct prb_source){fd, dwarf};
    return source;
}

/* Debian, Fedora and others install /usr/lib/debug/.build-id/ab/cdef….debug; looked for in the
 * target's own root. */
static struct prb_source *from_build_id(struct prb_proc *proc, struct prb_elf *elf)
{
    uint8_t id[64];
    size_t len = prb_elf_build_id(elf, id);
    if (len < 2 || !prb_proc_live(proc))
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
    dwarf_end(source->dwarf);
    close(source->fd);
    free(source);
}

static bool find_unit(Dwarf *dwarf, uint64_t addr, Dwarf_Die *out)
{
    if (dwarf_addrdie(dwarf, addr, out))
        return true;
    Dwarf_CU *unit = NULL;
    for (int units = 0; units < UNITS_MAX; units++) {
        Dwarf_Die die;
        if (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) != 0)
            return false;
        if (dwarf_haspc(&die, addr) == 1) {
            *out = die;
            return true;
        }
    }
    return false;
}

/* Where functions were inlined, the line table tells the innermost one's line, but the symbol is
 * the outermost one's: its line is where it called the first of them.  False: nothing was inlined
 * here. */
static bool find_call_site(Dwarf_Die *unit, uint64_t addr, const char **file_out, int *line_out)
{
    Dwarf_Die *scopes = NULL;
    int count = dwarf_getscopes(unit, addr, &scopes), outer = -1;
    for (int i = 0; i < count && dwarf_tag(&scopes[i]) != DW_TAG_subprogram; i++)
        if (dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine)
            outer = i;
    Dwarf_Attribute attribute;
    Dwarf_Word file, line;
    Dwarf_Files *files;
    const char *name = NULL;
    if (outer >= 0 &&
        dwarf_formudata(dwarf_attr(&scopes[outer], DW_AT_call_file, &attribute), &file) == 0 &&
        dwarf_formudata(dwarf_attr(&scopes[outer], DW_AT_call_line, &attribute), &line) == 0 &&
        dwarf_getsrcfiles(unit, &files, NULL) == 0 && line <= INT_MAX)
        name = dwarf_filesrc(files, file, NULL, NULL);
    free(scopes);
    if (!name)
        return false;
    *file_out = name;
    *line_out = (int)line;
    return true;
}

static bool find_line(Dwarf_Die *unit, uint64_t addr, const char **file_out, int *line_out)
{
    Dwarf_Line *line = dwarf_getsrc_die(unit, addr);
    *file_out = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    return *file_out && dwarf_lineno(line, line_out) == 0;
}

void prb_source_line(struct prb_source *source, uint64_t addr, struct prb_arena *arena,
                     const char **file_out, int *line_out)
{
    Dwarf_Die unit;
    const char *file;
    int line;
    *file_out = NULL;
    *line_out = 0;
    if (!find_unit(source->dwarf, addr, &unit) ||
        (!find_call_site(&unit, addr, &file, &line) && !find_line(&unit, addr, &file, &line)))
        return;
    *file_out = prb_arena_strdup(arena, file);
    *line_out = line;
}
