// Package upkeep holds what a node needs of its machine as it should be, whatever other software does: tables and rules of nftables,
// links, addresses, routes and settings of the kernel.
//
// It owns the loop: when things are looked at, in which order they are put back, and when that pauses. What they are, how they are looked
// at and put back, their owners say ([Thing]): agent/net/network, agent/net/policy, agent/net/hostfirewall and agent/net/services.
// agent/host runs a [Keeper]; the agent's wiring hands it what the parts hold, and tells [Keeper.Problems] in a condition of the Node.
//
// Promises: things are looked at within a second of a change that netlink tells of, and every [lookInterval]. What keeps something
// shut, the guards, is put back first, and while one cannot be put back nothing that comes behind it is: nothing is open in between that
// was shut. A thing that somebody changes again and again is put back at growing intervals, of [pauseMax] at most, and told.
//
// The loop is tested in a bubble, the notifications of the kernel in a network namespace; agent/net/network tests its things with packets.
package upkeep
