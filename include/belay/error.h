/* Errors: one list, in a negative range that differs from errno and libuv. */
#ifndef BELAY_ERROR_H
#define BELAY_ERROR_H

#include "belay/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The list: X(NAME, value, retryable, text). retryable is the result of belay_err_retryable().
 *
 * EWRONGTYPE: a key that the call uses has another type, or holds a value that belay did not
 * write, for example a number that is NaN, infinite or a fraction. Nothing was written, and the
 * connection stays. belay_detail() names the key, or the first of several. Some functions answer
 * EMISMATCH instead, as their headers say.
 *
 * EPROTO: belay cannot read the reply. If the reply is one that no server gives to this command,
 * the connection is dropped too.
 *
 * ENOMEM and EBUSY can be returned by a function, and can be the status of a callback: an operation
 * can need memory or a place in a queue after it began. ENOMEM can also come when the reply cannot
 * be copied, so the server may have executed the operation.
 *
 * EPERM: the server executed nothing, with one exception. A script whose user lacks the right to
 * one of its commands may have written before that command. belay_detail() names the command or
 * the script's line.
 *
 * A temporary refusal is not reported while there is time: ELOADING, ESCRIPTBUSY, ECLUSTERDOWN (of
 * CLUSTERDOWN, MASTERDOWN and TRYAGAIN) and EREADONLY are retried until the deadline of the
 * operation. Exceptions: belay_idgen_t, whose commands must follow each other, and operations with
 * a policy for a server that is away. EOOM, EMISCONF and ENOREPLICAS end an operation at once. */
#define BELAY_ERRORS(X)                                                                            \
  /* The call was wrong; it started nothing. If a function returned it, no callback runs. */       \
  X(EINVAL, -20001, 0, "an argument or option is out of its range")                                \
  X(EURL, -20002, 0, "the URL is malformed")                                                       \
  X(ENOMEM, -20003, 1, "out of memory")                                                            \
  X(ESTATE, -20004, 0, "the handle is not in a state for this call")                               \
  X(ECLOSING, -20005, 0, "the handle, its client or its belay_t is closing")                       \
  X(EFORK, -20006, 0, "this process is a fork of the one that opened the handle")                  \
  X(EBUSY, -20007, 1, "too many calls or bytes are pending")                                       \
  X(ESYSTEM, -20008, 1, "the operating system refused a resource")                                 \
  X(ESINGLE, -20009, 0, "this works on one server, and not on a quorum of them")                   \
  X(EAGAIN, -20010, 0, "local data cannot answer this: ask the server")                            \
  /* How an operation ended. */                                                                    \
  X(ECANCELED, -20020, 0, "canceled")                                                              \
  X(ETIMEDOUT, -20021, 1, "the time to wait is over")                                              \
  X(EHELD, -20022, 1, "another holder has it")                                                     \
  X(ENOTOWNER, -20023, 0, "this handle does not hold it")                                          \
  X(EEXPIRED, -20024, 1, "granted, but the reply came too late")                                   \
  X(EUNKNOWN, -20025, 0, "sent, and the reply is not known: it may have been executed")            \
  X(EUNREACHABLE, -20026, 1, "no server could be reached: the call was not sent")                  \
  X(ERESOLVE, -20027, 1, "the server's name does not resolve: the call was not sent")              \
  X(EPROTO, -20028, 0, "a reply was malformed or of an unexpected type")                           \
  X(ENOQUORUM, -20029, 1, "too few of the servers answered")                                       \
  X(EQUARANTINED, -20030, 1, "the server does not vote yet: it may have lost data lately")         \
  X(EDUPLICATE, -20031, 0, "two of the clients reach the same server")                             \
  X(EFENCED, -20032, 0, "a later holder has been here")                                            \
  X(ESHARED, -20033, 1, "another reader holds it")                                                 \
  X(EABSENT, -20034, 0, "it does not exist")                                                       \
  X(ELIMITED, -20035, 1, "the limiter does not allow it now")                                      \
  X(ELOAD, -20036, 1, "it could not be loaded")                                                    \
  X(ENOSENTINEL, -20037, 1, "no sentinel answers: the call was not sent")                          \
  X(ENOMASTER, -20038, 0, "no sentinel knows a primary by this name: the call was not sent")       \
  X(ESPLIT, -20039, 1, "several servers say that they are the primary: the call was not sent")     \
  /* The server refused, before executing anything; for EPERM see above. */                        \
  X(EAUTH, -20040, 0, "the server refused the user or password")                                   \
  X(EPERM, -20041, 0, "the user may not run this command")                                         \
  X(EWRONGTYPE, -20042, 0, "the key holds something else")                                         \
  X(EOOM, -20043, 1, "the server is over its memory limit")                                        \
  X(EMISCONF, -20044, 1, "the server cannot persist and refuses writes")                           \
  X(ENOREPLICAS, -20045, 1, "too few replicas have it, or the server has too few")                 \
  X(ELOADING, -20046, 1, "the server is loading its data")                                         \
  X(ESCRIPTBUSY, -20047, 1, "the server is busy running a script")                                 \
  X(EREADONLY, -20048, 1, "the server is a read-only replica")                                     \
  X(ECLUSTERDOWN, -20049, 1, "the cluster is down or being rearranged")                            \
  X(EMOVED, -20050, 0, "the key is on another node of a cluster")                                  \
  X(ECROSSSLOT, -20051, 0, "the keys are in different cluster slots")                              \
  X(EMAXCLIENTS, -20052, 1, "the server has too many clients")                                     \
  X(EREFUSED, -20053, 0, "the server refused the command")                                         \
  X(EMISMATCH, -20054, 0, "the server keeps another configuration for this")                       \
  X(EOVERFLOW, -20055, 0, "the number would leave its range")                                      \
  X(ELOST, -20056, 0, "the server has lost data of this object")                                   \
  X(ETLS, -20057, 0, "the TLS handshake failed: the call was not sent")

/** BELAY_EINVAL and so on; success is 0. */
typedef enum belay_error {
#define BELAY_ERROR_ENUM(name, value, retryable, text) BELAY_##name = (value),
  BELAY_ERRORS(BELAY_ERROR_ENUM)
#undef BELAY_ERROR_ENUM
} belay_error_t;

/** One line of text for an error, 0 included. The text is constant. A number that is not an error
 * of belay has a text that says so; the result is never NULL. */
BELAY_API const char *belay_strerror(int error);

/** The error's name without its prefix, such as "EHELD"; "OK" for 0, "E?" for any other number. */
BELAY_API const char *belay_err_name(int error);

/** 1 if the same call can succeed a little later, and a repetition does no harm; else 0. An unknown
 * outcome is not retryable: first find out what happened. */
BELAY_API int belay_err_retryable(int error);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ERROR_H */
