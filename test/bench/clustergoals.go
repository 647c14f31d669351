package main

// clusterGoals are the figures of three server processes that share this machine;
// cluster.sh measures them. The baseline is what the same harness measured of three
// control planes of the upstream parts with etcd.
var clusterGoals = []goal{
	{"three servers, create ConfigMap of 1 KiB, 64 clients (≥ 4480, aim 6720)", "write create 64", "ops_per_s", "/s", 0, 1120},
	{"  p99", "write create 64", "p99_ms", "ms", 50, 150},
	{"  servers' processor time (aim 160)", "write create 64", "server_cpu_us_per_op", "µs", 265, 1590},
	{"    as a multiple of a server that does nothing", "write create 64", "over_floor", "times", 0, 0},
	{"  update", "write update 64", "ops_per_s", "/s", 0, 0},
	{"  delete", "write delete 64", "ops_per_s", "/s", 0, 0},
	{"  create, 1 client (≥ 384)", "write create 1", "ops_per_s", "/s", 0, 256},
	{"  GET, 64 clients (≥ 9720, aim 14580)", "read get 64", "ops_per_s", "/s", 0, 2430},
	{"    servers' processor time", "read get 64", "server_cpu_us_per_op", "µs", 100, 700},
	{"    as a multiple of a server that does nothing", "read get 64", "over_floor", "times", 0, 0},
	{"a server that does nothing: processor time of a GET", "floor get 64", "server_cpu_us_per_op", "µs", 0, 0},
	{"  of a POST", "floor create 64", "server_cpu_us_per_op", "µs", 0, 0},
	{"  other load beside creates, 100 % is one core", "write create 64", "other_cpu_pct", "%", 0, 0},
	{"leader killed: longest time without a write, p50", "failover KILL 0", "longest_gap_ms", "ms", 1300, 6000},
	{"  max", "failover KILL 0", "longest_gap_ms" + worst, "ms", 2000, 9000},
	{"  acknowledged writes lost", "failover KILL 0", "acked_lost" + worst, "", 0, 0},
	{"leader stopped in order: longest time without a write, p50", "failover TERM 0", "longest_gap_ms", "ms", 50, 0},
	{"  max", "failover TERM 0", "longest_gap_ms" + worst, "ms", 0, 0},
}
