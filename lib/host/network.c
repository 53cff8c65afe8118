/* What went over network interfaces: see network.h. */
#include "host/network.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define WORD 4        /* bytes: what an RDMA port counts its data in */
#define ANEW 60.0     /* s */
#define PORTS_MAX 256 /* of a device, and devices */

void prb_interfaces_deinit(struct prb_interfaces *interfaces) { free(interfaces->items); }

static struct prb_interface *add(struct prb_interfaces *out)
{
    if (!PRB_GROW(out->items, out->count, out->cap))
        return NULL;
    struct prb_interface *item = &out->items[out->count++];
    memset(item, 0, sizeof *item);
    return item;
}

enum { RX_BYTES, RX_PACKETS, RX_ERRORS, RX_DROPS, TX_BYTES = 8, TX_PACKETS, TX_ERRORS, TX_DROPS };
#define COUNTS (TX_DROPS + 1)

/* sscanf(3) takes several times as long. */
static bool read_counts(const char *at, uint64_t out[COUNTS])
{
    for (size_t i = 0; i < COUNTS; i++) {
        char *end;
        at += strspn(at, " ");
        out[i] = strtoull(at, &end, 10);
        if (end == at || *at < '0' || *at > '9')
            return false;
        at = end;
    }
    return true;
}

/* "name: bytes packets errs drop fifo frame compressed multicast", and the same of what was sent. */
bool prb_interfaces_parse(const char *text, struct prb_interfaces *out, struct prb_error *err)
{
    for (const char *line = text; line && *line;) {
        const char *colon = line + strcspn(line, ":\n");
        uint64_t counts[COUNTS];
        while (*line == ' ')
            line++;
        size_t len = (size_t)(colon - line);
        if (*colon == ':' && len < sizeof out->items->name && read_counts(colon + 1, counts)) {
            struct prb_interface *item = add(out);
            if (!item)
                return prb_nomem(err);
            memcpy(item->name, line, len);
            item->rx_bytes = (int64_t)counts[RX_BYTES];
            item->rx_packets = (int64_t)counts[RX_PACKETS];
            item->rx_errors = (int64_t)(counts[RX_ERRORS] + counts[RX_DROPS]);
            item->tx_bytes = (int64_t)counts[TX_BYTES];
            item->tx_packets = (int64_t)counts[TX_PACKETS];
            item->tx_errors = (int64_t)(counts[TX_ERRORS] + counts[TX_DROPS]);
        }
        line = strchr(colon, '\n');
        line += line != NULL;
    }
    return true;
}

static int64_t counter(const char *port, const char *name)
{
    char path[1024], text[64], *end;
    snprintf(path, sizeof path, "%s/counters/%s", port, name);
    if (prb_read_text(path, text, sizeof text) <= 0)
        return -1;
    long long value = strtoll(text, &end, 10);
    return end == text || value < 0 ? -1 : value;
}

static int64_t words(int64_t count)
{
    return count < 0 || count > INT64_MAX / WORD ? -1 : count * WORD;
}

static bool add_port(const char *device, const char *port, const char *folder,
                     struct prb_interfaces *out)
{
    char path[960];
    struct prb_interface *item = add(out);
    if (!item)
        return false;
    snprintf(path, sizeof path, "%s/%s/ports/%s", folder, device, port);
    snprintf(item->name, sizeof item->name, "%.40s/%.20s", device, port);
    item->rdma = true;
    item->rx_bytes = words(counter(path, "port_rcv_data"));
    item->tx_bytes = words(counter(path, "port_xmit_data"));
    item->rx_packets = counter(path, "port_rcv_packets");
    item->tx_packets = counter(path, "port_xmit_packets");
    item->rx_errors = counter(path, "port_rcv_errors");
    item->tx_errors = counter(path, "port_xmit_discards");
    return true;
}

static bool add_device(const char *device, const char *folder, struct prb_interfaces *out)
{
    char path[900];
    bool good = true;
    size_t count = 0;
    snprintf(path, sizeof path, "%s/%s/ports", folder, device);
    PRB_AUTO(dir) DIR *ports = opendir(path);
    const struct dirent *entry;
    while (good && ports && (entry = readdir(ports)) && count < PORTS_MAX)
        if (entry->d_name[0] != '.' && ++count)
            good = add_port(device, entry->d_name, folder, out);
    return good;
}

bool prb_interfaces_rdma(const char *folder, struct prb_interfaces *out, struct prb_error *err)
{
    bool good = true;
    size_t count = 0;
    PRB_AUTO(dir) DIR *devices = opendir(folder);
    const struct dirent *entry;
    while (good && devices && (entry = readdir(devices)) && count < PORTS_MAX)
        if (entry->d_name[0] != '.' && ++count)
            good = add_device(entry->d_name, folder, out);
    return good || prb_nomem(err);
}

static void look_anew(struct prb_interfaces_kept *kept)
{
    double now = prb_clock_s();
    if (now < kept->anew)
        return;
    kept->anew = now + ANEW;
    kept->no_rdma = false;
    if (kept->fd >= 0)
        close(kept->fd);
    kept->fd = -1;
}

bool prb_interfaces_read(struct prb_proc *proc, struct prb_interfaces_kept *kept,
                         struct prb_interfaces *out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (kept)
        look_anew(kept);
    if (!(kept && prb_proc_line(proc, "net/dev", &kept->fd, &text)) &&
        !prb_proc_text(proc, "net/dev", &text, err))
        return false;
    if (!prb_interfaces_parse(text.data, out, err))
        return false;
    if (kept && kept->no_rdma)
        return true;
    size_t before = out->count;
    bool good = prb_interfaces_rdma("/sys/class/infiniband", out, err);
    if (kept)
        kept->no_rdma = good && out->count == before;
    return good;
}
