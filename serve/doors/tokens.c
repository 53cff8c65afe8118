/* A short table under a lock. */
#include "serve/doors/tokens.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct prb_tokens {
    pthread_mutex_t lock;
    unsigned made;
    struct second {
        char token[PRB_NET_TOKEN_SIZE]; /* "": free */
        unsigned grants, number;
        double until; /* s, monotonic */
    } items[PRB_TOKENS_MAX];
};

struct prb_tokens *prb_tokens_new(void)
{
    struct prb_tokens *tokens = calloc(1, sizeof *tokens);
    if (tokens)
        pthread_mutex_init(&tokens->lock, NULL);
    return tokens;
}

void prb_tokens_free(struct prb_tokens *tokens)
{
    if (!tokens)
        return;
    prb_tokens_revoke(tokens);
    pthread_mutex_destroy(&tokens->lock);
    free(tokens);
}

/* Under the lock: those whose time is over are free again. */
static size_t sweep(struct prb_tokens *tokens)
{
    size_t count = 0;
    for (size_t i = 0; i < PRB_TOKENS_MAX; i++) {
        struct second *one = tokens->items + i;
        if (*one->token && one->until < prb_clock_s())
            explicit_bzero(one, sizeof *one);
        count += *one->token != '\0';
    }
    return count;
}

bool prb_tokens_add(struct prb_tokens *tokens, unsigned grants, char token[PRB_NET_TOKEN_SIZE],
                    struct prb_error *err)
{
    bool added = false;
    if (!prb_net_token_make(token, err))
        return false;
    pthread_mutex_lock(&tokens->lock);
    sweep(tokens);
    for (size_t i = 0; i < PRB_TOKENS_MAX && !added; i++) {
        struct second *one = tokens->items + i;
        if (*one->token)
            continue;
        *one = (struct second){
            .grants = grants, .number = ++tokens->made, .until = prb_clock_s() + PRB_TOKEN_SECONDS};
        snprintf(one->token, sizeof one->token, "%s", token);
        added = true;
    }
    pthread_mutex_unlock(&tokens->lock);
    if (added)
        return true;
    explicit_bzero(token, PRB_NET_TOKEN_SIZE);
    prb_fail(err, PRB_BUSY, "there are %d second tokens", PRB_TOKENS_MAX);
    return prb_error_remedy(err, "`probing serve --revoke` ends them");
}

unsigned prb_tokens_grants(struct prb_tokens *tokens, const char *shown, char name[PRB_TOKEN_NAME])
{
    unsigned grants = 0;
    pthread_mutex_lock(&tokens->lock);
    sweep(tokens);
    for (size_t i = 0; i < PRB_TOKENS_MAX; i++) {
        const struct second *one = tokens->items + i;
        if (!*one->token || !prb_net_token_same(one->token, shown))
            continue;
        grants = one->grants;
        snprintf(name, PRB_TOKEN_NAME, "second token %u", one->number);
    }
    pthread_mutex_unlock(&tokens->lock);
    return grants;
}

size_t prb_tokens_revoke(struct prb_tokens *tokens)
{
    pthread_mutex_lock(&tokens->lock);
    size_t count = sweep(tokens);
    explicit_bzero(tokens->items, sizeof tokens->items);
    pthread_mutex_unlock(&tokens->lock);
    return count;
}

size_t prb_tokens_count(struct prb_tokens *tokens)
{
    pthread_mutex_lock(&tokens->lock);
    size_t count = sweep(tokens);
    pthread_mutex_unlock(&tokens->lock);
    return count;
}
