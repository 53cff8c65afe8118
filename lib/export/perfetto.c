/* A timeline as Perfetto's trace: lib/trace/perfetto.c. */
#include "export/export.h"

static bool write_perfetto(struct prb_export *export, FILE *out, struct prb_error *err)
{
    return prb_export_timeline(export, err) && prb_trace_write_perfetto(&export->trace, out, err);
}

const struct prb_exporter prb_exporter_perfetto = {
    .description = {"perfetto", "pftrace", "a timeline for ui.perfetto.dev",
                    ".pftrace .perfetto-trace .pb", false},
    .write = write_perfetto,
};
