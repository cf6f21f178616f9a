/* Controls of a simulated vendor library, for tests that reach them with dlsym. */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#pragma GCC visibility push(default)

/* How often the vendor function of that exact name was called in this process. */
int sim_calls(const char *name);

/* How many objects of a kind are alive: stream event context pool graph exec device pinned managed
 * registered. An unknown kind is -1. */
int sim_alive(const char *kind);

/* Replaces the fault rules by those of spec, "name:nth[+][=code],..."; NULL or "" removes all.
 * Calls are counted from here on. */
void sim_fail(const char *spec);

/* While on, no queued work runs: queries say "not ready" and waits block until it is off. */
void sim_hold(int on);

#pragma GCC visibility pop

#endif
