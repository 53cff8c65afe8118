/* How a finding of a skill is printed, of a process or of ranks: out.h. */
#include "cli/print/out.h"

void prb_out_finding_begin(enum prb_severity severity)
{
    static const enum prb_style styles[] = {PRB_STYLE_SUBTLE, PRB_STYLE_PLAIN, PRB_STYLE_WARNING,
                                            PRB_STYLE_WARNING};
    prb_out_style(stdout, styles[severity]);
    printf("%-6s", prb_severity_name(severity));
    prb_out_style(stdout, PRB_STYLE_PLAIN);
    fputc(' ', stdout);
}

void prb_out_finding_end(const char *where, const char *next)
{
    if (where) {
        fputs("\n       at ", stdout);
        prb_out_style(stdout, PRB_STYLE_PLACE);
        prb_out_text(stdout, where);
        prb_out_style(stdout, PRB_STYLE_PLAIN);
    }
    if (next) {
        fputs("\n       then: ", stdout);
        prb_out_text(stdout, next);
    }
    fputc('\n', stdout);
}
