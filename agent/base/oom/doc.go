// Package oom tells of processes that the kernel has ended because the machine had no memory left, and not because their own group
// had reached its limit, as a kubelet does in its event SystemOOM.
//
// It owns: which lines of the kernel's log mean that (upstream's rules), and the event. Package agent runs it on real nodes. It may
// call: the recorder in Config, which bounds how many events there are.
//
// Promises: Run ends with its context; it keeps one kill in memory, however long the kernel's report of it is. Only what the kernel
// itself wrote counts, and only what it writes after Run has begun: an agent that is started anew tells nothing twice. Of a report
// with lines that were overwritten before they were read nothing is told, because the line that says whose limit it was may be among
// them.
//
// Tested with a log that is made up; the reports in the tables are those of the kernels 4.19 and 6.12.
package oom
