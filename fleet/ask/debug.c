/* The asker's side of debugging a rank on another host: fleet.h. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "fleet/ask/transport.h"
#include "fleet/fleet.h"
#include "fleet/stream/debug.h"
#include "fleet/stream/pump.h"
#include "net/access.h"

struct reach {
    const struct prb_fleet_debug_options *options;
    struct prb_address at;
    struct prb_access access;
    char address[PRB_ADDRESS_TEXT];
    struct prb_exchange exchange; /* of this stream alone */
};

/* A token could only be asked for by whoever reads what the client says, and that is the other
 * side, which knows of no strangers. */
static bool choose_access(struct reach *reach, struct prb_error *err)
{
    if (!prb_address_is_loopback(&reach->at.any)) {
        prb_fail(err, PRB_USAGE, "%s is not loopback, and whoever connects there can run any code",
                 reach->options->address);
        return prb_error_remedy(err, "from another machine: ssh -L");
    }
    return prb_access_choose(&reach->at, NULL, reach->options->any_user, &reach->access, err);
}

static bool admits(void *context, int fd)
{
    struct reach *reach = context;
    struct prb_error why = {0};
    enum prb_access_answer answer = prb_access_of(&reach->access, fd, geteuid(), &why);
    if (answer == PRB_ACCESS_GRANTED)
        return true;
    if (reach->options->note)
        reach->options->note(reach->options->context, answer == PRB_ACCESS_REFUSED
                                                          ? why.text
                                                          : "a client of another user was refused");
    return false;
}

static int begin_listening(struct reach *reach, struct prb_error *err)
{
    if (!prb_address_parse(reach->options->address, &reach->at, err) || !choose_access(reach, err))
        return -1;
    int fd = prb_address_listen(&reach->at, PRB_STREAM_CONNECTIONS, err);
    if (fd >= 0)
        prb_address_print(&reach->at, reach->address);
    return fd;
}

static char *args_of(const struct reach *reach, struct prb_error *err)
{
    const struct prb_fleet_debug_options *options = reach->options;
    char key[2 * PRB_SECRET + 1];
    prb_hex(reach->exchange.public, PRB_SECRET, key);
    json_t *args = json_pack("{s:b, s:b, s:s}", "pause", options->pause, "look", options->look,
                             "exchange", key);
    if (args && options->resume_after > 0)
        json_object_set_new(args, "resume_after", json_real(options->resume_after));
    if (args && options->address && reach->at.any.sa_family != AF_UNIX)
        json_object_set_new(args, "reached", json_string(reach->address));
    char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
    json_decref(args);
    return text ? text : PRB_NULL(prb_nomem(err));
}

/* The agent's answer, or why there is none. */
static bool ask(struct prb_fleet *fleet, const struct reach *reach, struct prb_debug_answer *out,
                struct prb_error *err)
{
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO_FREE char *args = args_of(reach, err);
    if (!args || !prb_fleet_ask(fleet, "debug", args, out, &coverage, err))
        return false;
    const struct prb_coverage_rank *one = &coverage.items[0];
    if (one->state == PRB_COVERAGE_ANSWERED)
        return true;
    return prb_fail(err, PRB_PARTIAL, "rank %d is %s%s%s", one->rank,
                    prb_coverage_state_name(one->state), one->reason ? ": " : "",
                    one->reason ? one->reason : "");
}

static const struct prb_fleet_member *member_of(const struct prb_fleet_info *info)
{
    int rank = prb_rank_set_next(info->asked, -1);
    for (size_t i = 0; i < info->member_count; i++)
        if (info->members[i].rank == rank)
            return &info->members[i];
    return NULL;
}

static bool carry(struct prb_fleet *fleet, struct reach *reach, int listening,
                  const struct prb_debug_answer *answer, const unsigned char *secret,
                  struct prb_error *err)
{
    const struct prb_fleet_debug_options *options = reach->options;
    const struct prb_fleet_info *info = prb_fleet_info(fleet);
    const struct prb_fleet_member *member = member_of(info);
    const struct prb_fleet_line line = prb_fleet_line(fleet);
    char to[PRB_BUS_SUBJECT], from[PRB_BUS_OWN], job[PRB_BUS_TOKEN], why[200];
    struct prb_fleet_debugged what = {.address = reach->address, .folder = answer->folder};
    prb_bus_token(info->job, job);
    snprintf(to, sizeof to, PRB_BUS_STREAM_SUBJECT, job, answer->stream);
    if (!prb_bus_own_subject(line.bus, from, err))
        return false;
    struct prb_mailbox *box = prb_mailbox_new(line.bus, from, answer->stream, err);
    if (!box)
        return false;
    if (member) {
        what.rank = member->rank;
        what.pid = member->pid;
        what.host = member->host;
    }
    if (options->ready)
        options->ready(options->context, &what);
    const struct prb_stream stream = {
        .way = {.bus = line.bus,
                .id = answer->stream,
                .to = to,
                .from = from,
                .secret = secret,
                .key = line.key},
        .box = box,
        .listening = listening,
        .in = options->address ? -1 : options->in,
        .out = options->address ? -1 : options->out,
        .stop_fd = options->stop_fd,
        .served_fd = -1,
        .admits = admits,
        .context = reach,
    };
    bool good = prb_stream_run(&stream, why, err);
    prb_mailbox_free(box);
    if (*why && options->note)
        options->note(options->context, why);
    return good;
}

bool prb_fleet_debug(struct prb_fleet *fleet, const struct prb_fleet_debug_options *options,
                     struct prb_error *err)
{
    struct reach reach = {.options = options};
    struct prb_debug_answer answer = {0};
    const struct prb_fleet_info *info = prb_fleet_info(fleet);
    if (prb_rank_set_size(info->asked) != 1) {
        prb_fail(err, PRB_USAGE, "a debugger has one process, and %u ranks are named",
                 prb_rank_set_size(info->asked));
        return prb_error_remedy(err, "name one rank: @%s:0", info->job);
    }
    PRB_AUTO_FD int listening = options->address ? begin_listening(&reach, err) : -1;
    if (options->address && listening < 0)
        return false;
    unsigned char secret[PRB_SECRET];
    bool good = prb_exchange_make(&reach.exchange, err) && ask(fleet, &reach, &answer, err) &&
                (!answer.exchanges || prb_exchange_secret(&reach.exchange, answer.public,
                                                          reach.exchange.public, secret, err)) &&
                carry(fleet, &reach, listening, &answer, answer.exchanges ? secret : NULL, err);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(&reach.exchange, sizeof reach.exchange);
    if (listening >= 0 && reach.at.any.sa_family == AF_UNIX)
        unlink(options->address);
    prb_access_deinit(&reach.access);
    return good;
}
