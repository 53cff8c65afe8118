/*
 * Connections, from accept(2) to their end, by whether their clients have shown who they are.
 *
 * Strangers are few and have some seconds each.  When they are too many, one goes: of those who have
 * the most connections (a user, where the kernel tells it, else an address) the one that has waited
 * longest and is not being answered.  So nobody keeps others out by opening many.
 *
 * Its part of the server closes what it holds of a connection, then frees the guest: the descriptor
 * in here is the guest's own, so that another thread can shut it at any time.
 */
#ifndef PRB_SERVE_GUESTS_H
#define PRB_SERVE_GUESTS_H

#include "serve/serve.h"

#define PRB_STRANGER_SECONDS 10.0 /* to show who it is; a known one, to say something */
#define PRB_ANSWER_SECONDS 30.0   /* for a stranger to take an answer */

/* Who is at the other end, by what the kernel says. */
struct prb_peer {
    bool local;    /* Unix socket */
    bool loopback; /* this, or TCP from a loopback address */
    bool is_user;  /* the kernel proves that it is our user, or this machine's root */
    char name[80]; /* "uid 1000", "127.0.0.1:55512" */
};

struct prb_guest {
    int fd;
    struct prb_peer peer;
    struct prb_guests *all; /* the rest is for guests.c */
    struct prb_guest *next, **link;
    enum prb_guest_state { PRB_GUEST_STRANGER, PRB_GUEST_KNOWN, PRB_GUEST_DROPPED } state;
    bool at_door;      /* it has said nothing yet that decides */
    bool answered;     /* an answer is on its way */
    double until;      /* s, monotonic; INFINITY: no end */
    char holder[80];   /* whose it is, "": not asked yet */
    unsigned long key; /* of holder */
};

struct prb_guests *prb_guests_new(void);
/* After the last guest. */
void prb_guests_free(struct prb_guests *guests);

/* Takes fd.  A known one is a stranger to nobody: its door has proved whose it is.  NULL: there are
 * PRB_SERVE_KNOWN_MAX of these, or NOMEM; fd is then closed. */
struct prb_guest *prb_guest_new(struct prb_guests *guests, int fd, const struct prb_peer *peer,
                                bool known);
void prb_guest_free(struct prb_guest *guest);
/* It has said what it speaks: a known one may now be silent as long as it likes. */
void prb_guest_spoke(struct prb_guest *guest);
/* It has shown who it is.  False: there are PRB_SERVE_KNOWN_MAX of these. */
bool prb_guest_let_in(struct prb_guest *guest);
/* A stranger is being answered. */
void prb_guest_answer(struct prb_guest *guest);

/* How many wrong tokens this user or address has shown within a minute, this one included. */
unsigned prb_guest_wrong(struct prb_guest *guest);

/* Shut those whose time is over.  Milliseconds until the next one's, -1: nobody's. */
int prb_guests_sweep(struct prb_guests *guests);
/* One of those at the door; NULL: there is none. */
struct prb_guest *prb_guests_at_door(struct prb_guests *guests);

#endif
