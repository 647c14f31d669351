// Package forward asks other servers about names that are not the cluster's.
//
// It owns: which server is asked, when another one is tried, and the cache of their answers. It may call miekg/dns and the network.
//
// Promises: equal questions that come together are asked once. The cache is bounded by entries and by bytes; an answer that
// has run out is given again for [staleMax] while no server answers. A truncated answer is asked for again by TCP. An answer to
// another question is no answer. A question never takes longer than [answerTimeout], and at most [flightsMax] are under way: further
// ones are refused. Its own address is never asked ([Forwarder.Looped] finds detours back to it).
//
// Tested over real sockets on loopback, and the cache in bubbles.
package forward
