/* Prepare and go: see go.h. */
#include "fleet/bus/go.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/hex.h"

/* What is signed: this request, for this agent, now. */
static bool signed_text(const char *id, const char *agent, const char *nonce, const char *request,
                        struct prb_buf *out, struct prb_error *err)
{
    unsigned char digest[32];
    char hex[2 * sizeof digest + 1];
    if (!prb_digest(request, strlen(request), digest, err))
        return false;
    prb_hex(digest, sizeof digest, hex);
    prb_buf_addf(out, "probing.v1.go\n%s\n%s\n%s\n%s\n", id, agent, nonce, hex);
    return prb_buf_ok(out) || prb_nomem(err);
}

/* ---- the asker ---- */

char *prb_go_prepare(const char *id, const char *request, struct prb_error *err)
{
    PRB_AUTO(json_t)
    json_t *object = json_pack("{si ss ss}", "v", 1, "id", id, "prepare", request);
    char *made = object ? json_dumps(object, JSON_COMPACT) : NULL;
    return made ? made : PRB_NULL(prb_nomem(err));
}

bool prb_go_ready(const char *data, size_t len, const char *id, char nonce_out[PRB_GO_NONCE])
{
    PRB_AUTO(json_t) json_t *object = json_loadb(data, len, 0, NULL);
    const json_t *ready = json_object_get(object, "ready");
    const char *of = json_string_value(json_object_get(ready, "id"));
    const char *nonce = json_string_value(json_object_get(ready, "nonce"));
    unsigned char bytes[PRB_GO_NONCE / 2];
    if (!of || strcmp(of, id) != 0 || !prb_unhex(nonce, bytes, sizeof bytes))
        return false;
    memcpy(nonce_out, nonce, PRB_GO_NONCE);
    return true;
}

char *prb_go_text(const struct prb_nkey *key, const char *id, const char *agent, const char *nonce,
                  const char *request, struct prb_error *err)
{
    unsigned char signature[PRB_NKEY_SIGNATURE];
    char public[PRB_NKEY_TEXT_SIZE], hex[2 * sizeof signature + 1];
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!signed_text(id, agent, nonce, request, &text, err) ||
        !prb_nkey_sign(key, text.data, text.len, signature, err))
        return NULL;
    prb_nkey_text(key->public, public);
    prb_hex(signature, sizeof signature, hex);
    PRB_AUTO(json_t)
    json_t *object = json_pack("{si ss s{ss ss ss}}", "v", 1, "id", id, "go", "nonce", nonce, "key",
                               public, "signature", hex);
    char *made = object ? json_dumps(object, JSON_COMPACT) : NULL;
    return made ? made : PRB_NULL(prb_nomem(err));
}

/* ---- the agent ---- */

static double boot_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void release(struct prb_go_held *held)
{
    free(held->request);
    *held = (struct prb_go_held){0};
}

void prb_go_deinit(struct prb_go *go)
{
    for (size_t i = 0; i < PRB_GO_HELD; i++)
        release(&go->held[i]);
}

/* A free place, else the oldest one. */
static struct prb_go_held *place(struct prb_go *go)
{
    struct prb_go_held *oldest = &go->held[0];
    for (size_t i = 0; i < PRB_GO_HELD && oldest->request; i++)
        if (!go->held[i].request || go->held[i].since < oldest->since)
            oldest = &go->held[i];
    release(oldest);
    return oldest;
}

static enum prb_go_answer hold(struct prb_go *go, const char *request, const char *id, char **out,
                               struct prb_error *err)
{
    unsigned char random[PRB_GO_NONCE / 2];
    struct prb_go_held *held = place(go);
    held->request = strdup(request);
    if (!held->request || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        release(held);
        prb_nomem(err);
        return PRB_GO_REFUSED;
    }
    prb_hex(random, sizeof random, held->nonce);
    snprintf(held->id, sizeof held->id, "%s", id);
    PRB_AUTO(json_t)
    json_t *ready = json_pack("{si s{ss ss}}", "v", 1, "ready", "id", id, "nonce", held->nonce);
    *out = ready ? json_dumps(ready, JSON_COMPACT) : NULL;
    held->since = boot_time();
    if (*out)
        return PRB_GO_READY;
    release(held);
    prb_nomem(err);
    return PRB_GO_REFUSED;
}

static bool is_signed(const struct prb_go *go, const struct prb_go_held *held, const json_t *text,
                      char who[PRB_NKEY_TEXT_SIZE], struct prb_error *err)
{
    unsigned char public[PRB_NKEY_BYTES], signature[PRB_NKEY_SIGNATURE];
    const char *key = json_string_value(json_object_get(text, "key"));
    const char *hex = json_string_value(json_object_get(text, "signature"));
    PRB_AUTO(prb_buf) struct prb_buf what = {0};
    if (!key || !prb_nkey_parse_public(key, public, NULL) ||
        !prb_unhex(hex, signature, sizeof signature))
        return prb_fail(err, PRB_PERMISSION, "the go is not signed");
    snprintf(who, PRB_NKEY_TEXT_SIZE, "%s", key);
    if (!go->trusted || memcmp(public, go->trusted, sizeof public) != 0)
        return prb_fail(err, PRB_PERMISSION,
                        "the go is signed by a key that this host's bus file "
                        "does not trust");
    return signed_text(held->id, go->agent, held->nonce, held->request, &what, err) &&
           prb_nkey_verify(public, what.data, what.len, signature, err);
}

static enum prb_go_answer run(struct prb_go *go, const json_t *text, const char *id, char **out,
                              char who[PRB_NKEY_TEXT_SIZE], struct prb_error *err)
{
    const char *nonce = json_string_value(json_object_get(text, "nonce"));
    double now = boot_time();
    for (size_t i = 0; nonce && i < PRB_GO_HELD; i++) {
        struct prb_go_held *held = &go->held[i];
        if (!held->request || strcmp(held->id, id) != 0 || strcmp(held->nonce, nonce) != 0)
            continue;
        bool late = now - held->since > PRB_GO_WITHIN;
        bool good = late ? prb_fail(err, PRB_TIMEOUT,
                                    "the go came %.1f s after it was asked for, "
                                    "and is not obeyed",
                                    now - held->since)
                         : is_signed(go, held, text, who, err);
        if (good)
            *out = PRB_STEAL(held->request);
        release(held); /* once, whatever it was */
        return good ? PRB_GO_RUN : PRB_GO_REFUSED;
    }
    prb_fail(err, PRB_PERMISSION, "no request waits for that go: it was used, or is too old");
    return PRB_GO_REFUSED;
}

enum prb_go_answer prb_go_take(struct prb_go *go, const char *data, size_t len, char **out,
                               char id_out[PRB_FLEET_ID], char who[PRB_NKEY_TEXT_SIZE],
                               struct prb_error *err)
{
    PRB_AUTO(json_t) json_t *object = json_loadb(data, len, 0, NULL);
    const char *prepare = json_string_value(json_object_get(object, "prepare"));
    const json_t *go_text = json_object_get(object, "go");
    const char *id = json_string_value(json_object_get(object, "id"));
    *out = NULL;
    id_out[0] = who[0] = '\0';
    if (!(prepare || go_text) || !id || strlen(id) != PRB_FLEET_ID - 1 ||
        id[strspn(id, "0123456789abcdef")]) {
        prb_fail(err, PRB_CORRUPT, "a request to act that is neither prepare nor go");
        return PRB_GO_REFUSED;
    }
    memcpy(id_out, id, PRB_FLEET_ID);
    return prepare ? hold(go, prepare, id, out, err) : run(go, go_text, id, out, who, err);
}
