/* profile of kept samples: see kept.h. */
#include "cli/profile/kept.h"

#include <time.h>

#include "cli/look/database.h"
#include "cli/print/out.h"

struct prb_profile *prb_run_kept_profile(const struct prb_run *run, enum prb_profile_mode mode,
                                         struct prb_error *err)
{
    PRB_AUTO(prb_database) struct prb_database database = {0};
    if (!prb_database_open(run, false, false, &database, err))
        return NULL;
    const struct prb_target *target = database.target;
    bool runs = target && prb_target_info(target)->kind == PRB_TARGET_PROCESS;
    return prb_profile_kept(database.db, mode, runs, err);
}

void prb_kept_report(const struct prb_profile *profile)
{
    char text[200], when[32] = "";
    time_t start = (time_t)profile->start;
    struct tm parts;
    if (localtime_r(&start, &parts))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &parts);
    snprintf(text, sizeof text,
             "%llu samples of threads, kept since %s, in %.1f s; -d SECONDS samples anew",
             (unsigned long long)profile->thread_samples, when, profile->seconds);
    prb_out_note(text);
}
