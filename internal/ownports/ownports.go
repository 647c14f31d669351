package ownports

import "slices"

// tcp are the ports of the API, of gossip and of the agent.
var tcp = []int32{6443, 7946, 10250}

// HasTCP tells whether a TCP port is the cluster's.
func HasTCP(port int32) bool { return slices.Contains(tcp, port) }
