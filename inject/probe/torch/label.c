/*
 * Labels: texts that rows name by a number.  A table in fixed memory; looked up without a lock, as
 * an entry never changes once its hash stands in it.
 */
#include <pthread.h>
#include <string.h>

#include "inject/probe/torch/torch.h"

#define LABELS_MAX 2048 /* a power of two; half of it is used */

struct label {
    _Atomic uint64_t hash; /* 0: free */
    bool users, reduces;
    atomic_uint seen; /* collectives of that name */
    unsigned char stage, len;
    char text[PRB_TORCH_LABEL_MAX + 1];
};

static struct label labels[LABELS_MAX];
static atomic_uint count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Eight bytes at a time; the last eight may hold some of those before. */
static uint64_t hash_of(const char *text, size_t len)
{
    uint64_t hash = len + 1, word = 0;
    size_t i = 0;
    for (; i + sizeof word < len; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        hash = mixed(hash, word);
    }
    if (len >= sizeof word)
        memcpy(&word, text + len - sizeof word, sizeof word);
    for (; len < sizeof word && i < len; i++)
        word = word << 8 | (unsigned char)text[i];
    hash = mixed(hash, word);
    return (hash ^ hash >> 32) | 1;
}

/* ---- what it is ---- */

static bool has(const char *text, size_t len, const char *what)
{
    return memmem(text, len, what, strlen(what)) != NULL;
}

static bool begins(const char *text, size_t len, const char *what)
{
    return len >= strlen(what) && memcmp(text, what, strlen(what)) == 0;
}

/* The names that PyTorch gives: torch/optim/optimizer.py, torch/utils/data/dataloader.py,
 * torch/csrc/distributed/c10d (BACKEND:OPERATION). */
static enum prb_trace_stage stage_of(const char *text, size_t len)
{
    static const char *const backends[] = {"gloo:", "nccl:", "mpi:", "ucc:", "xccl:", "hccl:"};
    if (begins(text, len, "Optimizer.step#"))
        return PRB_TRACE_OPTIMIZER;
    if (begins(text, len, "Optimizer.zero_grad#"))
        return PRB_TRACE_ZERO_GRAD;
    if (begins(text, len, "enumerate(DataLoader)#"))
        return PRB_TRACE_DATA;
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (begins(text, len, backends[i]) && !has(text, len, " "))
            return PRB_TRACE_COLLECTIVE;
    return PRB_TRACE_SCOPE;
}

/* Labels that PyTorch and the libraries around it open themselves; any other one is the user's. */
static bool is_of_pytorch(const char *text, size_t len)
{
    static const char *const beginnings[] = {"DistributedDataParallel.",
                                             "FullyShardedDataParallel.",
                                             "FSDP::",
                                             "Torch-Compiled Region",
                                             "Pregraph bytecode",
                                             "TorchDynamo",
                                             "aten::",
                                             "c10d::",
                                             "autograd::",
                                             "torch::",
                                             "ProfilerStep#",
                                             "[pl]",
                                             "## ",
                                             "nccl:",
                                             "PipelineStage"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (begins(text, len, beginnings[i]))
            return true;
    return false;
}

/* ---- the table ---- */

/* Its place, or the free one where it would be; somebody else may take that at any time. */
static struct label *find(uint64_t hash, const char *text, size_t len, bool *is_new_out)
{
    for (size_t i = hash;; i++) {
        struct label *label = &labels[i & (LABELS_MAX - 1)];
        if (label == labels) /* place 0 is nobody's */
            continue;
        uint64_t there = atomic_load_explicit(&label->hash, memory_order_acquire);
        *is_new_out = !there;
        if (!there || (there == hash && label->len == len && !memcmp(label->text, text, len)))
            return label;
    }
}

static void tell(unsigned number)
{
    const struct label *label = &labels[number];
    prb_torch_record_name(PRB_TRACE_KIND_LABEL, number, label->text, label->len, NULL, 0);
}

static unsigned add(uint64_t hash, const char *text, size_t len)
{
    unsigned number = 0;
    pthread_mutex_lock(&lock);
    bool is_new;
    struct label *label = find(hash, text, len, &is_new);
    if (!is_new || count < LABELS_MAX / 2) {
        number = (unsigned)(label - labels);
        if (is_new) {
            memcpy(label->text, text, len);
            label->len = (unsigned char)len;
            label->stage = (unsigned char)stage_of(text, len);
            label->reduces = begins(text, len, "DistributedDataParallel.");
            label->users = label->stage == PRB_TRACE_SCOPE && !is_of_pytorch(text, len);
            count++;
            atomic_store_explicit(&label->hash, hash, memory_order_release);
        }
    }
    pthread_mutex_unlock(&lock);
    if (is_new && number)
        tell(number);
    return number;
}

unsigned prb_torch_label(const char *text, size_t len)
{
    if (len > PRB_TORCH_LABEL_MAX)
        len = PRB_TORCH_LABEL_MAX;
    uint64_t hash = hash_of(text, len);
    bool is_new;
    const struct label *label = find(hash, text, len, &is_new);
    return is_new ? add(hash, text, len) : (unsigned)(label - labels);
}

bool prb_torch_label_reduces(unsigned label) { return labels[label].reduces; }

enum prb_trace_stage prb_torch_label_stage(unsigned label)
{
    return label ? labels[label].stage : PRB_TRACE_SCOPE;
}

unsigned prb_torch_label_next(unsigned label) { return atomic_fetch_add(&labels[label].seen, 1); }

void prb_torch_label_class(unsigned label, char out[PRB_TORCH_LABEL_MAX + 1])
{
    const char *name = strchr(labels[label].text, '#'), *end = name ? strrchr(name, '.') : NULL;
    size_t len = end ? (size_t)(end - name - 1) : 0;
    if (len)
        memcpy(out, name + 1, len);
    out[len] = '\0';
}

const char *prb_torch_label_users(unsigned label)
{
    return labels[label].users ? labels[label].text : NULL;
}

void prb_torch_labels_begin(void)
{
    for (unsigned i = 0; i < LABELS_MAX; i++)
        atomic_store(&labels[i].seen, 0);
}

void prb_torch_labels_tell(void)
{
    for (unsigned i = 1; i < LABELS_MAX; i++)
        if (atomic_load_explicit(&labels[i].hash, memory_order_acquire))
            tell(i);
}

void prb_torch_labels_forked(void) { lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }
