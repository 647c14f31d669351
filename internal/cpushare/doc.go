// Package cpushare divides the processor time of a server, or of a node's port, among its tenants, so that one whose requests never end
// does not slow everybody else's down.
//
// It owns a Share, of which a server has one and a node's port another. The request chain of package apiserver lets each request of a
// client Wait before it takes a seat of priority and fairness, and charges what it turned out to cost. The connections of the API's port
// are charged with what comes in on them (Read), so that a flood below HTTP, or of requests that are taken back at once, waits as well.
// Administrators, servers, nodes and what runs in kube-system (shares.Holder.Privileged) never wait.
//
// Seats alone do not do it: a request for one object takes about 0.1 ms of a processor, most of it for TLS and HTTP, before and after
// its seat. So eight connections on which requests follow each other without a pause keep a processor busy while they hold one seat,
// and Go's scheduler gives each of them 10 ms before somebody else's turn comes.
//
// The rule is that of package shares, in time: one tenant gets half of the processors, two get a third each, and whoever comes next
// finds as much as the others have. A request costs units, and each tenant has a time from which it may go on (the generic cell rate
// algorithm of ATM, ITU-T I.371): a request moves that time on by its units times their price. The price is what the whole process has
// spent for a unit lately, so it includes what no request can be charged with, such as handshakes and the garbage collector. While
// the processors are mostly idle nobody waits.
//
// Busy means that work of this process holds the processors: it runs on them, or could run and waits for others. So a Sample has not only
// the time that threads have run, but also the time that they waited on the kernel's run queues (/proc/self/task/*/schedstat), and a part
// of what was stolen from a virtual machine; and a quota of the control group is as many processors. All that a tenant holds in this way
// counts: one tenant's work runs and waits on half of the processors at most. Seen on two processors beside compilers: a server with 300
// watches of one object ran 0.2 to 0.4 and waited 1.9 to 2.6 at any time, with 200 requests a second it ran 0.1 and waited 0.6 to 0.8,
// and idle it did neither (0.00 and 0.04). By the time that it ran alone it was never busy. Other signals tell less: pressure (PSI) says
// that some thread waits, of a system or a group, not how many do; /proc/self/schedstat is of one thread; cpu.stat's throttled time is in
// a group's own file and knows a quota only, and those threads wait on run queues too; and how long goroutines wait for Go's scheduler
// grows with every event that wakes hundreds of them, also on an idle machine. Elsewhere than on Linux only the time that the process ran
// is known.
//
// A request may compute for long: a list of thousands of objects, a patch of a large one. Go's scheduler gives each such goroutine 10 ms
// before somebody else's turn comes, so others would wait for that times their number. A Long takes turns: those of a tenant compute on
// half of the processors at most, one at least, and he is charged with what the thread has used. A write has its seat of priority and
// fairness before its turn, and so must all others.
//
// Promises: Wait and Read take constant time and never more than waitMax; who would wait longer, or is one of more than waitingMax of his
// tenant, gets a *BusyError at once. What is kept grows with the tenants of the last tenth of a second. A Share is safe for concurrent
// use. Tested in bubbles, with processors that handlers of fake time wait for.
package cpushare
