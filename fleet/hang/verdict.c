/* The verdict on what was seen of the ranks, by rules in their order: hang.h. */
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "fleet/hang.h"
#include "fleet/hang/wavefront.h"

static void parts_deinit(struct prb_hang_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        prb_rank_set_deinit(&parts->items[i].ranks);
    free(parts->items);
    *parts = (struct prb_hang_parts){0};
}

void prb_hang_deinit(struct prb_hang *hang)
{
    for (size_t i = 0; i < hang->count; i++) {
        free(hang->ranks[i].frames);
        free(hang->ranks[i].groups);
    }
    free(hang->ranks);
    json_decref(hang->kept);
    parts_deinit(&hang->cause);
    parts_deinit(&hang->waiting);
    parts_deinit(&hang->slow);
    *hang = (struct prb_hang){0};
}

/* ---- parts: ranks that are at the same ---- */

/* Whether a rank belongs to a part. */
typedef bool same_fn(const struct prb_hang_rank *a, const struct prb_hang_rank *b);

static bool add_to(struct prb_hang_parts *parts, const struct prb_hang_rank *rank, same_fn *same)
{
    struct prb_hang_part *part = NULL;
    for (size_t i = 0; i < parts->count && !part; i++)
        if (same(parts->items[i].example, rank))
            part = &parts->items[i];
    if (!part) {
        if (!PRB_GROW(parts->items, parts->count, parts->cap))
            return false;
        part = &parts->items[parts->count++];
        *part = (struct prb_hang_part){.example = rank, .kind = rank->kind};
    }
    return rank->rank < 0 || prb_rank_set_add(&part->ranks, rank->rank, rank->rank);
}

static bool same_state(const struct prb_hang_rank *a, const struct prb_hang_rank *b)
{
    return a->state == b->state;
}

static bool same_place(const struct prb_hang_rank *a, const struct prb_hang_rank *b)
{
    return a->state == b->state && a->kind == b->kind && strcmp(a->site, b->site) == 0 &&
           strcmp(a->operation, b->operation) == 0;
}

static int smallest_first(const void *a, const void *b)
{
    const struct prb_hang_part *x = a, *y = b;
    unsigned size = prb_rank_set_size(&x->ranks), other = prb_rank_set_size(&y->ranks);
    if (size != other)
        return size > other ? 1 : -1;
    return (x->example->rank > y->example->rank) - (x->example->rank < y->example->rank);
}

static int by_rank(const void *a, const void *b)
{
    int x = ((const struct prb_hang_rank *)a)->rank, y = ((const struct prb_hang_rank *)b)->rank;
    return (x > y) - (x < y);
}

/* ---- what is said of them ---- */

static void waits_at(const struct prb_hang_rank *rank, char *out, size_t size)
{
    const struct prb_hang_group *group = prb_wavefront_open(rank);
    char number[160] = "";
    if (group)
        snprintf(number, sizeof number, " #%lld of group %.100s", (long long)group->sequence,
                 group->name);
    snprintf(out, size, "%s%s%s%s", *rank->operation ? rank->operation : "a collective", number,
             *rank->site ? " at " : "", rank->site);
}

/* "and 3 ranks wait for it", "" when nobody does. */
static void waiters(unsigned waiting, bool several, char *out, size_t size)
{
    *out = '\0';
    if (waiting)
        snprintf(out, size, ", and %u rank%s for %s", waiting, waiting == 1 ? " waits" : "s wait",
                 several ? "them" : "it");
}

static void tell_lost(struct prb_hang_part *part, unsigned waiting)
{
    static const char *const texts[PRB_COVERAGE_STATES] = {
        [PRB_COVERAGE_MISSING] = "missing: no process says that it is this rank",
        [PRB_COVERAGE_SILENT] = "silent: its host does not answer",
        [PRB_COVERAGE_GONE] = "gone: its process ended",
        [PRB_COVERAGE_FAILED] = "not to be read",
    };
    char wait[80];
    bool several = prb_rank_set_size(&part->ranks) > 1;
    const char *text = texts[part->example->state];
    if (several && part->example->state == PRB_COVERAGE_GONE)
        text = "gone: their processes ended";
    waiters(waiting, several, wait, sizeof wait);
    snprintf(part->text, sizeof part->text, "%s %s%s", several ? "are" : "is", text, wait);
}

static void tell_cause(struct prb_hang_part *part, unsigned waiting)
{
    const struct prb_hang_rank *rank = part->example;
    const char *text = prb_hang_kind_text(part->kind), *it = strncmp(text, "its ", 4) ? "it " : "";
    char wait[80], holder[220] = "";
    bool several = prb_rank_set_size(&part->ranks) > 1;
    waiters(waiting, several, wait, sizeof wait);
    if (*rank->holder)
        snprintf(holder, sizeof holder, ", held by %s", rank->holder);
    if (several && part->kind == PRB_HANG_STOPPED)
        snprintf(part->text, sizeof part->text, "are%s%s", text + strlen("is"), wait);
    else if (rank->rank < 0 || part->kind == PRB_HANG_STOPPED)
        snprintf(part->text, sizeof part->text, "%s%s%s", text, holder, wait);
    else
        snprintf(part->text, sizeof part->text, "%s in no collective%s: %s%s%s",
                 several ? "are" : "is", wait, several ? "each " : it, text, holder);
}

static void tell_diverged(struct prb_hang_part *part, unsigned waiting)
{
    char place[260];
    waits_at(part->example, place, sizeof place);
    snprintf(part->text, sizeof part->text, "%s in another collective than the other %u: %s",
             prb_rank_set_size(&part->ranks) > 1 ? "are" : "is", waiting, place);
}

/* ---- the rules ---- */

static bool is_waiting(const struct prb_hang_rank *rank)
{
    return rank->state == PRB_COVERAGE_ANSWERED && rank->kind == PRB_HANG_COLLECTIVE;
}

/* Who waits by its nature, and hangs nothing by itself. */
static bool is_idle(const struct prb_hang_rank *rank)
{
    return rank->kind == PRB_HANG_EVENTS || rank->kind == PRB_HANG_CHILD ||
           rank->kind == PRB_HANG_TERMINAL ||
           ((rank->kind == PRB_HANG_THREAD || rank->kind == PRB_HANG_QUEUE) && rank->works);
}

/* It goes from function to function: it computes, as long as that may take. */
static bool is_running(const struct prb_hang_rank *rank)
{
    return rank->moved && !rank->looped && rank->kind != PRB_HANG_STOPPED;
}

struct tally {
    unsigned waiting, waiting_moved; /* in a collective */
    unsigned others, others_running, others_moved, others_idle;
    unsigned lost; /* gone, missing, silent */
    unsigned stopped;
};

static struct tally count(const struct prb_hang *hang)
{
    struct tally tally = {0};
    for (size_t i = 0; i < hang->count; i++) {
        const struct prb_hang_rank *rank = &hang->ranks[i];
        if (rank->state != PRB_COVERAGE_ANSWERED) {
            tally.lost += rank->state != PRB_COVERAGE_FAILED;
        } else if (is_waiting(rank)) {
            tally.waiting++;
            tally.waiting_moved += rank->moved;
        } else {
            tally.others++;
            tally.others_running += is_running(rank);
            tally.others_moved += rank->moved;
            tally.others_idle += is_idle(rank);
            tally.stopped += rank->kind == PRB_HANG_STOPPED;
        }
    }
    return tally;
}

static bool add_all(struct prb_hang *hang, struct prb_hang_parts *parts, same_fn *same,
                    bool (*chosen)(const struct prb_hang_rank *rank))
{
    for (size_t i = 0; i < hang->count; i++)
        if (chosen(&hang->ranks[i]) && !add_to(parts, &hang->ranks[i], same))
            return false;
    return true;
}

static bool is_lost(const struct prb_hang_rank *rank)
{
    return rank->state != PRB_COVERAGE_ANSWERED && rank->state != PRB_COVERAGE_FAILED;
}
static bool is_stopped(const struct prb_hang_rank *rank)
{
    return rank->state == PRB_COVERAGE_ANSWERED &&
           (rank->kind == PRB_HANG_STOPPED || rank->kind == PRB_HANG_DISK);
}
static bool is_other(const struct prb_hang_rank *rank)
{
    return rank->state == PRB_COVERAGE_ANSWERED && !is_waiting(rank) && !is_stopped(rank);
}
static bool is_blamed(const struct prb_hang_rank *rank) { return is_other(rank) && !is_idle(rank); }

/* Rule 0: somebody who waits has moved, or who is waited for still computes. */
static bool is_moving(const struct tally *tally)
{
    if (tally->waiting_moved)
        return true;
    if (tally->stopped || (tally->lost && tally->waiting))
        return false;
    if (tally->lost) /* who answers may be one host's part of the job */
        return tally->others && tally->others_moved == tally->others;
    if (tally->waiting)
        return tally->others && tally->others_running == tally->others;
    return tally->others_moved > 0 || tally->others_idle == tally->others;
}

static bool not_hung(struct prb_hang *hang, const struct tally *tally)
{
    bool job = hang->count && hang->ranks[0].rank >= 0;
    hang->hung = false;
    if (!job)
        snprintf(hang->summary, sizeof hang->summary, "%s",
                 tally->others_moved || tally->waiting_moved ? "it moves"
                                                             : "it waits by its nature");
    else if (tally->waiting_moved)
        snprintf(hang->summary, sizeof hang->summary,
                 "the ranks passed collectives between the views");
    else if (tally->waiting)
        snprintf(hang->summary, sizeof hang->summary,
                 "%u of the ranks still compute, and %u wait for them", tally->others,
                 tally->waiting);
    else if (tally->lost)
        snprintf(hang->summary, sizeof hang->summary, "the ranks that answered move");
    else
        snprintf(hang->summary, sizeof hang->summary, "%s",
                 tally->others_moved ? "the ranks move" : "the ranks wait by their nature");
    if (!job || !tally->waiting || !tally->others)
        return true;
    if (!add_all(hang, &hang->slow, same_place, is_other))
        return false;
    for (size_t i = 0; i < hang->slow.count; i++)
        snprintf(hang->slow.items[i].text, sizeof hang->slow.items[i].text,
                 "%s in no collective while %u rank%s%s%s",
                 prb_rank_set_size(&hang->slow.items[i].ranks) > 1 ? "are" : "is", tally->waiting,
                 tally->waiting == 1 ? " waits" : "s wait",
                 *hang->slow.items[i].example->site ? ", at " : "",
                 hang->slow.items[i].example->site);
    return true;
}

/* Rules 6 and 7: all are in collectives. */
static bool diverged(struct prb_hang *hang, const struct tally *tally)
{
    struct prb_hang_parts places = {0};
    bool ok = add_all(hang, &places, same_place, is_waiting);
    qsort(places.items, places.count, sizeof *places.items, smallest_first);
    unsigned largest = places.count ? prb_rank_set_size(&places.items[places.count - 1].ranks) : 0;
    size_t causes = places.count > 1 ? places.count - 1 : places.count;
    if (places.count > 1 && prb_rank_set_size(&places.items[causes - 1].ranks) == largest)
        causes = places.count; /* no side is the smaller one */
    for (size_t i = 0; ok && i < causes; i++) {
        struct prb_hang_part *part = &places.items[i];
        if (!PRB_GROW(hang->cause.items, hang->cause.count, hang->cause.cap)) {
            ok = false;
            break;
        }
        hang->cause.items[hang->cause.count++] = *part;
        part->ranks = (struct prb_rank_set){0};
        part = &hang->cause.items[hang->cause.count - 1];
        if (places.count > 1)
            tell_diverged(part, tally->waiting - prb_rank_set_size(&part->ranks));
        else
            snprintf(part->text, sizeof part->text,
                     "all are in the same collective: no program is late; look at the network");
    }
    parts_deinit(&places);
    return ok;
}

/* Ranks that a set names; one part for each place. */
static bool blame(struct prb_hang *hang, const struct prb_rank_set *ranks, unsigned waiting)
{
    for (size_t i = 0; i < hang->count; i++)
        if (prb_rank_set_has(ranks, hang->ranks[i].rank) &&
            !add_to(&hang->cause, &hang->ranks[i], same_place))
            return false;
    for (size_t i = 0; i < hang->cause.count; i++) {
        struct prb_hang_part *part = &hang->cause.items[i];
        if (is_waiting(part->example))
            tell_diverged(part, waiting);
        else
            tell_cause(part, waiting);
    }
    return true;
}

static bool find_cause(struct prb_hang *hang, const struct tally *tally)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set odd = {0};
    size_t lost;
    if (!add_all(hang, &hang->cause, same_state, is_lost)) /* rule 1 */
        return false;
    lost = hang->cause.count;
    for (size_t i = 0; i < lost; i++) {
        hang->cause.items[i].kind = PRB_HANG_GONE;
        tell_lost(&hang->cause.items[i], tally->waiting);
    }
    if (!add_all(hang, &hang->cause, same_place, is_stopped)) /* rule 2 */
        return false;
    for (size_t i = lost; i < hang->cause.count; i++)
        tell_cause(&hang->cause.items[i], tally->waiting);
    if (hang->cause.count)
        return true;
    if (!prb_wavefront_roots(hang, &odd) || (!odd.count && !prb_wavefront_mismatch(hang, &odd)))
        return false; /* rules 3 and 4 */
    if (odd.count)
        return blame(hang, &odd, tally->waiting);
    if (!add_all(hang, &hang->cause, same_place, tally->waiting ? is_other : is_blamed)) /* 5 */
        return false;
    qsort(hang->cause.items, hang->cause.count, sizeof *hang->cause.items, smallest_first);
    for (size_t i = 0; i < hang->cause.count; i++)
        tell_cause(&hang->cause.items[i], tally->waiting);
    if (hang->cause.count)
        return true;
    if (hang->count == 1 && hang->ranks[0].rank < 0) {
        if (!add_to(&hang->cause, &hang->ranks[0], same_place))
            return false;
        char place[260];
        waits_at(&hang->ranks[0], place, sizeof place);
        snprintf(hang->cause.items[0].text, sizeof hang->cause.items[0].text,
                 "waits for other ranks in %s", place);
        return true;
    }
    return diverged(hang, tally);
}

static bool is_cause(const struct prb_hang *hang, const struct prb_hang_rank *rank)
{
    for (size_t i = 0; i < hang->cause.count; i++)
        if (prb_rank_set_has(&hang->cause.items[i].ranks, rank->rank))
            return true;
    return false;
}

static bool find_waiting(struct prb_hang *hang)
{
    for (size_t i = 0; i < hang->count; i++)
        if (is_waiting(&hang->ranks[i]) && hang->ranks[i].rank >= 0 &&
            !is_cause(hang, &hang->ranks[i]) &&
            !add_to(&hang->waiting, &hang->ranks[i], same_place))
            return false;
    qsort(hang->waiting.items, hang->waiting.count, sizeof *hang->waiting.items, smallest_first);
    for (size_t i = 0; i < hang->waiting.count; i++)
        waits_at(hang->waiting.items[i].example, hang->waiting.items[i].text,
                 sizeof hang->waiting.items[i].text);
    return true;
}

static void find_since(struct prb_hang *hang)
{
    double begun = 0;
    for (size_t i = 0; i < hang->count; i++) {
        const struct prb_hang_group *group = prb_wavefront_open(&hang->ranks[i]);
        if (group && group->begun > 0 && (begun <= 0 || group->begun < begun))
            begun = group->begun;
    }
    hang->since = prb_clock_epoch_s() - begun;
    hang->since_exact = begun > 0 && hang->since >= hang->span;
    if (!hang->since_exact)
        hang->since = hang->span;
}

/* Those that did not answer are ranks, too. */
static bool add_lost(struct prb_hang *hang, const struct prb_coverage *coverage)
{
    for (size_t i = 0; coverage && i < coverage->count; i++) {
        const struct prb_coverage_rank *one = &coverage->items[i];
        if (one->state == PRB_COVERAGE_ANSWERED)
            continue;
        if (!PRB_GROW(hang->ranks, hang->count, hang->cap))
            return false;
        hang->ranks[hang->count++] = (struct prb_hang_rank){
            .rank = one->rank,
            .pid = one->pid,
            .host = one->host ? one->host : "",
            .state = one->state,
            .reason = one->reason,
            .kind = PRB_HANG_GONE,
            .wait_channel = "",
            .operation = "",
            .site = "",
            .inside = "",
            .holder = "",
        };
    }
    return true;
}

bool prb_hang_judge(struct prb_hang *hang, const struct prb_coverage *coverage,
                    struct prb_error *err)
{
    if (!add_lost(hang, coverage))
        return prb_nomem(err);
    qsort(hang->ranks, hang->count, sizeof *hang->ranks, by_rank);
    for (size_t i = 0; i < hang->count; i++) {
        if (hang->ranks[i].span > hang->span)
            hang->span = hang->ranks[i].span;
        hang->recorders += hang->ranks[i].groups != NULL;
    }
    struct tally tally = count(hang);
    if (!tally.waiting && !tally.others)
        return prb_fail(err, PRB_PARTIAL, "no rank answered");
    if (is_moving(&tally))
        return not_hung(hang, &tally) || prb_nomem(err);
    hang->hung = true;
    find_since(hang);
    snprintf(hang->summary, sizeof hang->summary, "no movement in %.1f s", hang->span);
    return (find_cause(hang, &tally) && find_waiting(hang)) || prb_nomem(err);
}
