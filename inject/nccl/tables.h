/* The plugin's rings: their columns in the order in which plugin.c fills them. */
#ifndef PRB_NCCL_TABLES_H
#define PRB_NCCL_TABLES_H

#define PRB_NCCL_COLLS "nccl_coll_perf"
#define PRB_NCCL_COLL_COLUMNS                                                                      \
    "timestamp:time\nts:integer\npid:integer\nrank:integer\ncomm_hash:integer\nn_ranks:integer\n"  \
    "coll_func:text\nseq:integer\nis_p2p:integer\npeer:integer\ncount:integer\n"                   \
    "msg_size_bytes:integer\ndtype:text\nalgo:text\nproto:text\nn_channels:integer\n"              \
    "exec_time_ns:integer\nenqueue_time_ns:integer\ntiming_source:text\nalgobw_gbps:real"
#define PRB_NCCL_PROXIES "nccl_proxy_ops"
#define PRB_NCCL_PROXY_COLUMNS                                                                     \
    "timestamp:time\nts:integer\npid:integer\nrank:integer\ncomm_hash:integer\ncoll_func:text\n"   \
    "seq:integer\nchannel_id:integer\npeer:integer\nis_send:integer\nn_steps:integer\n"            \
    "trans_bytes:integer\nduration_ns:integer\nsend_gpu_wait_ns:integer\n"                         \
    "send_peer_wait_ns:integer\nsend_wait_ns:integer\nrecv_wait_ns:integer\n"                      \
    "recv_flush_wait_ns:integer"
#define PRB_NCCL_QUEUES "nccl_net_qp"
#define PRB_NCCL_QUEUE_COLUMNS                                                                     \
    "timestamp:time\nts:integer\npid:integer\nrank:integer\ncomm_hash:integer\ndevice:integer\n"   \
    "qp_num:integer\nwr_id:integer\nopcode:integer\nlength:integer\npeer:integer\n"                \
    "is_send:integer\nduration_ns:integer"
#define PRB_NCCL_COUNTERS "nccl_profiler_counters"
#define PRB_NCCL_COUNTER_COLUMNS                                                                   \
    "timestamp:time\nts:integer\npid:integer\nrank:integer\ncoll:integer\np2p:integer\n"           \
    "proxy_op:integer\nproxy_step:integer\nkernel_ch:integer\nnet:integer\nrows_written:integer\n" \
    "pool_exhausted:integer\nwrite_errors:integer\nfiltered:integer\nunmatched:integer\n"          \
    "live:integer\ncap:integer"

#endif
