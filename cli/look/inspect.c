/* probing inspect: what is in a process, by kind, from the SQL tables that have it. */
#include <string.h>

#include "cli/command.h"
#include "format/format.h"

enum { FORMAT };

static const struct prb_option options[] = {
    [FORMAT] = {'f', "format", "FORMAT", "table (the default), json, jsonl or csv",
                PRB_ROW_FORMATS},
    {0},
};

/* searched: the columns that FILTER is looked for in, as one text. */
#define HAS(column) "ifnull(" #column ", '') || ' ' || "

/* What follows the last such character of a column. */
#define LAST(column, character)                                                                    \
    "replace(" #column ", rtrim(" #column ", replace(" #column ", '" character "', '')), '') "     \
    "AS " #column

#define ADDRESS "printf('0x%x', address) AS address, "

/* columns: for programs, all; brief: for people, in 80 columns (NULL: the same).  To add one: a line here, its name
 * in WORDS and in the descriptor. */
static const struct subject {
    const char *name, *columns, *brief, *table, *searched, *order;
} subjects[] = {
    {"modules",
     "name, type, parameters_total, trainable_total, bytes_total, dtype, device, training",
     "name, " LAST(type, ".") ", parameters_total AS parameters, trainable_total AS trainable, "
                              "bytes_total AS bytes, dtype, device, training",
     "torch.modules", HAS(name) HAS(type) HAS(dtype) HAS(device), ""},
    {"tensors", ADDRESS "type, shape, dtype, device, bytes, requires_grad, has_grad",
     ADDRESS LAST(type, ".") ", shape, dtype, device, bytes, requires_grad", "torch.tensors",
     HAS(type) HAS(shape) HAS(dtype) HAS(device), " ORDER BY bytes DESC"},
    {"objects", "type, count, bytes", NULL, "python.objects", HAS(type), " ORDER BY bytes DESC"},
    {"threads", "os_thread_id, thread_name, os_state, active, gil_state, gc, func, file, lineno",
     "os_thread_id, thread_name, os_state, gil_state, func, " LAST(file, "/") ", lineno",
     "python.threads", HAS(os_thread_id) HAS(thread_name) HAS(func) HAS(file), ""},
    {"imports", "name, version, file", NULL, "python.modules", HAS(name) HAS(file),
     " ORDER BY name"},
};
#define WORDS "modules tensors objects threads imports"

static const struct subject *find(const char *name)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (strcmp(subjects[i].name, name) == 0)
            return &subjects[i];
    return NULL;
}

/* As a literal of SQL. */
static void put_literal(FILE *sql, const char *text)
{
    fputc('\'', sql);
    for (; *text; text++)
        fputs(*text == '\'' ? "''" : (const char[]){*text, '\0'}, sql);
    fputc('\'', sql);
}

static char *statement(const struct subject *subject, const char *columns, const char *filter)
{
    char *text = NULL;
    size_t size = 0;
    FILE *sql = open_memstream(&text, &size);
    if (!sql)
        return NULL;
    fprintf(sql, "SELECT %s FROM %s", columns, subject->table);
    if (*filter) {
        fprintf(sql, " WHERE instr(lower(%s''), lower(", subject->searched);
        put_literal(sql, filter);
        fputs("))", sql);
    }
    fputs(subject->order, sql);
    return fclose(sql) == 0 ? text : NULL;
}

static bool run_inspect(const struct prb_run *run, struct prb_error *err)
{
    const struct subject *subject = find(run->arguments[0]);
    if (!subject)
        return prb_usage_word(run, err);
    const char *format = run->options[FORMAT].text;
    bool brief = subject->brief && (!format || strcmp(format, "table") == 0);
    PRB_AUTO_FREE char *sql = statement(subject, brief ? subject->brief : subject->columns,
                                        run->argument_count > 1 ? run->arguments[1] : "");
    if (!sql)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    return prb_query_print(run, sql, format, false, err);
}

const struct prb_command prb_command_inspect = {
    .name = "inspect",
    .aliases = "",
    .summary = "list modules, tensors, objects, threads or imports",
    .arguments = "SUBJECT [FILTER]",
    .words = WORDS,
    .arguments_min = 1,
    .arguments_max = 2,
    .target = PRB_USES_TARGET,
    .description =
        "Reads from outside what is in the process. SUBJECT is modules: those of PyTorch models, "
        "with their parameters; tensors; objects: counted by class; threads: with the frame that "
        "each is in; or imports. Tensors and objects come largest first. With FILTER only rows "
        "with that text in a name, type, shape, device or file; case does not count. The table has "
        "short names and fewer columns; the other formats have all.\n\n"
        "These are rows of torch.modules, torch.tensors, python.objects, python.threads and "
        "python.modules: `probing tables NAME` describes all columns, `query` orders and sums "
        "them.",
    .options = options,
    .examples = "probing 12345 inspect tensors cuda:0  # the largest first\n"
                "probing 12345 inspect modules linear  # of the model, with their parameters\n"
                "probing 12345 inspect imports -f json  # names, versions, files\n",
    .run = run_inspect,
};
