/* sim_control.h: controls of a simulated vendor library, for tests that reach them with dlsym. */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#pragma GCC visibility push(default)

/* The number of calls of the vendor function of that exact name in this process. */
int sim_calls(const char *name);

/* Passes each vendor function that was called in this process, and the number of its calls. */
void sim_each_call(void (*visit)(const char *name, int calls, void *data), void *data);

/* The number of live objects of a kind: stream event context pool graph exec device pinned managed
 * registered. -1 for an unknown kind. */
int sim_alive(const char *kind);

/* Replaces the fault rules with those of spec, "name:nth[+][=code],..."; NULL or "" removes all
 * rules. The nth call is counted from this call on. */
void sim_fail(const char *spec);

/* Count a call of another simulated library, and return the code with which it should fail; 0: it should not. */
int sim_inject(const char *name);

/* The number of host functions in live graphs that are @p function, and whose data @p mine accepts. It stands for the user
 * objects by which another library would count them. */
int sim_captured(void (*function)(void *data), int (*mine)(const void *data, const void *of),
                 const void *of);

/* Visit what unfinished commands and live graphs have: the first byte of a copy's source and destination, and the data of a host
 * function. @p visit calls nothing of the driver. */
void sim_each_use(void (*visit)(const void *address));

/* @p function stands for a kernel of another library, though it is queued as a host function: those of two streams run at the
 * same time. */
void sim_is_kernel(void (*function)(void *data));

/* Whether a device is lost: its work is dropped, and host functions in it do not run. */
int sim_lost(void);

/* While on, no queued work runs: queries return "not ready" and waits block. */
void sim_hold(int on);

/* How many unfinished commands a stream of CUDA or HIP has room for: a call that queues one more waits until one has finished.
 * 0: any number. The vendors' streams have room for about a thousand. */
void sim_room(int commands);

/* The number of calls that wait for room. */
int sim_waiting(void);

/* CUDA: while a call waits for room, the queries of other threads wait in the driver, too. NVIDIA's driver 580 does this on an H200. */
void sim_room_blocks(int on);

/* Level Zero: "" if modules are built and run by the OpenCL library that GPUGLUE_SIM_OPENCL names; else the reason. */
const char *sim_opencl_missing(void);

#pragma GCC visibility pop

#endif
