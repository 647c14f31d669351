// Package shares divides what a process has a limited number of among tenants, so that none of them takes all of it.
//
// It owns the rule (Limits.Fits), places that are taken or refused (Places) or waited for (Turns), the division of lists (Divide), and
// metrics. So are shared: watches and streams, seats of priority and fairness, streams and connections to pods, requests at nodes' ports,
// image pulls, questions to the DNS, and connections by their source and tenant. It calls internal/clip.
//
// A tenant is a user, or all service accounts of a namespace together: whoever may edit a namespace can make as many accounts in it as he
// likes. On a node it is the namespace of a pod. Administrators and the parts of the control plane are privileged: they never wait for
// tenants.
//
// The rule: a tenant gets another place only if it then has no more of them than were left before. So one tenant gets
// half of all places, two get a third each, and whoever comes next finds as many as the others have. It is the dynamic
// threshold of Choudhury and Hahne ("Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM
// Transactions on Networking 6(2), 1998), with the factor 1, or Limits.Factor. Nobody loses a place that he has.
//
// Promises: taking and giving back take constant time; what is kept grows with the places that are taken and nothing else. Tested with
// tables, and with generated tenants that come and go.
package shares
