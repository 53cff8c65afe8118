/* system.crashes: a row for each dump of the crash folder, which belongs to no target. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probing.h"
#include "sql/db.h"
#include "sql/table.h"
#include "table/shared/thread_columns.h"
#include "table/shared/unrecorded.h"

#define DUMPS_MAX 1000 /* the newest */

static const struct prb_column columns[] = {
    {"time", PRB_REAL, "s", "since the epoch; NULL: the file does not say"},
    {"kind", PRB_TEXT, "",
     "signal, exception, asked (SIGTERM) or memory; text: the process could write no dump; broken: "
     "the file cannot be read; snapshot: of no crash"},
    {"title", PRB_TEXT, "", "what happened, in one line"},
    {"place", PRB_TEXT, "", "innermost function, Python's and the native one"},
    {"pid", PRB_INTEGER, "id", "the process"},
    {"rank", PRB_INTEGER, "", "of the process in its job"},
    {"crash_group", PRB_TEXT, "", "equal for equal crashes"},
    {"file", PRB_TEXT, "", "its name; `probing -t FOLDER/FILE` looks at it"},
    {"folder", PRB_TEXT, "", "that of PROBING_CRASH_DIR, else the user's own"},
    {"written", PRB_REAL, "s", "since the epoch: when the file was written"},
    {"bytes", PRB_INTEGER, "bytes", "of the file"},
    {0},
};

PRB_DEFINE_AUTO(prb_crash_files, struct prb_crash_files, prb_crash_files_free)

static void add(struct prb_rows *rows, const struct prb_crash_file *file, const char *folder)
{
    prb_row_begin(rows);
    if (file->time > 0)
        prb_row_real(rows, file->time);
    else
        prb_row_null(rows);
    prb_row_text(rows, file->crashed  ? file->kind
                       : file->text   ? "text"
                       : file->opened ? "snapshot"
                                      : "broken");
    prb_row_text(rows, file->title);
    prb_row_text(rows, file->place);
    prb_row_int_unless(rows, file->pid, 0);
    prb_row_int_unless(rows, file->rank, -1);
    prb_row_text(rows, file->group);
    prb_row_text(rows, file->name);
    prb_row_text(rows, folder);
    prb_row_real(rows, file->written);
    prb_row_int(rows, (int64_t)file->bytes);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    char folder[PRB_CRASH_PATH_MAX], command[PRB_COMMAND_MAX];
    PRB_AUTO(prb_crash_files) struct prb_crash_files files = {0};
    const char *wanted = getenv("PROBING_CRASH_DIR");
    if (!prb_crash_dump_folder(wanted ? wanted : "", folder, err) ||
        !prb_crash_files_read(folder, DUMPS_MAX, NULL, NULL, &files, err))
        return false;
    for (size_t i = 0; i < files.count; i++)
        add(rows, files.items + i, folder);
    if (files.left_out)
        prb_rows_warn(rows, "%zu older crash dumps are left out", files.left_out);
    else if (prb_rows_db(rows)->job) /* of whatever job and user */
        prb_rows_warn(rows,
                      "system.crashes is the folder of user %u on each host, once for each rank; "
                      "`%s crash list` has the job's dumps",
                      (unsigned)geteuid(), prb_rows_command(rows, command));
    return true;
}

const struct prb_table prb_table_system_crashes = {
    .schema = "system",
    .name = "crashes",
    .doc = "the crash dumps of this user's folder, of any process",
    .columns = columns,
    .fill = fill,
};
