/* probing cluster record. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/ends.h"
#include "cli/print/out.h"

static void print_line(void *context, const char *line)
{
    (void)context;
    prb_out_note(line);
}

bool prb_cli_cluster_record(const struct prb_run *run, struct prb_error *err)
{
    struct prb_cluster_recorded done;
    if (run->argument_count < 2)
        return prb_usage(run, err,
                         "record needs a file or a database: probing cluster record FILE");
    PRB_AUTO_FD int stop = prb_take_ends(); /* before the bus makes threads */
    if (stop < 0)
        return prb_cli_fail(err, PRB_IO, "", "signals: %s", strerror(errno));
    const struct prb_cluster_record_options options = {
        .bus = run->globals[PRB_GLOBAL_BUS].text,
        .file = run->arguments[1],
        .once = run->options[PRB_CLUSTER_ONCE].count,
        .stop_fd = stop,
        .say = print_line,
    };
    if (!prb_cluster_record(&options, &done, err))
        return false;
    printf("%" PRIu64 " rows were added to ", done.rows);
    prb_out_text(stdout, done.name);
    putchar('\n');
    return true;
}
