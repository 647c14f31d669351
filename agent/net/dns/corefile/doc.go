// Package corefile reads the part of CoreDNS's configuration that people use.
//
// It owns: which directives are honoured, which say what the server does in any case, and what is told of all others. It may call the
// standard library only.
//
// Promises: it is pure. A directive is honoured, or named in a [Problem] with its line; what can be read is in force beside what
// cannot. A file larger than [bytesMax] is refused.
//
// Honoured are: blocks of zones ("example.com:53 { … }"), forward (with except, force_tcp), hosts (inline, with ttl and fallthrough), cache TTL,
// rewrite name (exact, prefix, suffix, substring, regex), log. What stands for what is done in any case: errors, health, ready, prometheus,
// loop, reload, loadbalance, kubernetes, bind, lameduck.
//
// Tested with tables and by fuzzing.
package corefile
