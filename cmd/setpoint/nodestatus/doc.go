// Package nodestatus is the screen of `setpoint node status`: what runs on nodes, what it costs, what is under pressure, what
// waits for which image, and how a node's pods reach those of others.
//
// It owns the report and its table. cmd/setpoint calls it with a client of the API; nodes are asked through that for
// /stats/summary. Promises: a node that does not answer is shown all the same, and keeps others for three seconds at
// most; nothing is written. Tested with objects and a summary made in the test, and by the script evicted with a real node.
package nodestatus
