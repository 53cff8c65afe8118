/*
 * What went over a process's network interfaces, and over the machine's RDMA ports, since these
 * began: /proc/PID/net/dev, proc_pid_net(5); /sys/class/infiniband/DEVICE/ports/PORT/counters,
 * Linux Documentation/ABI/stable/sysfs-class-infiniband.
 */
#ifndef PRB_HOST_NETWORK_H
#define PRB_HOST_NETWORK_H

#include "proc/proc.h"

struct prb_interface {
    char name[64]; /* an RDMA port: DEVICE/PORT */
    bool rdma;
    int64_t rx_bytes, tx_bytes; /* -1: not known, as all below */
    int64_t rx_packets, tx_packets;
    int64_t rx_errors, tx_errors; /* errors and drops */
};

struct prb_interfaces {
    struct prb_interface *items;
    size_t count, cap;
};
void prb_interfaces_deinit(struct prb_interfaces *interfaces);
PRB_DEFINE_AUTO(prb_interfaces, struct prb_interfaces, prb_interfaces_deinit)

/* For who asks again and again: a descriptor, and that the machine has no RDMA, which is looked at
 * anew once in a minute; so is which network namespace the process is in. */
struct prb_interfaces_kept {
    int fd;      /* -1: none */
    double anew; /* s, monotonic */
    bool no_rdma;
};
/* Of the network namespace of the process, and, where the machine has any, of RDMA ports.  kept: or
 * NULL. */
bool prb_interfaces_read(struct prb_proc *proc, struct prb_interfaces_kept *kept,
                         struct prb_interfaces *out, struct prb_error *err);
/* The text of net/dev. */
bool prb_interfaces_parse(const char *text, struct prb_interfaces *out, struct prb_error *err);
/* Ports below a folder such as /sys/class/infiniband; one that is not there has none. */
bool prb_interfaces_rdma(const char *folder, struct prb_interfaces *out, struct prb_error *err);

#endif
