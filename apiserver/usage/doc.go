// Package usage is metrics.k8s.io: what nodes and pods use now, as metrics-server tells it, with nothing installed.
//
// It owns the kinds NodeMetrics and PodMetrics, which are computed and never stored, and the figures behind them.
// A Meter asks each node's agent for its summary (Source), checks what it says, and keeps the rate of CPU and the memory
// of the last answer. The rate is the agent's own, between its last two samples, or between two answers of a node that
// computes none. Package server makes it, runs it (Run) and hands it to the API
// (Kinds); the source is server/peers.
//
// Every server measures for itself, and only while somebody asks it: the first request starts the rounds, and five
// minutes after the last one they end and the figures are forgotten. So an idle cluster does no work, no server
// depends on another, and a leader that changes loses nothing but one round. A cluster with HorizontalPodAutoscalers
// is not idle: their controller asks the leader every 15 seconds. The first request waits for the first round.
//
// Promises: an answer speaks of the pods that are bound to its node, by uid, and of nothing else; a figure that is
// negative, too large or no number, an old one, and one of another clock are dropped, and a pod of which one
// container is unknown is left out rather than counted too low; a node that says nothing new for a minute has no
// metrics. Containers, bytes (by the source), time and rounds are limited by the constants here.
//
// An APIService v1beta1.metrics.k8s.io with a service takes the whole group over (apiserver/aggregation).
//
// The checks and rates are tested by tables and by hostile answers, the rounds in bubbles, the API by scripts.
package usage
