// Package collect removes images that nobody uses when the disk fills up.
//
// It owns: when each image was seen first and used last, since the agent started, and
// the decision which images go. It may call: CRI, and the recorder in Config.
//
// The rules are a kubelet's: above the high threshold images are removed until the
// low one is reached, those used longest ago first; an image younger than the
// minimum age stays, and one that is unused for longer than the maximum age goes
// whatever the disk says. Images of containers, also of those that have ended, are
// in use, and so are those that containers mount. Pinned images stay.
//
// Dead containers need no collector: agent/pods keeps one for each container that
// runs, and removes the rest.
//
// Decisions are pure functions, tested with tables; Run in a synctest bubble with a
// fake runtime and a disk made up.
package collect
