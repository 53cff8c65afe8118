/* What a crash dump says of the crash (crash.h). */
#include "inspect/crash.h"

#include <string.h>

#include "inspect/target.h"

#define TIME_MAX 1e11 /* s since the epoch */

/* The value of a line, or NULL. */
static const char *value_of(struct prb_target *target, const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL)
        if (strncmp(at, key, n) == 0 && at[n] == ' ')
            return prb_arena_strndup(&target->arena, at + n + 1, strcspn(at + n + 1, "\n"));
    return NULL;
}

static int64_t number_of(struct prb_target *target, const char *text, const char *key, int64_t none)
{
    const char *value = value_of(target, text, key);
    return value ? (int64_t)strtoull(value, NULL, 10) : none;
}

/* A file may say anything: an impossible time is 0. */
static double time_of(struct prb_target *target, const char *text)
{
    const char *value = value_of(target, text, "time");
    double time = value ? strtod(value, NULL) : 0;
    return time > 0 && time < TIME_MAX ? time : 0;
}

const struct prb_crash *prb_target_crash(struct prb_target *target)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (target->crash || prb_proc_live(target->proc))
        return target->crash;
    struct prb_crash *crash = NULL;
    if (!prb_proc_text(target->proc, PRB_TEXT_CRASH, &text, NULL) || !text.len ||
        !(crash = prb_arena_alloc(&target->arena, sizeof *crash)))
        return NULL;
    *crash = (struct prb_crash){
        .kind = value_of(target, text.data, "kind"),
        .title = value_of(target, text.data, "title"),
        .time = time_of(target, text.data),
        .pid = (pid_t)number_of(target, text.data, "pid", 0),
        .tid = (pid_t)number_of(target, text.data, "tid", 0),
        .signal = (int)number_of(target, text.data, "signal", 0),
        .code = (int)number_of(target, text.data, "code", 0),
        .signal_name = value_of(target, text.data, "signal_name"),
        .has_address = value_of(target, text.data, "address") != NULL,
        .address = (prb_addr)number_of(target, text.data, "address", 0),
        .reason = value_of(target, text.data, "reason"),
        .thread = value_of(target, text.data, "thread"),
        .exception = value_of(target, text.data, "exception"),
        .message = value_of(target, text.data, "message"),
        .rank = (int)number_of(target, text.data, "rank", -1),
        .local_rank = (int)number_of(target, text.data, "local_rank", -1),
        .world_size = (int)number_of(target, text.data, "world_size", -1),
        .function = value_of(target, text.data, "function"),
        .file = value_of(target, text.data, "file"),
        .line = (int)number_of(target, text.data, "line", 0),
        .native = value_of(target, text.data, "native"),
        .place = value_of(target, text.data, "place"),
        .group = value_of(target, text.data, "group"),
    };
    return target->crash = crash;
}
