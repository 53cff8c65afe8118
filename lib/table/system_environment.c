/* system.environment: the environment that the process was started with. */
#include <string.h>

#include "base/secret.h"
#include "inspect/target.h"
#include "sql/table.h"

static const struct prb_column columns[] = {
    {"name", PRB_TEXT, "", "of the variable"},
    {"value", PRB_TEXT, "",
     "*** where the name looks secret; SET probing.reveal_secrets = on shows it"},
    {"masked", PRB_INTEGER, "",
     "1: the value, or the part that looks secret (a URL's password, a token), is not shown"},
    {0},
};

static bool add_variable(struct prb_rows *rows, const char *name, const char *value,
                         struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf shown = {0};
    bool reveal = prb_rows_reveal(rows), secret = !reveal && *value && prb_secret_name(name);
    bool masked = secret;
    if (secret)
        prb_buf_adds(&shown, PRB_MASK);
    else if (reveal)
        prb_buf_adds(&shown, value);
    else
        masked = prb_secret_mask(PRB_SECRET_TEXT, value, strlen(value), &shown);
    if (!prb_buf_ok(&shown))
        return prb_nomem(err);
    prb_row_begin(rows);
    prb_row_text(rows, name);
    prb_row_text(rows, shown.data);
    prb_row_int(rows, masked);
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_proc *proc = prb_rows_target(rows)->proc;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "environ", &text, err)) {
        if (prb_proc_is_snapshot(proc))
            prb_error_remedy(err,
                             "a snapshot leaves it out, as it may hold secrets: ask the process "
                             "while it lives");
        return false;
    }
    for (size_t at = 0; text.data && at < text.len;) {
        char *entry = text.data + at, *equals = strchr(entry, '=');
        at += strlen(entry) + 1;
        if (!equals)
            continue; /* what a process left that wrote over its environment */
        *equals = '\0';
        if (!add_variable(rows, entry, equals + 1, err))
            return false;
    }
    return true;
}

const struct prb_table prb_table_system_environment = {
    .schema = "system",
    .name = "environment",
    .doc = "the environment that the process was started with",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
