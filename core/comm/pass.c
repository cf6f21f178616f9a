/* pass.c: rank 0 passes the file of the shared memory to the other ranks, over Unix sockets.
 *
 * The file has no name: nothing remains if a rank is killed, and no other program can open it. Each rank listens on a socket
 * whose name the kernel chooses, and sends the name to rank 0. The kernel reports the user at the other end of a Unix socket,
 * so that neither side talks to another user's process, whatever it received over TCP. */
#include "comm/socket.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/small.h"

#define PASS_QUEUE 4 /* rank 0 connects twice */

static bool pass_same_user(int socket)
{
    struct ucred other;
    socklen_t size = sizeof other;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

static int pass_close(int socket, int error)
{
    close(socket);
    errno = error;
    return -1;
}

int ggi_comm_pass_listen(struct comm_pass_name *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof address.sun_family; /* no name: the kernel chooses one */
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -1;
    memset(name, 0, sizeof *name);
    if (bind(made, (struct sockaddr *)&address, size) || listen(made, PASS_QUEUE))
        return pass_close(made, errno);
    size = sizeof address;
    if (getsockname(made, (struct sockaddr *)&address, &size))
        return pass_close(made, errno);
    name->size = (uint32_t)(size - offsetof(struct sockaddr_un, sun_path));
    if (name->size > sizeof name->path)
        return pass_close(made, ENAMETOOLONG);
    memcpy(name->path, address.sun_path, name->size);
    return made;
}

static int pass_connect(const struct comm_pass_name *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = name->size < sizeof name->path ? name->size : sizeof name->path;
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -1;
    memcpy(address.sun_path, name->path, length);
    address.sun_path[0] = 0; /* a name that the kernel chose, never a path in the file system */
    if (connect(made, (struct sockaddr *)&address, size))
        return pass_close(made, errno);
    return pass_same_user(made) ? made : pass_close(made, EPERM);
}

/* One byte, with room for a descriptor. */
struct pass_message {
    char byte;
    struct iovec data;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct msghdr head;
};

static void pass_message_init(struct pass_message *message)
{
    memset(message, 0, sizeof *message);
    message->data = (struct iovec){.iov_base = &message->byte, .iov_len = 1};
    message->head = (struct msghdr){.msg_iov = &message->data,
                                    .msg_iovlen = 1,
                                    .msg_control = message->control,
                                    .msg_controllen = sizeof message->control};
}

static bool pass_write(int socket, int file)
{
    struct pass_message message;
    pass_message_init(&message);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message.head);
    *head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &file, sizeof file);
    return sendmsg(socket, &message.head, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

bool ggi_comm_pass_send(const struct comm_pass_name *name, int file)
{
    const int made = pass_connect(name);
    if (made < 0)
        return false;
    const bool good = file < 0 || pass_write(made, file);
    pass_close(made, errno);
    return good;
}

/* -1: it has sent none, or is another user. */
static int pass_read(int socket)
{
    int file = -1;
    struct pass_message message;
    pass_message_init(&message);
    if (!pass_same_user(socket) ||
        recvmsg(socket, &message.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
        return -1;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message.head);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof file))
        memcpy(&file, CMSG_DATA(head), sizeof file);
    return file;
}

int ggi_comm_pass_receive(int listener)
{
    int made, file = -1;
    while (file < 0 && (made = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        file = pass_read(made);
        close(made);
    }
    return file;
}
