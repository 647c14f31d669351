// Package nemesis does harm to the servers that test/consistency examines.
//
// It owns the list of faults (All), one file for each family, and the order in which they
// come: seeded, each kind once before any comes twice. A fault starts, lasts, and is stopped; after
// Stop all servers run and reach each other, and Settle waits until they serve again. The
// nemesis knows what it did: a server that ends without having been harmed is a finding.
// test/consistency calls it; the faults act through cluster.Cluster alone.
package nemesis
