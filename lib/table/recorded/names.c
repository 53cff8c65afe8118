/* Names of tables that Python code makes: see names.h.  libc only: the probe has it, too. */
#include "table/recorded/names.h"

#include <string.h>
#include <strings.h>

#include "store/host.h"

/* SCHEMA_NAME of every table. */
static const char *const built_in[] = {
#define TABLE(symbol) #symbol,
#include "table/tables.inc"
#undef TABLE
};

/* Rows that other tables are read with, and no tables themselves. */
static const char *const inner[] = {"torch_names", "torch_device"};

bool prb_recorded_name_is_free(const char *name, struct prb_error *err)
{
    static const char schema[] = "python_";
    if (strncasecmp(name, PRB_HOST_PREFIX, sizeof PRB_HOST_PREFIX - 1) == 0) {
        prb_fail(err, PRB_USAGE, "python.%.80s: such names are the collector's", name);
        return prb_error_remedy(err, "choose another name");
    }
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (strncmp(built_in[i], schema, sizeof schema - 1) == 0 &&
            strcasecmp(built_in[i] + sizeof schema - 1, name) == 0) {
            prb_fail(err, PRB_USAGE, "python.%.80s is a built-in table", name);
            return prb_error_remedy(err, "choose another name");
        }
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        if (strcasecmp(inner[i], name) == 0) {
            prb_fail(err, PRB_USAGE, "python.%.80s: probing keeps names there", name);
            return prb_error_remedy(err, "choose another name");
        }
    return true;
}
