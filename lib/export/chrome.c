/* A timeline as Chrome's trace events: lib/trace/chrome.c. */
#include "export/export.h"

static bool write_chrome(struct prb_export *export, FILE *out, struct prb_error *err)
{
    return prb_export_timeline(export, err) && prb_trace_write_chrome(&export->trace, out, err);
}

const struct prb_exporter prb_exporter_chrome = {
    .description = {"chrome", "json", "the same as JSON, for chrome://tracing and ui.perfetto.dev",
                    ".json .trace", false},
    .write = write_chrome,
};
