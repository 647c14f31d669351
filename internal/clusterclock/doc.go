// Package clusterclock is the time of one cluster: the process's, plus what somebody has let pass.
//
// It owns Clock, which the root package makes for each cluster in memory and hands to the servers, their loops and the
// simulated nodes, as k8s.io/utils/clock's interfaces, so that several clusters of a process have times of their own.
// Wait lets time pass by any such clock.
// What has to do with the process or the wire (Raft's elections, timeouts of requests, pauses before a refused request
// is sent again) goes by the process's time.
//
// It promises that time never goes back, and that whoever waits for a moment is woken when the clock has reached it,
// whether it got there by itself, by Advance or by Jump. It is tested with tables in a testing/synctest bubble.
package clusterclock
