/* Hosts that are known of: nats.h. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "fleet/ask/nats.h"

/* Where the key is, or belongs. */
static size_t place_of(const struct prb_nats *nats, const char *key)
{
    size_t low = 0, high = nats->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(nats->sorted[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct prb_nats_host *prb_nats_host_of(const struct prb_nats *nats, const char *key)
{
    size_t at = key ? place_of(nats, key) : nats->count;
    return at < nats->count && strcmp(nats->sorted[at]->key, key) == 0 ? nats->sorted[at] : NULL;
}

static bool was_quiet(const struct prb_nats *nats, const char *key)
{
    for (size_t i = 0; i < nats->quiet_count; i++)
        if (strcmp(nats->quiet[i], key) == 0)
            return true;
    return false;
}

struct prb_nats_host *prb_nats_add_host(struct prb_nats *nats, const char *key)
{
    struct prb_nats_host *host = prb_nats_host_of(nats, key);
    if (host)
        return host;
    if (!PRB_GROW(nats->hosts, nats->count, nats->cap) ||
        !PRB_GROW(nats->sorted, nats->count, nats->sorted_cap) || !(host = calloc(1, sizeof *host)))
        return NULL;
    size_t at = place_of(nats, key);
    memmove(nats->sorted + at + 1, nats->sorted + at, (nats->count - at) * sizeof *nats->sorted);
    host->number = (unsigned)nats->count;
    snprintf(host->key, sizeof host->key, "%s", key);
    host->was_quiet = was_quiet(nats, key);
    nats->sorted[at] = nats->hosts[nats->count++] = host;
    return host;
}

/* Who is not remembered is waited for once more. */
static void remember_quiet(struct prb_nats *nats)
{
    nats->quiet_count = 0;
    for (size_t i = 0; i < nats->count; i++)
        if (nats->hosts[i]->quiet && PRB_GROW(nats->quiet, nats->quiet_count, nats->quiet_cap))
            memcpy(nats->quiet[nats->quiet_count++], nats->hosts[i]->key, PRB_ROSTER_KEY);
}

void prb_nats_forget_hosts(struct prb_nats *nats)
{
    remember_quiet(nats);
    for (size_t i = 0; i < nats->count; i++) {
        prb_roster_entry_deinit(&nats->hosts[i]->entry);
        prb_bus_parts_deinit(&nats->hosts[i]->parts);
        free(nats->hosts[i]);
    }
    nats->count = 0;
}

static int by_name(const void *a, const void *b)
{
    const struct prb_nats_host *const *x = a, *const *y = b;
    int order = strcmp((*x)->entry.host, (*y)->entry.host);
    return order ? order : strcmp((*x)->key, (*y)->key);
}

bool prb_nats_name_hosts(struct prb_nats *nats, struct prb_error *err)
{
    PRB_AUTO_FREE struct prb_nats_host **all =
        calloc(nats->count + 1, sizeof(struct prb_nats_host *));
    unsigned same = 1;
    if (!all)
        return prb_nomem(err);
    memcpy(all, nats->hosts, nats->count * sizeof *all);
    qsort(all, nats->count, sizeof *all, by_name);
    for (size_t i = 0; i < nats->count; i++) {
        same = i && strcmp(all[i]->entry.host, all[i - 1]->entry.host) == 0 ? same + 1 : 1;
        if (same == 1)
            snprintf(all[i]->name, sizeof all[i]->name, "%s", all[i]->entry.host);
        else
            snprintf(all[i]->name, sizeof all[i]->name, "%.66s#%u", all[i]->entry.host, same);
    }
    return true;
}

bool prb_nats_goes_on(const struct prb_fleet_transport *base, struct prb_error *err)
{
    return !base->go_on || base->go_on(base->context) ||
           prb_fail(err, PRB_TIMEOUT, "ended before all hosts answered");
}

bool prb_nats_publish(struct prb_nats *nats, struct prb_bus_inbox *inbox, unsigned tag,
                      const char *subject, const char *text, struct prb_error *err)
{
    char reply[PRB_BUS_SUBJECT];
    prb_bus_inbox_subject(inbox, tag, reply);
    const struct prb_bus_message message = {
        .subject = subject, .reply = reply, .data = text, .len = strlen(text)};
    return prb_bus_publish(nats->bus, &message, err);
}

bool prb_nats_doubt(struct prb_nats *nats, struct prb_bus_inbox *inbox, struct prb_nats_host *host,
                    struct prb_error *err)
{
    char subject[PRB_BUS_SUBJECT];
    host->doubt = prb_clock_s() + PRB_NATS_DOUBT_AGAIN;
    snprintf(subject, sizeof subject, PRB_BUS_HOST, host->job, "look", host->key);
    return prb_nats_publish(nats, inbox, PRB_NATS_DOUBT | host->number, subject, "", err);
}
