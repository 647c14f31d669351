// Package undelete gives back what was deleted: `setpoint undelete`.
//
// It owns the plan: what comes back, in which order, and what is left out and why; and the walk through it. It reads the past through the
// API, by exact resourceVersions, and writes through the API, with the caller's own rights: admission and authorization hold.
//
// Promises:
//   - All or nothing. What can be judged is judged before anything is made. A namespace in which something is refused later is removed
//     again.
//   - Owners come before what they own, and references name the new uids. A reference to what is no more is dropped, and told.
//   - What a controller makes again is left to it, and so is what each namespace gets by itself.
//   - It changes nothing that exists, but for one thing: a volume that still exists is told that its claim is a new one.
//
// Tested here for the plan over objects in memory, and through the binary by the script undelete.
package undelete
