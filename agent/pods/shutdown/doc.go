// Package shutdown ends the pods of a machine that is about to shut down, by their priorities.
//
// It owns: the lock by which systemd-logind waits for us, and the order in which pods end. It may call: agent/pods, through
// the interface in Config, the recorder, and logind over the system's D-Bus.
//
// How it works, as a kubelet: while the agent runs it holds a lock of the kind "delay". When logind says that it prepares for
// a shutdown, pods end group by group, the least priorities first; each group has its own time. Then the lock goes and the
// machine goes on. A shutdown that is called off takes the lock again. End does the same for an agent that is told to stop and
// was asked to take its pods with it.
//
// Promises: without periods nothing is done, and no pod ends because the agent does. Machines without logind are no error:
// they are asked again now and then.
//
// Groups are tested with tables, the order in a synctest bubble, logind by a stand-in that speaks D-Bus on a socket.
package shutdown
