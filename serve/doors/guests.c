/* Two lists under a lock: those with a deadline, and those without.  To end a connection is to shut it,
 * shutdown(2): whoever waits for it sees its end. */
#include "serve/doors/guests.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "net/owner.h"

#define TRIERS 64 /* who showed wrong tokens */
#define MINUTE 60.0

struct prb_guests {
    pthread_mutex_t lock;
    struct prb_guest *timed, *settled;
    unsigned strangers, known;
    struct trier {
        unsigned long key; /* 0: free */
        unsigned count;
        double since; /* s, monotonic */
    } triers[TRIERS];
};

struct prb_guests *prb_guests_new(void)
{
    struct prb_guests *guests = calloc(1, sizeof *guests);
    if (guests)
        pthread_mutex_init(&guests->lock, NULL);
    return guests;
}

void prb_guests_free(struct prb_guests *guests)
{
    if (!guests)
        return;
    pthread_mutex_destroy(&guests->lock);
    free(guests);
}

/* ---- under the lock ---- */

static void push(struct prb_guest **list, struct prb_guest *guest)
{
    guest->next = *list;
    guest->link = list;
    if (guest->next)
        guest->next->link = &guest->next;
    *list = guest;
}

static void unlink_guest(struct prb_guest *guest)
{
    *guest->link = guest->next;
    if (guest->next)
        guest->next->link = guest->link;
}

static void uncount(struct prb_guest *guest)
{
    guest->all->strangers -= guest->state == PRB_GUEST_STRANGER;
    guest->all->known -= guest->state == PRB_GUEST_KNOWN;
}

static void drop(struct prb_guest *guest)
{
    uncount(guest);
    guest->state = PRB_GUEST_DROPPED;
    guest->until = INFINITY;
    shutdown(guest->fd, SHUT_RDWR);
}

/* Found when it is needed: the kernel's list takes time. */
static void name_holder(struct prb_guest *guest)
{
    uid_t uid;
    unsigned long inode;
    if (*guest->holder)
        return;
    snprintf(guest->holder, sizeof guest->holder, "%s", guest->peer.name);
    if (!guest->peer.local && prb_socket_owner(guest->fd, &uid, &inode)) {
        snprintf(guest->holder, sizeof guest->holder, "uid %u", (unsigned)uid);
    } else if (!guest->peer.local) {
        char *colon = strrchr(guest->holder, ':');
        if (colon)
            *colon = '\0';
    }
    guest->key = 5381;
    for (const char *at = guest->holder; *at; at++)
        guest->key = guest->key * 33 + (unsigned char)*at;
}

static unsigned held_by(const struct prb_guests *guests, unsigned long key)
{
    unsigned count = 0;
    for (const struct prb_guest *one = guests->timed; one; one = one->next)
        count += one->state == PRB_GUEST_STRANGER && one->key == key;
    return count;
}

/* Whether a goes before b. */
static bool goes_first(const struct prb_guest *a, unsigned held_a, const struct prb_guest *b,
                       unsigned held_b)
{
    if (held_a != held_b)
        return held_a > held_b;
    if (a->answered != b->answered)
        return b->answered;
    return a->until < b->until;
}

static void drop_one_stranger(struct prb_guests *guests)
{
    struct prb_guest *chosen = NULL;
    unsigned most = 0;
    for (struct prb_guest *one = guests->timed; one; one = one->next)
        if (one->state == PRB_GUEST_STRANGER)
            name_holder(one);
    for (struct prb_guest *one = guests->timed; one; one = one->next) {
        if (one->state != PRB_GUEST_STRANGER)
            continue;
        unsigned held = held_by(guests, one->key);
        if (chosen && !goes_first(one, held, chosen, most))
            continue;
        chosen = one;
        most = held;
    }
    if (chosen)
        drop(chosen);
}

/* ---- guests ---- */

static bool enter(struct prb_guests *guests, struct prb_guest *guest)
{
    bool known = guest->state == PRB_GUEST_KNOWN;
    pthread_mutex_lock(&guests->lock);
    bool room = !known || guests->known < PRB_SERVE_KNOWN_MAX;
    if (room) {
        push(&guests->timed, guest);
        guests->known += known;
        guests->strangers += !known;
        if (guests->strangers > PRB_SERVE_STRANGERS_MAX)
            drop_one_stranger(guests);
    }
    pthread_mutex_unlock(&guests->lock);
    return room;
}

struct prb_guest *prb_guest_new(struct prb_guests *guests, int fd, const struct prb_peer *peer,
                                bool known)
{
    struct prb_guest *guest = calloc(1, sizeof *guest);
    if (guest) {
        *guest = (struct prb_guest){.fd = fd,
                                    .peer = *peer,
                                    .all = guests,
                                    .at_door = true,
                                    .state = known ? PRB_GUEST_KNOWN : PRB_GUEST_STRANGER,
                                    .until = prb_clock_s() + PRB_STRANGER_SECONDS};
        if (enter(guests, guest))
            return guest;
    }
    free(guest);
    close(fd);
    return NULL;
}

void prb_guest_free(struct prb_guest *guest)
{
    pthread_mutex_lock(&guest->all->lock);
    uncount(guest);
    unlink_guest(guest);
    pthread_mutex_unlock(&guest->all->lock);
    close(guest->fd);
    free(guest);
}

static void settle(struct prb_guest *guest)
{
    guest->until = INFINITY;
    unlink_guest(guest);
    push(&guest->all->settled, guest);
}

void prb_guest_spoke(struct prb_guest *guest)
{
    pthread_mutex_lock(&guest->all->lock);
    guest->at_door = false;
    if (guest->state == PRB_GUEST_KNOWN)
        settle(guest);
    pthread_mutex_unlock(&guest->all->lock);
}

bool prb_guest_let_in(struct prb_guest *guest)
{
    struct prb_guests *guests = guest->all;
    pthread_mutex_lock(&guests->lock);
    if (guest->state == PRB_GUEST_STRANGER && guests->known < PRB_SERVE_KNOWN_MAX) {
        uncount(guest);
        guest->state = PRB_GUEST_KNOWN;
        guests->known++;
        settle(guest);
    }
    bool known = guest->state == PRB_GUEST_KNOWN;
    pthread_mutex_unlock(&guests->lock);
    return known;
}

void prb_guest_answer(struct prb_guest *guest)
{
    pthread_mutex_lock(&guest->all->lock);
    if (guest->state == PRB_GUEST_STRANGER && !guest->answered) {
        guest->answered = true;
        guest->until = prb_clock_s() + PRB_ANSWER_SECONDS;
    }
    pthread_mutex_unlock(&guest->all->lock);
}

unsigned prb_guest_wrong(struct prb_guest *guest)
{
    struct prb_guests *guests = guest->all;
    double now = prb_clock_s();
    pthread_mutex_lock(&guests->lock);
    name_holder(guest);
    struct trier *his = guests->triers;
    for (size_t i = 0; i < TRIERS; i++) {
        struct trier *one = guests->triers + i;
        if (one->key == guest->key || one->since < his->since)
            his = one;
        if (one->key == guest->key)
            break;
    }
    if (his->key != guest->key || now - his->since > MINUTE)
        *his = (struct trier){.key = guest->key, .since = now};
    unsigned count = ++his->count;
    pthread_mutex_unlock(&guests->lock);
    return count;
}

int prb_guests_sweep(struct prb_guests *guests)
{
    double now = prb_clock_s(), next = INFINITY;
    pthread_mutex_lock(&guests->lock);
    for (struct prb_guest *one = guests->timed; one; one = one->next) {
        if (one->until <= now)
            drop(one);
        if (one->until < next)
            next = one->until;
    }
    pthread_mutex_unlock(&guests->lock);
    return next == INFINITY ? -1 : (int)((next - now) * 1000) + 1;
}

struct prb_guest *prb_guests_at_door(struct prb_guests *guests)
{
    pthread_mutex_lock(&guests->lock);
    struct prb_guest *found = guests->timed;
    while (found && !found->at_door)
        found = found->next;
    pthread_mutex_unlock(&guests->lock);
    return found;
}
