/* Texts of proc(5). */
#include "table/shared/stat_columns.h"

#include <math.h>
#include <string.h>
#include <time.h>

bool prb_stat_text_read(struct prb_proc *proc, const char *name, struct prb_stat_text *out)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, name, &text, NULL) || !text.data)
        return false;
    /* The name may hold brackets and blanks: fields count from its last bracket. */
    const char *open = strchr(text.data, '('), *close = strrchr(text.data, ')');
    if (!open || !close || close < open || close[1] != ' ' || !close[2])
        return false;
    *out = (struct prb_stat_text){.state = close[2], .count = 3};
    snprintf(out->name, sizeof out->name, "%.*s", (int)(close - open - 1), open + 1);
    const char *at = close + 3;
    while (out->count < PRB_STAT_FIELDS) {
        char *end;
        int64_t value = strtoll(at, &end, 10);
        if (end == at)
            break;
        out->field[++out->count] = value;
        at = end;
    }
    return true;
}

void prb_row_stat(struct prb_rows *rows, const struct prb_stat_text *stat, int number)
{
    if (number <= stat->count)
        prb_row_int(rows, stat->field[number]);
    else
        prb_row_null(rows);
}

void prb_row_stat_seconds(struct prb_rows *rows, const struct prb_stat_text *stat, int number)
{
    if (number <= stat->count)
        prb_row_real(rows, (double)stat->field[number] / (double)sysconf(_SC_CLK_TCK));
    else
        prb_row_null(rows);
}

bool prb_status_number(const struct prb_buf *text, const char *key, int64_t *out)
{
    size_t len = strlen(key);
    for (const char *line = text->data; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) != 0 || line[len] != ':')
            continue;
        char *end;
        *out = strtoll(line + len + 1, &end, 10);
        return end != line + len + 1;
    }
    return false;
}

/* Field 22 counts from the machine's start, which the clock tells only to within its own steps. */
void prb_row_started(struct prb_rows *rows, const struct prb_proc *proc,
                     const struct prb_stat_text *stat)
{
    enum { STARTTIME = 22 };
    struct timespec now, up;
    if (stat->count < STARTTIME || !prb_proc_exists(proc)) {
        prb_row_null(rows);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    double boot = (double)(now.tv_sec - up.tv_sec) + 1e-9 * (double)(now.tv_nsec - up.tv_nsec);
    double ticks = (double)sysconf(_SC_CLK_TCK);
    prb_row_real(rows, round((boot + (double)stat->field[STARTTIME] / ticks) * ticks) / ticks);
}
