/* A question for one connection by sock_diag(7); where a sandbox keeps that from us, the rows of
 * proc_pid_net(5), all of them. */
#include "net/owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

/* The addresses of a connection: here, and at its other end. */
struct ends {
    struct sockaddr_storage mine, its;
};

/* The kernel's states of TCP; who shut his side alone (nc -N) still has his socket. */
static bool is_connected(unsigned state)
{
    enum { ESTABLISHED = 1, FIN_WAIT1 = 4, FIN_WAIT2 = 5 };
    return state == ESTABLISHED || state == FIN_WAIT1 || state == FIN_WAIT2;
}

/* ---- sock_diag ---- */

/* Into the words of a question: an address of IPv4 that IPv6 carries is one of IPv4. */
static bool put_address(const struct sockaddr_storage *address, __be32 words[4], __be16 *port)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    bool mapped = address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    *port = address->ss_family == AF_INET ? v4->sin_port : v6->sin6_port;
    if (address->ss_family == AF_INET)
        words[0] = v4->sin_addr.s_addr;
    else if (mapped)
        memcpy(words, v6->sin6_addr.s6_addr + 12, 4);
    else
        memcpy(words, &v6->sin6_addr, 16);
    return address->ss_family == AF_INET || mapped;
}

/* 1: found; 0: there is none; -1: we cannot ask so. */
static int ask_kernel(const struct ends *ends, uid_t *uid_out, unsigned long *inode_out)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 asked;
    } question = {.head = {.nlmsg_len = sizeof question,
                           .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                           .nlmsg_flags = NLM_F_REQUEST},
                  .asked = {.sdiag_protocol = IPPROTO_TCP,
                            .idiag_states = ~0u,
                            .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } answer;
    struct inet_diag_sockid *id = &question.asked.id;
    bool four = put_address(&ends->its, id->idiag_src, &id->idiag_sport);
    question.asked.sdiag_family = four ? AF_INET : AF_INET6;
    put_address(&ends->mine, id->idiag_dst, &id->idiag_dport);
    PRB_AUTO_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0 || send(fd, &question, sizeof question, 0) != (ssize_t)sizeof question)
        return -1;
    ssize_t n = recv(fd, &answer, sizeof answer, MSG_DONTWAIT); /* it is answered within send() */
    if (n < (ssize_t)sizeof answer.head || !NLMSG_OK(&answer.head, (unsigned)n))
        return -1;
    if (answer.head.nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *error = NLMSG_DATA(&answer.head);
        return n >= (ssize_t)NLMSG_LENGTH(sizeof *error) && error->error == -ENOENT ? 0 : -1;
    }
    const struct inet_diag_msg *told = NLMSG_DATA(&answer.head);
    if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || n < (ssize_t)NLMSG_LENGTH(sizeof *told))
        return -1;
    *uid_out = told->idiag_uid;
    *inode_out = told->idiag_inode;
    return is_connected(told->idiag_state) && told->idiag_inode;
}

/* ---- /proc ---- */

#define PLACE_MAX 48 /* "ADDRESS:PORT" in hexadecimal, with the NUL */

/* As in a row of /proc/net/tcp (or tcp6: six): the address as words in the byte order of the CPU,
 * and the port. */
static bool place_of(const struct sockaddr_storage *address, bool six, char place[PLACE_MAX])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    uint32_t words[4] = {0, 0, htonl(0xffff), 0};
    unsigned port = address->ss_family == AF_INET ? ntohs(v4->sin_port) : ntohs(v6->sin6_port);
    if (address->ss_family == AF_INET)
        words[3] = v4->sin_addr.s_addr;
    else
        memcpy(words, &v6->sin6_addr, sizeof words);
    if (six)
        snprintf(place, PLACE_MAX, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
                 port);
    else
        snprintf(place, PLACE_MAX, "%08X:%04X", words[3], port);
    return six || address->ss_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
}

/* The owner of the socket with these local and remote addresses. */
static bool find_owner(const char *path, const char *its, const char *other, uid_t *uid_out,
                       unsigned long *inode_out)
{
    PRB_AUTO(file) FILE *file = fopen(path, "re");
    PRB_AUTO_FREE char *line = NULL;
    size_t size = 0;
    char local[PLACE_MAX], remote[PLACE_MAX];
    unsigned state, uid;
    unsigned long inode;
    while (file && getline(&line, &size, file) > 0)
        if (sscanf(line, "%*s %47s %47s %x %*s %*s %*s %u %*s %lu", local, remote, &state, &uid,
                   &inode) == 5 &&
            is_connected(state) && inode && strcmp(local, its) == 0 && strcmp(remote, other) == 0) {
            *uid_out = uid;
            *inode_out = inode;
            return true;
        }
    return false;
}

static bool read_rows(const struct ends *ends, uid_t *uid_out, unsigned long *inode_out)
{
    static const char *const paths[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
    char here[PLACE_MAX], there[PLACE_MAX];
    for (int six = 0; six < 2; six++)
        if (place_of(&ends->its, six, there) && place_of(&ends->mine, six, here) &&
            find_owner(paths[six], there, here, uid_out, inode_out))
            return true;
    return false;
}

bool prb_socket_owner(int fd, uid_t *uid_out, unsigned long *inode_out)
{
    struct ends ends = {0};
    socklen_t mine = sizeof ends.mine, its = sizeof ends.its;
    if (getsockname(fd, (struct sockaddr *)&ends.mine, &mine) != 0 ||
        getpeername(fd, (struct sockaddr *)&ends.its, &its) != 0 ||
        (ends.its.ss_family != AF_INET && ends.its.ss_family != AF_INET6))
        return false;
    int found = ask_kernel(&ends, uid_out, inode_out);
    return found < 0 ? read_rows(&ends, uid_out, inode_out) : found;
}
