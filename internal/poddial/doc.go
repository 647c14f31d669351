// Package poddial is how a server asks a node's agent to connect it to a pod: one request that is answered with a
// switch of protocols, after which the connection is the pod's.
//
// It owns the words of that request and its client (Open). agent/api/kubeletapi answers it and server/peers asks it;
// nothing of ours is imported.
//
// Promises: what Open returns carries the pod's bytes only, and has deadlines; an answer of an agent is never
// read beyond [answerLimit]. Tested together with agent/api/kubeletapi.
package poddial
