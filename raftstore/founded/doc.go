// Package founded keeps a record, outside of every data directory, that a cluster was founded: when servers lose their
// data nothing else could tell them that they must not found another one.
//
// It owns the record: whose empty data directories were counted, the name of the cluster's present life and of those it
// comes of, and where its members are. Package raftstore reads and writes it through a Keeper, which says where it lies (a
// file in the trust folder). Places merges what a flag, the log and the record say of where servers are. It imports nothing of ours.
//
// Promises: of servers whose record exists, only those found the cluster whose data directories were counted then, and a
// record is durable before its server can have voted. A record that cannot be read founds nothing. Lives are chained: the
// former lives of a life are those that the same record has named before it, at most formerLivesMax.
//
// Tested with tables here, and by raftstore with servers that lose their disks.
package founded
