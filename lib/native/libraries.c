#include "native/libraries.h"

#include "base/dlopen_note.h"
#include "config.h"

PRB_DLOPEN_NOTE(unwind, PRB_SONAME_UNWIND, "recommended", "native frames");
PRB_DLOPEN_NOTE(dwarf, PRB_SONAME_DW, "recommended", "functions and lines of native frames");

static const char *const unwind_names[] = {PRB_UNWIND_FUNCTIONS(PRB_LAZY_NAME)};
static const char *const dwarf_names[] = {PRB_DWARF_FUNCTIONS(PRB_LAZY_NAME)};

const struct prb_libunwind *prb_libunwind(struct prb_error *err)
{
    static struct prb_libunwind functions;
    static struct prb_lazy library = {.soname = PRB_SONAME_UNWIND,
                                      .names = unwind_names,
                                      .functions = &functions,
                                      .count = sizeof unwind_names / sizeof *unwind_names};
    return prb_lazy_open(&library, err) ? &functions : NULL;
}

const struct prb_libdw *prb_libdw(struct prb_error *err)
{
    static struct prb_libdw functions;
    static struct prb_lazy library = {.soname = PRB_SONAME_DW,
                                      .names = dwarf_names,
                                      .functions = &functions,
                                      .count = sizeof dwarf_names / sizeof *dwarf_names};
    return prb_lazy_open(&library, err) ? &functions : NULL;
}
