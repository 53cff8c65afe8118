/* Labels: texts that rows name by a number.  A table in fixed memory, looked up without a lock. */
#include <pthread.h>
#include <string.h>

#include "inject/probe/torch/torch.h"

struct prb_torch_label prb_torch_labels[PRB_TORCH_LABELS_MAX];
static atomic_uint count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Its eight bytes from i on; the last of them may hold some of those before, and a shorter text has one. */
static inline uint64_t word_at(const char *text, size_t len, size_t i)
{
    uint64_t word = 0;
    if (len >= sizeof word)
        memcpy(&word, text + (i + sizeof word <= len ? i : len - sizeof word), sizeof word);
    else
        for (; i < len; i++)
            word = word << 8 | (unsigned char)text[i];
    return word;
}

static inline uint64_t hash_of(const char *text, size_t len)
{
    uint64_t hash = len + 1;
    for (size_t i = 0; i < len; i += sizeof(uint64_t))
        hash = mixed(hash, word_at(text, len, i));
    return (hash ^ hash >> 32) | 1;
}

static inline bool is_same(const char *text, const char *other, size_t len)
{
    for (size_t i = 0; i < len; i += sizeof(uint64_t))
        if (word_at(text, len, i) != word_at(other, len, i))
            return false;
    return true;
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
static inline struct prb_torch_label *find(uint64_t hash, const char *text, size_t len,
                                           bool *is_new_out)
{
    for (size_t i = hash;; i++) {
        struct prb_torch_label *label = &prb_torch_labels[i & (PRB_TORCH_LABELS_MAX - 1)];
        if (label == prb_torch_labels) /* place 0 is nobody's */
            continue;
        uint64_t there = atomic_load_explicit(&label->hash, memory_order_acquire);
        *is_new_out = !there;
        if (!there || (there == hash && label->len == len && is_same(label->text, text, len)))
            return label;
    }
}

static void tell(const struct prb_torch_label *label)
{
    prb_torch_record_name(PRB_TRACE_KIND_LABEL, label - prb_torch_labels, label->text, label->len,
                          NULL, 0);
}

static struct prb_torch_label *add(uint64_t hash, const char *text, size_t len)
{
    bool is_new;
    pthread_mutex_lock(&lock);
    struct prb_torch_label *label = find(hash, text, len, &is_new);
    if (is_new && count == PRB_TORCH_LABELS_MAX / 2) {
        label = prb_torch_labels;
        is_new = false;
    }
    if (is_new) {
        memcpy(label->text, text, len);
        label->len = (unsigned char)len;
        label->stage = (unsigned char)stage_of(text, len);
        label->reduces = begins(text, len, "DistributedDataParallel.");
        label->users = label->stage == PRB_TRACE_SCOPE && !is_of_pytorch(text, len);
        count++;
        atomic_store_explicit(&label->hash, hash, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    if (is_new)
        tell(label);
    return label;
}

struct prb_torch_label *prb_torch_label_find(const char *text, size_t len)
{
    if (len > PRB_TORCH_LABEL_MAX)
        len = PRB_TORCH_LABEL_MAX;
    uint64_t hash = hash_of(text, len);
    bool is_new;
    struct prb_torch_label *label = find(hash, text, len, &is_new);
    return is_new ? add(hash, text, len) : label;
}

void prb_torch_label_class(unsigned label, char out[PRB_TORCH_LABEL_MAX + 1])
{
    const char *name = strchr(prb_torch_labels[label].text, '#'),
               *end = name ? strrchr(name, '.') : NULL;
    size_t len = end ? (size_t)(end - name - 1) : 0;
    if (len)
        memcpy(out, name + 1, len);
    out[len] = '\0';
}

void prb_torch_labels_begin(void)
{
    prb_torch_labels[0].stage = PRB_TRACE_SCOPE;
    for (unsigned i = 0; i < PRB_TORCH_LABELS_MAX; i++)
        atomic_store(&prb_torch_labels[i].seen, 0);
}

void prb_torch_labels_tell(void)
{
    for (unsigned i = 1; i < PRB_TORCH_LABELS_MAX; i++)
        if (atomic_load_explicit(&prb_torch_labels[i].hash, memory_order_acquire))
            tell(&prb_torch_labels[i]);
}

void prb_torch_labels_forked(void) { lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }
