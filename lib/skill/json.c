/* A diagnosis as JSON, for every door the same. */
#include <math.h>
#include <string.h>

#include "base/json_text.h"
#include "base/real.h"
#include "skill/skill.h"

static void add_text(struct prb_buf *out, const char *text)
{
    if (text)
        prb_json_add_text(out, text, strlen(text));
    else
        prb_buf_adds(out, "null");
}

static void add_cell(struct prb_buf *out, const struct prb_value *cell)
{
    if (cell->type == PRB_INTEGER)
        prb_buf_addf(out, "%lld", (long long)cell->integer);
    else if (cell->type == PRB_REAL && isfinite(cell->real))
        prb_buf_addf(out, "%.15g", cell->real);
    else if (cell->type == PRB_TEXT)
        prb_json_add_text(out, cell->text, cell->length);
    else
        prb_buf_adds(out, "null");
}

static void add_finding(struct prb_buf *out, const struct prb_finding *finding)
{
    prb_buf_addf(out, "{\"severity\": \"%s\", \"finding\": ", prb_severity_name(finding->severity));
    add_text(out, finding->finding);
    prb_buf_adds(out, ", \"where\": ");
    add_text(out, finding->where);
    prb_buf_adds(out, ", \"next\": ");
    add_text(out, finding->next);
    prb_buf_adds(out, ", \"skill\": ");
    add_text(out, finding->skill);
    prb_buf_addc(out, '}');
}

static void add_table(struct prb_buf *out, const struct prb_evidence *table)
{
    prb_buf_adds(out, "{\"skill\": ");
    add_text(out, table->skill);
    prb_buf_adds(out, ", \"title\": ");
    add_text(out, table->title);
    prb_buf_adds(out, ", \"columns\": [");
    for (size_t i = 0; i < table->column_count; i++) {
        prb_buf_adds(out, i ? ", " : "");
        add_text(out, table->columns[i]);
    }
    prb_buf_adds(out, "], \"rows\": [");
    for (size_t row = 0; row < table->row_count; row++) {
        prb_buf_adds(out, row ? ", [" : "[");
        for (size_t i = 0; i < table->column_count; i++) {
            prb_buf_adds(out, i ? ", " : "");
            add_cell(out, &table->cells[row * table->column_count + i]);
        }
        prb_buf_addc(out, ']');
    }
    prb_buf_addf(out, "], \"truncated\": %s}", table->truncated ? "true" : "false");
}

char *prb_diagnosis_json(const struct prb_diagnosis *diagnosis, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    prb_buf_adds(&out, "{\"findings\": [");
    for (size_t i = 0; i < diagnosis->finding_count; i++) {
        prb_buf_adds(&out, i ? ", " : "");
        add_finding(&out, &diagnosis->findings[i]);
    }
    prb_buf_adds(&out, "], \"tables\": [");
    for (size_t i = 0; i < diagnosis->table_count; i++) {
        prb_buf_adds(&out, i ? ", " : "");
        add_table(&out, &diagnosis->tables[i]);
    }
    prb_buf_adds(&out, "], \"notes\": [");
    for (size_t i = 0; i < diagnosis->note_count; i++) {
        prb_buf_adds(&out, i ? ", " : "");
        add_text(&out, diagnosis->notes[i]);
    }
    prb_buf_adds(&out, "]}");
    char *text = prb_buf_steal(&out);
    return text ? text : PRB_NULL(prb_nomem(err));
}
