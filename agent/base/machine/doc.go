// Package machine makes a container fit to be a node: an init that reaps, and a
// file system on which pods can be run. It also tells what else runs and is mounted
// on this machine.
//
// cmd/setpoint calls Init before anything else and Prepare before the agent starts; outside a container (when
// this process is not PID 1) both do nothing. agent/host calls SpareFromOOM for every process that manages real
// pods. agent/reset asks for Processes and unmounts with UnmountBelow. It may call nothing of ours.
//
// Promises: Init passes signals on and ends with the exit code of its child;
// Prepare changes only this mount namespace. Parsing is tested by tables, Process with
// the test's own; the rest by the compose cluster, whose agents are such containers.
package machine
